//! Builds the graph of a run: matching finds which calls belong together, a pass over the calls
//! adds what lies between.

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use trace_format::header::FileHeader;
use trace_format::meaning::{Class, Meaning};

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{
    Analysis, CallObserver, RankObserver, RankView, ReadTogether, ReadsAlong, ThreadView,
};
use crate::causes::contexts::{Contexts, LocalContext, LocalContexts};
use crate::causes::local_site::{LocalSite, ReplacedModules};
use crate::causes::semantics::CallSemantics;
use crate::causes::{IntegerTimeline, Lines, Part};
use crate::timeline::mpi_constants::MpiConstants;

use super::beside::Beside;
use super::find::{LinkedCall, MatchCollector, Matches};
use super::graph::{
    Collective, Graph, GraphLine, Link, LinkKind, Member, Message, NO_OP, Op, OpNumber, Recorded,
};
use super::read_beside::read_beside;

/// Why a run cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReplayable {
    /// No rank recorded attributes of its calls.
    NoAttributes,
    /// Only totals were kept of some calls, or only the first or last part of the run.
    NotWhole,
    /// Some ranks have no file.
    MissingRanks,
    /// It has more operations than can be numbered.
    TooLong,
    /// It takes no time.
    NoTime,
}

/// Polls with less time than this between two of them are only waiting.
const BUSY_POLLING_S: f64 = 2e-6;

/// Builds the operations of all ranks.
struct OpBuilder<'l, 'a> {
    clock: &'l IntegerTimeline<'a>,
    lines: &'l Lines,
    begin: i64,
    /// By line, sorted by begin.
    keys: &'l [Vec<LinkedCall>],
    members: &'l [Member],
    /// Ascending by the operation's number: when the last member entered.
    meetings: &'l [(u32, i64)],
    /// Calls with a partner that was not found: rank and begin.
    unmatched: &'l FxHashSet<(u32, u64)>,
    /// At whose bounds computation is cut, by operations without links.
    part: Option<&'l Part>,
}

/// Builds the operations of a rank.
struct RankOpBuilder<'l, 'a> {
    builder: &'l OpBuilder<'l, 'a>,
    position: usize,
    functions: Functions,
    replaced: ReplacedModules,
    /// How the calls of each function are treated if they have no partner.
    kinds: Vec<UnmatchedKind>,
    /// MPI_PROC_NULL, if a peer that has this value is certain to be none.
    proc_null: Option<i32>,
    contexts: LocalContexts,
    /// The lines that have ended, and the end of each one's operations.
    lines: Vec<(u32, usize)>,
    ops: Vec<Op>,
    own: Vec<f64>,
    links: Vec<Link>,
    recorded: Vec<Recorded>,
    fixed: i64,
    line: LineState,
}

struct RankOps {
    lines: Vec<(u32, usize)>,
    ops: Vec<Op>,
    own: Vec<f64>,
    links: Vec<Link>,
    recorded: Vec<Recorded>,
    fixed: i64,
}

impl From<RankOpBuilder<'_, '_>> for RankOps {
    fn from(rank: RankOpBuilder) -> Self {
        let RankOpBuilder { lines, ops, own, links, recorded, fixed, .. } = rank;
        Self { lines, ops, own, links, recorded, fixed }
    }
}

impl RankOps {
    /// The links of an operation.
    fn links_of(&self, op: usize) -> &[Link] {
        let to = self.ops.get(op + 1).map_or(self.links.len(), |next| next.links as usize);
        &self.links[self.ops[op].links as usize..to]
    }

    /// Numbers contexts as the graph does, and drops links to what is not whole.
    fn finish(&mut self, numbers: &[u32], is_whole: impl Fn(&Link) -> bool) {
        let mut kept = 0;
        for op in 0..self.ops.len() {
            let to = self.ops.get(op + 1).map_or(self.links.len(), |next| next.links as usize);
            let of = &mut self.ops[op];
            let from = std::mem::replace(&mut of.links, kept as u32) as usize;
            of.context = numbers[of.context as usize];
            for link in from..to {
                if is_whole(&self.links[link]) {
                    self.links[kept] = self.links[link];
                    kept += 1;
                }
            }
        }
        self.links.truncate(kept);
    }
}

