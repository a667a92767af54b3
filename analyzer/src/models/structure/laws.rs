//! Exact laws: a count or size that meets one formula in every run is continued by it.

use nalgebra::{DMatrix, DVector};

use super::basis::Term;

/// How near a law must come to every run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Counts are met exactly.
    Count,
    /// Bytes within 1 or 2·10⁻⁴: blocks are not all of one size.
    Bytes,
    /// Times within 2·10⁻⁴: closer than those of a program that is disturbed.
    Time,
}

impl Tolerance {
    pub fn allows(self, law: f64, measured: f64) -> bool {
        let distance = (law - measured).abs();
        match self {
            Self::Count => distance <= 1e-6 * measured.abs().max(1.0),
            Self::Bytes => distance <= f64::max(1.0, 2e-4 * measured.abs()),
            Self::Time => distance <= 2e-4 * measured.abs(),
        }
    }
}

/// A quantity at the rank counts of the runs, or at their problem sizes.
#[derive(Debug, Clone, Copy)]
pub struct Series<'s> {
    /// Ascending rank counts, each once.
    pub p: &'s [f64],
    pub values: &'s [f64],
    /// Ranks on a host.
    pub per_host: f64,
    /// What laws are made of; the first is 1, and of several laws that fit the first one counts.
    pub terms: &'static [Term],
}

/// A law with its coefficients.
#[derive(Debug, Clone, Copy)]
struct Formula {
    terms: [Option<(f64, Term)>; 3],
}

impl Formula {
    fn at(&self, p: f64, per_host: f64) -> f64 {
        self.terms.iter().flatten().map(|(factor, term)| factor * (term.at)(p, per_host)).sum()
    }
}

/// A formula that every run meets.
#[derive(Debug, Clone)]
pub struct Law {
    /// The simplest, and others that are as simple.
    formulas: Vec<Formula>,
    per_host: f64,
}

/// Runs that one term, a constant and a term, and two terms need: more than they have coefficients
/// by two, for with 27 terms one run more is sometimes met by chance.
const LEAST_RUNS: [usize; 3] = [3, 4, 5];

/// Terms of what happens inside a grid and along its sides, and the runs that all three together need.
const GRID: [&str; 3] = ["p", "d₀", "d₁"];
const LEAST_ON_GRID: usize = 6;

impl Law {
    /// The simplest law of something that all ranks do together; `None` if there is none. Between neighbours
    /// in a grid, that may have a part for each side.
    pub fn of_all_ranks(series: Series, tolerance: Tolerance) -> Option<Self> {
        let runs = series.p.len();
        Self::of(series, tolerance).or_else(|| {
            let on_grid = GRID.map(|name| series.terms.iter().find(|term| term.name == name));
            let [Some(p), Some(d0), Some(d1)] = on_grid else { return None };
            let formula =
                three(series, [p, d0, d1], tolerance).filter(|_| runs >= LEAST_ON_GRID)?;
            Some(Self { formulas: vec![formula], per_host: series.per_host })
        })
    }

    /// The simplest law of a series; `None` if there is none.
    pub fn of(series: Series, tolerance: Tolerance) -> Option<Self> {
        let Series { per_host, terms, .. } = series;
        let found =
            |formulas: Vec<Formula>| (!formulas.is_empty()).then_some(Self { formulas, per_host });
        let runs = series.p.len();
        let constant = |values: &[f64]| {
            values.iter().all(|value| tolerance.allows(values[values.len() - 1], *value))
        };
        if runs >= 2 && constant(series.values) {
            let last = series.values[runs - 1];
            return found(vec![Formula { terms: [Some((last, terms[0])), None, None] }]);
        }
        let stages: [&dyn Fn() -> Vec<Formula>; 3] = [
            &|| terms.iter().filter_map(|term| one(series, term, tolerance)).collect(),
            &|| {
                terms[1..]
                    .iter()
                    .filter_map(|term| two(series, [&terms[0], term], tolerance))
                    .collect()
            },
            &|| {
                let pairs =
                    (1..terms.len()).flat_map(|of| (of + 1..terms.len()).map(move |to| (of, to)));
                let pairs =
                    pairs.filter_map(|(of, to)| two(series, [&terms[of], &terms[to]], tolerance));
                pairs.collect()
            },
        ];
        // What is the same in all runs but one meets a step of any kind.
        let most_coefficients = different(series.values, tolerance).saturating_sub(1);
        let allowed =
            stages.iter().zip(LEAST_RUNS).zip([1, 2, 2]).filter(|((_, least), coefficients)| {
                runs >= *least && *coefficients <= most_coefficients
            });
        allowed.map(|((stage, _), _)| stage()).find_map(found)
    }

