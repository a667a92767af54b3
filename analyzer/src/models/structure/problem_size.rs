//! Runs at a problem size N that was not measured: at each rank count the labels of runs at other sizes are continued
//! over N, as they are then continued over p.

use super::abstains::{Abstains, LEAST_SIZES};
use super::basis::{SIZE_TERMS, Term};
use super::held_back::HeldBack;
use super::labels::{FirstRank, Key, Kind, Label, RunLabels, ranks_per_host};
use super::laws::{Law, Series, Tolerance};
use super::machine::MachineTimes;
use super::quantities::{Asked, Continued, at_slope, between_equals, continued};
use super::size_laws::{LawsOfSize, Point, SizedRun, joint, joint_laws, points};
use super::smooth::{Column, up_to_two, weighed};

/// Runs at one problem size.
pub(super) struct AtSize {
    /// One for each rank count, ascending.
    pub runs: Vec<RunLabels>,
    /// Standard deviation of the logarithm of their times, from continuing them over problem sizes.
    pub sd: f64,
    /// The run with most ranks and the largest problem, as those with smaller problems predict it.
    pub held_back: HeldBack,
    /// How often the largest measured problem size doubles, or the smallest halves.
    pub doublings: f64,
    pub laws: Vec<LawsOfSize>,
}

/// The runs at a problem size: measured ones where there are some, else continued.
///
/// # Errors
/// At no rank count are there enough problem sizes.
pub(super) fn at_size(
    mut runs: Vec<SizedRun>,
    size: f64,
    machine: &MachineTimes,
) -> Result<AtSize, Abstains> {
    runs.retain(|of| !of.run.counts_only);
    runs.sort_by(|a, b| {
        let order = |of: &SizedRun| (of.run.p, of.size, of.run.tau_s);
        order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal)
    });
    runs.dedup_by(|later, first| (later.run.p, later.size) == (first.run.p, first.size));
    let all: Vec<&RunLabels> = runs.iter().map(|of| &of.run).collect();
    let per_host = ranks_per_host(&all);
    let over = |of| OverSizes { runs: of, all: &runs, per_host, machine };
    let (mut at_size, mut sd, mut held_back) = (Vec::new(), 0.0f64, None);
    let mut most_sizes = 0;
    for group in runs.chunk_by(|a, b| a.run.p == b.run.p) {
        most_sizes = most_sizes.max(group.len());
        if let [smaller @ .., largest] = group
            && smaller.len() >= LEAST_SIZES - 1
        {
            held_back = Some((smaller, largest));
        }
        match group.iter().find(|of| of.size == size) {
            Some(measured) => at_size.push(measured.run.clone()),
            None if group.len() >= LEAST_SIZES => {
                let (run, doubt) = over(group).at(size);
                sd = sd.max(doubt);
                at_size.push(run);
            }
            None => {}
        }
    }
    let (smaller, held_back) = held_back.ok_or(Abstains::FewProblemSizes(most_sizes))?;
    // Laws of N and p must not have seen it, nor others of its size.
    let all = runs.iter().filter(|of| of.size < held_back.size).cloned().collect::<Vec<_>>();
    let (predicted, _) =
        OverSizes { runs: smaller, all: &all, per_host, machine }.at(held_back.size);
    let (p, measured_s) = (held_back.run.p, held_back.run.tau_s);
    let held_back = HeldBack { p, predicted_s: predicted.tau_s, measured_s };
    let sizes = || runs.iter().map(|of| of.size);
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let doublings = (size / most).max(least / size).log2().max(0.0);
    let laws = joint_laws(&runs, per_host);
    Ok(AtSize { runs: at_size, sd, held_back, doublings, laws })
}

/// Runs at one rank count, ascending in problem size.
#[derive(Clone, Copy)]
struct OverSizes<'r> {
    runs: &'r [SizedRun],
    /// Those at all rank counts.
    all: &'r [SizedRun],
    per_host: f64,
    machine: &'r MachineTimes,
}

/// A label in runs at one rank count.
struct OfLabel<'r> {
    sizes: Vec<f64>,
    /// Nothing but the label.
    runs: Vec<RunLabels>,
    /// At all rank counts.
    all: Vec<Point<'r>>,
    per_host: f64,
    asked: f64,
}

impl<'r> OverSizes<'r> {
    /// A run at a problem size, and the standard deviation of the logarithm of its time.
    fn at(&self, size: f64) -> (RunLabels, f64) {
        let mut keys: Vec<Key> = Vec::new();
        for label in self.runs.iter().rev().take(2).flat_map(|of| &of.run.labels) {
            if !keys.contains(&label.key()) {
                keys.push(label.key());
            }
        }
        let found: Vec<(Label, f64)> = keys.iter().map(|key| self.label(*key, size)).collect();
        let seconds: f64 = found.iter().map(|(label, _)| label.seconds).sum();
        let variance = found.iter().map(|(label, sd)| (sd * label.seconds / seconds).powi(2));
        let sd = variance.sum::<f64>().sqrt();
        let explained = |of: &SizedRun| {
            of.run.tau_s / of.run.labels.iter().map(|label| label.seconds).sum::<f64>()
        };
        let scale = self.runs.iter().map(explained).sum::<f64>() / self.runs.len() as f64;
        let uncertain = self.runs.iter().map(|of| of.run.uncertain).fold(0.0, f64::max);
        let labels = found.into_iter().map(|(label, _)| label).collect();
        let last = &self.runs[self.runs.len() - 1].run;
        let run = RunLabels {
            tau_s: scale * seconds,
            uncertain,
            labels,
            places: Vec::new(),
            first_rank: FirstRank::default(),
            ..last.clone()
        };
        (run, sd)
    }

