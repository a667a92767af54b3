//! Stage 4, why: says of an [`Analysis`] who waited for whom, what made them late, what that cost, and which way
//! the critical path goes ([`Causes`]; CAUSES, sections 1 to 4).
//!
//! | file | its idea |
//! |---|---|
//! | `whole_ticks` | times as integers |
//! | `lines` | the threads of all ranks |
//! | `manners` | what a function's name says of waiting |
//! | `conditions` | what each call needed, from what matching finds |
//! | `progress` | messages that moved late |
//! | `waits` | wait states |
//! | `receipts` | messages received in another order than they were sent |
//! | `contexts`, `profile` | what the lines did between |
//! | `meetings` | since when a delay counts |
//! | `near` | searches that begin where the last one ended |
//! | `order` | what happened before what |
//! | `delay` | costs |
//! | `groups` | waits that are alike |
//! | `critical_path` | the path |
//! | `tree` | the efficiency tree |
//! | `iterations` | iterations and phases, found unaided |
//! | `regions` | what happened inside marked regions |
//!
//! The events are read by matching, twice for iterations, by the profile, which needs to know where waits are, and where
//! the program marks regions once more.
//!
//! # Memory
//! Waits, conditions and the sums between them: some 100 bytes a call that waited, nothing for one that did
//! not.

mod conditions;
pub(crate) mod contexts;
mod critical_path;
mod delay;
mod groups;
mod iterations;
mod lines;
pub(crate) mod manners;
mod meetings;
mod near;
mod order;
mod profile;
mod progress;
mod receipts;
mod regions;
mod tree;
mod waits;
mod whole_ticks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use trace_format::meaning::{Class, Meaning, Synchronises};

use crate::analysis::Analysis;
use crate::trace::Run;

use conditions::{Finder, Found};
pub use contexts::{CallSite, Context, Contexts};
use contexts::{LocalContext, LocalContexts, RECORDER, WAITING, WAITING_FOR_UNKNOWN};
pub use critical_path::{CriticalPath, PathStretch};
pub use delay::{Charges, Cost, Reasons};
pub use groups::{Group, LateBy};
pub use iterations::{Every, Iteration, Phase, Statistics};
pub use lines::{Line, Lines};
use manners::Manners;
use meetings::Meeting;
use order::Order;
pub use profile::Profile;
use profile::{Profiler, ProfilerOfRank};
pub use regions::{Region, Regions};
pub use tree::Tree;
use waits::Waits;
pub use waits::{NOBODY, Wait};
pub use whole_ticks::WholeTicks;

/// What kind of waiting it is. Names as Scalasca's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// A receive, for the send's entry.
    LateSender,
    /// The same, while a message that was sent earlier waited to be received.
    LateSenderWrongOrder,
    /// A send, for the receive's posting.
    LateReceiver,
    /// A barrier, for the last to enter.
    WaitAtBarrier,
    /// An operation of all with all, for the last to enter.
    WaitAtNxn,
    /// A broadcast or scatter, for the root.
    LateBroadcast,
    /// The root of a reduce or gather, for the last that sends.
    EarlyReduce,
    /// A scan, for lower ranks.
    EarlyScan,
    /// A fence, for the last to enter.
    OneSided,
    /// A call whose message moved only when the partner's rank entered MPI again.
    LateProgress,
    /// Behind a rank's end, for the last rank's.
    WaitAtFinalize,
    /// Before a rank's begin.
    StartSkew,
    /// Polls that nothing is known to have ended.
    Polling,
    /// A call that had not returned when recording ended.
    OpenAtEnd,
}

