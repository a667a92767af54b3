//! Makes the graph of a run: matching says which calls belong together, a pass over the calls what lay between.

use trace_format::meaning::{Class, Meaning};

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};
use crate::causes::contexts::{Contexts, LocalContext, LocalContexts, LocalSite};
use crate::causes::semantics::CallSemantics;
use crate::causes::{Lines, WholeTicks};

use super::find::{Finder, Found, Key};
use super::graph::{
    Collective, Graph, GraphLine, Link, LinkKind, Member, Message, NO_OP, Op, Recorded,
};

/// Why a run cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReplayable {
    /// No rank recorded what its calls say.
    NoAttributes,
    /// Of some calls only totals were kept, or the first or last part of the run.
    NotWhole,
    /// Some ranks have no file.
    MissingRanks,
    /// More operations than numbers.
    TooLong,
    /// It has no length.
    NoTime,
}

/// Polls with less than this between two of them only wait.
const BUSY_POLLING_S: f64 = 2e-6;

/// Makes the operations of all ranks.
struct Layer<'l, 'a> {
    clock: &'l WholeTicks<'a>,
    lines: &'l Lines,
    begin: i64,
    /// Sorted by line and begin; where those of each line begin, and one behind the last.
    keys: &'l [Key],
    first: &'l [usize],
    members: &'l [Member],
    /// By the operation's number, ascending: when the last member entered.
    meetings: &'l [(u32, i64)],
}

/// What a rank's threads did between their calls.
struct LayerOfRank<'l, 'a> {
    layer: &'l Layer<'l, 'a>,
    position: usize,
    functions: Functions,
    /// What becomes of each function's calls that have no partner.
    kinds: Vec<Kind>,
    contexts: LocalContexts,
    /// The lines that have ended, and where their operations end.
    lines: Vec<(u32, usize)>,
    ops: Vec<Op>,
    links: Vec<Link>,
    recorded: Vec<Recorded>,
    fixed: i64,
    line: LineState,
}

/// What was made of a rank.
struct OpsOfRank {
    lines: Vec<(u32, usize)>,
    ops: Vec<Op>,
    links: Vec<Link>,
    recorded: Vec<Recorded>,
    fixed: i64,
}

impl From<LayerOfRank<'_, '_>> for OpsOfRank {
    fn from(rank: LayerOfRank) -> Self {
        let LayerOfRank { lines, ops, links, recorded, fixed, .. } = rank;
        Self { lines, ops, links, recorded, fixed }
    }
}

/// What becomes of a call without a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It needs nobody: its time is as it was, and nothing on an ideal machine.
    Local,
    /// It may have waited for somebody: its time is as it was.
    Fixed,
    /// It only waited for a message that another call receives.
    Probe,
}

/// The line whose events come.
#[derive(Debug, Default)]
struct LineState {
    number: u32,
    /// Up to where its time is told.
    at: i64,
    /// Keys that are left.
    keys: std::ops::Range<usize>,
    regions: Vec<u32>,
    before: Option<LocalSite>,
    /// Time since the last operation: by context, where `None` is the program's code outside of regions.
    own: Vec<(Option<LocalContext>, i64)>,
    library: i64,
}

impl<'a, 'l> CallObserver<'a> for &'l Layer<'l, 'a> {
    type OfRank = LayerOfRank<'l, 'a>;

    fn begin_rank(&self, rank: RankView<'a>) -> LayerOfRank<'l, 'a> {
        let kind = |name: &String| match Meaning::of(name).class {
            Class::Probe => Kind::Probe,
            Class::PointToPoint
            | Class::Collective
            | Class::Completion
            | Class::OneSided
            | Class::Communicators
            | Class::Io => Kind::Fixed,
            _ => Kind::Local,
        };
        LayerOfRank {
            layer: self,
            position: rank.position,
            functions: Functions::new(rank.trace),
            kinds: rank.trace.file.function_names().iter().map(kind).collect(),
            contexts: LocalContexts::default(),
            lines: Vec::new(),
            ops: Vec::new(),
            links: Vec::new(),
            recorded: Vec::new(),
            fixed: 0,
            line: LineState::default(),
        }
    }
}

impl Layer<'_, '_> {
    /// When the last member entered, of a call of which all must be in it and nothing moves.
    fn met(&self, keys: &[Key]) -> Option<i64> {
        let [Key { link: Link { kind: LinkKind::Collective, of }, .. }] = keys else { return None };
        let collective = self.members[*of as usize].collective;
        let found = self.meetings.binary_search_by_key(&collective, |(of, _)| *of).ok()?;
        Some(self.meetings[found].1)
    }
}

impl LineState {
    /// The program's own code up to a moment.
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

impl LayerOfRank<'_, '_> {
    fn seconds(&self, ticks: i64) -> f64 {
        self.layer.clock.seconds(ticks)
    }

