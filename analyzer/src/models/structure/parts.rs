//! A label's part of the time: how often it happens, and how long each takes.

use super::forecast::Part;
use super::labels::{Key, Kind, Label, Pattern, RunLabels};
use super::laws::Tolerance;
use super::price::{Sharing, Work, ways};
use super::quantities::{
    Asked, Continued, FALLING, FAST, GROWING, RATIO, Term, between, continued,
};
use super::smooth::{Column, Tried, weighed};

/// Bytes of messages between which libraries go over from sending at once to asking first.
const PROTOCOLS: (f64, f64) = (4_096.0, 262_144.0);

/// Standard deviation of the logarithm of a time when they may have done so.
const PROTOCOL_DOUBT: f64 = 0.4;

/// How much longer than the mean the path's stretches are where work is uneven.
const UNEVEN: f64 = 1.2;

/// The same where no run shows messages between hosts, and these were not measured.
const HOSTS_DOUBT: f64 = 0.7;

/// Relative residual up to which times that were measured on the machine explain a label's.
const MACHINE_HOLDS: f64 = 0.1;

impl Asked<'_> {
    /// A label's part; `None` if it has none.
    pub fn part(&self, key: Key) -> Option<Part> {
        let runs = || self.runs.iter().filter_map(|run| run.label(key));
        if runs().all(|label| label.seconds <= 0.0) {
            return None;
        }
        let kind = runs().next()?.kind;
        let count = self.count(key)?;
        let bytes = self.bytes(key);
        let (each, leaves_sizes) = match kind {
            Kind::Computation | Kind::Other => (self.computation(key)?, None),
            _ => self.priced(key, kind, &bytes)?,
        };
        Some(Part {
            name: key.name.to_owned(),
            first_use: key.first_use,
            seconds: count.value * each.value,
            count: count.value,
            count_law: count.law,
            bytes: bytes.value,
            bytes_law: bytes.law,
            leaves_sizes,
            sd: count.sd.hypot(each.sd),
        })
    }

    /// The time of one stretch of computation on the path: by what it was there, and by the mean over
    /// all ranks, times how much longer those of the path are. The better both meet the runs, the more
    /// they count. It grows only where it grew between the last runs.
    fn computation(&self, key: Key) -> Option<Continued> {
        let mean = |label: &Label| {
            (label.all_count > 0.0 && label.all_seconds > 0.0)
                .then(|| label.all_seconds / label.all_count)
        };
        if let Some(own) = self.by_law(key, per_event, Tolerance::Time) {
            return Some(own);
        }
        let each = self.by_terms(key, mean, self.terms_of(key, &mean))?;
        let ratio = |label: &Label| Some(per_event(label)? / mean(label)?);
        let longer = self.by_terms(key, ratio, &RATIO)?;
        let by_mean =
            Continued { value: each.value * longer.value, law: None, sd: each.sd.hypot(longer.sd) };
        // How the slowest of many ranks falls behind is not seen in a sum of terms of p.
        let (_, ratios) = self.values(key, ratio);
        if ratios.last().is_some_and(|last| *last > UNEVEN) {
            return Some(by_mean);
        }
        let own = self.by_terms(key, per_event, self.terms_of(key, &per_event))?;
        Some(between(&own, &by_mean))
    }

    fn terms_of(&self, key: Key, of: &dyn Fn(&Label) -> Option<f64>) -> &'static [Term] {
        let (p, values) = self.values(key, of);
        let ([.., fewer, most], [.., before, last]) = (&p[..], &values[..]) else {
            return &FALLING;
        };
        match last / before {
            growth if growth > 1.5 * most / fewer => &FAST,
            growth if growth > 1.03 => &GROWING,
            _ => &FALLING,
        }
    }

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
    fn priced(
        &self,
        key: Key,
        kind: Kind,
        bytes: &Continued,
    ) -> Option<(Continued, Option<(f64, f64)>)> {
        let q = self.size_of_run(key, |run, label| members(run, label).0);
        let per_host = self.size_of_run(key, |run, label| members(run, label).1);
        let per_host = per_host.value.min(q.value);
        let messages = self.size(key, |label| label.messages);
        let labels = self.runs.iter().filter_map(|run| Some((run, run.label(key)?)));
        let labels: Vec<(&RunLabels, &Label)> =
            labels.filter(|(_, label)| label.count > 0.0).collect();
        // Messages within a host say little of those between hosts.
        let is_alike = |run: &RunLabels, label: &Label| {
            let (members, of_host) = members(run, label);
            (members > of_host) == (q.value > per_host)
        };
        let alike: Vec<(&RunLabels, &Label)> =
            labels.iter().copied().filter(|(run, label)| is_alike(run, label)).collect();
        let by_machine_alone = alike.len() < labels.len().min(2);
        let labels = if by_machine_alone { labels } else { alike };
        let of_runs: Vec<_> = labels
            .iter()
            .map(|(run, of)| {
                let (members, per_host) = members(run, of);
                ways(kind, of.messages, of.bytes_of_operation(), members, per_host)
            })
            .collect();
        let asked = ways(kind, messages.value, bytes.value, q.value, per_host);
        let p: Vec<f64> = labels.iter().map(|(run, _)| f64::from(run.p)).collect();
        let values: Vec<f64> = labels.iter().map(|(_, of)| of.seconds / of.count).collect();
        let column = |way: usize, of: &dyn Fn(&Work) -> Option<f64>| {
            let at_runs: Option<Vec<f64>> = of_runs.iter().map(|ways| of(&ways[way])).collect();
            Some(Column { at_runs: at_runs?, asked: of(&asked[way])? })
        };
        let ways = || 0..asked.len();
        let columns: Vec<Column> = ways()
            .flat_map(|way| {
                [
                    column(way, &|work| Some(work.messages())),
                    column(way, &|work| Some(work.bytes())),
                ]
            })
            .flatten()
            .collect();
        let sharing = [Sharing::Alone, Sharing::Host];
        let sharing = if per_host > 1.0 { &sharing[..] } else { &sharing[..1] };
        let measured = sharing.iter().flat_map(|sharing| {
            ways().filter_map(|way| column(way, &|work| work.seconds(self.machine, *sharing)))
        });
        let measured: Vec<Column> = measured.collect();
        let has_later =
            self.runs.iter().any(|run| run.label(Key { first_use: false, ..key }).is_some());
        let extra = match key.first_use && has_later {
            true => vec![Column::new(&p, self.p, |_| 1.0), Column::new(&p, self.p, |p| p)],
            false => Vec::new(),
        };
        let with_extra = |column| {
            let pairs = extra.iter().map(move |extra| Tried { columns: vec![column, extra] });
            [Tried { columns: vec![column] }].into_iter().chain(pairs)
        };
        let by_machine: Vec<Tried> = measured.iter().flat_map(with_extra).collect();
        let mut leaves = self.leaves_sizes(key, kind, of_message(kind, bytes.value, q.value));
        let known = weighed(&values, &by_machine).filter(|of| of.residual < MACHINE_HOLDS);
        let each = match known {
            // What the machine does at such sizes or between such ranks has been measured.
            Some(known) if leaves.is_some() || by_machine_alone => {
                leaves = None;
                known
            }
            _ => {
                let pairs = columns.chunks(2).map(|pair| Tried { columns: pair.iter().collect() });
                let tried = columns.iter().flat_map(with_extra).chain(pairs);
                weighed(&values, &tried.chain(by_machine).collect::<Vec<_>>())?
            }
        };
        let each = continued(each);
        let doubt = if leaves.is_some() { PROTOCOL_DOUBT } else { 0.0 };
        let doubt = if by_machine_alone && known.is_none() { HOSTS_DOUBT } else { doubt };
        let sd = each.sd.hypot(bytes.sd).hypot(doubt);
        Some((Continued { sd, ..each }, leaves))
    }
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

/// Time of one event on the path.
fn per_event(label: &Label) -> Option<f64> {
    (label.count > 0.0).then(|| label.seconds / label.count)
}
