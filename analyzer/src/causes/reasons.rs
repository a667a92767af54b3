//! Why the delaying ranks of waits were late, wait by wait.

use rustc_hash::FxHashMap;

use super::sampled_code::{SampledDelay, SampledDelays};
use super::waits::Waits;

/// Why the delaying ranks of waits were late, wait by wait.
#[derive(Debug, Clone, Default)]
pub struct Reasons {
    pub(super) delays: OfWaits<(u32, i64)>,
    /// Kept where the delaying rank itself waited: if it waited for the line, it was late all the same.
    pub(super) balanced: OfWaits<Balanced>,
    /// The delaying rank's own waits in the interval: first number, and the one after the last.
    delaying_waits: Vec<(u32, u32)>,
    /// When the line of each wait last met its delaying rank.
    pub(super) met: Vec<i64>,
    /// The delays to which each wait goes back.
    pub(super) origins: Origins,
    /// Ticks of all waits before each one; one more entry follows the last.
    pub(super) ticks_before: Vec<i64>,
    /// Waits whose interval is too long to search.
    pub too_long: u64,
    /// The calls after which delays are named.
    pub(super) in_calls: InCalls,
    /// What was sampled of the delays.
    pub(super) sampled: SampledDelays,
}

/// Time of a delaying rank that is no delay, because the line that waited spent as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Balanced {
    pub context: u32,
    pub ticks: i64,
    /// Whether the line that waited has this context, too; else it spent as much in contexts that it
    /// alone has.
    pub is_common: bool,
}

/// What each wait has several of.
#[derive(Debug, Clone, Default)]
pub(super) struct OfWaits<T> {
    /// Index of each wait's first one; one more entry ends the last.
    first: Vec<u32>,
    all: Vec<T>,
}

impl<T: Copy + Default> OfWaits<T> {
    /// Joins those of several pieces; `of` gives how many a wait has, and those of all waits of a
    /// piece.
    fn join(
        pieces: &[PieceReasons],
        count: usize,
        of: impl Fn(&PieceReasons) -> (fn(&PieceWait) -> u32, &[T]),
    ) -> Self {
        let mut first = vec![0; count + 1];
        for piece in pieces {
            let (count_of, _) = of(piece);
            piece.waits.iter().for_each(|wait| first[wait.number as usize + 1] = count_of(wait));
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut all = vec![T::default(); first[count] as usize];
        for piece in pieces {
            let (count_of, of_piece) = of(piece);
            let mut from = 0;
            for wait in &piece.waits {
                let to = first[wait.number as usize] as usize;
                let count = count_of(wait) as usize;
                all[to..to + count].copy_from_slice(&of_piece[from..from + count]);
                from += count;
            }
        }
        Self { first, all }
    }

    /// Changes each one; `change` also gets the number of its wait.
    pub(super) fn each_mut(&mut self, mut change: impl FnMut(u32, &mut T)) {
        for (number, bounds) in (0u32..).zip(self.first.windows(2)) {
            let of_wait = bounds[0] as usize..bounds[1] as usize;
            self.all[of_wait].iter_mut().for_each(|one| change(number, one));
        }
    }

    fn get(&self, wait: u32) -> &[T] {
        let at = wait as usize;
        &self.all[self.first[at] as usize..self.first[at + 1] as usize]
    }
}

/// Reasons of the waits that ended in one piece of the run.
#[derive(Debug, Default)]
pub(super) struct PieceReasons {
    pub(super) waits: Vec<PieceWait>,
    pub(super) delays: Vec<(u32, i64)>,
    pub(super) balanced: Vec<Balanced>,
    pub(super) too_long: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PieceWait {
    pub(super) number: u32,
    /// How many delays and balanced contexts it has.
    pub(super) delays: u32,
    pub(super) balanced: u32,
    /// The delaying rank's own waits.
    pub(super) delaying_waits: (u32, u32),
}

/// How much of a wait is explained, ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explained {
    /// Sum of the delaying rank's delays, and of its own waits.
    pub delays: i64,
    pub delaying_waits: i64,
    /// The part of the wait that each of them explains.
    pub by_delays: i64,
    pub by_waits: i64,
}

/// Ticks of a wait that go back to a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub line: u32,
    pub context: u32,
    pub ticks: i64,
}

