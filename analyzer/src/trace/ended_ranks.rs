//! How the processes of ranks ended, as `gammachi run` saw it on its own host.

use serde::{Deserialize, Serialize};

use super::wall_clock::Instant;

/// The end of a rank's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndedRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// When its process ended.
    pub at: Instant,
    /// How many processes of this host had let go of their files before it did; `null`: unknown.
    #[serde(default)]
    pub after: Option<u64>,
    /// Its exit code; `null`: killed by a signal, or unknown.
    pub code: Option<u8>,
    /// The signal that killed it; `null`: none, or unknown.
    pub signal: Option<u8>,
    /// Whether it had returned from MPI_Finalize.
    pub finalized: bool,
}

/// Signals by which launchers end the other ranks of a job.
const BY_LAUNCHERS: [u8; 2] = [9, 15];

impl EndedRank {
    /// Sets code and signal from what `wait` says.
    pub fn set_status(&mut self, status: i32) {
        let byte = |value: i32| u8::try_from(value).ok();
        (self.code, self.signal) = match (libc::WIFEXITED(status), libc::WIFSIGNALED(status)) {
            (true, _) => (byte(libc::WEXITSTATUS(status)), None),
            (_, true) => (None, byte(libc::WTERMSIG(status))),
            _ => (None, None),
        };
    }

    /// Whether a launcher may have ended it because of another rank.
    pub fn may_be_by_launcher(&self) -> bool {
        match (self.code, self.signal) {
            (_, Some(signal)) => BY_LAUNCHERS.contains(&signal),
            (code, None) => code.is_none(),
        }
    }

    /// The rank that died first, before MPI_Finalize; `None` if none did, or it is not known which.
    pub fn first(ended: &[Self]) -> Option<&Self> {
        let dead = || ended.iter().filter(|of| !of.finalized);
        if let Some(first) = dead().min_by_key(|of| of.after)
            && dead().all(|of| of.after.is_some())
        {
            return Some(first);
        }
        let earliest = dead().map(|of| of.at.unix_ns).min()?;
        let together: Vec<&Self> = dead().filter(|of| of.at.unix_ns == earliest).collect();
        let by_itself: Vec<&Self> =
            together.iter().filter(|of| !of.may_be_by_launcher()).copied().collect();
        match (&together[..], &by_itself[..]) {
            ([one], _) | (_, [one]) => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn ended(rank: u32, at_ns: u64, status: i32) -> EndedRank {
        let at = Instant::from_unix_ns(at_ns);
        let (after, code, signal, finalized) = Default::default();
        let mut ended = EndedRank { rank, at, after, code, signal, finalized };
        ended.set_status(status);
        ended
    }

    #[test]
    fn first_is_earliest_or_only_one_not_ended_by_launcher() {
        let first = |ended: &[EndedRank]| EndedRank::first(ended).map(|of| of.rank);
        assert_eq!(first(&[]), None);
        assert_eq!(first(&[ended(0, 5, 15), ended(1, 4, 9)]), Some(1));
        assert_eq!(first(&[ended(0, 5, 15), ended(1, 5, 9)]), None, "seen at once");
        assert_eq!(first(&[ended(0, 5, 15), ended(1, 5, 11)]), Some(1));
        let finalized = EndedRank { finalized: true, ..ended(2, 1, 0) };
        assert_eq!(first(&[finalized, ended(1, 5, 3 << 8)]), Some(1));
        let after = |after, of| EndedRank { after: Some(after), ..of };
        let [one, other] = [after(1, ended(0, 4, 9)), after(0, ended(1, 5, 9))];
        assert_eq!(first(&[one.clone(), other]), Some(1), "it let go of its file first");
        assert_eq!(first(&[one, ended(1, 5, 9)]), Some(0), "of one that is not known");
    }

    #[test]
    fn status_is_a_code_or_a_signal() {
        let of = |status| (ended(0, 1, status).code, ended(0, 1, status).signal);
        assert_eq!(of(3 << 8), (Some(3), None));
        assert_eq!(of(11), (None, Some(11)));
        assert_eq!(of(139), (None, Some(11)), "with a core dump");
    }
}