    /// Its value at a rank count; `None` if it is not positive there, and was in runs.
    pub fn at(&self, p: f64) -> Option<f64> {
        let is_zero = self.formulas[0].terms.iter().flatten().all(|(factor, _)| *factor == 0.0);
        let value = self.formulas[0].at(p, self.per_host);
        (is_zero || value > 1e-9).then_some(value)
    }

    /// Whether it has two terms beside a constant: of so many pairs one may be met by chance.
    pub fn is_of_two_terms(&self) -> bool {
        let terms = self.formulas[0].terms.iter().flatten();
        terms.filter(|(_, term)| term.name != "1").count() > 1
    }

    /// By which factor other laws that are as simple differ from it there, at most; 1 if none does.
    pub fn doubt(&self, p: f64) -> f64 {
        let own = self.formulas[0].at(p, self.per_host);
        let ratios = self.formulas[1..].iter().map(|of| of.at(p, self.per_host) / own);
        let ratios = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        ratios.map(|ratio| ratio.max(1.0 / ratio)).fold(1.0, f64::max)
    }

    /// As a formula of p.
    pub fn text(&self) -> String {
        let terms = self.formulas[0].terms.iter().flatten();
        let text = terms.map(|(factor, term)| match (*factor, term.name) {
            (factor, "1") => number(factor),
            (1.0, name) => name.to_owned(),
            (factor, name) => format!("{}·{name}", number(factor)),
        });
        text.collect::<Vec<_>>().join(" + ").replace("+ -", "− ")
    }
}

fn number(value: f64) -> String {
    match (value - value.round()).abs() < 1e-6 * value.abs().max(1.0) {
        true => format!("{}", value.round()),
        false => {
            let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
            format!("{value:.digits$}")
        }
    }
}

/// How many different values a series has.
fn different(values: &[f64], tolerance: Tolerance) -> usize {
    let mut found: Vec<f64> = Vec::new();
    for value in values {
        if !found.iter().any(|known| tolerance.allows(*known, *value)) {
            found.push(*value);
        }
    }
    found.len()
}

/// Bytes of an element, and relative distance up to which a size is a law rounded to whole elements.
const ELEMENT: f64 = 8.0;
const ROUNDED: f64 = 3e-3;

/// The same where as many runs as a law of rank counts and problem sizes has meet it.
const ROUNDED_JOINT: f64 = 2e-2;

/// Whether sizes are what a formula gives, rounded to whole elements: pairs of both, and how far they may be apart.
fn are_rounded(
    mut pairs: impl Iterator<Item = (f64, f64)>,
    tolerance: Tolerance,
    most: f64,
) -> bool {
    tolerance == Tolerance::Bytes
        && pairs.all(|(law, value)| {
            let distance = (law - value).abs();
            value % ELEMENT == 0.0 && distance < ELEMENT && distance <= most * value
        })
}

/// One term times a coefficient. Sizes may be rounded to whole elements.
fn one(series: Series, term: &Term, tolerance: Tolerance) -> Option<Formula> {
    let Series { p, values, per_host, .. } = series;
    // The largest run has the value with the most digits.
    let largest = (0..p.len()).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()))?;
    let factor = values[largest] / (term.at)(p[largest], per_host);
    let formula = Formula { terms: [Some((factor, *term)), None, None] };
    let pairs = p.iter().zip(values).map(|(p, value)| (formula.at(*p, per_host), *value));
    match factor.is_finite() && are_rounded(pairs, tolerance, ROUNDED) {
        true => Some(formula),
        false => accepted(formula, series, tolerance),
    }
}

/// A term of the rank count times one of the problem size, which every run meets.
#[derive(Debug, Clone, Copy)]
pub struct Joint {
    factor: f64,
    of_ranks: Term,
    of_size: Term,
    per_host: f64,
}