impl State {
    /// As documents name it.
    pub fn key(self) -> &'static str {
        match self {
            Self::LateSender => "late_sender",
            Self::LateSenderWrongOrder => "late_sender_wrong_order",
            Self::LateReceiver => "late_receiver",
            Self::WaitAtBarrier => "wait_at_barrier",
            Self::WaitAtNxn => "wait_at_nxn",
            Self::LateBroadcast => "late_broadcast",
            Self::EarlyReduce => "early_reduce",
            Self::EarlyScan => "early_scan",
            Self::OneSided => "one_sided",
            Self::LateProgress => "late_progress",
            Self::WaitAtFinalize => "wait_at_finalize",
            Self::StartSkew => "start_skew",
            Self::Polling => "polling",
            Self::OpenAtEnd => "open_at_end",
        }
    }

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::LateSenderWrongOrder => "late sender, wrong order",
            Self::LateReceiver => "late receiver",
            Self::WaitAtBarrier => "wait at barrier",
            Self::WaitAtNxn => "wait at N x N",
            Self::LateBroadcast => "late broadcast",
            Self::EarlyReduce => "early reduce",
            Self::EarlyScan => "early scan",
            Self::OneSided => "wait at fence",
            Self::LateProgress => "late progress",
            Self::WaitAtFinalize => "wait at finalize",
            Self::StartSkew => "start skew",
            Self::Polling => "polling",
            Self::OpenAtEnd => "open at the end",
        }
    }
}

/// What is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// No rank recorded what its calls say.
    NoAttributes,
    /// Some ranks have no file.
    MissingRanks,
    /// Clocks are not aligned: waits between hosts are uncertain.
    Unaligned,
    /// Collective operations that lack members.
    IncompleteCollectives(u64),
    /// Collective operations in neighbourhoods.
    Neighbourhoods(u64),
    /// Conditions fulfilled behind the end of the call.
    Violations(u64),
    /// Delays over too long an interval.
    TooLong(u64),
    /// Waits whose order contradicts the clocks.
    Cut(u64),
    /// Calls of which only totals are kept.
    Totals,
    /// Groups of one-sided communication, locks and flushes.
    OneSided,
    /// What a group of a communicator's members makes.
    MadeByGroup,
}

/// Which waits are asked for; all, unless something is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Those in a region of that name, the innermost that is open.
    pub region: Option<String>,
    /// Those that end in that iteration of the longest phase, from 0.
    pub iteration: Option<usize>,
}

/// All waits.
pub static ALL: Choice = Choice { region: None, iteration: None };

/// Why the ranks of a run waited.
#[derive(Debug)]
pub struct Causes<'a> {
    /// The axis.
    pub clock: WholeTicks<'a>,
    /// The threads.
    pub lines: Lines,
    /// Earliest begin and latest end of a rank, ticks.
    pub whole: (i64, i64),
    /// By line, on each in order of time.
    pub waits: Vec<Wait>,
    /// Those that were asked for, where not all were.
    chosen: Option<Vec<bool>>,
    /// Conditions that were fulfilled behind the end of the call: not waited for.
    pub violations: u64,
    /// Ticks of waits shorter than the clocks may be wrong: not among them.
    pub uncertain: i64,
    /// What ranks did.
    pub contexts: Contexts,
    /// For each of the waits the context of its call; [`NOWHERE`] outside of calls.
    pub places: Vec<u32>,
    /// For each of the waits the context of the call by which its culprit ended it; [`NOWHERE`] outside of calls.
    pub culprit_places: Vec<u32>,
    /// By line.
    pub profiles: Vec<Profile>,
    /// Who caused how much.
    pub charges: Charges,
    /// Why the culprit of each of the waits was late.
    pub reasons: Reasons,
    /// Waits that are alike, the most time first.
    pub groups: Vec<Group>,
    /// The critical path.
    pub path: CriticalPath,
    /// Stretches in which all ranks repeat the same calls, the longest first.
    pub phases: Vec<Phase>,
    /// Regions that the program marked.
    pub regions: Regions,
    /// What cannot be said.
    pub unknown: Vec<Unknown>,
}

/// A context on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnPath {
    /// Its number.
    pub context: u32,
    /// Ticks of the path in it.
    pub on_path: i64,
    /// Those less the mean over the ranks of the time in it.
    pub imbalance: i64,
}

/// Runs of more calls are explained only where that alone is asked for, not beside a report or a timeline.
pub const MOST_CALLS_ASIDE: u64 = 20_000_000;

/// No context.
pub const NOWHERE: u32 = u32::MAX;

impl<'a> Causes<'a> {
    /// Of a run.
    pub fn new(analysis: &Analysis<'a>) -> Self {
        Self::of(analysis, &ALL)
    }