    /// Lays an operation; what was computed before it in several contexts gets operations of its own.
    fn lay(&mut self, site: Option<LocalSite>, (entered, left): (i64, i64), links: &[Key]) {
        let between = LocalContext::Between(self.line.before, site);
        let mut own = std::mem::take(&mut self.line.own);
        let library = std::mem::take(&mut self.line.library);
        let library_s = self.seconds(library) as f32;
        let at = |of: &Self, ticks: i64| of.seconds(ticks - of.layer.begin);
        if own.is_empty() {
            own.push((None, 0));
        }
        let last = own.len() - 1;
        for (number, (context, ticks)) in own.drain(..).enumerate() {
            let is_last = number == last;
            let context = self.contexts.number(context.unwrap_or(between));
            self.ops.push(Op {
                own_s: self.seconds(ticks),
                library_s: if is_last { library_s } else { 0.0 },
                context,
                links: self.links.len() as u32,
            });
            let left = if is_last { left } else { entered };
            self.recorded.push(Recorded { entered_s: at(self, entered), left_s: at(self, left) });
        }
        self.links.extend(links.iter().map(|key| key.link));
        (self.line.own, self.line.before) = (own, site);
    }

    /// The keys of a call.
    fn keys_of(&mut self, begin_ticks: u64, function: u16) -> std::ops::Range<usize> {
        let keys = self.layer.keys;
        let range = &mut self.line.keys;
        while range.start < range.end && keys[range.start].begin_ticks < begin_ticks {
            range.start += 1;
        }
        let is_it =
            |at: usize| keys[at].begin_ticks == begin_ticks && keys[at].function == function;
        let from = range.start;
        // Two calls begin at the same reading where a counter has long steps.
        let skipped = (from..range.end).take_while(|at| keys[*at].begin_ticks == begin_ticks);
        let from = skipped.take_while(|at| !is_it(*at)).last().map_or(from, |at| at + 1);
        let to = (from..range.end).take_while(|at| is_it(*at)).last().map_or(from, |at| at + 1);
        from..to
    }

    fn call(&mut self, span: &Span, function: u16, (begin, end): (i64, i64)) {
        self.line.own_to(begin);
        let site = (function, span.site.map_or(0, |(address, _)| address));
        let keys = self.keys_of(span.begin_ticks, function);
        let end = end.max(self.line.at);
        if !keys.is_empty() {
            let layer = self.layer;
            let keys = &layer.keys[keys];
            // What a meeting takes behind its last member's entry is as it was.
            let met = layer.met(keys).map_or(end, |met| met.clamp(self.line.at, end));
            self.lay(Some(site), (self.line.at, met), keys);
            self.fixed += end - met;
            self.line.at = met;
            self.line.add(Some(LocalContext::Transfer(site)), end);
            return;
        }
        let index = usize::from(function.wrapping_sub(trace_format::functions::FIRST_FUNCTION));
        match self.kinds.get(index).copied().unwrap_or(Kind::Local) {
            Kind::Local => self.line.library_to(end),
            Kind::Fixed => {
                self.fixed += end - self.line.at;
                self.line.add(Some(LocalContext::Transfer(site)), end);
            }
            Kind::Probe => self.line.at = end,
        }
    }
}

impl<'a> RankObserver<'a> for LayerOfRank<'_, 'a> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let layer = self.layer;
        let Some(number) = layer.lines.of(self.position, thread.thread.number) else { return };
        let keys = layer.first[number as usize]..layer.first[number as usize + 1];
        let at = layer.lines.all[number as usize].begin;
        self.line = LineState { number, at, keys, ..LineState::default() };
    }

    fn span(&mut self, span: &Span) {
        let at = |ticks| self.layer.clock.at(self.position, ticks);
        // Behind a rank's end the recorder still works.
        let last = self.layer.lines.all[self.line.number as usize].end;
        let (begin, end) = (at(span.begin_ticks).min(last), at(span.end_ticks).min(last));
        match span.kind {
            SpanKind::Call(function) => {
                if self.functions.entry(function).1 == Activity::Mpi {
                    self.call(span, function, (begin, end));
                }
            }
            SpanKind::Polls { count, inside_ticks, .. } => {
                self.line.own_to(begin);
                let inside = self.layer.clock.ticks_of(self.position, inside_ticks);
                let between = (end - begin - inside).max(0);
                let each = self.seconds(between) / (count.max(2) - 1) as f64;
                let waits_from = if each > BUSY_POLLING_S { begin + between } else { begin };
                self.line.own_to(waits_from);
                self.line.at = self.line.at.max(end);
            }
            SpanKind::Tool => {
                self.line.own_to(begin);
                self.line.library_to(end);
            }
            SpanKind::RegionBegin(id) => {
                self.line.own_to(begin);
                self.line.regions.push(id);
            }
            SpanKind::RegionEnd(id) => {
                self.line.own_to(begin);
                if let Some(at) = self.line.regions.iter().rposition(|open| *open == id) {
                    self.line.regions.truncate(at);
                }
            }
            SpanKind::Summed { .. } => {}
        }
    }

    fn end_thread(&mut self) {
        let end = self.layer.lines.all[self.line.number as usize].end;
        self.line.own_to(end);
        let end = self.line.at;
        self.lay(None, (end, end), &[]);
        self.lines.push((self.line.number, self.ops.len()));
        self.line = LineState::default();
    }
}

