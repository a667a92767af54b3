//! The time of a call, from what it communicates.

use super::labels::{Key, Kind, Label, Pattern, RunLabels};
use super::machine::MachineTimes;
use super::quantities::{Asked, Continued, continued};
use super::rules::by_rule;
use super::shape::Shape;
use super::smooth::{Column, Estimate, Tried, weighed};
use super::ways::ways;
use super::work::Work;

/// Bytes of messages between which libraries go over from sending at once to asking first.
const PROTOCOLS: (f64, f64) = (4_096.0, 262_144.0);

/// Logarithm of how uncertain a number of bytes is taken to be, at most.
const MOST_BYTES_DOUBT: f64 = 1.5;

/// Standard deviation of the logarithm of a time when they may have done so.
const PROTOCOL_DOUBT: f64 = 0.4;

/// The same when the library does what it did in no run.
const ALGORITHM_DOUBT: f64 = 0.6;

/// The same if in other runs it takes what its rules and the machine say.
const RULE_DOUBT: f64 = 0.3;

/// The same where no run shows messages between hosts, and these were not measured.
const HOSTS_DOUBT: f64 = 0.7;

/// Relative residual up to which times that were measured on the machine explain a label's, where they have to
/// stand for sizes and hosts that no run shows, and where they only are likelier than anything else.
const MACHINE_HOLDS: f64 = 0.1;
const MACHINE_EXPLAINS: f64 = 0.3;

/// Logarithm of how far times may be from what a library's rule and the machine say, where only some runs do what is
/// asked for.
const RULE_HOLDS: f64 = 0.3;

/// Relative residual up to which another way explains all runs, and from which on a rule does not.
const EXPLAINED: f64 = 0.02;
const NOT_EXPLAINED: f64 = 0.05;

