//! Any stretch of a run again: matching goes through the run once and leaves copies of itself on the way;
//! what a stretch holds comes from the last copy before it.
//!
//! In: a run, its timeline, its communicators; then stretches in global seconds. Out: what matching finds
//! in them. Copies are as large as what is in flight, and there are at most `Replay::most` of them: the
//! steps between them double where a run is long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{MatchSink, Matcher, Unmatched};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;

/// Events between two copies at first.
const FIRST_STRIDE: u64 = 1 << 20;
/// Ranks times copies that are kept.
const RANKS_AND_COPIES: usize = 1 << 15;

struct Copies<'a> {
    /// Global seconds up to which a copy has come, ascending.
    all: Vec<(f64, Matcher<'a>)>,
    /// Up to where the run has been gone through.
    known_s: f64,
}

/// A run that can be matched from many places on.
pub struct Replay<'a> {
    copies: Mutex<Copies<'a>>,
    most: usize,
}

struct Nothing;

impl MatchSink for Nothing {
    fn message(&mut self, _message: &super::Message) {}
    fn unmatched(&mut self, _unmatched: &Unmatched) {}
}

impl<'a> Replay<'a> {
    /// Nothing is read yet.
    pub fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
    ) -> Self {
        let first = Matcher::new(run, timeline, communicators);
        let copies = Copies { all: vec![(f64::NEG_INFINITY, first)], known_s: f64::NEG_INFINITY };
        let most = (RANKS_AND_COPIES / run.ranks.len().max(1)).clamp(8, 256);
        Self { copies: Mutex::new(copies), most }
    }

    fn copies(&self) -> MutexGuard<'_, Copies<'a>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes through the run, until `stop` says so.
    pub fn go_through(&self, stop: &AtomicBool) {
        let mut matcher = self.copies().all[0].1.clone();
        let (mut stride, mut events) = (FIRST_STRIDE, 0u64);
        while matcher.step(&mut Nothing) {
            events += 1;
            if !events.is_multiple_of(stride) {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut copies = self.copies();
            copies.known_s = matcher.now_s();
            copies.all.push((matcher.now_s(), matcher.clone()));
            if copies.all.len() > self.most {
                let mut number = 0usize;
                copies.all.retain(|_| {
                    number += 1;
                    !number.is_multiple_of(2)
                });
                stride *= 2;
            }
        }
        self.copies().known_s = f64::INFINITY;
    }

    /// What matching finds from somewhat before a stretch (global seconds) to somewhat behind it: everything
    /// that is complete in it. Gives whether the run has been gone through up to there; where it has not, at
    /// most `most_events` events are read for the answer.
    pub fn between(
        &self,
        from_s: f64,
        to_s: f64,
        most_events: u64,
        sink: &mut dyn MatchSink,
    ) -> bool {
        let mut matcher = {
            let copies = self.copies();
            let behind = copies.all.partition_point(|(at_s, _)| *at_s < from_s);
            copies.all[behind.saturating_sub(1)].1.clone()
        };
        let end_s = to_s + (to_s - from_s);
        let mut events = 0;
        while matcher.step(sink) {
            if matcher.now_s() > end_s {
                return true;
            }
            events += 1;
            if events >= most_events && matcher.now_s() < to_s && self.copies().known_s < from_s {
                return false;
            }
        }
        matcher.finish(sink);
        true
    }
}
