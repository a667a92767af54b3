//! Compares the own time of functions, from samples of the program's code.
//!
//! The number of samples in a function has a binomial distribution, and runs differ by more than that; the larger of
//! both is the error. Each function is tested over all ranks and on each group of them, half of the allowed error each;
//! of all functions those are significant for which chance is refused by Holm's method (decision 161).

use std::collections::BTreeMap;

use super::cause::{ALL_SHARE, CHANGED_SHARE, WhichRanks};
use super::record::RunRecord;
use super::sampled::{Sampled, SampledCode, SampledKind};
use super::statistics::{ALPHA, Counted, Estimate, compare_counted};
use crate::statistics::holm;

/// Part of a difference that lies in a function at least if it explains the difference.
const MAIN_PART: f64 = 0.5;

/// Why functions are not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSampled {
    /// Runs of one side without samples: whether it is the side before, and how many of how many.
    Runs { before: bool, count: usize, of: usize },
    /// Ranks of a run that were sampled, and all of them.
    Ranks { run: String, sampled: u32, of: u32 },
    /// Rank counts differ.
    OtherRanks,
}

/// The own times of functions on both sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CodeComparison {
    /// Those that are not empty on both sides; significant ones first, then by difference.
    pub functions: Vec<FunctionDifference>,
    /// `None` also if no run was sampled.
    pub missing: Option<NotSampled>,
    /// Whether some run was sampled at the kernel's ticks.
    pub at_ticks: bool,
    /// The least difference of the longest function that would be significant, with that function's position.
    pub detectable: Option<(usize, f64)>,
}

/// Own time of a function, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionDifference {
    /// As the runs after have it if they do.
    pub shown: Sampled,
    /// Of all ranks.
    pub estimate: Estimate,
    pub is_significant: bool,
    /// The ranks that certainly changed, if that is known of some; and by how much one of them did.
    pub on: Option<(WhichRanks, f64)>,
    /// Difference of a rank of the group that changed most.
    most_ns: f64,
}

/// Figures of a function in the runs of a side: by group of ranks, and of all.
type SideFigures = Vec<Vec<Counted>>;

/// A run, whose functions have the same keys in all builds.
struct SampledRun<'r> {
    period_ns: f64,
    rows: BTreeMap<Sampled, (&'r Sampled, Vec<f64>)>,
    /// Samples of each group of ranks, nanoseconds.
    sums: Vec<f64>,
    /// Time of each group of ranks of which samples were lost.
    lost: Vec<f64>,
    /// The most that a function takes that has no row.
    omitted: f64,
}

impl<'r> SampledRun<'r> {
    fn new(record: &'r RunRecord, code: &'r SampledCode) -> Self {
        let groups = record.ranks.div_ceil(record.ranks_per_group) as usize;
        let mut this = Self {
            period_ns: code.period_ns as f64,
            rows: BTreeMap::new(),
            sums: vec![0.0; groups],
            lost: vec![0.0; groups],
            omitted: 0.0,
        };
        let add = |sums: &mut [f64], of: &[i64]| {
            sums.iter_mut().zip(of).for_each(|(sum, ns)| *sum += *ns as f64);
        };
        let of_kind = |kind| code.rows.iter().filter(move |row| row.what.kind == kind);
        let is_truncated = of_kind(SampledKind::Rest).next().is_some();
        for row in &code.rows {
            match row.what.kind {
                SampledKind::Lost => add(&mut this.lost, &row.by_ranks),
                SampledKind::Rest => add(&mut this.sums, &row.by_ranks),
                kind => {
                    if kind == SampledKind::Function {
                        add(&mut this.sums, &row.by_ranks);
                    }
                    let nothing = || (&row.what, vec![0.0; groups]);
                    let known = this.rows.entry(row.what.key(&record.program));
                    add(&mut known.or_insert_with(nothing).1, &row.by_ranks);
                }
            }
        }
        if is_truncated {
            let least = of_kind(SampledKind::Function).map(|row| row.by_ranks.iter().sum::<i64>());
            this.omitted = least.min().unwrap_or(0) as f64;
        }
        this
    }

