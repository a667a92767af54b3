//! Matches any stretch of a run on demand. Matching goes through the run once and stores
//! checkpoints of itself; a stretch is matched again from the last checkpoint before it.
//!
//! A checkpoint is as large as what is in flight. Their number is limited: in a long run the
//! distance between them doubles as often as necessary.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::global::GlobalTimeline;
use crate::trace::Run;

use super::findings::{MatchFinding, MatchSink};
use super::matcher::Matcher;

/// Initial number of events between two checkpoints.
const INITIAL_STRIDE: u64 = 1 << 20;
/// Limit for ranks times checkpoints.
const RANKS_TIMES_CHECKPOINTS: usize = 1 << 15;

struct Checkpoints<'a> {
    /// Checkpoints with the global seconds up to which they have matched, ascending.
    all: Vec<(f64, Matcher<'a>)>,
    /// Global seconds up to which the run has been scanned.
    known_s: f64,
}

/// A run that can be matched from any moment on.
pub struct CheckpointedMatching<'a> {
    checkpoints: Mutex<Checkpoints<'a>>,
    /// Largest number of checkpoints.
    max: usize,
}

/// Ignores all findings.
struct Discard;

impl MatchSink for Discard {
    fn take(&mut self, _finding: &MatchFinding) {}
}

impl<'a> CheckpointedMatching<'a> {
    /// Starts without reading any event.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let first = Matcher::new(run, timeline, communicators);
        let checkpoints =
            Checkpoints { all: vec![(f64::NEG_INFINITY, first)], known_s: f64::NEG_INFINITY };
        let max = (RANKS_TIMES_CHECKPOINTS / run.ranks.len().max(1)).clamp(8, 256);
        Self { checkpoints: Mutex::new(checkpoints), max }
    }

    fn checkpoints(&self) -> MutexGuard<'_, Checkpoints<'a>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scans the run and stores checkpoints, until `stop` is set.
    pub fn scan(&self, stop: &AtomicBool) {
        let mut matcher = self.checkpoints().all[0].1.clone();
        let (mut stride, mut events) = (INITIAL_STRIDE, 0u64);
        while matcher.step(&mut Discard) {
            events += 1;
            if !events.is_multiple_of(stride) {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut checkpoints = self.checkpoints();
            checkpoints.known_s = matcher.now_s();
            checkpoints.all.push((matcher.now_s(), matcher.clone()));
            if checkpoints.all.len() > self.max {
                let mut number = 0usize;
                checkpoints.all.retain(|_| {
                    number += 1;
                    !number.is_multiple_of(2)
                });
                stride *= 2;
            }
        }
        self.checkpoints().known_s = f64::INFINITY;
    }

    /// Passes what matching finds around a stretch (global seconds), including everything that
    /// completes in it, to the sink. If the run has not been scanned up to there, reads at most
    /// `max_events` events; returns `false` if these did not suffice.
    pub fn between(
        &self,
        from_s: f64,
        to_s: f64,
        max_events: u64,
        sink: &mut dyn MatchSink,
    ) -> bool {
        let mut matcher = {
            let checkpoints = self.checkpoints();
            let next = checkpoints.all.partition_point(|(at_s, _)| *at_s < from_s);
            checkpoints.all[next.saturating_sub(1)].1.clone()
        };
        let end_s = to_s + (to_s - from_s);
        let mut events = 0;
        while matcher.step(sink) {
            if matcher.now_s() > end_s {
                return true;
            }
            events += 1;
            if events >= max_events && matcher.now_s() < to_s && self.checkpoints().known_s < from_s
            {
                return false;
            }
        }
        matcher.finish(sink);
        true
    }
}
