//! Calls kept only as totals: one row per function, class of peer and class of size, over all
//! ranks.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use trace_format::header::{Definition, KeepingPolicy};
use trace_format::reader::Totals;
use trace_format::totals::{ANY_CLASS, HISTOGRAM_BINS, PeerClass, TotalsEntry, largest_of_class};

use crate::timeline::GlobalTimeline;
use crate::trace::{RankTrace, Run};

use super::note::Note;

/// Calls of one function, class of peer and class of size, over all ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TotalsRow {
    /// Name of the function.
    pub function: String,
    /// Class of the peer: `none`, `self`, `same host`, `other host` or `unknown`; `None` if several classes were
    /// merged for lack of space.
    #[serde(serialize_with = "name_of_class")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub peer: Option<PeerClass>,
    /// Largest size of the class in bytes; `None` for any size, or sizes beyond every class.
    pub most_bytes: Option<u64>,
    /// Number of calls.
    pub count: u64,
    /// Seconds in them.
    pub time_s: f64,
    /// Seconds of the shortest (for merged polls, the mean of a run counts).
    pub min_s: f64,
    /// Seconds of the longest.
    pub max_s: f64,
    /// Bytes sent or moved.
    #[serde(rename = "sent_bytes")]
    pub sent: u64,
    /// Bytes received.
    #[serde(rename = "received_bytes")]
    pub received: u64,
    /// Calls by duration, without empty bins.
    pub histogram: Vec<Bin>,
}

/// Calls of similar duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bin {
    /// The lower end, seconds; the upper end is twice that.
    pub from_s: f64,
    /// Number of calls.
    pub count: u64,
}

fn name_of_class<S: Serializer>(
    class: &Option<PeerClass>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    class.map(PeerClass::name).serialize(serializer)
}

/// The totals of all ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TotalsMetrics {
    /// Number of ranks that have totals.
    pub ranks: usize,
    /// Calls kept only as totals.
    pub calls: u64,
    /// Calls kept individually.
    pub kept_calls: u64,
    /// Earliest start of the stretches that totals cover, global seconds.
    pub from_s: f64,
    /// Their latest end.
    pub to_s: f64,
    /// Most time first.
    pub rows: Vec<TotalsRow>,
}

fn totals_of(trace: &RankTrace) -> impl Iterator<Item = &Totals> {
    trace.file.threads.iter().filter_map(|thread| thread.totals.as_ref())
}

/// Which events a rank was to keep.
pub(super) fn policy(trace: &RankTrace) -> KeepingPolicy {
    let recorded = trace.file.definitions.iter().find_map(|definition| match definition {
        Definition::Keeping(keeping) => Some(keeping.policy),
        _ => None,
    });
    recorded.unwrap_or(KeepingPolicy::First)
}

impl TotalsMetrics {
    /// The totals of a run; `None` if every event was kept.
    pub(super) fn new(run: &Run, timeline: &GlobalTimeline) -> Option<Self> {
        let mut metrics = Self {
            ranks: 0,
            calls: 0,
            kept_calls: 0,
            from_s: f64::INFINITY,
            to_s: f64::NEG_INFINITY,
            rows: Vec::new(),
        };
        let mut rows: BTreeMap<(&str, u8, u8), TotalsRow> = BTreeMap::new();
        for (trace, time) in run.ranks.iter().zip(&timeline.ranks) {
            let all: u64 = trace.threads.iter().fold(0, |sum, t| sum.saturating_add(t.calls));
            let mut summed = 0u64;
            for totals in totals_of(trace) {
                summed = summed.saturating_add(totals.header.calls);
                let begin = time.clock.seconds(totals.header.begin_ticks);
                let end = time.clock.seconds(totals.header.end_ticks);
                metrics.from_s = metrics.from_s.min(begin);
                metrics.to_s = metrics.to_s.max(end);
                for entry in &totals.calls {
                    let Some(name) = trace.file.function_name(entry.function) else { continue };
                    let key = (name, entry.peer_class, entry.size_class);
                    let row = rows.entry(key).or_insert_with(|| TotalsRow::new(name, entry));
                    row.add(entry, |ticks| time.clock.duration_s(ticks));
                }
            }
            metrics.ranks += usize::from(totals_of(trace).next().is_some());
            metrics.calls = metrics.calls.saturating_add(summed);
            metrics.kept_calls = metrics.kept_calls.saturating_add(all.saturating_sub(summed));
        }
        metrics.rows = rows.into_values().collect();
        metrics.rows.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
        (metrics.ranks > 0).then_some(metrics)
    }

    /// Remarks on the totals.
    pub(super) fn notes(&self, run: &Run) -> Vec<Note> {
        let mut notes = vec![Note::KeptAsTotals {
            calls: self.calls,
            of: self.calls.saturating_add(self.kept_calls),
            policy: run.ranks.first().map_or(KeepingPolicy::First, policy),
            stretch_s: (self.from_s, self.to_s),
        }];
        let threaded =
            |trace: &&RankTrace| trace.file.threads.len() > 1 && totals_of(trace).next().is_some();
        let first = run.ranks.iter().find(threaded);
        notes.extend(first.map(|first| Note::ThreadsInTotals(first.rank)));
        notes
    }
}

impl TotalsRow {
    fn new(name: &str, entry: &TotalsEntry) -> Self {
        let whole = entry.size_class == ANY_CLASS;
        Self {
            function: name.to_owned(),
            peer: PeerClass::from_number(entry.peer_class),
            most_bytes: if whole { None } else { largest_of_class(entry.size_class) },
            count: 0,
            time_s: 0.0,
            min_s: f64::INFINITY,
            max_s: 0.0,
            sent: 0,
            received: 0,
            histogram: Vec::new(),
        }
    }

    fn add(&mut self, entry: &TotalsEntry, seconds: impl Fn(u64) -> f64) {
        self.count = self.count.saturating_add(entry.count);
        self.time_s += seconds(entry.ticks);
        self.min_s = self.min_s.min(seconds(entry.min_ticks));
        self.max_s = self.max_s.max(seconds(entry.max_ticks));
        self.sent = self.sent.saturating_add(entry.sent);
        self.received = self.received.saturating_add(entry.received);
        for bin in (0..HISTOGRAM_BINS).filter(|bin| entry.histogram[*bin] > 0) {
            self.add_bin(seconds(1 << bin), entry.histogram[bin]);
        }
    }

    /// Adds calls to the bin with this lower end. The ends differ slightly between ranks, because
    /// their counters differ in rate.
    fn add_bin(&mut self, from_s: f64, count: u64) {
        let near = |at: f64| (at / from_s).log2().abs() < 0.5;
        match self.histogram.iter_mut().find(|bin| near(bin.from_s)) {
            Some(bin) => bin.count = bin.count.saturating_add(count),
            None => {
                let position = self.histogram.partition_point(|bin| bin.from_s < from_s);
                self.histogram.insert(position, Bin { from_s, count });
            }
        }
    }
}