    /// A label at a problem size, and the standard deviation of the logarithm of its time.
    fn label(&self, key: Key, size: f64) -> (Label, f64) {
        let labels = self.runs.iter().filter_map(|of| Some((of, of.run.label(key)?)));
        let all: Vec<(f64, &RunLabels, &Label)> =
            labels.map(|(of, label)| (of.size, &of.run, label)).collect();
        let number = all[0].2.by_size.len();
        let everywhere = points(self.all, |run| run.label(key));
        let (mut label, sd) = self.one(&all, everywhere.clone(), size);
        if all.iter().all(|(_, _, label)| label.by_size.len() == number) {
            let of_size = |at: usize| {
                let of: Vec<_> =
                    all.iter().map(|(n, run, label)| (*n, *run, &label.by_size[at])).collect();
                let of_size = |(p, n, label): &Point<'r>| Some((*p, *n, label.by_size.get(at)?));
                self.one(&of, everywhere.iter().filter_map(of_size).collect(), size).0
            };
            label.by_size = (0..number).map(of_size).collect();
        }
        (label, sd)
    }

    fn one(
        &self,
        here: &[(f64, &RunLabels, &Label)],
        all: Vec<Point<'r>>,
        size: f64,
    ) -> (Label, f64) {
        let alone = |(_, run, label): &(f64, &RunLabels, &Label)| RunLabels {
            labels: vec![Label { by_size: Vec::new(), ..(*label).clone() }],
            places: Vec::new(),
            ..(*run).clone()
        };
        let of = OfLabel {
            sizes: here.iter().map(|(size, ..)| *size).collect(),
            runs: here.iter().map(alone).collect(),
            all,
            per_host: self.per_host,
            asked: size,
        };
        of.continued(self)
    }
}

impl OfLabel<'_> {
    fn continued(&self, over: &OverSizes) -> (Label, f64) {
        let last = self.last();
        let counted = |of: fn(&Label) -> f64| self.quantity(of, Tolerance::Count);
        let sized = |of: fn(&Label) -> f64| self.quantity(of, Tolerance::Bytes);
        let count = counted(|label| label.count);
        let mut label = Label {
            count: count.value,
            messages: counted(|label| label.messages).value,
            bytes: sized(|label| label.bytes).value,
            all_count: counted(|label| label.all_count).value,
            max_count: counted(|label| label.max_count).value,
            ..last.clone()
        };
        let each_bytes = sized(Label::each_bytes);
        label.all_bytes = each_bytes.value * label.all_count.max(1.0);
        let (each, all_each) = (self.event(over, &label), self.mean());
        label.seconds = count.value * each.value;
        label.all_seconds = all_each * label.all_count;
        let longer = all_each * last.all_count / last.all_seconds;
        label.stretches = match longer.is_finite() {
            true => last.stretches.iter().map(|(s, count)| (s * longer, *count)).collect(),
            false => Vec::new(),
        };
        (label, count.sd.hypot(each.sd))
    }

    fn last(&self) -> &Label {
        &self.runs[self.runs.len() - 1].labels[0]
    }

    /// The time of one event on the path.
    fn event(&self, over: &OverSizes, asked: &Label) -> Continued {
        let each =
            |label: &Label| if label.count > 0.0 { label.seconds / label.count } else { 0.0 };
        if matches!(asked.kind, Kind::Computation | Kind::Other) {
            return self.quantity(each, Tolerance::Time);
        }
        let run = &self.runs[self.runs.len() - 1];
        let at = Asked {
            runs: &self.runs,
            calling: &self.runs,
            counted: &[],
            p: f64::from(run.p),
            per_host: over.per_host,
            machine: over.machine,
            laws: &[],
        };
        let bytes = asked.bytes_of_operation();
        let bytes = Continued { value: bytes, law: None, sd: 0.0 };
        let priced = at.priced(asked.key(), asked.kind, &bytes).map(|(each, _)| each);
        priced.unwrap_or_else(|| self.quantity(each, Tolerance::Time))
    }

    /// The mean time of all ranks' events.
    fn mean(&self) -> f64 {
        let mean = |label: &Label| match label.all_count > 0.0 {
            true => label.all_seconds / label.all_count,
            false => 0.0,
        };
        self.quantity(mean, Tolerance::Time).value
    }

    /// A quantity by a law of N and p, or of N, that every run meets, or by sums of terms of N and as from the last
    /// size but one to the last.
    fn quantity(&self, of: impl Fn(&Label) -> f64, tolerance: Tolerance) -> Continued {
        if let Some(law) = joint(&self.all, &of, self.per_host, tolerance) {
            let value = law.at(f64::from(self.runs[0].p), self.asked);
            return Continued { value, law: Some(law.text()), sd: 0.0 };
        }
        let values: Vec<f64> = self.runs.iter().map(|run| of(&run.labels[0])).collect();
        let series =
            Series { p: &self.sizes, values: &values, per_host: f64::MAX, terms: &SIZE_TERMS };
        let law = Law::of(series, tolerance);
        let lawful = law.as_ref().and_then(|law| law.at(self.asked).map(|value| (law, value)));
        if let Some((law, value)) = lawful {
            return Continued { value, law: Some(law.text()), sd: law.doubt(self.asked).ln() };
        }
        let column = |term: &Term| Column::new(&self.sizes, self.asked, |n| (term.at)(n, f64::MAX));
        let columns: Vec<Column> = SIZE_TERMS.iter().map(column).collect();
        let smooth = weighed(&values, &up_to_two(&columns)).map(continued);
        let Some(smooth) = smooth else { return Continued { value: 0.0, law: None, sd: 0.0 } };
        match at_slope(&self.sizes, &values, self.asked) {
            Some(other) if tolerance == Tolerance::Time => between_equals(smooth, other),
            _ => smooth,
        }
    }
}
