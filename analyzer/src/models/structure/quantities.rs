//! Continues counts, sizes and times of labels to the rank count that is asked for.

use super::basis::{TERMS, of_others};
use super::labels::{Key, Label, RunLabels};
use super::laws::{Law, Series, Tolerance};
use super::machine::MachineTimes;
use super::size_laws::LawsOfSize;
use super::smooth::{Column, Estimate, Tried, up_to_two, weighed};

/// Last runs that have a value in common which is taken to stay, and the standard deviation of its logarithm.
const SETTLED: usize = 3;
const SETTLED_SD: f64 = 0.05;

/// Runs that are needed for a law that all but the smallest meet.
const LEAST_BUT_ONE: usize = 5;

/// A quantity at another rank count.
#[derive(Debug, Clone)]
pub(super) struct Continued {
    pub value: f64,
    pub law: Option<String>,
    /// Standard deviation of its logarithm.
    pub sd: f64,
}

/// What laws are sought in: the runs, and where a value is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'r> {
    pub runs: &'r [RunLabels],
    /// Runs that tell what calls take: the same, or those at other problem sizes as well.
    pub calling: &'r [RunLabels],
    /// Runs at other rank counts of which only counts and sizes are known.
    pub counted: &'r [RunLabels],
    pub p: f64,
    pub per_host: f64,
    /// Times of messages within a host, and between hosts, as far as they were measured.
    pub machine: &'r MachineTimes,
    /// Laws of N and p, where the runs are at a problem size that was not measured.
    pub laws: &'r [LawsOfSize],
}

