//! What the messages and collective operations between each two counters say about their offset: in
//! every window of time the tightest on each side.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_format::meaning::{Meaning, Synchronises};

use super::domains::Domains;
use super::envelope::Constraint;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{
    CollectiveInstance, CollectiveMember, MatchFinding, MatchSink, Message,
};
use crate::trace::Run;

/// Most windows of a pair.
const MAX_WINDOWS: usize = 256;
/// Fewest windows of a pair.
const MIN_WINDOWS: usize = 8;
/// Windows of all pairs, if each two counters are compared: 50 MB.
const ALL_WINDOWS: usize = 1 << 20;

/// Two moments, each on the counter of one domain, of which one was not after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Moments {
    /// On the domain of the lower number, seconds.
    lower_s: f64,
    /// On the other one, seconds.
    upper_s: f64,
}

impl Moments {
    /// What the lower domain's counter is ahead at least or at most.
    fn ahead_s(&self) -> f64 {
        self.lower_s - self.upper_s
    }
}

/// The tightest in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Window {
    /// From the domain of the lower number to the other.
    forth: Option<Moments>,
    /// The other way.
    back: Option<Moments>,
}

impl Window {
    fn add(&mut self, other: Self) {
        // The same of two equal ones in any order.
        let tightest = |sign: f64, a: Option<Moments>, b: Option<Moments>| {
            let key = |m: &Moments| (sign * m.ahead_s(), m.upper_s);
            let order = |a: &Moments, b: &Moments| {
                let ((a, of_a), (b, of_b)) = (key(a), key(b));
                a.total_cmp(&b).then(of_a.total_cmp(&of_b))
            };
            a.into_iter().chain(b).max_by(order)
        };
        self.forth = tightest(1.0, self.forth, other.forth);
        self.back = tightest(-1.0, self.back, other.back);
    }
}

/// What two domains exchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pair(Vec<Window>);

impl Pair {
    /// What is known of the offset from one of the domains to the other, by the moment on the
    /// former: what has to be added to its seconds to get the other's.
    pub fn bounds(&self, from_upper: bool) -> Vec<(f64, Constraint)> {
        let mut bounds = Vec::with_capacity(2 * self.0.len());
        for Window { forth, back } in &self.0 {
            let forth = forth.map(|m| match from_upper {
                true => (m.upper_s, Constraint::AtLeast(m.ahead_s())),
                false => (m.lower_s, Constraint::AtMost(-m.ahead_s())),
            });
            let back = back.map(|m| match from_upper {
                true => (m.upper_s, Constraint::AtMost(m.ahead_s())),
                false => (m.lower_s, Constraint::AtLeast(-m.ahead_s())),
            });
            bounds.extend(forth.into_iter().chain(back));
        }
        bounds
    }
}

/// What all domains exchanged, or what a part of the run's matches says about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchanged {
    /// By the numbers of the domains, the lower one first.
    pub pairs: BTreeMap<(u32, u32), Pair>,
    /// Messages between domains.
    pub messages: u64,
    /// Collective operations of several domains.
    pub collectives: u64,
    /// Whether the matches themselves contradict each other.
    pub is_doubtful: bool,
}

impl Exchanged {
    /// Adds what another part of the run says.
    pub fn add(&mut self, other: Self) {
        for (domains, pair) in other.pairs {
            let own = self.pairs.entry(domains).or_default();
            own.0.resize(own.0.len().max(pair.0.len()), Window::default());
            own.0.iter_mut().zip(pair.0).for_each(|(own, other)| own.add(other));
        }
        self.messages += other.messages;
        self.collectives += other.collectives;
        self.is_doubtful |= other.is_doubtful;
    }
}

/// A moment of a rank, as early or as late as its clock allows.
#[derive(Debug, Clone, Copy)]
struct At {
    domain: u32,
    seconds: f64,
}

/// When the ranks of a domain entered a collective operation last, and left it first.
#[derive(Debug, Clone, Copy, Default)]
struct Passage {
    entered_s: Option<f64>,
    left_s: Option<f64>,
}

/// Collects what messages and collective operations say.
pub(super) struct Collector<'a> {
    pub run: &'a Run,
    pub domains: &'a Domains,
    pub communicators: &'a CommunicatorTable,
    /// By function's name, which members of a collective operation wait for which.
    synchronises: FxHashMap<String, Option<Synchronises>>,
    pairs: FxHashMap<(u32, u32), Pair>,
    windows: usize,
    messages: u64,
    collectives: u64,
}

impl<'a> Collector<'a> {
    pub fn new(run: &'a Run, domains: &'a Domains, communicators: &'a CommunicatorTable) -> Self {
        let count = domains.count();
        let pairs = (count * count.saturating_sub(1) / 2).max(1);
        Self {
            run,
            domains,
            communicators,
            synchronises: FxHashMap::default(),
            pairs: FxHashMap::default(),
            windows: (ALL_WINDOWS / pairs).clamp(MIN_WINDOWS, MAX_WINDOWS),
            messages: 0,
            collectives: 0,
        }
    }

    /// What was collected.
    pub fn finish(self) -> Exchanged {
        let Self { pairs, messages, collectives, .. } = self;
        let pairs = pairs.into_iter().collect();
        Exchanged { pairs, messages, collectives, is_doubtful: false }
    }

