//! What a reader should know about the times of a run.

use crate::trace::Run;

use super::alignment::Alignment;
use super::fault::{NotedRanks, TimeNote};
use super::global::{ElapsedScope, GlobalTimeline};

impl TimeNote {
    pub(super) fn all_for(timeline: &GlobalTimeline, run: &Run) -> Vec<Self> {
        let with = |alignment| {
            let concerned = timeline.ranks.iter().filter(move |r| r.clock.alignment == alignment);
            NotedRanks::from_ranks(concerned.map(|r| r.rank))
        };
        let guessed = timeline.ranks.iter().filter(|r| r.frequency.is_guess()).map(|r| r.rank);
        let mut notes = Vec::new();
        notes.extend(with(Alignment::AssumedShared).map(Self::AssumedShared));
        notes.extend(with(Alignment::Estimated).map(Self::Estimated));
        notes.extend(with(Alignment::Unaligned).map(Self::Unaligned));
        if let Some(estimate) = &timeline.estimate {
            let of = |ranks: &[u32]| NotedRanks::from_ranks(ranks.iter().copied());
            notes.extend(of(&estimate.unconnected).map(Self::Unconnected));
            notes.extend(of(&estimate.contradictory).map(Self::Contradictory));
        }
        notes.extend(NotedRanks::from_ranks(guessed).map(Self::GuessedFrequency));
        if timeline.scope == ElapsedScope::Process {
            notes.push(Self::WholeProcess);
            let unknown = run.ranks.iter().filter(|rank| rank.facts.life.is_none());
            let unknown = NotedRanks::from_ranks(unknown.map(|rank| rank.rank));
            notes.extend(unknown.map(Self::ProcessBeginUnknown));
        }
        notes
    }
}
