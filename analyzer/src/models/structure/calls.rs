//! The time of a call, from what it communicates.

use super::algorithms::by_rule;
use super::labels::{Key, Kind, Label, Pattern, RunLabels};
use super::price::{MachineTimes, Sharing, Work, ways};
use super::quantities::{Asked, Continued, continued};
use super::smooth::{Column, Estimate, Tried, weighed};

/// Bytes of messages between which libraries go over from sending at once to asking first.
const PROTOCOLS: (f64, f64) = (4_096.0, 262_144.0);

/// Standard deviation of the logarithm of a time when they may have done so.
const PROTOCOL_DOUBT: f64 = 0.4;

/// The same when the library does what it did in no run.
const ALGORITHM_DOUBT: f64 = 0.6;

/// The same where no run shows messages between hosts, and these were not measured.
const HOSTS_DOUBT: f64 = 0.7;

/// Relative residual up to which times that were measured on the machine explain a label's, where they have to
/// stand for sizes and hosts that no run shows, and where they only are likelier than anything else.
const MACHINE_HOLDS: f64 = 0.1;
const MACHINE_EXPLAINS: f64 = 0.3;

impl Asked<'_> {
    /// Bytes of the nearest message of a run, and of those asked for, if these are smaller or larger than
    /// in any run, in the range of sizes where libraries change how they send.
    fn leaves_sizes(&self, key: Key, kind: Kind, asked: f64) -> Option<(f64, f64)> {
        let measured = self.runs.iter().filter_map(|run| Some((run, run.label(key)?)));
        let measured = measured.map(|(run, label)| {
            of_message(kind, label.bytes_of_operation(), members(run, label).0)
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
        let call = self.call(key, bytes.value);
        let labels = self.runs.iter().filter_map(|run| Some((run, run.label(key)?)));
        let labels: Vec<(&RunLabels, &Label)> =
            labels.filter(|(_, label)| label.count > 0.0).collect();
        // Messages within a host say little of those between hosts.
        let is_alike = |run: &RunLabels, label: &Label| {
            let (members, of_host) = members(run, label);
            (members > of_host) == (call.members > call.per_host)
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
        let mut leaves = self.leaves_sizes(key, kind, of_message(kind, bytes.value, call.members));
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
        let each = continued(each);
        let is_new = priced.changes_algorithm(&labels);
        let doubt = if leaves.is_some() { PROTOCOL_DOUBT } else { 0.0 };
        let doubt = if is_new { ALGORITHM_DOUBT } else { doubt };
        let doubt = if by_machine_alone && known.is_none() { HOSTS_DOUBT } else { doubt };
        let sd = each.sd.hypot(bytes.sd).hypot(doubt);
        Some((Continued { sd, ..each }, leaves))
    }

    /// A label's call where it is asked for, with so many bytes.
    pub(super) fn call(&self, key: Key, bytes: f64) -> Call {
        let members_at = self.size_of_run(key, |run, label| members(run, label).0).value;
        let per_host = self.size_of_run(key, |run, label| members(run, label).1).value;
        Call {
            messages: self.size(key, |label| label.messages).value,
            bytes,
            members: members_at,
            per_host: per_host.min(members_at),
            seconds: f64::NAN,
        }
    }
}

/// A call of a label in one run, or the one that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub messages: f64,
    pub bytes: f64,
    pub members: f64,
    pub per_host: f64,
    /// On the path.
    seconds: f64,
}

impl Call {
    fn of((run, label): &(&RunLabels, &Label)) -> Self {
        let (members, per_host) = members(run, label);
        let bytes = label.bytes_of_operation();
        let seconds = label.seconds / label.count;
        Self { messages: label.messages, bytes, members, per_host, seconds }
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
        let all = |of: &dyn Fn(&Call) -> Vec<Work>, is_guess| {
            let mut of_runs: Vec<_> = calls.iter().map(|call| of(call).into_iter()).collect();
            let ways = of(self.asked).into_iter().map(|asked| Way {
                at_runs: of_runs.iter_mut().filter_map(Iterator::next).collect(),
                asked,
                is_guess,
            });
            ways.collect::<Vec<Way>>()
        };
        let library = self.machine.library;
        let usual = |of: &Call| ways(self.kind, of.messages, of.bytes, of.members, of.per_host);
        let chosen = |of: &Call| by_rule(library, self.kind, of.bytes, of.members, of.per_host);
        let (usual, chosen) = (all(&usual, library.is_some()), all(&chosen, library.is_none()));
        match library.is_some() {
            true => chosen.into_iter().chain(usual).collect(),
            false => usual.into_iter().chain(chosen).collect(),
        }
    }

    /// Whether the library, which is known, does there what it did in no run.
    fn changes_algorithm(&self, labels: &[(&RunLabels, &Label)]) -> bool {
        let calls: Vec<Call> = labels.iter().map(Call::of).collect();
        let chosen = self.ways(&calls).into_iter().find(|way| !way.is_guess);
        chosen.is_some_and(|of| {
            let algorithm = of.asked.algorithm;
            of.at_runs.iter().all(|work| work.algorithm != algorithm)
        })
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
            let is_like = |known: &Vec<Column>| {
                known.len() == new.len() && known.iter().zip(&new).all(|(a, b)| a.is_like(b))
            };
            let like = columns.iter().find(|(known, _)| is_like(known)).map(|(known, _)| known);
            match like {
                // Where no rank shares a host, both ways to share it are the same.
                Some(known) if *known == new => {}
                like => {
                    let is_doubt = is_guess && like.is_some();
                    columns.push((new, is_doubt));
                }
            }
        };
        for way in &ways {
            if sources.contains(&Source::Machine) {
                for sharing in [Sharing::Alone, Sharing::Host] {
                    let column = way.column(|work| work.seconds(self.machine, sharing));
                    column.into_iter().for_each(|column| add(vec![column], way.is_guess));
                }
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

/// Members of a communicator, and how many of them share a host. Of calls that name no communicator
/// those of the run.
fn members(run: &RunLabels, label: &Label) -> (f64, f64) {
    match label.group {
        Some(group) => (group.ranks, group.per_host),
        None => (run.p.into(), run.per_host.into()),
    }
}

/// Bytes of one message of a call.
fn of_message(kind: Kind, bytes: f64, members: f64) -> f64 {
    match kind {
        Kind::Collective(Pattern::Exchange) => bytes / members,
        _ => bytes,
    }
}
