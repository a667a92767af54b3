//! Parses values of options: an absolute value, or a factor.

/// An absolute value, or a factor on the present one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// An absolute value.
    Is(f64),
    /// A factor.
    Times(f64),
}

/// Parses a factor above 0, with or without a leading x.
///
/// # Errors
/// What is expected.
pub fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('x').unwrap_or(text);
    let factor = number.parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "not a factor above 0, as in 1.2 or x2".to_owned())
}

/// Parses a time, or a factor.
///
/// # Errors
/// What is expected.
pub fn time(text: &str) -> Result<Amount, String> {
    if text.starts_with('x') {
        return factor(text).map(Amount::Times);
    }
    let time = seconds(text).ok_or_else(|| "neither a time (20us) nor a factor (x2)".to_owned());
    time.map(Amount::Is)
}

/// Parses a time of less than 1,000 s with its unit.
pub fn seconds(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let unit = match &text[number.len()..] {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    let time = number.parse::<f64>().ok().map(|number| number * unit);
    time.filter(|time| (0.0..1e3).contains(time))
}

/// Parses bytes per second, or a factor.
///
/// # Errors
/// What is expected.
pub fn bandwidth(text: &str) -> Result<Amount, String> {
    if text.starts_with('x') {
        return factor(text).map(Amount::Times);
    }
    let bytes = trace_format::settings::values::bytes(text).ok().filter(|bytes| *bytes > 0);
    bytes
        .map(|bytes| Amount::Is(bytes as f64))
        .ok_or_else(|| "neither bytes per second (1G) nor a factor (x0.5)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_times_factors_and_rates() {
        assert_eq!(time("20us"), Ok(Amount::Is(20.0 * 1e-6)));
        assert_eq!(time("500ns"), Ok(Amount::Is(500.0 * 1e-9)));
        assert_eq!(time("x2"), Ok(Amount::Times(2.0)));
        assert_eq!(bandwidth("1K"), Ok(Amount::Is(1024.0)));
        assert_eq!(bandwidth("x0.5"), Ok(Amount::Times(0.5)));
        for wrong in ["20", "us", "-1us", "x0", "xinf", ""] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(bandwidth("0").is_err() && bandwidth("fast").is_err() && factor("-1").is_err());
    }
}