/// How a call without a partner is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnmatchedKind {
    /// It needs no other rank: it keeps its time, and takes none on an ideal machine.
    Local,
    /// It may have waited for another rank, unless it names MPI_PROC_NULL: it keeps its time.
    Message,
    /// It may have waited for another rank: it keeps its time.
    Fixed,
    /// It only waited for a message that another call receives.
    Probe,
}

/// The state of the line whose events are being processed.
#[derive(Debug, Default)]
struct LineState {
    number: u32,
    /// The time up to which it is accounted for.
    at: i64,
    /// Remaining keys.
    keys: std::ops::Range<usize>,
    /// Reading and function of the last call, and how many calls before it had the same.
    same: (u64, u16, usize),
    regions: Vec<u32>,
    before: Option<LocalSite>,
    /// Time since the last operation, by context; `None` is the program's code outside of regions.
    own: Vec<(Option<LocalContext>, i64)>,
    library: i64,
    /// Where computation is still to be cut, the next moment last.
    cuts: Vec<i64>,
}

impl<'a, 'l> CallObserver<'a> for &'l OpBuilder<'l, 'a> {
    type OfRank = RankOpBuilder<'l, 'a>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankOpBuilder<'l, 'a> {
        let kind = |name: &String| match Meaning::by_name(name).class {
            Class::Probe => UnmatchedKind::Probe,
            Class::PointToPoint => UnmatchedKind::Message,
            Class::Collective
            | Class::Completion
            | Class::OneSided
            | Class::Communicators
            | Class::Io => UnmatchedKind::Fixed,
            _ => UnmatchedKind::Local,
        };
        RankOpBuilder {
            builder: self,
            position: rank.position,
            functions: Functions::new(rank.trace),
            replaced: ReplacedModules::new(rank.trace),
            kinds: rank.trace.file.function_names().iter().map(kind).collect(),
            proc_null: proc_null(&rank.trace.file.header),
            contexts: LocalContexts::default(),
            lines: Vec::new(),
            ops: Vec::new(),
            own: Vec::new(),
            links: Vec::new(),
            recorded: Vec::new(),
            fixed: 0,
            line: LineState::default(),
        }
    }
}

/// MPI_PROC_NULL of a recorded run. Imports take calls without a message to have this peer, because
/// their traces do not tell it from a message that is missing; they know no version of MPI.
fn proc_null(header: &FileHeader) -> Option<i32> {
    let constants = MpiConstants::of_family(&header.mpi_family);
    constants.filter(|_| header.mpi_version != (0, 0)).map(|constants| constants.proc_null)
}

impl OpBuilder<'_, '_> {
    /// Where the computation of a line is cut, the first moment last.
    fn cuts(&self, number: u32) -> Vec<i64> {
        let line = &self.lines.all[number as usize];
        let moments = self.part.into_iter().flat_map(|part| part.moments(line.position));
        let mut cuts: Vec<i64> = moments.collect();
        cuts.dedup();
        cuts.reverse();
        cuts
    }

    /// When the last member entered, for a call that all members must have entered and that moves
    /// no data.
    fn meeting_end(&self, keys: &[LinkedCall]) -> Option<i64> {
        let [key] = keys else { return None };
        let Link { kind: LinkKind::Collective, of } = key.link() else { return None };
        let collective = self.members[of as usize].collective;
        let found = self.meetings.binary_search_by_key(&collective, |(of, _)| *of).ok()?;
        Some(self.meetings[found].1)
    }
}

impl LineState {
    /// Accounts the time up to `to` for the program's own code.
    fn own_to(&mut self, to: i64) {
        let context = self.regions.last().map(|region| LocalContext::Region(*region));
        self.add(context, to);
    }

    fn add(&mut self, context: Option<LocalContext>, to: i64) {
        let ticks = to - self.at;
        if ticks > 0 {
            self.at = to;
            match self.own.iter_mut().find(|(other, _)| *other == context) {
                Some((_, sum)) => *sum += ticks,
                None => self.own.push((context, ticks)),
            }
        }
    }

    fn library_to(&mut self, to: i64) {
        self.library += (to - self.at).max(0);
        self.at = self.at.max(to);
    }
}

impl RankOpBuilder<'_, '_> {
    fn seconds(&self, ticks: i64) -> f64 {
        self.builder.clock.seconds(ticks)
    }

