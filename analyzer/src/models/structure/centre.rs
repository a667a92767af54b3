//! One rank that serves the others: a run takes no less time than that rank is busy, however many the others are.

use super::labels::RunLabels;
use super::laws::Tolerance;
use super::part::{Part, uncertainty};
use super::quantities::{Asked, Continued, continued};
use super::smooth::{Column, up_to_two, weighed};

/// How many times the calls of the others it makes.
const CALLS: f64 = 3.0;

/// Share of the predicted time in which it is busy, at least.
const LEAST_BUSY: f64 = 0.3;

/// Relative distance up to which its time and that of the others explain the runs.
const EXPLAINED: f64 = 0.15;

/// Power of the mean of both: they are not always both busy.
const POWER: f64 = 6.0;

/// Relative standard deviation of that mean where both are as long.
const CORNER: f64 = 0.05;

/// Standard deviation of the logarithm of its time where a single run shows what ranks on other hosts take.
const HOSTS_DOUBT: f64 = 0.35;

fn mean_of_both(first: f64, others: f64) -> f64 {
    (first.powf(POWER) + others.powf(POWER)).powf(1.0 / POWER)
}

/// The time of a run without waits: of the first rank, and of all others together.
fn busy_s(run: &RunLabels) -> (f64, f64) {
    let all: f64 = run.labels.iter().map(|label| label.all_seconds).sum();
    (run.first_rank.busy_s, all - run.first_rank.busy_s)
}

/// The rank count of a run, and its time relative to that of both.
fn off(run: &RunLabels) -> (f64, f64) {
    let (first, all_others) = busy_s(run);
    let p = f64::from(run.p);
    (p, run.tau_s / mean_of_both(first, all_others / (p - 1.0).max(1.0)))
}

impl Asked<'_> {
    /// The parts of the time, where the first rank serves the others, their times explain the runs, and are surer than
    /// the path: its own, and those of the path, which follows the others as long as nobody holds them up. Else these
    /// parts as they are.
    pub fn with_centre(&self, path: Vec<Part>) -> Vec<Part> {
        let Some((first, others, off)) = self.centre() else { return path };
        let both = mean_of_both(first.value, others.value);
        let whole = both * off.value;
        if first.value < LEAST_BUSY * whole {
            return path;
        }
        // How much the time grows with that of the first rank, and with that of the others.
        let weight = (first.value / both).powf(POWER);
        let path_s: f64 = path.iter().map(|part| part.seconds).sum();
        let scale = whole * (1.0 - weight) / path_s;
        let sd = others.sd.hypot(off.sd);
        let scaled = |part: Part| Part { seconds: part.seconds * scale, sd, ..part };
        let centre = Part {
            name: "the first rank, which serves the others".to_owned(),
            first_use: false,
            seconds: whole * weight,
            count: 1.0,
            count_law: None,
            bytes: 0.0,
            bytes_law: None,
            leaves_sizes: None,
            regime: None,
            sd: first.sd.hypot(off.sd).hypot(4.0 * CORNER * (1.0 - weight)),
        };
        let unsure = uncertainty(&path);
        let parts: Vec<Part> = path.iter().cloned().map(scaled).chain([centre]).collect();
        if uncertainty(&parts) < unsure { parts } else { path }
    }

    /// The time of the first rank, that of the others, and how much longer than both a run takes; `None` if it does not
    /// serve them.
    fn centre(&self) -> Option<(Continued, Continued, Continued)> {
        let last = self.runs.last()?.first_rank;
        let (p, off): (Vec<f64>, Vec<f64>) = self.runs.iter().map(off).unzip();
        let is_explained = off[1..].iter().all(|off| (off - 1.0).abs() < EXPLAINED);
        if last.calls <= CALLS * last.mean_calls_of_others || !is_explained {
            return None;
        }
        let of = |of: fn(&RunLabels) -> f64| self.runs.iter().map(of).collect::<Vec<f64>>();
        let first = self.busy(&of(|run| busy_s(run).0))?;
        let all_others = self.busy(&of(|run| busy_s(run).1))?;
        let others = Continued { value: all_others.value / (self.p - 1.0).max(1.0), ..all_others };
        let far = self.runs.iter().filter(|run| f64::from(run.p) > self.per_host).count();
        let doubt = if self.per_host > 1.0 && far < 2 { HOSTS_DOUBT } else { 0.0 };
        let first = Continued { sd: first.sd.hypot(doubt), ..first };
        let columns = [Column::new(&p, self.p, |_| 1.0), Column::new(&p, self.p, |p| p)];
        let off = weighed(&off, &up_to_two(&columns)).map(continued)?;
        Some((first, others, off))
    }

    /// A time by a law, else by how many ranks there are and how many of the others are on other hosts.
    fn busy(&self, values: &[f64]) -> Option<Continued> {
        let p: Vec<f64> = self.runs.iter().map(|run| f64::from(run.p)).collect();
        let lawful = self.lawful(&p, values, Tolerance::Time);
        let column = |of: &dyn Fn(f64) -> f64| Column::new(&p, self.p, of);
        let elsewhere = |p: f64| (p - self.per_host).max(0.0) / (p - 1.0).max(1.0);
        let columns = [column(&|_| 1.0), column(&|p| p), column(&elsewhere)];
        lawful.or_else(|| weighed(values, &up_to_two(&columns)).map(continued))
    }
}
