//! The calls of several threads in order of their begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use trace_format::reader::Events;

use super::{Call, Content};

/// One thread's events: position of its rank among the exported ones, its number, and the rest.
type ThreadEvents<'a> = (usize, u32, Peekable<Events<'a>>);

/// The calls of several threads in order of their begin on the global timeline.
pub(super) struct Merged<'a> {
    content: &'a Content<'a>,
    threads: Vec<ThreadEvents<'a>>,
    /// Begin of each thread's next event: nanoseconds, ticks, place of the thread.
    next: BinaryHeap<Reverse<(i64, u64, usize)>>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(content: &'a Content<'a>, ranks: Vec<usize>) -> Self {
        let threads = ranks.into_iter().flat_map(|rank| {
            let file = &content.trace(rank).file;
            file.threads
                .iter()
                .map(move |thread| (rank, thread.number, file.events(thread).peekable()))
        });
        let mut merged = Self { content, threads: threads.collect(), next: BinaryHeap::new() };
        (0..merged.threads.len()).for_each(|place| merged.offer(place));
        merged
    }

    fn offer(&mut self, place: usize) {
        let (rank, _, events) = &mut self.threads[place];
        if let Some(event) = events.peek() {
            let at_ns = self.content.time_ns(*rank, event.begin);
            self.next.push(Reverse((at_ns, event.begin, place)));
        }
    }
}

impl Iterator for Merged<'_> {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        loop {
            let Reverse((_, _, place)) = self.next.pop()?;
            let (rank, thread, events) = &mut self.threads[place];
            let (rank, thread, event) = (*rank, *thread, events.next()?);
            self.offer(place);
            if let Some(call) = self.content.call(rank, thread, event) {
                return Some(call);
            }
        }
    }
}
