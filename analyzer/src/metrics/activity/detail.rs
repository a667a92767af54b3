//! Single calls, messages and collective operations in some windows of the run, as many as a page
//! can hold.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use trace_format::reader::{Event, EventKind, Thread};

use crate::analysis::{Analysis, RankView};
use crate::timeline::GlobalTimeline;
use crate::timeline::matching::{
    CollectiveInstance, CollectiveMember, MatchFinding, MatchSink, Message,
};
use crate::trace::Run;

use super::detail_event::DetailEvent;
use super::index::ActivityIndex;
use super::kind::Kind;
use super::rows::Activity;

/// An occurrence of a region.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionSpan {
    /// Index of the row.
    pub row: usize,
    /// Name of the region.
    pub name: String,
    /// Start and end, global seconds.
    pub seconds: Range<f64>,
}

/// Everything inside some windows of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// Start and end, global seconds; ascending and disjoint.
    pub windows: Vec<Range<f64>>,
    /// Events that touch a window, by row, then start.
    pub events: Vec<DetailEvent>,
    /// Messages whose send or receive ends in a window.
    pub messages: Vec<Message>,
    /// Number of messages left out because there are too many.
    pub messages_left_out: u64,
    /// Collective operations that touch a window.
    pub collectives: Vec<CollectiveInstance>,
    /// Number of collective operations left out because there are too many.
    pub collectives_left_out: u64,
    /// The longest occurrences of regions in the run; those in requested windows first.
    pub regions: Vec<RegionSpan>,
    /// Number of occurrences left out because there are too many.
    pub regions_left_out: u64,
}

/// How much a detail may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub events: usize,
    /// Number of messages, and also of collective calls.
    pub messages: usize,
    /// Number of occurrences of regions.
    pub regions: usize,
}

pub const PAGE_BUDGET: Budget = Budget { events: 16_000, messages: 6_000, regions: 1_000 };

/// Windows around the longest waits.
const MAX_FOCUSES: usize = 3;
/// Number of candidates for a window's half width, each 2^(1/2) times the previous one.
const RADII: usize = 128;