    /// The time in something: of each group of ranks, and of all.
    fn figures(&self, key: &Sampled) -> Vec<Counted> {
        let row = self.rows.get(key);
        let omitted = if row.is_some() { 0.0 } else { self.omitted };
        let groups = (0..self.sums.len()).map(|group| Counted {
            value: row.map_or(0.0, |(_, ns)| ns[group]),
            variance: self.variance(
                key.kind,
                row.map_or(0.0, |(_, ns)| ns[group]),
                self.sums[group],
            ),
            hidden: self.lost[group] + omitted,
        });
        let mut all: Vec<Counted> = groups.collect();
        let sum = |of: fn(&Counted) -> f64| all.iter().map(of).sum::<f64>();
        let hidden = self.lost.iter().sum::<f64>() + omitted;
        let whole = Counted { value: sum(|of| of.value), variance: sum(|of| of.variance), hidden };
        all.push(whole);
        all
    }

    /// Of a binomial distribution; one sample more of either kind is assumed, so that it is never 0. The kernel's time is
    /// known to a period.
    fn variance(&self, kind: SampledKind, ns: f64, of: f64) -> f64 {
        let (count, all) = (ns / self.period_ns, of / self.period_ns);
        let share = (count + 1.0) / (all + 2.0);
        let samples =
            if kind == SampledKind::Kernel { 1.0 } else { (all + 2.0) * share * (1.0 - share) };
        samples * self.period_ns * self.period_ns
    }
}

impl CodeComparison {
    /// Compares runs; functions are not known if some were not sampled.
    pub fn new(before: &[RunRecord], after: &[RunRecord], same_ranks: bool) -> Self {
        let all = || before.iter().chain(after);
        if all().all(|record| record.code.is_none()) {
            return Self::default();
        }
        if let Some(missing) = missing(before, after, same_ranks) {
            return Self { missing: Some(missing), ..Self::default() };
        }
        let sides = [sampled_runs(before), sampled_runs(after)];
        let mut shown: BTreeMap<&Sampled, &Sampled> = BTreeMap::new();
        for (key, (what, _)) in sides.iter().flatten().flat_map(|run| &run.rows) {
            shown.insert(key, what);
        }
        let at_ticks = all().filter_map(|record| record.code.as_ref()).any(|code| code.at_ticks);
        // What a tick does to a function is not known from one run.
        let is_known = !(at_ticks && before.len().min(after.len()) < 2);
        let ranks_of = |group: usize| {
            let RunRecord { ranks, ranks_per_group, .. } = &before[0];
            let first = group as u32 * ranks_per_group;
            (first, (first + ranks_per_group - 1).min(ranks - 1))
        };
        let tests: Vec<Test> =
            shown.into_iter().map(|(key, shown)| Test::new(key, shown, &sides, is_known)).collect();
        let refused = holm(&tests.iter().map(Test::p).collect::<Vec<f64>>(), ALPHA);
        let alpha = ALPHA / tests.len() as f64;
        let compared = tests.iter().zip(refused);
        let mut functions: Vec<FunctionDifference> =
            compared.map(|(test, refused)| test.difference(refused, alpha, &ranks_of)).collect();
        let order = |of: &FunctionDifference| (!of.is_significant, -of.estimate.difference().abs());
        functions
            .sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal));
        let length = |of: &FunctionDifference| of.estimate.before.max(of.estimate.after);
        let longest = (0..functions.len())
            .max_by(|a, b| length(&functions[*a]).total_cmp(&length(&functions[*b])));
        let detectable = longest.filter(|_| is_known).and_then(|longest| {
            // Half of the error is for all ranks together.
            Some((longest, functions[longest].estimate.detectable(alpha / 2.0)?))
        });
        Self { functions, missing: None, at_ticks, detectable }
    }

    /// Takes back what rests on an assumed scatter of runs.
    pub fn withdraw_assumed(&mut self) {
        let assumed = self.functions.iter_mut().filter(|of| of.estimate.is_assumed);
        assumed.for_each(|of| (of.is_significant, of.on) = (false, None));
        self.detectable =
            self.detectable.filter(|(at, _)| !self.functions[*at].estimate.is_assumed);
    }

    /// The function that explains at least half of a difference of elapsed times, nanoseconds, by what a rank takes longer,
    /// or less.
    pub fn explaining(&self, difference_ns: f64) -> Option<&FunctionDifference> {
        let explains = |of: &&FunctionDifference| {
            of.is_significant
                && of.shown.function.is_some()
                && of.most_ns * difference_ns.signum() >= MAIN_PART * difference_ns.abs()
        };
        let all = self.functions.iter().filter(explains);
        all.max_by(|a, b| a.most_ns.abs().total_cmp(&b.most_ns.abs()))
    }
}

