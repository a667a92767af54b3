//! Matching before the first event is read.

use std::sync::Arc;

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::global::GlobalTimeline;
use crate::timeline::mpi_constants::MpiConstants;
use crate::timeline::stretch::Ending;
use crate::trace::{RankTrace, Run};

use super::channels::Channels;
use super::collectives::Collectives;
use super::emitter::Emitter;
use super::fate::Unsettled;
use super::findings::{MatchInterest, Reason};
use super::operations::{CollectiveNames, Operations};
use super::rank_state::RankState;
use super::state::{Matching, Partner};
use super::unfinished::Unfinished;

/// Whether any rank's file has the arguments that matching needs.
pub fn is_possible(run: &Run) -> bool {
    run.ranks.iter().any(has_attributes)
}

pub(super) fn has_attributes(trace: &RankTrace) -> bool {
    let header = &trace.file.header;
    trace.file.fixed.level > 0 && MpiConstants::of_family(&header.mpi_family).is_some()
}

/// Matching before the first event; no event has been read yet.
pub(super) struct Start<'a> {
    pub(super) operations: Arc<Vec<Arc<Operations>>>,
    pub(super) matching: Matching<'a>,
    /// `None` for ranks whose events cannot be matched.
    pub(super) ranks: Vec<Option<RankState<'a>>>,
}

impl<'a> Start<'a> {
    pub(super) fn new(
        run: &'a Run,
        timeline: &'a GlobalTimeline,
        communicators: &'a CommunicatorTable,
        wants: MatchInterest,
    ) -> Self {
        let mut names = CollectiveNames::default();
        let of_functions =
            |functions: &[String]| Operations::new(functions, &mut names, wants.waiting);
        let operations = Arc::new(run.of_functions(of_functions));
        let mut channels = Channels::default();
        if wants.completions {
            channels.keep_completions();
        }
        let matching = Matching {
            communicators,
            channels,
            collectives: Collectives::new(communicators),
            unfinished: Unfinished::default(),
            emitter: Emitter::new(run, timeline, names, wants),
            partners: partners(run, timeline),
            some_ended: !run.missing.is_empty() || !run.ranks.iter().all(has_attributes),
            unsettled: Unsettled::default(),
            settled: Vec::new(),
            share: None,
        };
        let state = |index: usize| {
            let trace = &run.ranks[index];
            let constants = MpiConstants::of_family(&trace.file.header.mpi_family);
            let constants = constants.filter(|_| has_attributes(trace));
            constants.map(|constants| RankState::new(index, trace, constants))
        };
        let ranks = (0..run.ranks.len()).map(state).collect();
        Self { operations, matching, ranks }
    }
}

/// Each rank with a file as a partner of others, before any event is read.
pub(super) fn partners(run: &Run, timeline: &GlobalTimeline) -> Vec<(u32, Partner)> {
    let ranks = run.ranks.iter().zip(&timeline.ranks);
    let partners = ranks.map(|(trace, time)| {
        let cut = matches!(time.ending, Ending::Damaged | Ending::Stopped)
            || trace.facts.lost_events.is_some_and(|lost| lost > 0)
            || trace.threads.iter().any(|thread| thread.damage.is_some());
        let reason = match trace {
            _ if !has_attributes(trace) => Reason::PartnerWithoutAttributes,
            _ if cut => Reason::PartnerCut,
            _ if !trace.facts.finalized() => Reason::PartnerUnfinished,
            _ => Reason::NoPartner,
        };
        (trace.rank, Partner { live: reason != Reason::PartnerWithoutAttributes, reason })
    });
    partners.collect()
}