impl Asked<'_> {
    /// Bytes of the nearest message of a run, and of those asked for, if these are smaller or larger than
    /// in any run, in the range of sizes where libraries change how they send.
    fn leaves_sizes(&self, key: Key, kind: Kind, asked: f64) -> Option<(f64, f64)> {
        let measured = self.calling.iter().filter_map(|run| Some((run, run.label(key)?)));
        let measured = measured.map(|(run, label)| {
            of_message(kind, label.bytes_of_operation(), shape(run, label).members)
        });
        let (least, most) =
            measured.fold((f64::INFINITY, 0.0), |(lo, hi), each| (each.min(lo), each.max(hi)));
        let nearest = if asked < least { least } else { most };
        let (from, to) = (asked.min(nearest), asked.max(nearest));
        let is_inside = (least..=most).contains(&asked) || to < 1.01 * from;
        let may_change = from < PROTOCOLS.1 && to > PROTOCOLS.0;
        (!is_inside && may_change).then_some((nearest, asked))
    }

    /// The time of a call, as messages and bytes of one of the usual ways to carry it out. Of first
    /// calls also what they take once or for each rank.
    pub(super) fn priced(
        &self,
        key: Key,
        kind: Kind,
        bytes: &Continued,
    ) -> Option<(Continued, Option<(f64, f64)>)> {
        let (each, leaves) = self.priced_at(key, kind, bytes.value)?;
        let apart = bytes.sd.min(MOST_BYTES_DOUBT);
        // How much longer it takes if there are more bytes, or fewer.
        let other = |factor: f64| {
            let other = self.priced_at(key, kind, bytes.value * factor);
            other.map_or(0.0, |(other, _)| (other.value / each.value).ln().abs())
        };
        let by_bytes = match apart > 0.0 {
            true => other(apart.exp()).max(other((-apart).exp())),
            false => 0.0,
        };
        Some((Continued { sd: each.sd.hypot(by_bytes), ..each }, leaves))
    }

    fn priced_at(
        &self,
        key: Key,
        kind: Kind,
        bytes: f64,
    ) -> Option<(Continued, Option<(f64, f64)>)> {
        let call = self.call(key, bytes);
        let labels = self.calling.iter().filter_map(|run| Some((run, run.label(key)?)));
        let labels: Vec<(&RunLabels, &Label)> =
            labels.filter(|(_, label)| label.count > 0.0).collect();
        // Messages within a host say little of those between hosts.
        let is_alike = |run: &RunLabels, label: &Label| {
            shape(run, label).is_on_one_host() == call.shape.is_on_one_host()
        };
        let alike: Vec<(&RunLabels, &Label)> =
            labels.iter().copied().filter(|(run, label)| is_alike(run, label)).collect();
        let by_machine_alone = alike.len() < labels.len().min(2);
        let has_later =
            self.runs.iter().any(|run| run.label(Key { first_use: false, ..key }).is_some());
        let extra_in = |labels: &[(&RunLabels, &Label)]| {
            let p: Vec<f64> = labels.iter().map(|(run, _)| f64::from(run.p)).collect();
            let is_setup = has_later || kind == Kind::Collective(Pattern::Synchronise);
            match key.first_use && is_setup {
                true => vec![Column::new(&p, self.p, |_| 1.0), Column::new(&p, self.p, |p| p)],
                false => Vec::new(),
            }
        };
        let priced = Priced { kind, asked: &call, machine: self.machine };
        // Times of a machine say what messages take within a host as well as between hosts.
        let extra = extra_in(&labels);
        let by_machine = priced.estimate(&labels, &extra, &[Source::Machine]);
        let mut leaves = self.leaves_sizes(key, kind, of_message(kind, bytes, call.shape.members));
        let known = by_machine.filter(|of| of.residual < MACHINE_HOLDS);
        let is_mixed = alike.len() < labels.len();
        let explained = by_machine.filter(|of| is_mixed && of.residual < MACHINE_EXPLAINS);
        let each = match known.filter(|_| leaves.is_some() || by_machine_alone) {
            // What the machine does at such sizes or between such ranks has been measured.
            Some(known) => {
                leaves = None;
                known
            }
            None => match explained {
                Some(explained) => explained,
                None => {
                    let alike = if by_machine_alone { &labels } else { &alike };
                    priced.estimate(alike, &extra_in(alike), &Source::BOTH)?
                }
            },
        };
        let calls: Vec<Call> = labels.iter().map(Call::of).collect();
        // What first calls take beside their messages is not in the rule.
        let (each, chosen) = match priced.by_choice(&calls, each.residual) {
            Choice::Confirmed(by_choice) if extra.is_empty() => (by_choice, Some(0.0)),
            Choice::Unseen(by_choice) if extra.is_empty() => (by_choice, Some(RULE_DOUBT)),
            Choice::Unseen(_) | Choice::UnseenUnpriced => (each, Some(ALGORITHM_DOUBT)),
            _ => (each, None),
        };
        let each = continued(each);
        let doubt = if leaves.is_some() { PROTOCOL_DOUBT } else { 0.0 };
        let doubt = if by_machine_alone && known.is_none() { HOSTS_DOUBT } else { doubt };
        let doubt = chosen.unwrap_or(doubt);
        let sd = each.sd.hypot(doubt);
        Some((Continued { sd, ..each }, leaves))
    }

    /// A label's call where it is asked for, with so many bytes.
    pub(super) fn call(&self, key: Key, bytes: f64) -> Call {
        let shape_at =
            |of: fn(Shape) -> f64| self.size_of_run(key, |run, label| of(shape(run, label))).value;
        let members = shape_at(|shape| shape.members).max(2.0);
        let per_host = shape_at(|shape| shape.per_host).max(1.0).min(members).min(self.per_host);
        let last = self.runs.iter().rev().find_map(|run| Some((run, run.label(key)?)));
        let calling = last.map_or(1.0, |(run, label)| calling(run, label));
        let groups = (self.per_host.min(self.p) * calling / per_host).max(1.0);
        let shape = Shape { members, per_host, groups };
        Call {
            messages: self.size(key, |label| label.messages).value,
            bytes,
            shape,
            seconds: f64::NAN,
        }
    }
}

/// A call of a label in one run, or the one that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub messages: f64,
    pub bytes: f64,
    pub shape: Shape,
    /// On the path.
    seconds: f64,
}

impl Call {
    fn of((run, label): &(&RunLabels, &Label)) -> Self {
        let bytes = label.bytes_of_operation();
        let seconds = label.seconds / label.count;
        Self { messages: label.messages, bytes, shape: shape(run, label), seconds }
    }
}

