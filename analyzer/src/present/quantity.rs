//! Formats numbers as people read them: with a unit, a few significant digits and grouped thousands.

/// A value with `digits` significant digits; groups thousands if no fraction is left.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = |value: f64| (digits - 1 - value.abs().log10().floor() as i32).max(0) as usize;
    // Rounding may add a digit: 9.996 is 10.0.
    let rounded: f64 = format!("{value:.*}", decimals(value)).parse().unwrap_or(value);
    let text = format!("{value:.*}", decimals(if rounded == 0.0 { value } else { rounded }));
    match text.parse::<u64>() {
        Ok(whole) if whole >= 1000 => count(whole),
        _ => text,
    }
}

/// Three significant digits, with a power of ten if the number is small or large.
pub(crate) fn scientific(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || !size.is_finite() || (1e-3..1e9).contains(&size) => {
            significant(value, 3)
        }
        _ => format!("{value:.2e}"),
    }
}

/// A count with its thousands grouped.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeUnit {
    pub name: &'static str,
    scale: f64,
}

impl TimeUnit {
    /// The unit in which this many seconds have one to three digits before the point.
    pub fn for_seconds(seconds: f64) -> Self {
        // A value that would round to 1000 of a smaller unit takes the larger one.
        let at_least = |limit: f64| seconds.abs() >= limit * 0.9995;
        let (name, scale) = match seconds {
            _ if seconds == 0.0 || at_least(1.0) => ("s", 1.0),
            _ if at_least(1e-3) => ("ms", 1e3),
            _ if at_least(1e-6) => ("µs", 1e6),
            _ => ("ns", 1e9),
        };
        Self { name, scale }
    }

    /// Seconds in this unit, with as many decimals as `step_s` needs: for the ticks of an axis.
    pub fn stepped(self, seconds: f64, step_s: f64) -> String {
        let decimals = (-(step_s * self.scale).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
        let text = format!("{:.decimals$}", seconds * self.scale);
        if is_zero(&text) { "0".to_owned() } else { text }
    }

    /// Seconds in this unit, with the decimals that suit the largest value of the column.
    pub fn column(self, seconds: f64, largest_s: f64) -> String {
        let largest = (largest_s * self.scale).abs();
        let decimals = match largest {
            100.0.. => 1,
            10.0.. => 2,
            _ => 3,
        };
        let text = format!("{:.decimals$}", seconds * self.scale);
        // No minus before a zero that rounding made.
        if is_zero(&text) { text.replace('-', "") } else { text }
    }
}

/// Whether a number was rounded to zero.
fn is_zero(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '-' | '0' | '.'))
}

/// Seconds with a unit, three significant digits.
pub(crate) fn seconds(value: f64) -> String {
    let unit = TimeUnit::for_seconds(value);
    format!("{} {}", significant(value * unit.scale, 3), unit.name)
}

/// A difference in seconds with its sign.
pub(crate) fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", seconds(value)) } else { seconds(value) }
}

/// Nanoseconds with a unit, at least two digits.
pub(crate) fn nanoseconds(value: f64) -> String {
    if value < 1000.0 { format!("{value:.0} ns") } else { seconds(value * 1e-9) }
}

/// A share in per cent, with two significant digits below ten.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        _ if !percent.is_finite() => "unknown".into(),
        zero if zero < 0.0005 => "0 %".into(),
        small if small < 9.95 => format!("{} %", significant(percent, 2)),
        _ => format!("{percent:.0} %"),
    }
}

pub(crate) fn signed_percent(share: f64) -> String {
    let text = percent(share);
    if share > 0.0 && text != "0 %" { format!("+{text}") } else { text }
}

/// A number with a decimal prefix: `667 G`.
pub(crate) fn with_prefix(value: f64) -> String {
    prefixed(value, 4)
}

/// The same with so many significant digits and a unit: `667 Gflop/s`.
pub(crate) fn in_unit(value: f64, digits: i32, unit: &str) -> String {
    format!("{}{unit}", prefixed(value, digits)).trim_end().to_owned()
}

fn prefixed(value: f64, digits: i32) -> String {
    const PREFIXES: [(f64, &str); 7] = [
        (1e18, " E"),
        (1e15, " P"),
        (1e12, " T"),
        (1e9, " G"),
        (1e6, " M"),
        (1e3, " k"),
        (1.0, " "),
    ];
    if value.fract() == 0.0 && (0.0..1000.0).contains(&value) {
        return format!("{value:.0} ");
    }
    let found = PREFIXES.iter().find(|(scale, _)| value >= scale * 0.9995);
    let (scale, prefix) = found.copied().unwrap_or((1.0, " "));
    format!("{}{prefix}", significant(value / scale, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_significant_digits_and_a_unit() {
        for (value, text) in [
            (0.0, "0 s"),
            (4329.4, "4,329 s"),
            (123.4, "123 s"),
            (9.996, "10.0 s"),
            (0.99999, "1.00 s"),
            (0.9994, "999 ms"),
            (0.01234, "12.3 ms"),
            (4.5e-6, "4.50 µs"),
            (130e-9, "130 ns"),
            (-0.5, "-500 ms"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn percent_prefix_and_count_are_short() {
        assert_eq!(percent(0.0009), "0.090 %");
        assert_eq!(percent(0.8), "80 %");
        assert_eq!(percent(0.099951), "10 %");
        assert_eq!(percent(1e-9), "0 %");
        assert_eq!(with_prefix(666.94e9), "666.9 G");
        assert_eq!(with_prefix(12.0), "12 ");
        assert_eq!(count(1_750_000), "1,750,000");
        assert_eq!(nanoseconds(13.2), "13 ns");
        assert_eq!(nanoseconds(1900.0), "1.90 µs");
    }

    #[test]
    fn cells_of_a_column_have_equal_decimals() {
        let unit = TimeUnit::for_seconds(8.31);
        assert_eq!(unit.column(6.7123, 8.31), "6.712");
        assert_eq!(unit.column(-1e-12, 8.31), "0.000");
        assert_eq!(TimeUnit::for_seconds(0.25).column(0.0123, 0.25), "12.3");
    }

    #[test]
    fn different_ticks_have_different_labels() {
        let unit = TimeUnit::for_seconds(5.825);
        let labels = [5.81, 5.815, 5.82].map(|tick| unit.stepped(tick, 0.005));
        assert_eq!(labels, ["5.810", "5.815", "5.820"]);
        assert_eq!(TimeUnit::for_seconds(1.6).stepped(0.5, 0.5), "0.5");
        assert_eq!(TimeUnit::for_seconds(0.4).stepped(0.2, 0.1), "200");
        assert_eq!(unit.stepped(0.0, 0.005), "0");
    }
}
