//! What made a rank late.

use crate::causes::{Causes, Context, LateBy};
use crate::diagnosis::OwnTimes;
use crate::metrics::OwnTime;

/// What made a rank late.
#[derive(Debug, Clone, PartialEq)]
pub enum Delay {
    /// It spent longer there than the rank that waited for it.
    Longer(Longer, Box<Context>),
    /// It waited itself, for this thread of a rank if that is known.
    WaitedFor(Option<(u32, u32)>),
}

/// What a rank did longer than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Longer {
    /// Time outside MPI that counts as computing, as far as the kernel tells.
    Own(OwnTime),
    /// Code outside MPI that does not count as computing.
    OtherCode,
    /// Time in MPI calls or in the recorder.
    Inside,
}

impl Delay {
    /// A line that was longer in a context.
    pub(super) fn longer(causes: &Causes, context: u32, own: OwnTime) -> Self {
        let found = causes.contexts.get(context);
        let longer = match found.is_computing() {
            true if !causes.counts_as_computing(found) => Longer::OtherCode,
            true => Longer::Own(own),
            false => Longer::Inside,
        };
        Self::Longer(longer, Box::new(found.clone()))
    }

    pub(super) fn new(causes: &Causes, by: LateBy, own: OwnTime) -> Self {
        match by {
            LateBy::Context(context) => Self::longer(causes, context, own),
            LateBy::WaitFor(line) => {
                let line = causes.lines.all.get(line as usize);
                Self::WaitedFor(line.map(|line| (line.rank, line.thread)))
            }
        }
    }

    /// What made the delaying rank of a wait late, if that is known.
    pub fn of_wait(causes: &Causes, number: u32, own_times: &OwnTimes) -> Option<Self> {
        let own = own_times.on_line(causes, causes.waits[number as usize].delayed_by);
        let (delays, inner) = causes.delays(number);
        let delay = delays.iter().max_by_key(|(_, ticks)| *ticks);
        let inner = inner.map(|inner| &causes.waits[inner as usize]);
        let by = match (delay, inner.max_by_key(|inner| inner.ticks)) {
            (Some((context, ticks)), inner) if inner.is_none_or(|inner| inner.ticks <= *ticks) => {
                LateBy::Context(*context)
            }
            (_, inner) => LateBy::WaitFor(inner?.delayed_by),
        };
        Some(Self::new(causes, by, own))
    }
}
