//! Provides writers with the samples of a run's code: the stacks of each thread on the global timeline, and what was
//! not sampled.

use crate::analysis::Analysis;
use crate::metrics::code::{Code, CodeMetrics, Function};
use crate::plain_text::printable;

use super::content::Content;
use super::error::ExportError;

/// In place of the callers of functions whose callers are not all known.
pub const CUT: &str = "[callers not known]";

/// The samples of the chosen part of a run.
pub struct Samples {
    code: CodeMetrics,
    pub threads: Vec<SampledThread>,
    pub unsampled: Vec<Unsampled>,
}

/// The samples of a thread.
#[derive(Debug, Clone)]
pub struct SampledThread {
    /// Position among the exported ranks.
    pub rank: usize,
    /// Number in the rank's file; `None` if it never called MPI.
    pub thread: Option<u32>,
    /// Index among the rank's sampled threads.
    pub index: usize,
    /// Nanoseconds that a sample stands for.
    pub period_ns: i64,
    /// Nanoseconds of the timeline, ascending, and number of the rank's stack.
    pub samples: Vec<(i64, u32)>,
    position: usize,
}

/// Time of a rank in the whole run that samples do not show.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsampled {
    /// Position among the exported ranks.
    pub rank: usize,
    /// What it is, in brackets as are other names that are no functions.
    pub name: &'static str,
    pub ns: i64,
    /// The number of samples that this would be.
    pub samples: u64,
}

/// A function on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// `None`: the callers are not known.
    pub function: Option<&'a Function>,
    /// Number of the function, from 1 on; 0 stands for the callers that are not known.
    pub number: u32,
    pub line: Option<u32>,
}

impl Frame<'_> {
    /// The name of the function; of one without, the file that contains it.
    pub fn name(&self) -> String {
        self.function.map_or_else(|| CUT.to_owned(), function_name)
    }

    /// The source file, if it is known.
    pub fn file(&self) -> Option<&str> {
        self.function.and_then(|of| of.file.as_deref())
    }
}

/// The name of a function; of one without, the file that contains it.
pub fn function_name(of: &Function) -> String {
    let module = of.module.rsplit('/').next().unwrap_or_default();
    match (&of.name, module) {
        (Some(name), _) => printable(name),
        (None, "") => "[unknown]".to_owned(),
        (None, module) => printable(&format!("[{module}]")),
    }
}

impl Samples {
    /// Reads the samples of the chosen part; `None` if there are none.
    pub fn read(content: &Content) -> Option<Self> {
        let stretches = stretches(content);
        let analysis = Analysis::new(content.run, content.timeline);
        let code = CodeMetrics::new(&analysis, &stretches, content.choice.window_s.is_none())?;
        let (mut threads, mut unsampled) = (Vec::new(), Vec::new());
        for (position, stretch) in stretches.iter().enumerate() {
            let of_rank = &code.ranks[position];
            let exported = content.exported_rank(of_rank.rank);
            let (Some(rank), Some(stretch)) = (exported, stretch) else { continue };
            let samples = content.run.ranks[position].samples();
            let clock = &content.timeline.ranks[position].clock;
            for (index, thread) in samples.threads.iter().enumerate() {
                let inside =
                    |ticks: u64| stretch.iter().any(|(from, to)| (*from..*to).contains(&ticks));
                let chosen = thread.samples.iter().filter(|(ticks, _)| inside(*ticks));
                let samples =
                    chosen.map(|(ticks, stack)| (clock.whole_ns(*ticks), *stack)).collect();
                threads.push(SampledThread {
                    rank,
                    thread: thread.thread,
                    index,
                    period_ns: (of_rank.period_s * 1e9).round() as i64,
                    samples,
                    position,
                });
            }
            unsampled.extend(of_rank.rows.iter().filter_map(|row| {
                let name = match row.code {
                    Code::Kernel => "[kernel, or signals held off]",
                    Code::Lost => "[samples lost]",
                    Code::Function(_) | Code::CutStacks => return None,
                };
                let samples = (row.self_s / of_rank.period_s).round() as u64;
                Some(Unsampled { rank, name, ns: (row.self_s * 1e9).round() as i64, samples })
            }));
        }
        Some(Self { code, threads, unsampled })
    }