impl Asked<'_> {
    /// The runs in which a label has a value, and these values.
    pub fn values(&self, key: Key, of: impl Fn(&Label) -> Option<f64>) -> (Vec<f64>, Vec<f64>) {
        let values = self.runs.iter().filter_map(|run| {
            let value = run.label(key).and_then(&of)?;
            Some((f64::from(run.p), value))
        });
        values.unzip()
    }

    /// A quantity of a label, continued by a law that every run meets.
    pub fn by_law(
        &self,
        key: Key,
        of: impl Fn(&Label) -> Option<f64>,
        tolerance: Tolerance,
    ) -> Option<Continued> {
        let (p, values) = self.values(key, of);
        self.lawful(&p, &values, tolerance)
    }

    pub fn lawful(&self, p: &[f64], values: &[f64], tolerance: Tolerance) -> Option<Continued> {
        let of = |p, values| {
            Law::of(Series { p, values, per_host: self.per_host, terms: &TERMS }, tolerance)
        };
        let all = of(p, values);
        if all.as_ref().is_none_or(Law::is_of_two_terms)
            && tolerance == Tolerance::Time
            && values.len() >= LEAST_BUT_ONE
        {
            // The smallest run may lack what all others have: neighbours on all sides, groups of full size.
            let later = of(&p[1..], &values[1..]).filter(|law| !law.is_of_two_terms());
            if let Some(law) = later {
                let found = self.by(&law)?;
                return Some(Continued { sd: found.sd.hypot(SETTLED_SD), ..found });
            }
        }
        // Of so many pairs of terms one meets small counts by chance, and says elsewhere what cannot be.
        let all = all?;
        let is_whole = |found: &Continued| {
            (found.value - found.value.round()).abs() < 1e-6 * found.value.max(1.0)
        };
        let is_chance = tolerance == Tolerance::Count && all.is_of_two_terms();
        self.by(&all).filter(|found| !is_chance || is_whole(found))
    }

    fn by(&self, law: &Law) -> Option<Continued> {
        let value = law.at(self.p)?;
        Some(Continued { value, law: Some(law.text()), sd: law.doubt(self.p).ln() })
    }

    /// What has been the same since a few runs: a grid has sides in all dimensions from some rank count on.
    fn settled(values: &[f64], tolerance: Tolerance) -> Option<Continued> {
        let (last, before) = values.split_last()?;
        let mut latest = before.iter().rev().take(SETTLED - 1);
        let has_settled =
            before.len() >= SETTLED && latest.all(|value| tolerance.allows(*last, *value));
        has_settled.then_some(Continued { value: *last, law: None, sd: SETTLED_SD })
    }

    /// A quantity of a label, continued by sums of terms.
    pub fn by_terms(
        &self,
        key: Key,
        of: impl Fn(&Label) -> Option<f64>,
        terms: &[Term],
    ) -> Option<Continued> {
        let (p, values) = self.values(key, of);
        self.summed(&p, &values, terms)
    }

    fn summed(&self, p: &[f64], values: &[f64], terms: &[Term]) -> Option<Continued> {
        self.summed_with(p, values, terms, None)
    }

    /// Continued by sums of terms and of another column.
    pub fn summed_with(
        &self,
        p: &[f64],
        values: &[f64],
        terms: &[Term],
        other: Option<Column>,
    ) -> Option<Continued> {
        let columns = terms.iter().map(|term| Column::new(p, self.p, term));
        let columns: Vec<Column> = columns.chain(other).collect();
        // Two terms through two values may go anywhere.
        let tried = match values.len() {
            ..=2 => columns.iter().map(|column| Tried::new(vec![column])).collect(),
            _ => up_to_two(&columns),
        };
        weighed(values, &tried).map(continued)
    }

    /// A law of a size, or what its mean over all ranks becomes, or sums of terms.
    pub fn size(&self, key: Key, of: fn(&Label) -> f64) -> Continued {
        self.size_of_run(key, |_, label| of(label))
    }

    /// A size that depends on the run as well.
    pub fn size_of_run(&self, key: Key, of: impl Fn(&RunLabels, &Label) -> f64) -> Continued {
        let values =
            self.runs.iter().filter_map(|run| Some((f64::from(run.p), of(run, run.label(key)?))));
        let (p, values): (Vec<f64>, Vec<f64>) = values.unzip();
        self.lawful(&p, &values, Tolerance::Bytes)
            .or_else(|| Self::settled(&values, Tolerance::Bytes))
            .or_else(|| self.summed(&p, &values, &EITHER_WAY))
            .unwrap_or(Continued { value: 0.0, law: None, sd: 0.0 })
    }

    /// A quantity of all ranks in every run, those for counts alone included, if there are some and
    /// the path has the same in all others.
    fn confirmed(
        &self,
        key: Key,
        on_path: impl Fn(&Label) -> f64,
        on_ranks: impl Fn(&Label) -> f64,
        tolerance: Tolerance,
    ) -> Option<Continued> {
        let of_runs = |runs: &[RunLabels]| -> Vec<(f64, f64, f64)> {
            let labels = runs.iter().filter_map(|run| Some((run.p, run.label(key)?)));
            labels.map(|(p, label)| (p.into(), on_path(label), on_ranks(label))).collect()
        };
        let (timed, counted) = (of_runs(self.runs), of_runs(self.counted));
        let is_same = timed.iter().all(|(_, path, ranks)| tolerance.allows(*path, *ranks));
        if counted.is_empty() || !is_same {
            return None;
        }
        let mut all: Vec<(f64, f64)> =
            timed.into_iter().chain(counted).map(|(p, _, value)| (p, value)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (p, values): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        self.lawful(&p, &values, tolerance).or_else(|| self.summed(&p, &values, &EITHER_WAY))
    }

    /// Bytes of a call.
    pub fn bytes(&self, key: Key) -> Continued {
        let of = Label::bytes_of_operation;
        self.confirmed(key, of, Label::mean_bytes, Tolerance::Bytes)
            .unwrap_or_else(|| self.size(key, of))
    }

    /// The number of events on the path. Without a law of its own it is a constant share of the
    /// busiest rank's or of the mean of all ranks, if that has a law.
    pub fn count(&self, key: Key) -> Option<Continued> {
        let on_path = |label: &Label| label.count;
        let confirmed = self.confirmed(key, on_path, |label| label.max_count, Tolerance::Count);
        if confirmed.is_some() {
            return confirmed;
        }
        if let Some(own) = self.by_law(key, |label| Some(label.count), Tolerance::Count) {
            return Some(own);
        }
        let wholes: [fn(&Label) -> f64; 2] =
            [|label| label.max_count, |label| label.all_count / label.ranks.max(1.0)];
        for whole in wholes {
            let Some(continued) = self.by_law(key, |label| Some(whole(label)), Tolerance::Count)
            else {
                continue;
            };
            let share = |label: &Label| (whole(label) > 0.0).then(|| label.count / whole(label));
            let (_, shares) = self.values(key, share);
            if let Some(share) = Self::settled(&shares, Tolerance::Count) {
                return Some(Continued { value: continued.value * share.value, ..continued });
            }
            if let Some((share, sd)) = self.later_mean(key, share) {
                return Some(Continued { value: continued.value * share, law: None, sd });
            }
        }
        self.by_terms(key, |label| Some(label.count), &EITHER_WAY)
    }

    /// The mean of a share over the runs, in which those at more ranks weigh more, and its relative
    /// standard deviation.
    pub fn later_mean(&self, key: Key, of: impl Fn(&Label) -> Option<f64>) -> Option<(f64, f64)> {
        let (p, values) = self.values(key, of);
        let weights: f64 = p.iter().sum();
        let mean = p.iter().zip(&values).map(|(p, value)| p * value).sum::<f64>() / weights;
        let squares = p.iter().zip(&values).map(|(p, value)| p * (value - mean).powi(2));
        let sd = (squares.sum::<f64>() / weights).sqrt();
        (mean > 0.0).then_some((mean, sd / mean))
    }
}