    /// Of a run; states, groups and costs are of the waits that are asked for, with what led to these.
    pub fn of(analysis: &Analysis<'a>, choice: &Choice) -> Self {
        let (run, timeline) = (analysis.run, analysis.timeline);
        let clock = WholeTicks::new(run, timeline);
        let lines = Lines::new(analysis, &clock);
        let whole = lines.extent().unwrap_or((0, 0));
        let manners = Manners::new(run);
        let found = analysis.matches(|| Finder::new(analysis, &clock, (&lines, &manners)));
        let mut unknown = Vec::new();
        let mut found = match found {
            Some((_, finders)) => {
                let found = finders.into_iter().map(Finder::into_found);
                let found = found.reduce(Found::merge).unwrap_or_default();
                Finder::new(analysis, &clock, (&lines, &manners)).with_probes(found)
            }
            None => {
                unknown.push(Unknown::NoAttributes);
                Found::default()
            }
        };
        let counted = [
            (found.incomplete, Unknown::IncompleteCollectives(found.incomplete)),
            (found.neighbourhoods, Unknown::Neighbourhoods(found.neighbourhoods)),
            (found.violations, Unknown::Violations(found.violations)),
        ];
        unknown.extend(counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what));
        let violations = found.violations;
        let unmoved = std::mem::take(&mut found.unmoved);
        let least = conditions::least_unmoved(&clock);
        found.conditions.extend(progress::conditions(analysis, &clock, unmoved, least));
        let open = open_calls(analysis, &clock, &lines);
        let receipts = std::mem::take(&mut found.receipts);
        let mut waits = Waits::new(found, &lines, &open, whole);
        receipts.tell_wrong_order(&mut waits.all, &lines);
        let (meetings, order) =
            rayon::join(|| meetings::before(&waits, &lines), || Order::new(&waits, &lines));
        let mut phases = Phase::find(analysis, (&clock, &lines), whole);
        let Profiled { contexts, profiles, places, culprit_places } =
            profiles(analysis, (&clock, &lines), &waits, (&meetings, &mut phases));
        for phase in &mut phases {
            phase.tell(&lines, (&profiles, &contexts), &waits.all);
        }
        let regions = Regions::new(analysis, (&clock, &lines), &waits);
        let chosen = chosen(choice, &waits, (&lines, &phases, &regions));
        let is_chosen = |number: u32| chosen.as_ref().is_none_or(|all| all[number as usize]);
        let reasons = Reasons::new(&waits, (&meetings, &order), (&profiles, contexts.all.len()));
        let (charges, (groups, path)) = rayon::join(
            || Charges::new(&waits, &order, &reasons, &is_chosen),
            || {
                let groups = groups::alike(&waits, &lines, (&places, &reasons), &is_chosen);
                (groups, CriticalPath::new((&waits, &order), (&lines, &profiles), whole))
            },
        );
        let counted = [
            (reasons.too_long, Unknown::TooLong(reasons.too_long)),
            (order.cut.len() as u64, Unknown::Cut(order.cut.len() as u64)),
        ];
        unknown.extend(counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what));
        unknown.extend(not_looked_at(&contexts));
        if !run.missing.is_empty() {
            unknown.push(Unknown::MissingRanks);
        }
        if !timeline.aligned {
            unknown.push(Unknown::Unaligned);
        }
        if run.ranks.iter().any(|rank| rank.file.threads.iter().any(|t| t.totals.is_some())) {
            unknown.push(Unknown::Totals);
        }
        let uncertain = waits.uncertain;
        let waits = std::mem::take(&mut waits.all);
        Self {
            clock,
            lines,
            whole,
            waits,
            chosen,
            violations,
            uncertain,
            contexts,
            places,
            culprit_places,
            profiles,
            charges,
            reasons,
            groups,
            path,
            phases,
            regions,
            unknown,
        }
    }

    /// Whether a wait was asked for.
    pub fn is_chosen(&self, number: u32) -> bool {
        self.chosen.as_ref().is_none_or(|all| all[number as usize])
    }

    /// All waiting that was asked for, ticks.
    pub fn waiting(&self) -> i64 {
        self.groups.iter().map(|group| group.ticks).sum()
    }

    /// Count and ticks of each state that occurs.
    pub fn states(&self) -> Vec<(State, u64, i64)> {
        let mut sums: BTreeMap<State, (u64, i64)> = BTreeMap::new();
        for group in &self.groups {
            let sum = sums.entry(group.state).or_default();
            *sum = (sum.0 + group.count, sum.1 + group.ticks);
        }
        sums.into_iter().map(|(state, (count, ticks))| (state, count, ticks)).collect()
    }

    /// Positions of the longest waits that were asked for, the longest first; of equal ones the first.
    pub fn longest(&self, most: usize) -> Vec<u32> {
        let key = |number: &u32| (Reverse(self.waits[*number as usize].ticks), *number);
        let all = 0..self.waits.len() as u32;
        let mut order: Vec<u32> = all.filter(|number| self.is_chosen(*number)).collect();
        if most < order.len() {
            order.select_nth_unstable_by_key(most, key);
            order.truncate(most);
        }
        order.sort_unstable_by_key(key);
        order
    }

    /// What the critical path goes through, the longest first, against the mean over the ranks.
    pub fn imbalance(&self) -> Vec<OnPath> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        let ranks = self.lines.all.iter().filter(|line| line.thread == 0).count().max(1) as i64;
        for (context, ticks) in self.profiles.iter().flat_map(Profile::all) {
            *sums.entry(*context).or_default() += ticks;
        }
        let rows = self.path.in_context.iter().map(|(context, on_path)| {
            let mean = sums.get(context).copied().unwrap_or(0) / ranks;
            OnPath { context: *context, on_path: *on_path, imbalance: on_path - mean }
        });
        let mut rows: Vec<OnPath> = rows.collect();
        rows.sort_by_key(|row| (Reverse(row.on_path), row.context));
        rows
    }

    /// The efficiency of all ranks with a file; `None` where the run has no length. `ideal` is the run's time on
    /// an ideal network over its own, where a replay told it.
    pub fn tree(&self, run: &Run, ideal: Option<f64>) -> Option<Tree> {
        let ranks = (0..run.ranks.len()).map(|position| {
            let host = run.ranks[position].file.header.host.as_str();
            (host, self.computing(self.lines.first_of(position)))
        });
        let tree = Tree::new(&ranks.collect::<Vec<_>>(), self.whole.1 - self.whole.0, ideal)?;
        let moving_imbalance = self.phases.first().and_then(Phase::moving_imbalance);
        Some(Tree { moving_imbalance, ..tree })
    }

    /// Ticks outside MPI and the recorder on a line.
    pub fn computing(&self, line: u32) -> i64 {
        let sums = self.profiles[line as usize].all().iter();
        let computing = sums.filter(|(context, _)| self.contexts.get(*context).is_computing());
        computing.map(|(_, ticks)| ticks).sum()
    }

    /// Ticks on a line: waiting, inside MPI without waiting, in the recorder.
    pub fn in_mpi(&self, line: u32) -> [i64; 3] {
        let mut sums = [0; 3];
        for (context, ticks) in self.profiles[line as usize].all() {
            let at = match *context {
                WAITING | WAITING_FOR_UNKNOWN => 0,
                RECORDER => 2,
                _ if self.contexts.get(*context).is_computing() => continue,
                _ => 1,
            };
            sums[at] += ticks;
        }
        sums
    }
}