impl Detail {
    /// The details of the whole run if they fit, else those of the requested windows, else those of
    /// windows around the ends of the longest waits: the end of a wait shows what it waited for.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        activity: &Activity,
        requested: &[Range<f64>],
        budget: Budget,
    ) -> Self {
        let analysis = Analysis::new(run, timeline);
        let mut detail = Self::of_events(&analysis, activity, requested, budget);
        if !detail.windows.is_empty() {
            let found = analysis.matches(|| MatchCollector::new(&detail.windows, budget));
            let collected = found.map(|(_, collected)| collected).unwrap_or_default();
            detail.add_matches(collected, budget);
        }
        detail
    }

    /// Windows and events, to which [`Detail::add_matches`] adds messages and collective
    /// operations.
    pub fn of_events(
        analysis: &Analysis,
        activity: &Activity,
        requested: &[Range<f64>],
        budget: Budget,
    ) -> Self {
        let windows = windows(analysis, activity, requested, budget.events);
        let mut detail = Self { windows, ..Self::default() };
        detail.read_events(analysis, activity, (requested, budget.regions));
        detail
    }

    /// Adds the messages and collective operations from the shares of the run, within the budget.
    pub fn add_matches(&mut self, collected: Vec<MatchCollector>, budget: Budget) {
        let mut all = MatchCollector::new(&self.windows, budget);
        for other in collected {
            all.messages.extend(other.messages);
            all.collectives.extend(other.collectives);
            all.messages_left_out += other.messages_left_out;
            all.collectives_left_out += other.collectives_left_out;
        }
        all.trim();
        let MatchCollector {
            messages, messages_left_out, collectives, collectives_left_out, ..
        } = all;
        *self = Self {
            messages,
            messages_left_out,
            collectives,
            collectives_left_out,
            ..std::mem::take(self)
        };
    }

    fn read_events(
        &mut self,
        analysis: &Analysis,
        activity: &Activity,
        (requested, most_regions): (&[Range<f64>], usize),
    ) {
        // Rows by position of the rank and number of the thread.
        let rows: HashMap<(usize, u32), usize> = (0..)
            .zip(&activity.rows)
            .map(|(number, row)| ((row.position, row.thread), number))
            .collect();
        let begin = |rank: RankView<'_>| {
            let row = |thread: &Thread| rows.get(&(rank.position, thread.number)).copied();
            let rows = rank.trace.file.threads.iter().map(|thread| RowDetail::new(row(thread)));
            Some((rank.position, rows.collect::<Vec<_>>()))
        };
        let shown = analysis.events(begin, |(position, shown), thread, event| {
            let Some(number) = shown[thread].row else { return };
            let end_s = activity.rows[number].end_s;
            shown[thread].add(event, (analysis.rank(*position), thread, end_s), &self.windows);
        });
        let mut by_row: Vec<Option<RowDetail>> = activity.rows.iter().map(|_| None).collect();
        for shown in shown.into_iter().flat_map(|(_, shown)| shown) {
            if let Some(row) = shown.row {
                by_row[row] = Some(shown);
            }
        }
        for (row, shown) in activity.rows.iter().zip(by_row) {
            let Some(RowDetail { row: Some(number), events, mut regions, open }) = shown else {
                continue;
            };
            self.events.extend(events);
            regions.extend(open.into_iter().map(|region| (region, row.end_s)));
            let names = &analysis.run.ranks[row.position].facts.regions;
            self.regions.extend(regions.into_iter().map(|((id, from), to)| RegionSpan {
                row: number,
                name: names.get(&id).cloned().unwrap_or_else(|| format!("#{id}")),
                seconds: from..to,
            }));
        }
        let length = |region: &RegionSpan| region.seconds.end - region.seconds.start;
        let is_outside = |of: &RegionSpan| {
            !requested.is_empty() && !touches(requested, of.seconds.start, of.seconds.end)
        };
        self.regions.sort_by(|a, b| {
            let asked = is_outside(a).cmp(&is_outside(b));
            asked.then(length(b).total_cmp(&length(a))).then(a.row.cmp(&b.row))
        });
        self.regions_left_out = self.regions.len().saturating_sub(most_regions) as u64;
        self.regions.truncate(most_regions);
    }
}

#[derive(Debug, Default)]
struct RowDetail {
    /// Its index; `None` if the thread has no row.
    row: Option<usize>,
    events: Vec<DetailEvent>,
    /// Id, start and end of each region.
    regions: Vec<((u32, f64), f64)>,
    /// Id and start of open regions.
    open: Vec<(u32, f64)>,
}

impl RowDetail {
    fn new(row: Option<usize>) -> Self {
        Self { row, ..Self::default() }
    }