    /// Appends an operation. Computation before it in several contexts is split into operations of
    /// its own.
    fn push_op(
        &mut self,
        site: Option<LocalSite>,
        (entered, left): (i64, i64),
        links: &[LinkedCall],
    ) {
        let between = LocalContext::Between(self.line.before, site);
        let mut own = std::mem::take(&mut self.line.own);
        let library = std::mem::take(&mut self.line.library);
        let library_s = self.seconds(library) as f32;
        let at = |of: &Self, ticks: i64| of.seconds(ticks - of.builder.begin);
        if own.is_empty() {
            own.push((None, 0));
        }
        let last = own.len() - 1;
        for (number, (context, ticks)) in own.drain(..).enumerate() {
            let is_last = number == last;
            let context = self.contexts.number(context.unwrap_or(between));
            self.ops.push(Op {
                library_s: if is_last { library_s } else { 0.0 },
                context,
                links: self.links.len() as u32,
            });
            self.own.push(self.seconds(ticks));
            let left = if is_last { left } else { entered };
            self.recorded.push(Recorded { entered_s: at(self, entered), left_s: at(self, left) });
        }
        self.links.extend(links.iter().map(|key| key.link()));
        (self.line.own, self.line.before) = (own, site);
    }

    /// Accounts the time up to `to` as `fill` does, and cuts it where that was asked for.
    fn fill(&mut self, to: i64, fill: impl Fn(&mut LineState, i64)) {
        while let Some(cut) = self.line.cuts.last().copied().filter(|cut| *cut <= to) {
            self.line.cuts.pop();
            // Those inside calls are found by the times of the calls.
            if cut >= self.line.at {
                fill(&mut self.line, cut);
                let before = self.line.before;
                self.push_op(None, (cut, cut), &[]);
                self.line.before = before;
            }
        }
        fill(&mut self.line, to);
    }

    fn own_to(&mut self, to: i64) {
        self.fill(to, LineState::own_to);
    }

    fn library_to(&mut self, to: i64) {
        self.fill(to, LineState::library_to);
    }

    fn in_call_to(&mut self, site: LocalSite, to: i64) {
        self.fill(to, |line, to| line.add(Some(LocalContext::Transfer(site)), to));
    }

    /// The keys of a call.
    fn keys_of(&mut self, begin_ticks: u64, function: u16) -> std::ops::Range<usize> {
        let keys = &self.builder.keys[self.line.number as usize];
        let range = &mut self.line.keys;
        while range.start < range.end && keys[range.start].begin_ticks() < begin_ticks {
            range.start += 1;
        }
        let is_it =
            |at: usize| keys[at].begin_ticks() == begin_ticks && keys[at].function() == function;
        let from = range.start;
        // Two calls may begin at the same reading if the counter has long steps.
        let skipped = (from..range.end).take_while(|at| keys[*at].begin_ticks() == begin_ticks);
        let from = skipped.take_while(|at| !is_it(*at)).last().map_or(from, |at| at + 1);
        let to = (from..range.end).take_while(|at| is_it(*at)).last().map_or(from, |at| at + 1);
        let before = match self.line.same {
            (at, of, before) if (at, of) == (begin_ticks, function) => before + 1,
            _ => 0,
        };
        self.line.same = (begin_ticks, function, before);
        let begins = |at: usize| {
            matches!(keys[at].link().kind, LinkKind::Collective | LinkKind::PostCollective)
        };
        // Of several calls at one reading, each enters one collective operation.
        match to - from > 1 && (from..to).all(begins) {
            true => (from + before).min(to)..(from + before + 1).min(to),
            false => from..to,
        }
    }

    /// Whether a call without messages was to have none. If it also receives, the span shows only
    /// whom it sends to; then matching did not miss a message either.
    fn has_no_partner(&self, span: &Span) -> bool {
        let rank = self.builder.lines.all[self.line.number as usize].rank;
        Some(span.peer()) == self.proc_null
            && !self.builder.unmatched.contains(&(rank, span.begin_ticks))
    }