/// The mean of two logarithms, each with the weight of its precision.
pub(super) fn between(one: &Continued, other: &Continued) -> Continued {
    let weight = |of: &Continued| 1.0 / (of.sd * of.sd + 1e-4);
    let (a, b) = (weight(one), weight(other));
    let apart = (one.value / other.value).ln();
    let value = other.value * (apart * a / (a + b)).exp();
    let sd = ((a * one.sd * one.sd + b * other.sd * other.sd) / (a + b)
        + apart * apart * a * b / (a + b).powi(2))
    .sqrt();
    Continued { value, law: None, sd }
}

/// Between a quantity and another value of it: as uncertain as they are apart.
pub(super) fn between_equals(of: Continued, other: f64) -> Continued {
    let half = (other / of.value).ln() / 2.0;
    Continued { value: of.value * half.exp(), sd: of.sd.hypot(half), ..of }
}

/// What goes on as from the last value but one to the last, as a power.
pub(super) fn at_slope(x: &[f64], values: &[f64], asked: f64) -> Option<f64> {
    let ([.., x_before, x_last], [.., before, last]) = (x, values) else { return None };
    let slope = (last / before).ln() / (x_last / x_before).ln();
    Some(last * (asked / x_last).powf(slope)).filter(|value| value.is_finite() && *value > 0.0)
}

pub(super) fn continued(Estimate { value, sd, residual }: Estimate) -> Continued {
    Continued { value, law: None, sd: sd.hypot(residual) }
}

pub(super) type Term = fn(f64) -> f64;

/// Terms of what does not grow.
pub(super) const FALLING: [Term; 9] = [
    |_| 1.0,
    |p| 1.0 / p,
    of_others,
    |p| 1.0 / p.sqrt(),
    |p| p.powf(-2.0 / 3.0),
    |p| p.powf(-1.0 / 3.0),
    |p| p.powf(-1.5),
    |p| 1.0 / (p * p),
    |p| p.log2() / p,
];

/// Terms of times that grew.
pub(super) const GROWING: [Term; 6] =
    [|_| 1.0, |p| 1.0 / p, |p| 1.0 / p.sqrt(), |p| p.log2(), |p| p.sqrt(), |p| p];

/// Terms of times that grew faster than the rank count.
pub(super) const FAST: [Term; 6] =
    [|_| 1.0, |p| p, |p| p * p.log2(), |p| p * p, |p| p * p * p.log2(), |p| p * p * p];

/// Terms of counts and sizes.
pub(super) const EITHER_WAY: [Term; 14] = [
    FALLING[0],
    FALLING[1],
    FALLING[2],
    FALLING[3],
    FALLING[4],
    FALLING[5],
    FALLING[6],
    FALLING[7],
    FALLING[8],
    |p| p.log2(),
    |p| p.sqrt(),
    |p| p,
    |p| p * p.log2(),
    |p| p * p,
];

/// Terms of how much longer the path's stretches are than the mean.
pub(super) const RATIO: [Term; 3] = [|_| 1.0, |p| p.log2(), |p| 1.0 - 1.0 / p];
