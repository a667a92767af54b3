//! A label's part of the time: how often it happens, and how long each takes.

use super::extremes::Stretches;
use super::labels::{Key, Kind, Label, RunLabels};
use super::laws::Tolerance;
use super::part::Part;
use super::quantities::{
    Asked, Continued, FALLING, FAST, GROWING, RATIO, Term, at_slope, between, between_equals,
};
use super::size_laws::LawsOfSize;
use super::smooth::Column;

/// Standard deviation of the logarithm of a time from which on ranks may be held up by those with which they share a
/// host.
const OCCUPANCY: f64 = 0.05;

/// Relative standard deviation of stretches from which on their distribution tells how long the longest is.
const LEAST_SPREAD: f64 = 0.005;

/// Relative standard deviation of that spread up to which it is taken to be the same in all runs.
const STEADY_SPREAD: f64 = 0.35;

/// How much longer than the mean the path's stretches are where work is uneven.
const UNEVEN: f64 = 1.2;

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
            Kind::Computation | Kind::Other => (self.computation(key, &count)?, None),
            _ => self.priced(key, kind, &bytes)?,
        };
        // Where ends of a row do something else than its middle, only the sum of both has a law.
        let whole = self.by_law(key, |label| Some(label.seconds), Tolerance::Time);
        let whole = whole.filter(|_| kind == Kind::Computation && count.value > 0.0);
        let each = match whole {
            Some(whole) if each.law.is_none() => {
                Continued { value: whole.value / count.value, law: None, sd: whole.sd }
            }
            _ => each,
        };
        let laws = self.laws.iter().find(|laws| laws.are_of(key));
        let (count_law, bytes_law) = match laws {
            Some(LawsOfSize { count, bytes, .. }) => (count.clone(), bytes.clone()),
            None => (None, None),
        };
        Some(Part {
            name: key.name.to_owned(),
            first_use: key.first_use,
            seconds: count.value * each.value,
            count: count.value,
            count_law: count_law.or(count.law),
            bytes: bytes.value,
            bytes_law: bytes_law.or(bytes.law),
            leaves_sizes,
            regime: self.regime(key, kind),
            sd: count.sd.hypot(each.sd),
        })
    }

    /// The time of one stretch of computation on the path. Ranks that share a host share its memory, so if runs
    /// that fill their hosts follow each other better than all runs do, they alone count.
    fn computation(&self, key: Key, count: &Continued) -> Option<Continued> {
        let of_all = self.stretch(key, count)?;
        let full = self.on_full_hosts().and_then(|full| full.stretch(key, count));
        let is_better = |full: &Continued| {
            of_all.law.is_none() && of_all.sd > OCCUPANCY && full.sd < of_all.sd / 2.0
        };
        match full.filter(is_better) {
            Some(full) => Some(Continued { sd: full.sd.hypot(OCCUPANCY), ..full }),
            None => Some(of_all),
        }
    }

    /// The last runs, if they fill their hosts as the one that is asked for does, and others do not.
    fn on_full_hosts(&self) -> Option<Self> {
        let occupied = self.p.min(self.per_host);
        let is_full = |run: &RunLabels| f64::from(run.per_host) == occupied;
        let first = self.runs.iter().rposition(|run| !is_full(run))? + 1;
        let runs = &self.runs[first..];
        (runs.len() > 1).then_some(Self { runs, ..*self })
    }

    /// By what it was there, and by the mean over
    /// all ranks, times how much longer those of the path are. The better both meet the runs, the more
    /// they count. It grows only where it grew between the last runs.
    fn stretch(&self, key: Key, count: &Continued) -> Option<Continued> {
        let mean = |label: &Label| {
            (label.all_count > 0.0 && label.all_seconds > 0.0)
                .then(|| label.all_seconds / label.all_count)
        };
        if let Some(own) = self.by_law(key, per_event, Tolerance::Time) {
            return Some(own);
        }
        let each = self.by_terms(key, mean, self.terms_of(key, &mean))?;
        let each = match self.at_last_slope(key, mean) {
            Some(other) => between_equals(each, other),
            None => each,
        };
        let of_rank = |label: &Label| label.all_count / label.ranks.max(1.0);
        let share = |label: &Label| Some(label.count / of_rank(label)).filter(|of| of.is_finite());
        let divided = self.later_mean(key, share).and_then(|(share, sd)| {
            let seconds = |label: &Label| label.all_seconds / label.ranks.max(1.0);
            let each = self.divided(key, of_rank, seconds, count.value / share)?;
            Some(Continued { sd: each.sd.hypot(sd), ..each })
        });
        let each = divided.map_or(each.clone(), |divided| between(&divided, &each));
        let ratio = |label: &Label| Some(per_event(label)? / mean(label)?);
        let longer = self.longer(key, ratio)?;
        let by_mean =
            Continued { value: each.value * longer.value, law: None, sd: each.sd.hypot(longer.sd) };
        // How the slowest of many ranks falls behind is not seen in a sum of terms of p.
        let (_, ratios) = self.values(key, ratio);
        if ratios.last().is_some_and(|last| *last > UNEVEN) {
            return Some(by_mean);
        }
        let own = self.by_terms(key, per_event, self.terms_of(key, &per_event))?;
        let divided = self.divided(key, |label| label.count, |label| label.seconds, count.value);
        let own = divided.map_or(own.clone(), |divided| between(&divided, &own));
        Some(between(&own, &by_mean))
    }

    /// The time of a stretch where all work together is continued and divided among the stretches, if their number
    /// changes: iterations that become more may do less each. `count` and `seconds` are those of a label, `asked` is
    /// the number of stretches where the time is asked for.
    fn divided(
        &self,
        key: Key,
        count: impl Fn(&Label) -> f64,
        seconds: impl Fn(&Label) -> f64,
        asked: f64,
    ) -> Option<Continued> {
        let (_, counts) = self.values(key, |label| Some(count(label)));
        let is_same = counts.iter().all(|of| Tolerance::Count.allows(*of, asked));
        if is_same || asked <= 0.0 {
            return None;
        }
        let work = |label: &Label| Some(seconds(label)).filter(|seconds| *seconds > 0.0);
        let whole = self.by_terms(key, work, self.terms_of(key, &work))?;
        let whole = match self.at_last_slope(key, work) {
            Some(other) => between_equals(whole, other),
            None => whole,
        };
        Some(Continued { value: whole.value / asked, ..whole })
    }

    /// A quantity that goes on as from the last run but one to the last, as a power of p.
    fn at_last_slope(&self, key: Key, of: impl Fn(&Label) -> Option<f64>) -> Option<f64> {
        let (p, values) = self.values(key, of);
        at_slope(&p, &values, self.p)
    }

    /// How much longer than the mean stretches of the path are: by sums of terms, or as the longest of as many as there
    /// are ranks.
    fn longer(&self, key: Key, ratio: impl Fn(&Label) -> Option<f64>) -> Option<Continued> {
        let (p, values) = self.values(key, ratio);
        let longest = self.longest(key).filter(|column| column.at_runs.len() == values.len());
        self.summed_with(&p, &values, &RATIO, longest)
    }

    /// How much longer than the mean the longest stretch of all ranks is expected to be, relative to the mean. Where it
    /// is asked for the distribution has the form of the last run's, and its spread goes on as in all runs.
    fn longest(&self, key: Key) -> Option<Column> {
        let labels = self.runs.iter().filter_map(|run| Some((f64::from(run.p), run.label(key)?)));
        let drawn = labels.filter_map(|(p, label)| Some((p, Stretches::of(label)?)));
        let drawn: Vec<(f64, Stretches)> = drawn.collect();
        let (_, last) = drawn.last()?;
        let spread = |label: &Label| Stretches::of(label).map(|of| of.spread());
        if last.spread() < LEAST_SPREAD {
            return None;
        }
        let spread_there = match self.later_mean(key, spread)? {
            (mean, sd) if sd < STEADY_SPREAD => mean,
            _ => self.by_terms(key, spread, self.terms_of(key, &spread))?.value,
        };
        let asked = last.longest(self.p) / last.spread() * spread_there;
        let at_runs = drawn.iter().map(|(p, of)| of.longest(*p)).collect();
        Some(Column { at_runs, asked })
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
}

/// Time of one event on the path.
fn per_event(label: &Label) -> Option<f64> {
    (label.count > 0.0).then(|| label.seconds / label.count)
}