    /// Adds the next event of a thread, given by its position on its rank; its row ends at `end_s`.
    fn add(
        &mut self,
        event: &Event,
        (rank, thread, end_s): (RankView<'_>, usize, f64),
        windows: &[Range<f64>],
    ) {
        let Some(row) = self.row else { return };
        let clock = &rank.time.clock;
        let begin_s = clock.seconds(event.begin);
        match event.kind() {
            EventKind::RegionBegin(id) => self.open.push((id, begin_s)),
            EventKind::RegionEnd(id) => {
                if let Some(index) = self.open.iter().rposition(|(other, _)| *other == id) {
                    self.regions.push((self.open.remove(index), begin_s));
                }
            }
            _ => {}
        }
        let last = rank.trace.threads.get(thread).and_then(|extent| extent.last_call.as_ref());
        let last = last.filter(|call| call.open && call.begin_ticks == event.begin);
        let end_s = match event.end {
            Some(end) => clock.seconds(end),
            None if last.is_some() => end_s.max(begin_s),
            None => begin_s,
        };
        let shown = matches!(event.kind(), EventKind::Call(_) | EventKind::Tool);
        if shown && touches(windows, begin_s, end_s) {
            let inside_s = match event.polls {
                Some((_, ticks)) => clock.duration_s(ticks).min(end_s - begin_s),
                None => end_s - begin_s,
            };
            self.events.push(DetailEvent { row, begin_s, end_s, inside_s, event: *event });
        }
    }
}

fn touches(windows: &[Range<f64>], from_s: f64, to_s: f64) -> bool {
    windows.iter().any(|window| from_s <= window.end && to_s >= window.start)
}

fn windows(
    analysis: &Analysis,
    activity: &Activity,
    requested: &[Range<f64>],
    most_events: usize,
) -> Vec<Range<f64>> {
    let length_s = activity.length_s;
    let all = analysis.run.ranks.iter().flat_map(|rank| &rank.threads).map(|thread| thread.calls);
    // A run of polls counts as one call.
    if activity.calls <= most_events as u64 && all.clone().count() > 0 {
        return vec![0.0..length_s.max(f64::MIN_POSITIVE)];
    }
    if !requested.is_empty() {
        return join_windows(requested.to_vec(), length_s);
    }
    let mut focuses: Vec<(f64, f64)> = Vec::new();
    for call in &activity.longest {
        let (from, to) = (call.begin_s, call.begin_s + call.duration_s);
        if focuses.len() < MAX_FOCUSES && !focuses.iter().any(|&(a, b)| from < b && a < to) {
            focuses.push((from, to));
        }
    }
    let moments: Vec<f64> = focuses.iter().map(|(_, end)| *end).collect();
    let radii = radii(analysis, length_s, &moments, most_events / MAX_FOCUSES);
    let around = moments.iter().zip(radii).map(|(at, radius)| at - radius..at + radius);
    join_windows(around.collect(), length_s)
}

/// The largest half width around each moment that contains at most `limit` events.
fn radii(analysis: &Analysis, length_s: f64, moments: &[f64], limit: usize) -> Vec<f64> {
    // Class k holds distances below length · 2^(−k/2).
    let class = |distance_s: f64| match distance_s > 0.0 {
        true => {
            ((length_s / distance_s).log2() * 2.0).floor().clamp(0.0, RADII as f64 - 1.0) as usize
        }
        false => RADII - 1,
    };
    let begin = |rank: RankView<'_>| Some((rank.position, vec![[0usize; RADII]; moments.len()]));
    let of_ranks = analysis.events(begin, |(position, counts), _, event| {
        let begin_s = analysis.timeline.ranks[*position].clock.seconds(event.begin);
        for (counts, at) in counts.iter_mut().zip(moments) {
            counts[class((begin_s - at).abs())] += 1;
        }
    });
    let mut counts = vec![[0; RADII]; moments.len()];
    for (_, of_rank) in of_ranks {
        for (sum, count) in counts.iter_mut().flatten().zip(of_rank.iter().flatten()) {
            *sum += count;
        }
    }
    let of_moment = |counts: &[usize; RADII]| {
        let mut inside = 0;
        let fits = (0..RADII).rev().find(|class| {
            inside += counts[*class];
            inside > limit
        });
        let smallest = fits.map_or(0, |too_wide| too_wide + 1);
        length_s * 2f64.powf(-(smallest as f64) / 2.0)
    };
    counts.iter().map(of_moment).collect()
}

/// Clips windows to the run, sorts them, and joins those that overlap.
fn join_windows(mut windows: Vec<Range<f64>>, length_s: f64) -> Vec<Range<f64>> {
    windows.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut joined: Vec<Range<f64>> = Vec::new();
    for window in windows {
        let window = window.start.max(0.0)..window.end.min(length_s);
        match joined.last_mut() {
            Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
            _ if window.start < window.end => joined.push(window),
            _ => {}
        }
    }
    joined
}

/// Collects the earliest messages and collective operations in some windows, within a budget.
pub struct MatchCollector {
    windows: Vec<Range<f64>>,
    limit: usize,
    messages: Vec<Message>,
    messages_left_out: u64,
    collectives: Vec<CollectiveInstance>,
    /// Number of calls of these operations.
    calls: usize,
    collectives_left_out: u64,
}

/// Orders messages by their sends, so that the order does not depend on the shares.
fn compare_messages(a: &Message, b: &Message) -> Ordering {
    let ranks = |message: &Message| (message.send.rank, message.send.begin_ticks);
    a.send.begin_s.total_cmp(&b.send.begin_s).then_with(|| ranks(a).cmp(&ranks(b)))
}

fn compare_collectives(a: &CollectiveInstance, b: &CollectiveInstance) -> Ordering {
    let begin = |instance: &CollectiveInstance| {
        instance.members.iter().map(|member| member.begin_s).fold(f64::INFINITY, f64::min)
    };
    let which = |instance: &CollectiveInstance| (instance.communicator, instance.number);
    begin(a).total_cmp(&begin(b)).then_with(|| which(a).cmp(&which(b)))
}

/// Orders members by the end of their calls.
fn compare_members(a: &CollectiveMember, b: &CollectiveMember) -> Ordering {
    let end_s = |member: &CollectiveMember| member.end_s.unwrap_or(f64::INFINITY);
    end_s(a).total_cmp(&end_s(b)).then(a.rank.cmp(&b.rank))
}

impl MatchCollector {
    /// Collects in these windows, in global seconds.
    pub fn new(windows: &[Range<f64>], budget: Budget) -> Self {
        Self {
            windows: windows.to_vec(),
            limit: budget.messages,
            messages: Vec::new(),
            messages_left_out: 0,
            collectives: Vec::new(),
            calls: 0,
            collectives_left_out: 0,
        }
    }