    /// The same; an error if there are none.
    ///
    /// # Errors
    /// The code was not sampled.
    pub fn required(content: &Content) -> Result<Self, ExportError> {
        let none =
            || ExportError::Format("no code was sampled there: record it with --sample".into());
        Self::read(content).ok_or_else(none)
    }

    /// The functions of a stack, the outermost first.
    pub fn frames(&self, thread: &SampledThread, stack: u32) -> Vec<Frame<'_>> {
        let stacks = &self.code.ranks[thread.position].stacks;
        let is_complete = stacks.stacks[stack as usize].is_complete;
        let frame = |(function, line): (u32, Option<u32>)| Frame {
            function: Some(&self.code.functions[function as usize]),
            number: function + 1,
            line,
        };
        let cut = (!is_complete).then_some(Frame { function: None, number: 0, line: None });
        let mut frames: Vec<Frame> = stacks.places(stack).map(frame).chain(cut).collect();
        frames.reverse();
        frames
    }

    /// The name of a thread.
    pub fn thread_name(content: &Content, thread: &SampledThread) -> String {
        let rank = content.head.ranks[thread.rank].rank;
        match thread.thread {
            Some(0) => format!("rank {rank}"),
            Some(number) => format!("rank {rank}, thread {number}"),
            None => format!("rank {rank}, without MPI #{}", thread.index),
        }
    }
}

/// The chosen part of each rank, ticks.
pub fn stretches(content: &Content) -> Vec<Option<Vec<(u64, u64)>>> {
    let window = content.choice.window_s.as_ref();
    let ranks = content.run.ranks.iter().zip(&content.timeline.ranks);
    let stretch = ranks.map(|(trace, time)| {
        content.exported_rank(trace.rank)?;
        let (from, to) = window.map_or((0, u64::MAX), |window| {
            (time.clock.ticks_at(window.start), time.clock.ticks_at(window.end))
        });
        Some(vec![(time.begin_ticks.max(from), time.end_ticks.min(to))])
    });
    stretch.collect()
}

/// A run whose samples are exported by the tests of several formats.
#[cfg(test)]
pub mod test_run {
    use std::path::Path;

    use crate::export::content::{Choice, Content};
    use crate::export::error::ExportError;
    use crate::export::progress::{Progress, Written};
    use crate::synthetic_code::{Library, sampled};
    use crate::synthetic_trace::RunDirectory;
    use crate::timeline::GlobalTimeline;
    use crate::timeline::communicators::CommunicatorTable;
    use crate::trace::Run;

    pub struct Silent;

    impl Progress for Silent {
        fn stage(&self, _: &str, _: Option<u64>) {}
        fn advance(&self, _: u64) {}
    }

    /// Two ranks that compute 2 s each, one after the other in each of 50 turns, and are half a second in the kernel.
    pub fn directory() -> RunDirectory {
        let functions = [1, 2, 3, 4].map(|number| number << 12);
        let library = Library { path: "/x/code".into(), build_id: String::new(), functions };
        let (short, long) = ([40_000_000, 0, 0, 0], [80_000_000, 0, 0, 0]);
        let work = vec![vec![short; 50], vec![long; 50]];
        let mut ranks = sampled(&library, 1, &work);
        for thread in ranks.iter_mut().flat_map(|rank| &mut rank.sampled) {
            thread.cpu_ns = thread.delivered * 1_000_000_000 / 99 + 500_000_000;
        }
        RunDirectory::with_ranks(&ranks)
    }

    /// What a format writes of it.
    pub fn exported(
        write: impl Fn(&Content, &Path, &dyn Progress) -> Result<Written, ExportError>,
    ) -> Vec<u8> {
        exported_of(&directory(), write)
    }

    /// What a format writes of a run.
    pub fn exported_of(
        directory: &RunDirectory,
        write: impl Fn(&Content, &Path, &dyn Progress) -> Result<Written, ExportError>,
    ) -> Vec<u8> {
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let communicators = CommunicatorTable::new(&run);
        let choice = Choice::default();
        let content = Content::new(&run, &timeline, &communicators, &choice);
        let path = directory.path().join("exported");
        write(&content, &path, &Silent).unwrap();
        std::fs::read(path).unwrap()
    }

    pub fn json(text: &[u8]) -> serde_json::Value {
        serde_json::from_slice(text).expect("JSON")
    }
}
