//! What `gammachi watch` takes a snapshot for.

use crate::trace::snapshot::Reason;

/// When to take a snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Triggers {
    /// A rank dies, is stopped, waits in a deadlock, or none moves for so many seconds.
    pub hang_s: Option<f64>,
    /// The job ends before all ranks returned from MPI_Finalize.
    pub exit: bool,
    /// The watcher receives SIGUSR1.
    pub signal: bool,
}

/// Shortest and longest time without progress.
const HANG_S: std::ops::RangeInclusive<f64> = 1.0..=86_400.0;

impl Triggers {
    /// What is watched for if nothing is said.
    pub const USUAL: &'static str = "hang=30s,exit,signal";

    /// Parses a list such as `hang=30s,exit`.
    ///
    /// # Errors
    /// What is wrong with it, and what is possible.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut triggers = Self::default();
        for item in text.split(',') {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (item, None),
            };
            match (name, value) {
                ("hang", Some(time)) => triggers.hang_s = Some(hang_s(time)?),
                ("hang", None) => return Err("hang needs a time: hang=30s".into()),
                ("exit", None) => triggers.exit = true,
                ("signal", None) => triggers.signal = true,
                ("exit" | "signal", Some(_)) => return Err(format!("{name} takes no value")),
                _ => {
                    return Err(format!(
                        "{item:?} is unknown; possible are hang=TIME, exit and signal, separated by commas"
                    ));
                }
            }
        }
        Ok(triggers)
    }

    /// Whether a snapshot is taken for this.
    pub fn include(&self, reason: Reason) -> bool {
        match reason {
            Reason::Dead => self.exit || self.hang_s.is_some(),
            Reason::Stopped | Reason::Deadlock | Reason::Outside | Reason::NoProgress => {
                self.hang_s.is_some()
            }
            Reason::Exit => self.exit,
            Reason::Signal => self.signal,
            Reason::Asked => true,
        }
    }
}

/// The list as [`Triggers::parse`] reads it.
impl std::fmt::Display for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hang = self.hang_s.map(|seconds| format!("hang={seconds}s"));
        let exit = self.exit.then(|| "exit".to_owned());
        let signal = self.signal.then(|| "signal".to_owned());
        f.write_str(&[hang, exit, signal].into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// A time such as `30s`, `5m` or `1h`, in seconds.
fn hang_s(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, f64::NAN),
    };
    let seconds = digits.parse::<f64>().ok().map(|number| number * unit);
    seconds
        .filter(|seconds| HANG_S.contains(seconds))
        .ok_or_else(|| format!("hang={text}: not a time from 1s to 24h, such as 30s or 5m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lists() {
        let usual = Triggers::parse(Triggers::USUAL).unwrap();
        assert_eq!(usual, Triggers { hang_s: Some(30.0), exit: true, signal: true });
        let one = Triggers::parse("hang=1.5m").unwrap();
        assert_eq!(one, Triggers { hang_s: Some(90.0), ..Triggers::default() });
        for triggers in [usual, one] {
            assert_eq!(Triggers::parse(&triggers.to_string()), Ok(triggers));
        }
    }

    #[test]
    fn refuses_what_is_not_understood() {
        for (text, words) in [
            ("slow=4", "possible are"),
            ("exit,limit=10min", "\"limit=10min\" is unknown"),
            ("hang", "hang=30s"),
            ("hang=30", "such as 30s"),
            ("hang=0s", "from 1s"),
            ("hang=xs", "such as 30s"),
            ("exit=3", "takes no value"),
            ("", "possible are"),
            ("hangs=3s", "possible are"),
        ] {
            let error = Triggers::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