    fn touches(&self, from_s: f64, to_s: f64) -> bool {
        touches(&self.windows, from_s, to_s)
    }

    /// Drops what exceeds the budget.
    fn trim(&mut self) {
        self.messages.sort_by(compare_messages);
        self.messages_left_out += self.messages.len().saturating_sub(self.limit) as u64;
        self.messages.truncate(self.limit);
        for instance in &mut self.collectives {
            instance.members.sort_by(compare_members);
        }
        self.collectives.sort_by(compare_collectives);
        let before = self.collectives.len();
        let (mut calls, limit) = (0, self.limit);
        self.collectives.retain(|instance| {
            let fits = calls + instance.members.len() <= limit;
            calls += if fits { instance.members.len() } else { 0 };
            fits
        });
        self.calls = calls;
        self.collectives_left_out += (before - self.collectives.len()) as u64;
    }
}

impl MatchSink for MatchCollector {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            _ => {}
        }
    }
}

impl MatchCollector {
    fn message(&mut self, message: &Message) {
        let sent_s = message.send.end_s.unwrap_or(message.send.begin_s);
        let received_s = message.receive.end_s.unwrap_or(message.receive.begin_s);
        if self.touches(sent_s, sent_s) || self.touches(received_s, received_s) {
            self.messages.push(*message);
            if self.messages.len() > 2 * self.limit {
                self.trim();
            }
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        let touches = instance
            .members
            .iter()
            .any(|member| self.touches(member.begin_s, member.end_s.unwrap_or(member.begin_s)));
        if touches {
            self.calls += instance.members.len();
            self.collectives.push(instance.clone());
            if self.calls > 2 * self.limit {
                self.trim();
            }
        }
    }
}

impl DetailEvent {
    pub fn kind(&self, run: &Run, activity: &Activity) -> Kind {
        self.kind_at(run, activity.rows[self.row].position)
    }

    /// As [`DetailEvent::kind`], for a row of an index.
    pub fn kind_in(&self, run: &Run, index: &ActivityIndex) -> Kind {
        self.kind_at(run, index.rows[self.row].position)
    }
}
