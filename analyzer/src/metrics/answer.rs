//! Computes everything that a report needs from a run's events, with one pass over the calls and
//! one over the messages.

use std::ops::Range;

use crate::analysis::{Analysis, ReadTogether, ReadsAlong};
use crate::timeline::matching::MatchingSummary;

use super::activity::detail::{Budget, Detail, MatchCollector};
use super::activity::{Activity, Bins};
use super::code::CodeMetrics;
use super::combined::{CombinedParts, Matched};
use super::exchanges::{self, Exchanges};
use super::figures::Metrics;
use super::messages::{MessageMetrics, Tally, TallySums};
use super::passes::Passes;
use super::resolve::{Resolved, SelectionError};
use super::selection::Selection;
use super::selection_index::SelectionIndex;

/// What a report needs.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The selection that the figures are for.
    pub selection: &'q Selection,
    /// Whether to match messages. They are always matched if ranks did not finish.
    pub messages: bool,
    /// Selections whose work and bytes are also needed.
    pub exchanges: &'q [Selection],
    /// The timeline of a page, if there is to be one.
    pub page: Option<Page<'q>>,
}

impl<'q> Question<'q> {
    /// A selection's figures, with its messages.
    pub fn about(selection: &'q Selection) -> Self {
        Self { selection, messages: true, exchanges: &[], page: None }
    }

    /// Without messages, unless some rank did not finish: then matching shows which rank each one
    /// waits for.
    #[must_use]
    pub fn without_messages(self) -> Self {
        Self { messages: false, ..self }
    }
}

/// The timeline of a page: what each thread did when, and the single calls of some windows.
#[derive(Debug, Clone, Copy)]
pub struct Page<'q> {
    /// Bins per row.
    pub bins: usize,
    /// Requested windows, global seconds.
    pub windows: &'q [Range<f64>],
    /// How much it may hold.
    pub budget: Budget,
}

/// The results for a [`Question`].
#[derive(Debug)]
pub struct Answer {
    /// Where the time went.
    pub metrics: Metrics,
    /// Work and bytes of the other selections, in their order.
    pub exchanges: Vec<Result<Exchanges, SelectionError>>,
    /// What each thread did when, and the single calls of some windows.
    pub page: Option<(Activity, Detail)>,
}

impl Answer {
    /// Reads the calls once, and matches the messages once if they are needed. The single calls of
    /// a page, and the bounds of regions and windows, take passes of their own. If the analysis is
    /// divided, all processes call this, and only the first one's result contains messages, call
    /// sites and what unfinished ranks wait for.
    ///
    /// # Errors
    /// The question's selection names something that the run does not have.
    ///
    /// # Panics
    /// If the analysis is divided and the question is about more than one selection, or a page.
    pub fn new(analysis: &Analysis, question: &Question) -> Result<Self, SelectionError> {
        Self::along(analysis, question, &()).map(|(answer, _)| answer)
    }