/// Calls of one label, whose time is sought from what they communicate.
struct Priced<'p> {
    kind: Kind,
    asked: &'p Call,
    machine: &'p MachineTimes,
}

/// A way to carry out a call: what it does in every run, and in the call that is asked for.
struct Way {
    at_runs: Vec<Work>,
    asked: Work,
    /// Where the runs do not tell it from those before it, it is a doubt.
    is_guess: bool,
}

impl Way {
    fn column(&self, of: impl Fn(&Work) -> Option<f64>) -> Option<Column> {
        let at_runs: Option<Vec<f64>> = self.at_runs.iter().map(&of).collect();
        Some(Column { at_runs: at_runs?, asked: of(&self.asked)? })
    }
}

impl Priced<'_> {
    /// The usual ways; what the library does first, if it is known, else what libraries may do last.
    fn ways(&self, calls: &[Call]) -> Vec<Way> {
        let all = |of: &dyn Fn(&Call) -> Vec<Option<Work>>, is_guess| {
            let mut of_runs: Vec<_> = calls.iter().map(|call| of(call).into_iter()).collect();
            let ways = of(self.asked).into_iter().filter_map(|asked| {
                // A way of which some run is not known is none.
                let at_runs: Vec<_> =
                    of_runs.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>();
                let at_runs: Option<Vec<Work>> = at_runs.into_iter().collect();
                Some(Way { at_runs: at_runs?, asked: asked?, is_guess })
            });
            ways.collect::<Vec<Way>>()
        };
        let library = self.machine.library;
        let usual = |of: &Call| ways(self.kind, of.messages, of.bytes, of.shape);
        let chosen = |of: &Call| by_rule(library, self.kind, of.bytes, of.shape);
        let (usual, chosen) = (all(&usual, library.is_some()), all(&chosen, library.is_none()));
        match library.is_some() {
            true => chosen.into_iter().chain(usual).collect(),
            false => usual.into_iter().chain(chosen).collect(),
        }
    }

    /// What the library, which is known, does in these calls and in the one that is asked for.
    fn chosen(&self, calls: &[Call]) -> Option<Way> {
        self.ways(calls).into_iter().find(|way| !way.is_guess && !way.asked.algorithm.is_empty())
    }

    /// The time of the call by what the library chooses there, if runs show that it chooses otherwise elsewhere.
    /// `residual` is that of the usual ways: if one explains all runs, and the rule does not, it is not followed.
    fn by_choice(&self, calls: &[Call], residual: f64) -> Choice {
        let Some(way) = self.chosen(calls) else { return Choice::Same };
        let is_alike = |work: &Work| work.algorithm == way.asked.algorithm;
        if way.at_runs.iter().all(is_alike) {
            return Choice::Same;
        }
        let is_seen = way.at_runs.iter().any(is_alike);
        let column = way.column(|work| work.seconds(self.machine));
        let Some(column) = column else {
            return if is_seen { Choice::Same } else { Choice::UnseenUnpriced };
        };
        let of_runs = way.at_runs.iter().zip(calls).zip(&column.at_runs);
        let logs =
            of_runs.map(|((work, call), priced)| (is_alike(work), (call.seconds / priced).ln()));
        let (alike, others): (Vec<_>, Vec<_>) = logs.partition(|(is_alike, _)| *is_alike);
        let all = || alike.iter().chain(&others).map(|(_, log)| *log);
        let mean = all().sum::<f64>() / calls.len() as f64;
        let apart = all().map(|log| (log - mean).powi(2)).sum::<f64>() / calls.len() as f64;
        if residual < EXPLAINED && apart.sqrt() > NOT_EXPLAINED {
            return Choice::Same;
        }
        let middle_of = |logs: &[(bool, f64)]| -> Option<f64> {
            let mut logs: Vec<f64> = logs.iter().map(|(_, log)| *log).collect();
            logs.sort_by(f64::total_cmp);
            logs.get(logs.len() / 2).copied()
        };
        if let Some(middle) = middle_of(&alike) {
            let squares = alike.iter().map(|(_, log)| (log - middle).powi(2)).sum::<f64>();
            let sd = (squares / alike.len() as f64).sqrt();
            if middle.abs() < RULE_HOLDS && sd < RULE_HOLDS {
                let value = column.asked * middle.exp();
                return Choice::Confirmed(Estimate { value, sd, residual: 0.0 });
            }
        }
        match middle_of(&others) {
            Some(middle) if middle.abs() < RULE_HOLDS => {
                Choice::Unseen(Estimate { value: column.asked, sd: 0.0, residual: 0.0 })
            }
            _ if is_seen => Choice::Same,
            _ => Choice::UnseenUnpriced,
        }
    }

    /// The time of the call that is asked for, as those of these labels.
    fn estimate(
        &self,
        labels: &[(&RunLabels, &Label)],
        extra: &[Column],
        sources: &[Source],
    ) -> Option<Estimate> {
        let calls: Vec<Call> = labels.iter().map(Call::of).collect();
        let ways = self.ways(&calls);
        let mut columns: Vec<(Vec<Column>, bool)> = Vec::new();
        let mut add = |new: Vec<Column>, is_guess: bool| {
            let all = |known: &[Column], is: fn(&Column, &Column) -> bool| {
                known.len() == new.len() && known.iter().zip(&new).all(|(a, b)| is(a, b))
            };
            // Where no rank shares a host, both ways to share it are the same.
            if columns.iter().any(|(known, _)| *known == new) {
                return;
            }
            let is_doubt = is_guess && columns.iter().any(|(known, _)| all(known, Column::is_like));
            columns.push((new, is_doubt));
        };
        for way in &ways {
            if sources.contains(&Source::Machine) {
                let column = way.column(|work| work.seconds(self.machine));
                column.into_iter().for_each(|column| add(vec![column], way.is_guess));
            }
            if sources.contains(&Source::Amounts) {
                let messages = way.column(|work| Some(work.messages()));
                let bytes = way.column(|work| Some(work.bytes()));
                let both: Vec<Column> = messages.into_iter().chain(bytes).collect();
                both.iter().for_each(|column| add(vec![column.clone()], way.is_guess));
                add(both, way.is_guess);
            }
        }
        let tried = columns.iter().flat_map(|(of, is_doubt)| {
            let columns: Vec<&Column> = of.iter().collect();
            let extra = if columns.len() == 1 { extra } else { &[] };
            let with_extra = extra.iter().map(|of| [&columns[..], &[of]].concat());
            let all: Vec<_> = [columns.clone()].into_iter().chain(with_extra).collect();
            all.into_iter().map(|columns| Tried { columns, is_doubt: *is_doubt })
        });
        let values: Vec<f64> = calls.iter().map(|call| call.seconds).collect();
        weighed(&values, &tried.collect::<Vec<_>>())
    }
}