fn sampled_runs(side: &[RunRecord]) -> Vec<SampledRun<'_>> {
    side.iter().filter_map(|of| Some(SampledRun::new(of, of.code.as_ref()?))).collect()
}

fn missing(before: &[RunRecord], after: &[RunRecord], same_ranks: bool) -> Option<NotSampled> {
    for (is_before, side) in [(true, before), (false, after)] {
        let count = side.iter().filter(|record| record.code.is_none()).count();
        if count > 0 {
            return Some(NotSampled::Runs { before: is_before, count, of: side.len() });
        }
    }
    if !same_ranks {
        return Some(NotSampled::OtherRanks);
    }
    let in_part = |record: &RunRecord| {
        let sampled = record.code.as_ref()?.ranks;
        let run = record.run.clone();
        (sampled < record.ranks).then_some(NotSampled::Ranks { run, sampled, of: record.ranks })
    };
    before.iter().chain(after).find_map(in_part)
}

/// The test of a function: estimates of each group of ranks, and of all.
struct Test<'r> {
    shown: &'r Sampled,
    groups: Vec<Estimate>,
    all: Estimate,
}

impl<'r> Test<'r> {
    fn new(
        key: &Sampled,
        shown: &'r Sampled,
        sides: &[Vec<SampledRun>; 2],
        is_known: bool,
    ) -> Self {
        let figures: [SideFigures; 2] =
            [0, 1].map(|side: usize| sides[side].iter().map(|run| run.figures(key)).collect());
        let columns = figures[0].first().map_or(0, Vec::len);
        let column = |side: usize, at: usize| -> Vec<Counted> {
            figures[side].iter().map(|run| run[at]).collect()
        };
        let estimates = (0..columns).map(|at| {
            let estimate = compare_counted(&column(0, at), &column(1, at));
            if is_known { estimate } else { estimate.of_unknown_scatter() }
        });
        let mut groups: Vec<Estimate> = estimates.collect();
        let all = groups.pop().expect("the sum over all ranks");
        Self { shown, groups, all }
    }

    /// The probability that chance makes a difference as large, over all ranks or on some.
    fn p(&self) -> f64 {
        (2.0 * self.all.p.min(self.p_of_groups())).min(1.0)
    }

    fn p_of_groups(&self) -> f64 {
        self.groups.iter().map(|of| of.p).fold(1.0, f64::min) * self.groups.len() as f64
    }

    /// 1 if it takes longer where that is most certain, -1 if it takes less.
    fn sign(&self) -> f64 {
        let most_certain = self.groups.iter().min_by(|a, b| a.p.total_cmp(&b.p));
        let group = most_certain.filter(|_| self.p_of_groups() < self.all.p);
        group.unwrap_or(&self.all).difference().signum()
    }

    fn difference(
        &self,
        is_significant: bool,
        alpha: f64,
        ranks_of: &dyn Fn(usize) -> (u32, u32),
    ) -> FunctionDifference {
        let of_rank = |group: usize| {
            let (first, last) = ranks_of(group);
            self.groups[group].difference() / f64::from(last - first + 1)
        };
        let groups = self.groups.len();
        let sign = self.sign();
        let most_ns = sign * (0..groups).map(|at| sign * of_rank(at)).fold(0.0, f64::max);
        let is_certain = |at: &usize| 2.0 * groups as f64 * self.groups[*at].p <= alpha;
        let changed =
            (0..groups).filter(|at| of_rank(*at) * sign >= CHANGED_SHARE * sign * most_ns);
        let changed: Vec<usize> = changed.filter(is_certain).collect();
        let mean = changed.iter().map(|at| of_rank(*at)).sum::<f64>() / changed.len() as f64;
        let which = match changed.len() {
            0 => None,
            count if groups > 1 && count as f64 > ALL_SHARE * groups as f64 => {
                Some(WhichRanks::All)
            }
            _ => Some(WhichRanks::Some(changed.iter().map(|at| ranks_of(*at)).collect())),
        };
        FunctionDifference {
            shown: self.shown.clone(),
            estimate: self.all,
            is_significant,
            on: which.filter(|_| is_significant).map(|which| (which, mean)),
            most_ns,
        }
    }
}
