//! Stacks that were asked for by a signal.

use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::LiveWindows;
use crate::layout::CHUNK_HEADER_BYTES;
use crate::plain::read_plain;
use crate::stacks::*;

/// The stack of a thread, which somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedStack {
    /// Operating system's id of the thread.
    pub os_id: u32,
    /// Counter at that moment.
    pub ticks: u64,
    /// Address of the instruction, then return addresses in the callers, innermost first; interpreted ones as in
    /// [`crate::samples`].
    pub addresses: Vec<u64>,
    /// Whether the last of them is the thread's first function.
    pub is_complete: bool,
}

/// What the area for stacks has at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    /// The signal to send; 0: the process must not be asked.
    pub signal: u32,
    /// Process that answers.
    pub process: u32,
    /// The last stacks, in order of time.
    pub stacks: Vec<AskedStack>,
}

impl Answers {
    /// Reads an area, given from its chunk's header on. What is not valid is left out.
    pub(super) fn read(area: &[u8]) -> Self {
        let head: Option<StackHead> = area.get(CHUNK_HEADER_BYTES..).and_then(read_plain);
        let StackHead { signal, process, .. } = head.unwrap_or_default();
        let stored = area.get(ANSWERS_AT..).unwrap_or_default();
        let answers = stored.chunks_exact(size_of::<StackAnswer>()).take(ANSWERS);
        let stacks = answers.filter_map(|bytes| {
            let answer: StackAnswer = read_plain(bytes)?;
            Some(AskedStack {
                os_id: answer.thread_os_id,
                ticks: answer.ticks,
                addresses: answer.whole()?.to_vec(),
                is_complete: answer.is_complete != 0,
            })
        });
        let mut stacks: Vec<AskedStack> = stacks.collect();
        stacks.sort_by_key(|stack| stack.ticks);
        Self { signal, process, stacks }
    }
}

impl LiveWindows {
    /// Reads the area for stacks; `None` if the process has none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn answers(&self) -> io::Result<Option<Answers>> {
        let Some(at) = &self.stacks else { return Ok(None) };
        let mut area = vec![0; (at.end - at.start).min(STACKS_BYTES as u64) as usize];
        self.source.read_exact_at(&mut area, at.start)?;
        Ok(Some(Answers::read(&area)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::bytes_of;

    fn answer(number: u32, number_again: u64, functions: u32) -> StackAnswer {
        let (thread_os_id, ticks, is_complete) = (7, u64::from(100 - number), 1);
        let addresses = [0x1000; MAX_STACK];
        StackAnswer { number, thread_os_id, ticks, functions, is_complete, addresses, number_again }
    }

    #[test]
    fn whole_answers_count() {
        let head = StackHead { signal: 16, process: 42, count: 5, ..StackHead::default() };
        let mut area = vec![0; CHUNK_HEADER_BYTES];
        area.extend(bytes_of(&head));
        let torn = [answer(0, 0, 1), answer(3, 2, 1), answer(4, 4, 125)];
        for answer in [answer(1, 1, 2), answer(2, 2, 0)].iter().chain(&torn) {
            area.extend(bytes_of(answer));
        }
        let answers = Answers::read(&area);
        assert_eq!((answers.signal, answers.process), (16, 42));
        let stacks: Vec<_> =
            answers.stacks.iter().map(|of| (of.ticks, of.addresses.len())).collect();
        assert_eq!(stacks, [(98, 0), (99, 2)]);
        // Whatever was cut off.
        for end in 0..area.len() {
            let _ = Answers::read(&area[..end]);
        }
    }
}
