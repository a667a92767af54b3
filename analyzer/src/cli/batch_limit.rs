//! When a batch job ends.

use std::ffi::OsString;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::error::CommandError;

/// Slurm's end of the job, seconds since 1970.
const END: &str = "SLURM_JOB_END_TIME";

/// So many seconds before the end of the job. The clock of the day is asked once: whoever sets it later changes nothing.
///
/// # Errors
/// Says what to do if the end is not known.
pub fn before_end(
    limit_s: f64,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<Instant, CommandError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = left(limit_s, now, lookup(END))?;
    Ok(Instant::now() + left)
}

fn left(limit_s: f64, now: Duration, end: Option<OsString>) -> Result<Duration, CommandError> {
    let set =
        format!("set it to the end in seconds since 1970, such as {END}=$(date -d 18:00 +%s)");
    let unknown = |what: String| {
        CommandError::usage(format!(
            "limit={limit_s}s: when the job ends is not known: {what}; {set}"
        ))
    };
    let end =
        end.filter(|end| !end.is_empty()).ok_or_else(|| unknown(format!("{END} is not set")))?;
    let end_s = end.to_str().and_then(|end| end.trim().parse::<u64>().ok());
    let end_s =
        end_s.ok_or_else(|| unknown(format!("{END}={end:?} is not a number of seconds")))?;
    Ok(Duration::from_secs_f64((end_s as f64 - limit_s - now.as_secs_f64()).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_that_to_the_limit_before_the_end() {
        let now = Duration::from_secs(1_000_000);
        let of = |end: &str| left(60.0, now, Some(end.into()));
        assert_eq!(of("1000100").unwrap(), Duration::from_secs(40));
        assert_eq!(of("1000010").unwrap(), Duration::ZERO);
        for (end, words) in [(None, "is not set"), (Some("soon"), "not a number")] {
            let error = left(60.0, now, end.map(OsString::from)).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("date -d"), "{error}");
        }
    }
}
