//! Moments of the wall clock in documents.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment of this host's wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Instant {
    /// RFC 3339, UTC, milliseconds.
    pub utc: String,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
}

impl Instant {
    /// The present moment.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_unix_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// A moment given in nanoseconds since 1970.
    pub fn from_unix_ns(unix_ns: u64) -> Self {
        let (seconds, ms) = (unix_ns / 1_000_000_000, unix_ns / 1_000_000 % 1000);
        let (year, month, day) = civil_date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let utc =
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z");
        Self { utc, unix_ns }
    }
}

/// Year, month and day of the proleptic Gregorian calendar, from days since 1970-01-01.
///
/// This is `civil_from_days` of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms";
/// these few lines do not justify a dependency.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let utc = |seconds: u64| Instant::from_unix_ns(seconds * 1_000_000_000).utc;
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(1_735_689_599), "2024-12-31T23:59:59.000Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(
            Instant::from_unix_ns(1_700_000_000_123_456_789).utc,
            "2023-11-14T22:13:20.123Z"
        );
    }
}