    /// Notes that one moment was not after another. Returns whether that says anything.
    fn precedes(&mut self, earlier: At, later: At) -> bool {
        let is_known = earlier.seconds.is_finite() && later.seconds.is_finite();
        if earlier.domain == later.domain || !is_known {
            return false;
        }
        let forth = earlier.domain < later.domain;
        let (lower, upper) = if forth { (earlier, later) } else { (later, earlier) };
        let moments = Moments { lower_s: lower.seconds, upper_s: upper.seconds };
        let windows = self.windows;
        let pair = self.pairs.entry((lower.domain, upper.domain)).or_default();
        pair.0.resize(windows, Window::default());
        let part = self.domains.part(upper.domain, upper.seconds);
        let window = ((part * windows as f64) as usize).min(windows - 1);
        pair.0[window].add(match forth {
            true => Window { forth: Some(moments), back: None },
            false => Window { forth: None, back: Some(moments) },
        });
        true
    }

    fn early(&self, position: usize, ticks: u64, seconds: f64) -> At {
        let domain = self.domains.domain(position);
        At { domain, seconds: seconds - self.domains.error_s(position, ticks) }
    }

    fn late(&self, position: usize, ticks: u64, seconds: f64) -> At {
        let domain = self.domains.domain(position);
        // What a counter shows began up to a tick ago.
        let tick_s = self.domains.tick_s(position);
        At { domain, seconds: seconds + self.domains.error_s(position, ticks) + tick_s }
    }

    fn synchronises(&mut self, function: &str) -> Option<Synchronises> {
        if let Some(known) = self.synchronises.get(function) {
            return *known;
        }
        // Who exchanges data with whom is not recorded.
        let name = function.trim_end_matches("_init").trim_end_matches("_c").to_ascii_lowercase();
        let is_by_partner = name.ends_with("alltoallv") || name.ends_with("alltoallw");
        let found = Some(Meaning::by_name(function).synchronises).filter(|_| !is_by_partner);
        self.synchronises.insert(function.to_owned(), found);
        found
    }

    /// Who waits for whom: per domain the last to enter of those that others wait for, and the first
    /// to leave of those that wait.
    fn passages(&mut self, instance: &CollectiveInstance) -> Option<BTreeMap<u32, Passage>> {
        use Synchronises::{All, Exchanging, FromRoot, ToRoot};
        let synchronises = self.synchronises(&instance.function)?;
        let is_barrier = instance.function == "MPI_Barrier";
        let is_root = |member: &CollectiveMember| Some(member.rank) == instance.root;
        let mut passages: BTreeMap<u32, Passage> = BTreeMap::new();
        for member in &instance.members {
            let position = self.run.position_of(member.rank)?;
            if !self.domains.is_usable(position) {
                continue;
            }
            let (sends, receives) = (member.sent_bytes > 0, member.received_bytes > 0);
            let (is_awaited, waits) = match synchronises {
                All | Exchanging => (is_barrier || sends, is_barrier || receives),
                FromRoot => (is_root(member) && sends, !is_root(member) && receives),
                ToRoot => (!is_root(member) && sends, is_root(member)),
                _ => return None,
            };
            let entered = self.early(position, member.begin_ticks, member.begin_s);
            let passage = passages.entry(entered.domain).or_default();
            if is_awaited {
                let last = passage.entered_s.unwrap_or(f64::NEG_INFINITY);
                passage.entered_s = Some(last.max(entered.seconds));
            }
            let left = member.completed.and_then(|call| call.end_ticks()).zip(member.complete_s);
            if let Some((ticks, seconds)) = left.filter(|_| waits) {
                let left = self.late(position, ticks, seconds);
                let first = passage.left_s.unwrap_or(f64::INFINITY);
                passage.left_s = Some(first.min(left.seconds));
            }
        }
        Some(passages)
    }
}

impl MatchSink for Collector<'_> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            _ => {}
        }
    }
}

impl Collector<'_> {
    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        let position = |rank| self.run.position_of(rank);
        let (Some(from), Some(to)) = (position(send.rank), position(receive.rank)) else { return };
        if self.domains.domain(from) == self.domains.domain(to) {
            return;
        }
        let Some((end_ticks, end_s)) = receive.end_ticks.zip(receive.end_s) else { return };
        if [from, to].iter().any(|at| !self.domains.has_ordered_messages(*at)) {
            return;
        }
        let sent = self.early(from, send.begin_ticks, send.begin_s);
        let received = self.late(to, end_ticks, end_s);
        self.messages += u64::from(self.precedes(sent, received));
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        let inter = self.communicators.get(instance.communicator).is_none_or(|of| of.inter);
        if instance.missing > 0 || instance.mismatched || inter {
            return;
        }
        let Some(passages) = self.passages(instance).filter(|of| of.len() > 1) else { return };
        let at = |(domain, seconds): (&u32, Option<f64>)| {
            Some(At { domain: *domain, seconds: seconds? })
        };
        let entered = passages.iter().filter_map(|(domain, p)| at((domain, p.entered_s)));
        let left = passages.iter().filter_map(|(domain, p)| at((domain, p.left_s)));
        let (entered, left): (Vec<At>, Vec<At>) = (entered.collect(), left.collect());
        // Not each with each, but all with one: pairs must not grow with the square of the domains.
        let of_one = |all: &[At]| all.first().map(|at| at.domain);
        let (Some(hub), Some(first_left)) = (of_one(&entered), of_one(&left)) else { return };
        let hub = if left.len() == 1 { first_left } else { hub };
        let (mut is_new, is_hub) = (false, |at: &&At| at.domain == hub);
        let from_hub = entered
            .iter()
            .find(is_hub)
            .into_iter()
            .flat_map(|hub| left.iter().map(move |other| (*hub, *other)));
        let to_hub = left
            .iter()
            .find(is_hub)
            .into_iter()
            .flat_map(|hub| entered.iter().map(move |other| (*other, *hub)));
        for (earlier, later) in from_hub.chain(to_hub) {
            is_new |= self.precedes(earlier, later);
        }
        self.collectives += u64::from(is_new);
    }
}