/// Which waits are asked for; `None` for all.
fn chosen(
    choice: &Choice,
    waits: &Waits,
    (lines, phases, regions): (&Lines, &[Phase], &Regions),
) -> Option<Vec<bool>> {
    if *choice == ALL {
        return None;
    }
    let in_region = |number: u32| {
        let region = regions.of_wait(number).map(|region| &region.name);
        choice.region.as_ref().is_none_or(|asked| Some(asked) == region)
    };
    let in_iteration = |wait: &Wait| {
        let position = lines.all[wait.line as usize].position;
        let found = phases.first().and_then(|phase| phase.iteration_of(position, wait.until));
        choice.iteration.is_none_or(|asked| Some(asked) == found)
    };
    let all = (0u32..).zip(&waits.all);
    Some(all.map(|(number, wait)| in_region(number) && in_iteration(wait)).collect())
}

/// Functions among those that were called of which nothing is known here.
fn not_looked_at(contexts: &Contexts) -> Vec<Unknown> {
    let called = contexts.all.iter().filter_map(|context| match context {
        Context::Transfer(site) => Some(Meaning::of(&site.function)),
        _ => None,
    });
    let mut unknown = BTreeSet::new();
    for meaning in called {
        match (meaning.class, meaning.synchronises) {
            (Class::OneSided, Synchronises::Group | Synchronises::Target) => {
                unknown.insert(Unknown::OneSided)
            }
            (Class::Communicators, Synchronises::Group) => unknown.insert(Unknown::MadeByGroup),
            _ => false,
        };
    }
    unknown.into_iter().collect()
}