/// The parts of all waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins {
    /// For each wait where its parts begin, and how many they are.
    pub(super) of_wait: Vec<(u32, u8)>,
    /// The parts of a wait follow each other, the largest first.
    pub(super) parts: Vec<Part>,
}

/// For each delaying line and context the call that makes it longer.
#[derive(Debug, Clone, Default)]
pub(super) struct InCalls(pub(super) FxHashMap<(u32, u32), u32>);

impl Reasons {
    /// Joins the parts, in order of the waits.
    pub(super) fn join(mut parts: Vec<PieceReasons>, count: usize) -> Self {
        let mut delaying_waits = vec![(0, 0); count];
        for wait in parts.iter().flat_map(|part| &part.waits) {
            delaying_waits[wait.number as usize] = wait.delaying_waits;
        }
        let too_long = parts.iter().map(|part| part.too_long).sum();
        let delays = OfWaits::join(&parts, count, |part| (|wait| wait.delays, &part.delays));
        // They take as much memory as what they were joined to.
        parts.iter_mut().for_each(|part| part.delays = Vec::new());
        let balanced = OfWaits::join(&parts, count, |part| (|wait| wait.balanced, &part.balanced));
        Self { delays, balanced, delaying_waits, too_long, ..Self::default() }
    }

    /// Gives the delays of waits other contexts: `name` gets the delaying line and the context.
    pub(super) fn rename(&mut self, waits: &Waits, name: impl Fn(u32, u32) -> u32) {
        self.delays.each_mut(|number, (context, _)| {
            *context = name(waits.all[number as usize].delayed_by, *context);
        });
        self.origins.each_mut(|part| part.context = name(part.line, part.context));
        self.sampled.rename(name);
    }

    /// What was sampled of the delay of a line in a context; `None` if its code was not sampled.
    pub fn sampled(&self, line: u32, context: u32) -> Option<&SampledDelay> {
        self.sampled.0.get(&(line, context))
    }

    /// Contexts in which the delaying rank spent more time than the line that waited, with the excess
    /// d(c).
    pub fn delays(&self, wait: u32) -> &[(u32, i64)] {
        self.delays.get(wait)
    }

    /// The delaying rank's time that is no delay because the line that waited spent as much; empty if the
    /// delaying rank did not wait.
    pub(super) fn balanced(&self, wait: u32) -> &[Balanced] {
        self.balanced.get(wait)
    }

    /// Numbers of the delaying rank's own waits in the interval.
    pub fn waits(&self, wait: u32) -> std::ops::Range<u32> {
        let (from, to) = self.delaying_waits[wait as usize];
        from..to
    }

    /// How much of a wait the delaying rank's delays and the delaying rank's own waits explain.
    ///
    /// Their sum (S) exceeds the wait by what the waiting line itself spent longer and waited since
    /// the two last met. That time made the delaying rank wait, or both lines waited for it, so it is
    /// first deducted from the delaying rank's waits.
    pub(super) fn explained(&self, wait: u32, waits: &Waits) -> Explained {
        let length = waits.all[wait as usize].ticks;
        let delays: i64 = self.delays(wait).iter().map(|(_, ticks)| *ticks).sum();
        let (from, to) = self.delaying_waits[wait as usize];
        let delaying_waits = self.ticks_before[to as usize] - self.ticks_before[from as usize];
        let by_delays = delays.min(length);
        let by_waits = delaying_waits.min(length - by_delays);
        Explained { delays, delaying_waits, by_delays, by_waits }
    }
}