impl LayerOfRank<'_, '_> {
    /// A rank without events was outside MPI all the time.
    fn add_silent_line(&mut self) {
        if self.lines.is_empty() {
            let number = self.layer.lines.first_of(self.position);
            let line = &self.layer.lines.all[number as usize];
            self.line = LineState { number, at: line.begin, ..LineState::default() };
            self.end_thread();
        }
    }
}

impl<'a> Graph<'a> {
    /// Of a run.
    ///
    /// # Errors
    /// What makes a run one that cannot be replayed.
    pub fn new(analysis: &Analysis<'a>) -> Result<Self, NotReplayable> {
        let run = analysis.run;
        if !run.missing.is_empty() {
            return Err(NotReplayable::MissingRanks);
        }
        if run.ranks.iter().any(|rank| rank.file.threads.iter().any(|t| t.totals.is_some())) {
            return Err(NotReplayable::NotWhole);
        }
        let clock = WholeTicks::new(run, analysis.timeline);
        let lines = Lines::new(analysis, &clock);
        let Some((begin, end)) = lines.extent().filter(|(begin, end)| end > begin) else {
            return Err(NotReplayable::NoTime);
        };
        let semantics = CallSemantics::new(run);
        let new_finder = || Finder::new(analysis, &clock, (&lines, &semantics));
        let (_, found) = analysis.matches(new_finder).ok_or(NotReplayable::NoAttributes)?;
        let (found, groups) = Found::merge(found.into_iter().map(Finder::into_found).collect());
        let mut keys = found.keys;
        keys.sort_unstable_by_key(|k| (k.line, k.begin_ticks, k.function, k.link.of));
        let mut first: Vec<usize> = Vec::with_capacity(lines.all.len() + 1);
        for line in 0..=lines.all.len() as u32 {
            first.push(keys.partition_point(|key| key.line < line));
        }
        let (clock, lines, keys, first) = (&clock, &lines, &keys[..], &first[..]);
        let (members, meetings) = (&found.members[..], &found.meetings[..]);
        let layer = Layer { clock, lines, begin, keys, first, members, meetings };
        let mut of_ranks = analysis.calls(&&layer);
        of_ranks.iter_mut().for_each(LayerOfRank::add_silent_line);
        if of_ranks.iter().map(|rank| rank.ops.len()).sum::<usize>() >= NO_OP as usize {
            return Err(NotReplayable::TooLong);
        }
        let contexts: Vec<&LocalContexts> = of_ranks.iter().map(|rank| &rank.contexts).collect();
        let (contexts, numbers) = Contexts::merge(run, &contexts);
        let of_ranks: Vec<OpsOfRank> = of_ranks.into_iter().map(OpsOfRank::from).collect();
        let graph = Self {
            run,
            lines: Vec::new(),
            contexts,
            ops: Vec::new(),
            links: Vec::new(),
            messages: found.messages,
            collectives: found.collectives,
            members: found.members,
            groups,
            recorded: Vec::new(),
            elapsed_s: clock.seconds(end - begin),
            fixed_s: 0.0,
        };
        Ok(graph.with(of_ranks, &numbers, (clock, lines, begin)))
    }

    /// With the operations of all ranks.
    fn with(
        mut self,
        of_ranks: Vec<OpsOfRank>,
        numbers: &[Vec<u32>],
        (clock, lines, begin): (&WholeTicks, &Lines, i64),
    ) -> Self {
        let mut at = 0;
        for rank in &of_ranks {
            for (op, own) in rank.ops.iter().enumerate() {
                let to = rank.ops.get(op + 1).map_or(rank.links.len(), |next| next.links as usize);
                for link in &rank.links[own.links as usize..to] {
                    self.begins(*link, at);
                }
                at += 1;
            }
        }
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
        for (mut rank, numbers) in of_ranks.into_iter().zip(numbers) {
            let first = self.ops.len();
            for (op, own) in rank.ops.iter().enumerate() {
                let to = rank.ops.get(op + 1).map_or(rank.links.len(), |next| next.links as usize);
                let (context, links) = (numbers[own.context as usize], self.links.len() as u32);
                self.ops.push(Op { context, links, ..*own });
                self.links
                    .extend(rank.links[own.links as usize..to].iter().filter(|l| is_whole(l)));
            }
            self.recorded.append(&mut rank.recorded);
            self.fixed_s += clock.seconds(rank.fixed);
            let mut from = first as u32;
            for (number, end) in rank.lines {
                let line = &lines.all[number as usize];
                let to = (first + end) as u32;
                let begin_s = clock.seconds(line.begin - begin);
                let (position, ops) = (line.position, from..to);
                self.lines.push(GraphLine { position, ops, begin_s });
                from = to;
            }
        }
        self
    }

    /// Notes which call begins something.
    fn begins(&mut self, link: Link, op: u32) {
        match link.kind {
            LinkKind::Send | LinkKind::PostSend => self.messages[link.of as usize].send = op,
            LinkKind::Receive | LinkKind::PostReceive => {
                self.messages[link.of as usize].receive = op;
            }
            LinkKind::Collective | LinkKind::PostCollective => {
                self.members[link.of as usize].posted = op;
            }
            _ => {}
        }
    }
}