    /// Like [`Answer::new`], with somebody who reads along in both passes.
    ///
    /// # Errors
    /// As [`Answer::new`].
    ///
    /// # Panics
    /// As [`Answer::new`].
    pub fn along<'a, R: ReadsAlong<'a>>(
        analysis: &Analysis<'a>,
        question: &Question,
        along: &R,
    ) -> Result<(Self, ReadTogether<'a, R>), SelectionError> {
        let Question { selection, exchanges, page, .. } = *question;
        let is_divisible = exchanges.is_empty() && page.is_none();
        assert!(
            is_divisible || analysis.processes.is_alone(),
            "these results of several processes cannot be merged"
        );
        // If ranks did not finish, matching shows which rank each one waits for.
        let messages = question.messages || !analysis.run.all_finished();
        let all: Vec<Selection> = std::iter::once(selection).chain(exchanges).cloned().collect();
        let mut resolved = Resolved::all(analysis, &all);
        let others = resolved.split_off(1);
        let main = match resolved.pop() {
            Some(main) => main?,
            None => unreachable!("there is at least one selection"),
        };
        let good: Vec<&Resolved> = others.iter().flatten().collect();
        let selections: Vec<&Resolved> =
            std::iter::once(&main).chain(good.iter().copied()).collect();

        let bins = page.map(|page| Bins::new(analysis.timeline, page.bins));
        let observers = (&bins, along.calls());
        let keep = |(bins, calls)| (bins, along.of_rank(calls));
        let (mut passes, kept) = Passes::with_observer(analysis, &selections, &observers, keep);
        let (binned, of_ranks): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        let page = page.zip(bins).map(|(page, bins)| {
            let activity =
                Activity::from_bins(analysis, &bins, binned.into_iter().flatten().collect());
            let detail = Detail::of_events(analysis, &activity, page.windows, page.budget);
            (activity, detail, page.budget)
        });

        let selected = SelectionIndex::new(analysis.run.ranks.len(), &good);
        let new_sink = || {
            let tally = messages.then(|| Tally::new(analysis, &main));
            let exchanged = (!good.is_empty())
                .then(|| exchanges::Tally::new(analysis.run, &selected, good.len()));
            let collector = page
                .as_ref()
                .map(|(_, detail, budget)| MatchCollector::new(&detail.windows, *budget));
            (tally, (exchanged, (collector, along.sink())))
        };
        let needs_matching =
            messages || !good.is_empty() || page.is_some() || along.sink().is_some();
        let found = needs_matching.then(|| analysis.matches(new_sink)).flatten();
        let (mut tallies, mut exchanged, mut collected) = (Vec::new(), Vec::new(), Vec::new());
        let mut sinks_along = found.is_some().then(Vec::new);
        let summary = found.map(|(summary, sinks)| {
            for (tally, (exchange, (collector, along))) in sinks {
                tallies.extend(tally);
                exchanged.extend(exchange);
                collected.extend(collector);
                if let Some(all) = &mut sinks_along {
                    all.extend(along);
                }
            }
            summary
        });
        let matched = match messages {
            true => {
                let sums = tallies.into_iter().map(Tally::into_sums).reduce(TallySums::merged);
                let sums = sums.or_else(|| Some(Tally::new(analysis, &main).into_sums()));
                let found = summary.zip(sums);
                let found = found.and_then(|own| analysis.processes.reduce(own, merged));
                let found = found.map(|(s, sums)| MessageMetrics::from_sums(analysis, s, sums));
                Matched::Found(found.map(Box::new))
            }
            false => Matched::NotRequested,
        };
        let exchanged = exchanged.into_iter().reduce(exchanges::Tally::merged);
        // The question's own selection comes first in the pass.
        let (requested, from) = ((exchanges, others.as_slice()), (&passes, 1));
        let exchanges = Exchanges::several(analysis, requested, from, exchanged.as_ref());
        let page = page.map(|(activity, mut detail, budget)| {
            detail.add_matches(collected, budget);
            (activity, detail)
        });
        let sites = passes.sites.take();
        let openmp = std::mem::take(&mut passes.openmp);
        let files = std::mem::take(&mut passes.files);
        let code = CodeMetrics::new(analysis, &main.stretches(), main.whole);
        let parts = CombinedParts {
            selection,
            resolved: &main,
            passes: &passes.sums[0],
            counters: passes.counters(analysis.run, 0),
            sites,
            code,
            openmp,
            files,
            matched,
        };
        let metrics = Metrics::combine(analysis, parts);
        Ok((Self { metrics, exchanges, page }, ReadTogether { of_ranks, sinks: sinks_along }))
    }
}

/// Merges what two processes matched.
fn merged(
    (mut summary, sums): (MatchingSummary, TallySums),
    (other_summary, other_sums): (MatchingSummary, TallySums),
) -> (MatchingSummary, TallySums) {
    summary.add(&other_summary);
    (summary, sums.merged(other_sums))
}