    fn call(&mut self, span: &Span, function: u16, (begin, end): (i64, i64)) {
        self.own_to(begin);
        let address = span.site.map_or(0, |(address, _)| address);
        let site = self.replaced.site(function, address, span.begin_ticks);
        let keys = self.keys_of(span.begin_ticks, function);
        let end = end.max(self.line.at);
        if !keys.is_empty() {
            let builder = self.builder;
            let keys = &builder.keys[self.line.number as usize][keys];
            // The time of a meeting after its last member's entry stays as recorded.
            let meeting_end = builder
                .meeting_end(keys)
                .map_or(end, |meeting_end| meeting_end.clamp(self.line.at, end));
            self.push_op(Some(site), (self.line.at, meeting_end), keys);
            self.fixed += end - meeting_end;
            self.line.at = meeting_end;
            self.in_call_to(site, end);
            return;
        }
        let index = usize::from(function.wrapping_sub(trace_format::functions::FIRST_FUNCTION));
        let kind = self.kinds.get(index).copied().unwrap_or(UnmatchedKind::Local);
        match kind {
            UnmatchedKind::Local => self.library_to(end),
            UnmatchedKind::Message if self.has_no_partner(span) => self.library_to(end),
            UnmatchedKind::Message | UnmatchedKind::Fixed => {
                self.fixed += end - self.line.at;
                self.in_call_to(site, end);
            }
            UnmatchedKind::Probe => self.fill(end, |line, to| line.at = line.at.max(to)),
        }
    }
}

impl<'a> RankObserver<'a> for RankOpBuilder<'_, 'a> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let builder = self.builder;
        let Some(number) = builder.lines.number_of(self.position, thread.thread.number) else {
            return;
        };
        if number != builder.lines.first_of(self.position) {
            self.add_silent_line();
        }
        let keys = 0..builder.keys[number as usize].len();
        let at = builder.lines.all[number as usize].begin;
        let cuts = builder.cuts(number);
        self.line = LineState { number, at, keys, cuts, ..LineState::default() };
    }

    fn span(&mut self, span: &Span) {
        let at = |ticks| self.builder.clock.at(self.position, ticks);
        // The recorder still works after a rank's end.
        let last = self.builder.lines.all[self.line.number as usize].end;
        let (begin, end) = (at(span.begin_ticks).min(last), at(span.end_ticks).min(last));
        match span.kind {
            SpanKind::Call(function) => {
                if self.functions.entry(function).1 == Activity::Mpi {
                    self.call(span, function, (begin, end));
                }
            }
            SpanKind::Polls { count, inside_ticks, .. } => {
                self.own_to(begin);
                let inside = self.builder.clock.ticks_of(self.position, inside_ticks);
                let between = (end - begin - inside).max(0);
                let each = self.seconds(between) / (count.max(2) - 1) as f64;
                let waits_from = if each > BUSY_POLLING_S { begin + between } else { begin };
                self.own_to(waits_from);
                self.fill(end, |line, to| line.at = line.at.max(to));
            }
            SpanKind::Tool => {
                self.own_to(begin);
                self.library_to(end);
            }
            SpanKind::RegionBegin(id) => {
                self.own_to(begin);
                self.line.regions.push(id);
            }
            SpanKind::RegionEnd(id) => {
                self.own_to(begin);
                if let Some(at) = self.line.regions.iter().rposition(|open| *open == id) {
                    self.line.regions.truncate(at);
                }
            }
            SpanKind::Summed { .. } => {}
        }
    }

    fn end_thread(&mut self) {
        let end = self.builder.lines.all[self.line.number as usize].end;
        self.own_to(end);
        let end = self.line.at;
        self.push_op(None, (end, end), &[]);
        self.lines.push((self.line.number, self.ops.len()));
        self.line = LineState::default();
    }
}

impl RankOpBuilder<'_, '_> {
    /// Adds the first line of a rank if it has no events: it was outside MPI all the time.
    fn add_silent_line(&mut self) {
        if self.lines.is_empty() {
            let number = self.builder.lines.first_of(self.position);
            let line = &self.builder.lines.all[number as usize];
            let cuts = self.builder.cuts(number);
            self.line = LineState { number, at: line.begin, cuts, ..LineState::default() };
            self.end_thread();
        }
    }
}

/// Finds what the graph of a run needs of its messages, in a matching that may be somebody else's.
#[derive(Debug)]
pub struct GraphSearch<'s, 'a> {
    analysis: &'s Analysis<'a>,
    clock: IntegerTimeline<'a>,
    lines: Lines,
    semantics: CallSemantics,
    /// The earliest begin of a line, and the latest end.
    extent: (i64, i64),
}

