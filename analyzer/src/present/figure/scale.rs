//! Maps values to lengths: limits from data, ticks, tick labels.

use super::super::quantity::count;
use super::super::svg::round_step;
use super::plot::{Axis, ScaleKind};

/// An axis with known limits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    kind: ScaleKind,
    from: f64,
    to: f64,
    /// 1 if only whole numbers are labelled; else 0.
    least_step: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// Largest value; differences of larger ones might not be finite.
const MAX_VALUE: f64 = 1e300;

impl Scale {
    /// An axis over the data that it can show.
    pub fn new(axis: &Axis, data: impl Iterator<Item = f64>) -> Self {
        let (kind, least_step) = (axis.scale, if axis.whole { 1.0 } else { 0.0 });
        let shown = |value: f64| kind.shows(value).then_some(value);
        let fixed = axis.range.filter(|&(a, b)| kind.shows(a) && kind.shows(b) && a != b);
        if let Some((a, b)) = fixed {
            return Self { kind, from: a.min(b), to: a.max(b), least_step };
        }
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in data.filter_map(shown).map(|value| value.clamp(-MAX_VALUE, MAX_VALUE)) {
            (from, to) = (from.min(value), to.max(value));
        }
        if from > to {
            (from, to) = if kind == ScaleKind::Linear { (0.0, 1.0) } else { (1.0, 10.0) };
        }
        if kind != ScaleKind::Linear {
            return Self::logarithmic(kind, (from, to), least_step);
        }
        if axis.from_zero {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        if from == to {
            let half = if from == 0.0 { 0.5 } else { from.abs() * 0.1 };
            (from, to) = (from - half, to + half);
        }
        // Named positions get a margin of 0.6 on either side. Numbers get a small one that does not cross 0.
        let margin = if axis.names.is_empty() { (to - from) * 0.04 } else { 0.6 };
        let low = if from >= 0.0 && from - margin < 0.0 && axis.names.is_empty() {
            0.0
        } else {
            from - margin
        };
        let low = if axis.from_zero && from == 0.0 { 0.0 } else { low };
        let high = if axis.from_zero && to == 0.0 { 0.0 } else { to + margin };
        Self { kind, from: low, to: high, least_step }
    }

    fn logarithmic(kind: ScaleKind, (from, to): (f64, f64), least_step: f64) -> Self {
        let base = kind.base();
        let (low, high) = (from.log(base), to.log(base));
        let span = high - low;
        let margin = if span == 0.0 { 0.5 } else { span * 0.04 };
        let power = |exponent: f64| base.powf(exponent).clamp(1.0 / MAX_VALUE, MAX_VALUE);
        let (from, to) = (power(low - margin), power(high + margin));
        Self { kind, from, to, least_step }
    }

    /// Position along the axis, 0 at its begin and 1 at its end; `None` if the axis cannot show the value.
    pub fn position(&self, value: f64) -> Option<f64> {
        let along = |v: f64| if self.kind == ScaleKind::Linear { v } else { v.ln() };
        let (from, to) = (along(self.from), along(self.to));
        self.kind.shows(value).then(|| (along(value) - from) / (to - from))
    }

    pub fn value(&self, position: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => self.from + position * (self.to - self.from),
            _ => (self.from.ln() + position * (self.to.ln() - self.from.ln())).exp(),
        }
    }

    /// The value at which bars begin: 0, or the end of the axis that is nearest to 0.
    pub fn baseline(&self) -> f64 {
        if self.kind == ScaleKind::Linear { self.from.max(0.0).min(self.to) } else { self.from }
    }

    /// Ticks with labels, about `most` of them at most.
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(most),
            ScaleKind::Log10 => self.decade_ticks(most),
            ScaleKind::Log2 => self.binary_ticks(most),
        }
    }

    /// Values of ticks without labels.
    pub fn small_ticks(&self) -> Vec<f64> {
        if self.kind != ScaleKind::Log10 || self.decades() > 8.0 {
            return Vec::new();
        }
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let within = |value: &f64| self.holds(*value);
        (first..=last)
            .flat_map(|decade| (2..10).map(move |digit| f64::from(digit) * 10f64.powi(decade)))
            .filter(within)
            .collect()
    }

    fn decades(&self) -> f64 {
        (self.to / self.from).log10()
    }

    fn holds(&self, value: f64) -> bool {
        self.position(value).is_some_and(|position| (-1e-9..=1.0 + 1e-9).contains(&position))
    }

    fn linear_ticks(&self, most: usize) -> Vec<Tick> {
        let rough = (self.to - self.from) / most.max(1) as f64;
        let step = round_step(rough * 0.8).max(self.least_step);
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        let first = (self.from / step - 1e-9).ceil();
        let numbers = (0..=2 * most).map(|n| (first + n as f64) * step);
        let values = numbers.filter(|value| self.holds(*value));
        let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        values.map(|value| Tick { value, label: linear_label(value, decimals, step) }).collect()
    }

    fn decade_ticks(&self, most: usize) -> Vec<Tick> {
        if self.decades() < 2.0 {
            let (low, high) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
            let digits: &[f64] = match self.decades() {
                decades if decades < 0.7 => &[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
                decades if decades < 1.0 => &[1.0, 2.0, 3.0, 5.0, 7.0],
                _ => &[1.0, 2.0, 5.0],
            };
            let numbers = (low..=high)
                .flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)));
            let is_shown =
                |value: &f64| self.holds(*value) && (self.least_step < 1.0 || value.fract() == 0.0);
            let values: Vec<f64> = numbers.filter(is_shown).collect();
            // An axis of half a decade or less looks almost linear.
            if values.len() < 2 {
                return self.linear_ticks(most);
            }
            return values.into_iter().map(|value| Tick { value, label: plain(value) }).collect();
        }
        let decades = self.from.log10().ceil() as i32..=self.to.log10().floor() as i32;
        let every = decades.clone().count().div_ceil(most.max(2)).max(1) as i32;
        let plainly = decades.clone().all(|decade| (-3..=4).contains(&decade));
        let label = |decade: i32| match plainly {
            true => plain(10f64.powi(decade)),
            false => format!("10{}", superscript(decade)),
        };
        let shown = decades.filter(|decade| decade.rem_euclid(every) == 0);
        shown.map(|decade| Tick { value: 10f64.powi(decade), label: label(decade) }).collect()
    }

    fn binary_ticks(&self, most: usize) -> Vec<Tick> {
        let powers = self.from.log2().ceil() as i32..=self.to.log2().floor() as i32;
        let every = powers.clone().count().div_ceil(most.max(2)).max(1) as i32;
        let shown = powers.filter(|power| power.rem_euclid(every) == 0);
        shown.map(|power| Tick { value: 2f64.powi(power), label: binary_label(power) }).collect()
    }
}

