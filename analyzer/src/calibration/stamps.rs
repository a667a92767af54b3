//! Reads the time stamps that `kernels clock` prints as one line of JSON.

use serde::Deserialize;
use trace_format::clock_estimate::TwoWay;

/// Stamps of one calibration run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stamps {
    /// MPI library.
    pub mpi: String,
    /// Counter that was read.
    pub counter: String,
    /// Exchanges per trial.
    pub rounds: u64,
    /// Seconds between the two measurements; 0 if there was only one.
    pub drift_s: f64,
    /// Where each rank ran.
    pub ranks: Vec<RankHost>,
    /// Pairs of the tree.
    pub pairs: Vec<PairStamps>,
}

/// Why the output of a launcher contains no usable stamps.
#[derive(Debug, thiserror::Error)]
pub enum StampsError {
    /// The kernel's line is missing.
    #[error("the program printed no stamps; is it kernels of this version?")]
    Missing,
    /// The line is not JSON, or keys are missing.
    #[error("its stamps cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A pair names a rank that does not exist.
    #[error("its stamps name ranks that do not exist")]
    UnknownRank,
    /// A rank's counter has an impossible frequency.
    #[error("rank {rank} has an impossible counter frequency")]
    Frequency { rank: usize },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RankHost {
    /// Host name.
    pub host: String,
    /// Boot id of the running operating system.
    pub boot_id: String,
    /// Length of a tick of its counter.
    pub ns_per_tick: f64,
}

/// Stamps of a pair, by measurement, trial and exchange.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PairStamps {
    /// The rank whose clock is measured.
    pub child: usize,
    /// The rank that it is compared with.
    pub parent: usize,
    /// Exchanges that the child starts.
    pub forward: Vec<Vec<Vec<Exchange>>>,
    /// Exchanges that the parent starts.
    pub reverse: Vec<Vec<Vec<Exchange>>>,
}

/// Three counters: the starter's when it sends, the other rank's when it answers, and the starter's
/// when it receives the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Exchange(pub u64, pub u64, pub u64);

impl Exchange {
    /// The exchange as the estimator's input, with the starter as child.
    pub fn two_way(&self) -> TwoWay {
        TwoWay { sent: self.0, answered: self.1, received: self.2 }
    }
}

impl Stamps {
    /// Finds the kernel's line in the output of a launcher, and checks it.
    ///
    /// # Errors
    /// See [`StampsError`].
    pub fn parse(printed: &str) -> Result<Self, StampsError> {
        let line = printed
            .lines()
            .find(|line| line.trim_start().starts_with(r#"{"kernel":"clock""#))
            .ok_or(StampsError::Missing)?;
        let stamps: Self = serde_json::from_str(line.trim())?;
        let count = stamps.ranks.len();
        if stamps.pairs.iter().any(|pair| pair.child >= count || pair.parent >= count) {
            return Err(StampsError::UnknownRank);
        }
        let bad = |rank: &RankHost| !(rank.ns_per_tick > 1e-3 && rank.ns_per_tick < 1e6);
        if let Some(rank) = stamps.ranks.iter().position(bad) {
            return Err(StampsError::Frequency { rank });
        }
        Ok(stamps)
    }

    /// Nanoseconds per tick of a rank's counter.
    pub fn ns_per_tick(&self, rank: usize) -> f64 {
        self.ranks[rank].ns_per_tick
    }

    /// Whether both ranks run under the same operating system and so read the same counter, which
    /// makes the true offset 0. Their host names may differ (containers, network namespaces).
    pub fn truth_is_zero(&self, pair: &PairStamps) -> bool {
        let (child, parent) = (&self.ranks[pair.child], &self.ranks[pair.parent]);
        !child.boot_id.is_empty() && child.boot_id == parent.boot_id
    }
}