impl<'f, 'a> ReadsAlong<'a> for &'f GraphSearch<'_, 'a> {
    type Calls = ();
    type OfRank = ();
    type Sink = MatchCollector<'f, 'a>;

    fn calls(&self) {}
    fn of_rank(&self, (): ()) {}
    fn sink(&self) -> Option<Self::Sink> {
        Some(self.collector())
    }
}

impl<'s, 'a> GraphSearch<'s, 'a> {
    /// Of a run, before its messages are matched.
    ///
    /// # Errors
    /// Why the run cannot be replayed, as far as that is known before its events are read.
    pub fn new(analysis: &'s Analysis<'a>) -> Result<Self, NotReplayable> {
        let run = analysis.run;
        if !run.missing.is_empty() {
            return Err(NotReplayable::MissingRanks);
        }
        if run.ranks.iter().any(|rank| rank.file.threads.iter().any(|t| t.totals.is_some())) {
            return Err(NotReplayable::NotWhole);
        }
        let clock = IntegerTimeline::new(run, analysis.timeline);
        let lines = Lines::new(analysis, &clock);
        let extent = lines.extent().filter(|(begin, end)| end > begin);
        let extent = extent.ok_or(NotReplayable::NoTime)?;
        Ok(Self { analysis, clock, lines, semantics: CallSemantics::new(run), extent })
    }

    fn collector(&self) -> MatchCollector<'_, 'a> {
        MatchCollector::new(self.analysis, &self.clock, (&self.lines, &self.semantics))
    }

    /// Builds the graph with what was read along.
    ///
    /// # Errors
    /// Why the run cannot be replayed.
    pub fn graph(&self, read: ReadTogether<'a, &Self>) -> Result<Graph<'a>, NotReplayable> {
        self.cut(read.sinks, None)
    }

    /// Builds the graph with what was matched, with computation cut at the bounds of a part of the run.
    fn cut(
        &self,
        matched: Option<Vec<MatchCollector>>,
        part: Option<&Part>,
    ) -> Result<Graph<'a>, NotReplayable> {
        let Self { analysis, clock, lines, extent: (begin, end), .. } = self;
        let (run, begin, end) = (analysis.run, *begin, *end);
        let found = matched.ok_or(NotReplayable::NoAttributes)?;
        let found = found.into_iter().map(MatchCollector::into_found).collect();
        let (found, groups) = Matches::merge(found, lines.all.len());
        let keys = found.keys;
        let (members, meetings) = (&found.members[..], &found.meetings[..]);
        let unmatched = &found.unmatched;
        let builder =
            OpBuilder { clock, lines, begin, keys: &keys, members, meetings, unmatched, part };
        let mut ranks = analysis.calls(&&builder);
        ranks.iter_mut().for_each(RankOpBuilder::add_silent_line);
        if ranks.iter().map(|rank| rank.ops.len()).sum::<usize>() >= NO_OP as usize {
            return Err(NotReplayable::TooLong);
        }
        let contexts: Vec<&[LocalContext]> = ranks.iter().map(|rank| rank.contexts.all()).collect();
        let (contexts, numbers) = Contexts::merge(run, &contexts, &[]);
        let ranks: Vec<RankOps> = ranks.into_iter().map(RankOps::from).collect();
        drop(keys);
        let graph = Graph {
            run,
            lines: Vec::new(),
            contexts,
            calls: 0,
            ops: Vec::new(),
            own: Vec::new(),
            links: Vec::new(),
            messages: found.messages,
            collectives: found.collectives,
            members: found.members,
            groups,
            recorded: Vec::new(),
            elapsed_s: clock.seconds(end - begin),
            axis: (clock.ticks_per_s, begin),
            fixed_s: 0.0,
            beside: Beside::default(),
        };
        Ok(graph.with_operations(ranks, &numbers, (clock, lines, begin)))
    }
}

impl<'a> Graph<'a> {
    /// Builds the graph of a run.
    ///
    /// # Errors
    /// Why the run cannot be replayed.
    pub fn new(analysis: &Analysis<'a>) -> Result<Self, NotReplayable> {
        Self::cut(analysis, None)
    }