impl ScaleKind {
    /// Whether the scale can show a value.
    pub(super) fn shows(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }

    fn base(self) -> f64 {
        if self == Self::Log2 { 2.0 } else { 10.0 }
    }
}

fn linear_label(value: f64, decimals: usize, step: f64) -> String {
    // Rounding may have left a tiny value instead of 0.
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    let sign = if value < 0.0 { "−" } else { "" };
    let size = value.abs();
    if size >= 1e7 || (size > 0.0 && decimals > 4) {
        let power = size.log10().floor() as i32;
        let digits = (size / 10f64.powi(power) * 100.0).round() / 100.0;
        return format!("{sign}{digits}·10{}", superscript(power));
    }
    match decimals {
        0 if size >= 1000.0 => format!("{sign}{}", count(size.round() as u64)),
        _ => format!("{sign}{size:.decimals$}"),
    }
}

/// A number without trailing zeros.
fn plain(value: f64) -> String {
    if value >= 1000.0 {
        count(value.round() as u64)
    } else {
        format!("{}", (value * 1e9).round() / 1e9)
    }
}

fn binary_label(power: i32) -> String {
    const PREFIXES: [&str; 7] = ["", " Ki", " Mi", " Gi", " Ti", " Pi", " Ei"];
    if !(0..70).contains(&power) {
        return format!("2{}", superscript(power));
    }
    format!("{}{}", 1u64 << (power % 10), PREFIXES[(power / 10) as usize])
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| match c.to_digit(10) {
        Some(digit) => DIGITS[digit as usize],
        None => '⁻',
    };
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, data: &[f64]) -> Vec<String> {
        let scale = Scale::new(axis, data.iter().copied());
        scale.ticks(5).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let linear = Axis::linear("", "");
        assert_eq!(labels(&linear, &[0.0, 1.0]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear.clone().whole(), &[0.0, 2.0]), ["0", "1", "2"]);
        assert_eq!(labels(&linear, &[0.0, 20_000.0]), ["0", "5,000", "10,000", "15,000", "20,000"]);
        assert_eq!(labels(&linear, &[-3.0, 3.0]), ["−2", "0", "2"]);
        assert_eq!(labels(&linear, &[0.0, 1e-7])[1], "2·10⁻⁸");
        assert_eq!(labels(&Axis::log10("", ""), &[0.1, 100.0]), ["0.1", "1", "10", "100"]);
        assert_eq!(labels(&Axis::log10("", ""), &[1e-7, 1e-3])[0], "10⁻⁷");
        assert_eq!(labels(&Axis::log10("", ""), &[20.0, 90.0]), ["20", "30", "50", "70"]);
        assert_eq!(labels(&Axis::log10("", "").whole(), &[1.0, 2.0]), ["1", "2"]);
        assert_eq!(labels(&Axis::log2("", ""), &[1.0, 4194304.0])[1..3], ["32", "1 Ki"]);
        assert_eq!(labels(&Axis::log2("", ""), &[1.0, 8.0]), ["1", "2", "4", "8"]);
    }

    #[test]
    fn axis_without_usable_data_still_has_limits() {
        for axis in [Axis::linear("", ""), Axis::log10("", ""), Axis::log2("", "")] {
            for data in [&[][..], &[f64::NAN, f64::INFINITY], &[0.0], &[-1.0], &[5.0, 5.0]] {
                let scale = Scale::new(&axis, data.iter().copied());
                assert!(scale.from < scale.to, "{axis:?} {data:?}");
                assert!(!scale.ticks(5).is_empty(), "{axis:?} {data:?} {scale:?}");
            }
        }
        let wrong = Axis::log10("", "").within(0.0, 10.0);
        assert!(Scale::new(&wrong, [1.0, 2.0].into_iter()).from > 0.0);
    }

    #[test]
    fn positions_and_values_are_inverse() {
        let scale = Scale::new(&Axis::log10("", "").within(1.0, 100.0), std::iter::empty());
        assert_eq!(scale.position(10.0), Some(0.5));
        assert!((scale.value(0.5) - 10.0).abs() < 1e-9);
        assert_eq!(scale.position(0.0), None);
    }
}
