//! What `gammachi watch` takes a snapshot for.

use trace_format::settings::values;

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
    /// An iteration takes so many times as long as usual.
    pub slow: Option<f64>,
    /// At the pace at which ranks grow, memory will be used up in so many seconds.
    pub memory_s: Option<f64>,
    /// The batch job ends in so many seconds.
    pub limit_s: Option<f64>,
}

/// Shortest and longest time without progress, or before the job's end.
const SECONDS: std::ops::RangeInclusive<f64> = 1.0..=86_400.0;
/// How many times as long as usual an iteration may be asked to be.
const SLOW: std::ops::RangeInclusive<f64> = 1.2..=1000.0;

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
                ("hang", Some(time)) => triggers.hang_s = Some(seconds(item, time)?),
                ("hang", None) => return Err("hang needs a time: hang=30s".into()),
                ("limit", Some(time)) => triggers.limit_s = Some(seconds(item, time)?),
                ("limit", None) => return Err("limit needs a time: limit=10m".into()),
                ("memory", Some(time)) => triggers.memory_s = Some(seconds(item, time)?),
                ("memory", None) => return Err("memory needs a time: memory=10m".into()),
                ("slow", Some(factor)) => {
                    let factor = factor.parse().ok().filter(|factor| SLOW.contains(factor));
                    triggers.slow = Some(factor.ok_or_else(|| {
                        format!("{item}: not a factor from 1.2 to 1000, such as 3")
                    })?);
                }
                ("slow", None) => return Err("slow needs a factor: slow=3".into()),
                ("exit", None) => triggers.exit = true,
                ("signal", None) => triggers.signal = true,
                ("exit" | "signal", Some(_)) => return Err(format!("{name} takes no value")),
                _ => {
                    return Err(format!(
                        "{item:?} is unknown; possible are hang=TIME, slow=FACTOR, memory=TIME, limit=TIME, exit \
                         and signal, separated by commas"
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
            Reason::Stopped
            | Reason::Deadlock
            | Reason::Outside
            | Reason::NoProgress
            | Reason::Vanished => self.hang_s.is_some(),
            Reason::Slow => self.slow.is_some(),
            Reason::Memory => self.memory_s.is_some(),
            Reason::Limit => self.limit_s.is_some(),
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
        let slow = self.slow.map(|factor| format!("slow={factor}"));
        let memory = self.memory_s.map(|seconds| format!("memory={seconds}s"));
        let limit = self.limit_s.map(|seconds| format!("limit={seconds}s"));
        let exit = self.exit.then(|| "exit".to_owned());
        let signal = self.signal.then(|| "signal".to_owned());
        let all = [hang, slow, memory, limit, exit, signal];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// A time such as `30s`, `5m` or `1h`, in seconds.
fn seconds(item: &str, text: &str) -> Result<f64, String> {
    values::seconds(text)
        .filter(|seconds| SECONDS.contains(seconds))
        .ok_or_else(|| format!("{item}: not a time from 1s to 24h, such as 30s or 5m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lists() {
        let usual = Triggers::parse(Triggers::USUAL).unwrap();
        assert_eq!(
            usual,
            Triggers { hang_s: Some(30.0), exit: true, signal: true, ..Triggers::default() }
        );
        let one = Triggers::parse("hang=1.5m").unwrap();
        assert_eq!(one, Triggers { hang_s: Some(90.0), ..Triggers::default() });
        let other = Triggers::parse("slow=3,limit=10min,memory=5m").unwrap();
        let expected = Triggers {
            slow: Some(3.0),
            limit_s: Some(600.0),
            memory_s: Some(300.0),
            ..Triggers::default()
        };
        assert_eq!(other, expected);
        for triggers in [usual, one, other] {
            assert_eq!(Triggers::parse(&triggers.to_string()), Ok(triggers));
        }
    }

    #[test]
    fn refuses_what_is_not_understood() {
        for (text, words) in [
            ("slow", "slow=3"),
            ("slow=1", "from 1.2"),
            ("exit,limit=soon", "limit=soon: not a time"),
            ("exit,memory", "memory=10m"),
            ("exit,disk", "\"disk\" is unknown"),
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