    /// As [`Graph::new`], with computation cut at the bounds of a part of the run.
    ///
    /// # Errors
    /// Why the run cannot be replayed.
    pub(super) fn cut(analysis: &Analysis<'a>, part: Option<&Part>) -> Result<Self, NotReplayable> {
        let search = GraphSearch::new(analysis)?;
        let matched = analysis.matches(|| search.collector());
        search.cut(matched.map(|(_, sinks)| sinks), part)
    }

    /// Adds the operations of all ranks.
    fn with_operations(
        mut self,
        mut ranks: Vec<RankOps>,
        numbers: &[Vec<u32>],
        (clock, lines, begin): (&IntegerTimeline, &Lines, i64),
    ) -> Self {
        self.set_begins(&ranks);
        let whole_message = |m: &Message| m.send != NO_OP && m.receive != NO_OP;
        let whole_messages: Vec<bool> = self.messages.iter().map(whole_message).collect();
        let whole_collective = |of: &Collective| {
            let members = &self.members[of.members.start as usize..of.members.end as usize];
            members.iter().all(|member| member.posted != NO_OP)
        };
        let whole_collectives: Vec<bool> = self.collectives.iter().map(whole_collective).collect();
        let members = &self.members;
        let is_whole = |link: &Link| match link.kind.is_collective() {
            true => whole_collectives[members[link.of as usize].collective as usize],
            false => whole_messages[link.of as usize],
        };
        let with_numbers = ranks.par_iter_mut().zip(numbers);
        with_numbers.for_each(|(rank, numbers)| rank.finish(numbers, is_whole));
        let mut from = 0;
        for rank in &ranks {
            self.fixed_s += clock.seconds(rank.fixed);
            let first = from;
            for (number, end) in &rank.lines {
                let line = &lines.all[*number as usize];
                let ops = from..first + *end as u32;
                from = ops.end;
                let begin_s = clock.seconds(line.begin - begin);
                let (position, thread) = (line.position, line.thread);
                self.lines.push(GraphLine { position, thread, ops, begin_s });
            }
        }
        let (mut ops, mut own) = (Vec::new(), Vec::new());
        let (mut links, mut recorded) = (Vec::new(), Vec::new());
        let mut first_link = 0;
        for rank in ranks {
            ops.push((rank.ops, first_link));
            first_link += rank.links.len() as u32;
            own.push(rank.own);
            links.push(rank.links);
            recorded.push(rank.recorded);
        }
        ((self.links, self.recorded), (self.ops, self.own)) =
            rayon::join(|| (joined(links), joined(recorded)), || (joined_ops(ops), joined(own)));
        self.calls = self.ops.len();
        self.beside = read_beside(&self, clock);
        self
    }

    /// Stores which call begins each message and each part.
    fn set_begins(&mut self, ranks: &[RankOps]) {
        let (messages, members) = (&mut self.messages, &mut self.members);
        rayon::join(
            || {
                for_each_link(ranks, |link, op| match link.kind {
                    LinkKind::Send | LinkKind::PostSend => messages[link.of as usize].send = op,
                    LinkKind::Receive | LinkKind::PostReceive => {
                        messages[link.of as usize].receive = op;
                    }
                    _ => {}
                });
            },
            || {
                for_each_link(ranks, |link, op| {
                    if matches!(link.kind, LinkKind::Collective | LinkKind::PostCollective) {
                        members[link.of as usize].posted = op;
                    }
                });
            },
        );
    }
}

/// Calls `link` with all links of all ranks, and with the numbers of their operations in the graph.
fn for_each_link(ranks: &[RankOps], mut link: impl FnMut(&Link, OpNumber)) {
    let mut op = 0;
    for rank in ranks {
        for number in 0..rank.ops.len() {
            rank.links_of(number).iter().for_each(|of| link(of, op));
            op += 1;
        }
    }
}

/// Concatenates parts.
fn joined<T: Copy>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    parts.into_iter().for_each(|part| all.extend_from_slice(&part));
    all
}

/// Concatenates the operations of all ranks, given with the number of each rank's first link.
fn joined_ops(parts: Vec<(Vec<Op>, u32)>) -> Vec<Op> {
    let mut all = Vec::with_capacity(parts.iter().map(|(ops, _)| ops.len()).sum());
    for (ops, first_link) in parts {
        all.extend(ops.into_iter().map(|op| Op { links: op.links + first_link, ..op }));
    }
    all
}