/// Different rank counts and problem sizes that it needs, and runs.
const LEAST_OF_EACH: usize = 3;
const LEAST_JOINT: usize = 8;

impl Joint {
    /// The simplest through rank counts, problem sizes and values; `None` if there is none.
    pub fn of(
        points: &[(f64, f64, f64)],
        per_host: f64,
        tolerance: Tolerance,
        (of_ranks, of_sizes): (&[Term], &[Term]),
    ) -> Option<Self> {
        let all = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).collect::<Vec<f64>>();
        let apart = |values: &[f64]| different(values, Tolerance::Count);
        let (p, sizes) = (all(|of| of.0), all(|of| of.1));
        let enough = points.len() >= LEAST_JOINT
            && apart(&p) >= LEAST_OF_EACH
            && apart(&sizes) >= LEAST_OF_EACH;
        let (p, size, value) = *points.iter().max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()))?;
        let pairs =
            of_sizes.iter().flat_map(|of_size| of_ranks.iter().map(move |of| (of, of_size)));
        let is_met = |law: &Self| {
            let pairs = || points.iter().map(|(p, size, value)| (law.at(*p, *size), *value));
            law.factor.is_finite()
                && (are_rounded(pairs(), tolerance, ROUNDED_JOINT)
                    || pairs().all(|(law, value)| tolerance.allows(law, value)))
        };
        let laws = pairs.flat_map(|(of_ranks, of_size)| {
            let unit = Self { factor: 1.0, of_ranks: *of_ranks, of_size: *of_size, per_host };
            let factor = value / unit.at(p, size);
            // The largest value may be rounded, too.
            [factor.round(), factor].map(|factor| Self { factor, ..unit })
        });
        laws.filter(|_| enough).find(is_met)
    }

    pub fn at(&self, p: f64, size: f64) -> f64 {
        let Self { factor, of_ranks, of_size, per_host } = self;
        factor * (of_ranks.at)(p, *per_host) * (of_size.at)(size, *per_host)
    }

    /// As a formula of N and p.
    pub fn text(&self) -> String {
        let names = [self.of_size.name, self.of_ranks.name];
        let names = names.into_iter().filter(|name| *name != "1");
        let text = names.fold(number(self.factor), |text, name| match name.strip_prefix("1/") {
            Some(divisor) => format!("{text}/{divisor}"),
            None => format!("{text}·{name}"),
        });
        text.strip_prefix("1·").map(str::to_owned).unwrap_or(text)
    }
}

/// The sum of two terms times coefficients, by least squares.
fn two(series: Series, [first, second]: [&Term; 2], tolerance: Tolerance) -> Option<Formula> {
    let Series { p, values, per_host, .. } = series;
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (p, y) in p.iter().zip(values) {
        let (a, b) = ((first.at)(*p, per_host), (second.at)(*p, per_host));
        (aa, ab, bb) = (aa + a * a, ab + a * b, bb + b * b);
        (ay, by) = (ay + a * y, by + b * y);
    }
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-9 * aa * bb {
        return None;
    }
    let factors = [(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant];
    let terms = [Some((factors[0], *first)), Some((factors[1], *second)), None];
    accepted(Formula { terms }, series, tolerance)
}

/// The sum of three terms times coefficients, by least squares.
fn three(series: Series, terms: [&Term; 3], tolerance: Tolerance) -> Option<Formula> {
    let Series { p, values, per_host, .. } = series;
    let columns = DMatrix::from_fn(p.len(), 3, |run, of| (terms[of].at)(p[run], per_host));
    let values = DVector::from_column_slice(values);
    let factors = columns.svd(true, true).solve(&values, 1e-9).ok()?;
    let terms = std::array::from_fn(|of| Some((factors[of], *terms[of])));
    accepted(Formula { terms }, series, tolerance)
}

/// The formula, if it meets every run.
fn accepted(formula: Formula, series: Series, tolerance: Tolerance) -> Option<Formula> {
    let finite = formula.terms.iter().flatten().all(|(factor, _)| factor.is_finite());
    let meets =
        |(p, value): (&f64, &f64)| tolerance.allows(formula.at(*p, series.per_host), *value);
    (finite && series.p.iter().zip(series.values).all(meets)).then_some(formula)
}