/// The calls that had not returned: line, begin, function.
fn open_calls(analysis: &Analysis, clock: &WholeTicks, lines: &Lines) -> Vec<(u32, i64, u16)> {
    let mut open = Vec::new();
    for position in 0..analysis.run.ranks.len() {
        for thread in analysis.rank(position).threads() {
            let last = thread.extent.last_call.as_ref().filter(|call| call.open);
            let line = lines.of(position, thread.thread.number);
            if let (Some(last), Some(line)) = (last, line) {
                let begin = clock.at(position, last.begin_ticks);
                open.push((line, begin.max(lines.all[line as usize].begin), last.function));
            }
        }
    }
    open
}

/// What the pass over all calls found.
struct Profiled {
    contexts: Contexts,
    profiles: Vec<Profile>,
    places: Vec<u32>,
    culprit_places: Vec<u32>,
}

/// What every line did between the moments that somebody will ask for, and the context of each wait's call.
fn profiles(
    analysis: &Analysis,
    (clock, lines): (&WholeTicks, &Lines),
    waits: &Waits,
    (meetings, phases): (&[Meeting], &mut [Phase]),
) -> Profiled {
    let mut moments: Vec<Vec<i64>> = vec![Vec::new(); lines.all.len()];
    for (wait, meeting) in waits.all.iter().zip(meetings) {
        moments[wait.line as usize].extend([wait.begin, wait.until, meeting.moment]);
        if wait.has_culprit() {
            let moments = &mut moments[wait.culprit as usize];
            moments.extend([wait.fulfilled, wait.until, meeting.of_culprit]);
        }
    }
    for position in 0..analysis.run.ranks.len() {
        let moments = &mut moments[lines.first_of(position) as usize];
        phases.iter().for_each(|phase| moments.extend(phase.moments(position)));
    }
    let mut ended: Vec<Vec<(i64, u32)>> = vec![Vec::new(); lines.all.len()];
    for (number, wait) in (0u32..).zip(&waits.all).filter(|(_, wait)| wait.has_culprit()) {
        ended[wait.culprit as usize].push((wait.fulfilled, number));
    }
    ended.par_iter_mut().for_each(|of_line| of_line.sort_unstable());
    let profiler = Profiler { clock, lines, waits, moments: &moments, ended: &ended };
    let mut of_ranks = analysis.calls(&profiler);
    of_ranks.iter_mut().for_each(ProfilerOfRank::add_silent_line);
    let contexts: Vec<&LocalContexts> = of_ranks.iter().map(|rank| &rank.contexts).collect();
    let (contexts, numbers) = Contexts::merge(analysis.run, &contexts);
    let mut profiles = vec![Profile::default(); lines.all.len()];
    let mut places = vec![NOWHERE; waits.all.len()];
    let mut culprit_places = places.clone();
    for phase in phases {
        let place = of_ranks[0].contexts.known(LocalContext::Transfer(phase.anchor));
        phase.place = place.map_or(NOWHERE, |place| numbers[0][place as usize]);
    }
    for (rank, numbers) in of_ranks.into_iter().zip(numbers) {
        for (number, context) in rank.places {
            places[number as usize] = numbers[context as usize];
        }
        for (number, context) in rank.culprit_places {
            culprit_places[number as usize] = numbers[context as usize];
        }
        for (line, mut profile) in rank.profiles {
            profile.renumber(&numbers);
            profiles[line as usize] = profile;
        }
    }
    Profiled { contexts, profiles, places, culprit_places }
}

#[cfg(test)]
mod tests;
