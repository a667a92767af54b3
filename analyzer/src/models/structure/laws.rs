//! Exact laws: a count or size that meets one formula in every run is continued by it.

use nalgebra::{DMatrix, DVector};

use super::basis::{TERMS, Term};

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

/// A quantity at the rank counts of the runs.
#[derive(Debug, Clone, Copy)]
pub struct Series<'s> {
    /// Ascending rank counts, each once.
    pub p: &'s [f64],
    pub values: &'s [f64],
    /// Ranks on a host.
    pub per_host: f64,
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
            let on_grid = GRID.map(|name| TERMS.iter().find(|term| term.name == name));
            let [Some(p), Some(d0), Some(d1)] = on_grid else { return None };
            let formula =
                three(series, [p, d0, d1], tolerance).filter(|_| runs >= LEAST_ON_GRID)?;
            Some(Self { formulas: vec![formula], per_host: series.per_host })
        })
    }

    /// The simplest law of a series; `None` if there is none.
    pub fn of(series: Series, tolerance: Tolerance) -> Option<Self> {
        let per_host = series.per_host;
        let found =
            |formulas: Vec<Formula>| (!formulas.is_empty()).then_some(Self { formulas, per_host });
        let runs = series.p.len();
        let constant = |values: &[f64]| {
            values.iter().all(|value| tolerance.allows(values[values.len() - 1], *value))
        };
        if runs >= 2 && constant(series.values) {
            let last = series.values[runs - 1];
            return found(vec![Formula { terms: [Some((last, TERMS[0])), None, None] }]);
        }
        let stages: [&dyn Fn() -> Vec<Formula>; 3] = [
            &|| TERMS.iter().filter_map(|term| one(series, term, tolerance)).collect(),
            &|| {
                TERMS[1..]
                    .iter()
                    .filter_map(|term| two(series, [&TERMS[0], term], tolerance))
                    .collect()
            },
            &|| {
                let pairs =
                    (1..TERMS.len()).flat_map(|of| (of + 1..TERMS.len()).map(move |to| (of, to)));
                let pairs =
                    pairs.filter_map(|(of, to)| two(series, [&TERMS[of], &TERMS[to]], tolerance));
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

/// One term times a coefficient. Sizes may be rounded to whole elements.
fn one(series: Series, term: &Term, tolerance: Tolerance) -> Option<Formula> {
    let Series { p, values, per_host } = series;
    // The largest run has the value with the most digits.
    let largest = (0..p.len()).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()))?;
    let factor = values[largest] / (term.at)(p[largest], per_host);
    let formula = Formula { terms: [Some((factor, *term)), None, None] };
    let is_rounded = |(p, value): (&f64, &f64)| {
        let distance = (formula.at(*p, per_host) - value).abs();
        distance < ELEMENT && distance <= ROUNDED * value
    };
    let are_elements = values.iter().all(|value| value % ELEMENT == 0.0);
    let is_of_elements = tolerance == Tolerance::Bytes && are_elements && factor.is_finite();
    match is_of_elements && p.iter().zip(values).all(is_rounded) {
        true => Some(formula),
        false => accepted(formula, series, tolerance),
    }
}

/// The sum of two terms times coefficients, by least squares.
fn two(series: Series, [first, second]: [&Term; 2], tolerance: Tolerance) -> Option<Formula> {
    let Series { p, values, per_host } = series;
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
    let Series { p, values, per_host } = series;
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