/// What a known library does in the call that is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Choice {
    /// What it does in every run, or the runs contradict the rule.
    Same,
    /// What it does in some runs, whose times are those of the machine.
    Confirmed(Estimate),
    /// What it does in no run; in most of these it takes what its rule says.
    Unseen(Estimate),
    /// What it does in no run, and what that takes is not known.
    UnseenUnpriced,
}

/// What the time of a call is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What its messages take on the machine.
    Machine,
    /// Numbers of messages and bytes.
    Amounts,
}

impl Source {
    const BOTH: [Self; 2] = [Self::Machine, Self::Amounts];
}

/// The communicator of a label's calls; of calls that name none that of the run. If all ranks make such calls, those of
/// a host have one on each of its communicators.
fn shape(run: &RunLabels, label: &Label) -> Shape {
    let (p, host) = (f64::from(run.p), f64::from(run.per_host));
    let (members, per_host) = match label.group {
        Some(group) => (group.ranks, group.per_host),
        None => (p, host),
    };
    let groups = (host * calling(run, label) / per_host.max(1.0)).max(1.0);
    Shape { members: members.max(2.0), per_host, groups }
}

/// Share of the ranks that make a label's calls.
fn calling(run: &RunLabels, label: &Label) -> f64 {
    if label.ranks > 0.0 { label.ranks / f64::from(run.p) } else { 1.0 }
}

/// Bytes of one message of a call.
fn of_message(kind: Kind, bytes: f64, members: f64) -> f64 {
    match kind {
        Kind::Collective(Pattern::Exchange | Pattern::ExchangeUneven) => bytes / members,
        _ => bytes,
    }
}
