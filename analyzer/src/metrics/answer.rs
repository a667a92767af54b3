//! Answers everything that a report asks of a run's events, with one pass over the calls and one over the
//! messages.

use std::ops::Range;

use crate::analysis::Analysis;

use super::activity::detail::{Budget, Detail, Gather};
use super::activity::{Activity, Bins};
use super::exchanges::{self, Exchanges};
use super::messages::{MessageMetrics, Tally};
use super::passes::Passes;
use super::resolve::{Resolved, SelectionError};
use super::selected::Selected;
use super::{Matched, Metrics, Selection};

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// What the figures are for.
    pub selection: &'q Selection,
    /// Whether messages are; they always are where ranks did not finish.
    pub messages: bool,
    /// Selections whose work and bytes are wanted, too.
    pub exchanges: &'q [Selection],
    /// What a page shows beside, if one is made.
    pub page: Option<Page<'q>>,
}

/// What a page shows: what each thread did when, and the single calls of some windows.
#[derive(Debug, Clone, Copy)]
pub struct Page<'q> {
    /// Bins a row.
    pub bins: usize,
    /// Windows that were asked for, global seconds.
    pub asked: &'q [Range<f64>],
    /// How much it may hold.
    pub budget: Budget,
}

/// What there is to say.
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
    /// Goes through the calls once, and through the messages once where somebody asks for them. (Single calls
    /// of a page, and where regions and windows lie, are passes of their own.)
    ///
    /// # Errors
    /// When the question's selection names what the run does not have.
    pub fn new(analysis: &Analysis, question: &Question) -> Result<Self, SelectionError> {
        let Question { selection, exchanges, page, .. } = *question;
        // Where ranks did not finish, matching tells whom each waits for.
        let messages = question.messages || !analysis.run.all_finished();
        let all: Vec<Selection> = std::iter::once(selection).chain(exchanges).cloned().collect();
        let mut resolved = Resolved::all(analysis, &all);
        let others = resolved.split_off(1);
        let main = match resolved.pop() {
            Some(main) => main?,
            None => unreachable!("one selection is asked for at least"),
        };
        let good: Vec<&Resolved> = others.iter().flatten().collect();
        let selections: Vec<&Resolved> =
            std::iter::once(&main).chain(good.iter().copied()).collect();

        let bins = page.map(|page| Bins::new(analysis.timeline, page.bins));
        let (mut passes, binned) = Passes::beside(analysis, &selections, &bins);
        let page = page.zip(bins).map(|(page, bins)| {
            let activity = Activity::of(analysis, &bins, binned.into_iter().flatten().collect());
            let detail = Detail::of_events(analysis, &activity, page.asked, page.budget);
            (activity, detail, page.budget)
        });

        let selected = Selected::new(analysis.run.ranks.len(), &good);
        let new_sink = || {
            let tally = messages.then(|| Tally::new(analysis, &main));
            let exchanged = (!good.is_empty())
                .then(|| exchanges::Tally::new(analysis.run, &selected, good.len()));
            let gather =
                page.as_ref().map(|(_, detail, budget)| Gather::new(&detail.windows, *budget));
            (tally, (exchanged, gather))
        };
        let asked = messages || !good.is_empty() || page.is_some();
        let found = asked.then(|| analysis.matches(new_sink)).flatten();
        let (mut tallies, mut exchanged, mut gathered) = (Vec::new(), Vec::new(), Vec::new());
        let summary = found.map(|(summary, sinks)| {
            for (tally, (exchange, gather)) in sinks {
                tallies.extend(tally);
                exchanged.extend(exchange);
                gathered.extend(gather);
            }
            summary
        });
        let matched = match messages {
            true => {
                let found = summary.and_then(|s| MessageMetrics::of(s, tallies.into_iter()));
                Matched::Found(found.map(Box::new))
            }
            false => Matched::LeftOut,
        };
        let exchanged = exchanged.into_iter().reduce(exchanges::Tally::merged);
        // The question's own selection comes first in the pass.
        let (asked, from) = ((exchanges, others.as_slice()), (&passes, 1));
        let exchanges = Exchanges::several(analysis, asked, from, exchanged.as_ref());
        let page = page.map(|(activity, mut detail, budget)| {
            detail.add_matches(gathered, budget);
            (activity, detail)
        });
        let counters = passes.counters(analysis.run, 0);
        let beside = (counters, passes.sites.take(), matched);
        let metrics = Metrics::of(analysis, (selection, &main), &passes.sums[0], beside);
        Ok(Self { metrics, exchanges, page })
    }
}
