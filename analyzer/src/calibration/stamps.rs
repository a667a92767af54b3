//! What `kernels clock` prints: one line of JSON comes in, [`Stamps`] goes out.

use serde::Deserialize;
use trace_format::clock_estimate::TwoWay;

/// Stamps of one calibration run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stamps {
    /// MPI library.
    pub mpi: String,
    /// Counter that was read.
    pub counter: String,
    /// Exchanges a trial.
    pub rounds: u64,
    /// Seconds between the two measurements; 0 for one.
    pub drift_s: f64,
    /// Where each rank ran.
    pub ranks: Vec<RankPlace>,
    /// Pairs of the tree.
    pub pairs: Vec<PairStamps>,
}

/// Why what a launcher printed holds no stamps that can be used.
#[derive(Debug, thiserror::Error)]
pub enum StampsError {
    /// There is no line of the kernel.
    #[error("the program printed no stamps; is it kernels of this version?")]
    Missing,
    /// The line is not JSON, or keys are missing.
    #[error("its stamps cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A pair names a rank that is not there.
    #[error("its stamps name ranks that do not exist")]
    UnknownRank,
    /// A rank's counter has a frequency that cannot be.
    #[error("rank {rank} has an impossible counter frequency")]
    Frequency {
        /// The rank.
        rank: usize,
    },
}

/// Where a rank ran.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RankPlace {
    /// Host name.
    pub host: String,
    /// The running kernel's boot id.
    pub boot_id: String,
    /// Length of a tick of its counter.
    pub ns_per_tick: f64,
}

/// Stamps of a pair, by measurement, trial and exchange.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PairStamps {
    /// Who is measured.
    pub child: usize,
    /// Against whom.
    pub parent: usize,
    /// The child asks.
    pub forward: Vec<Vec<Vec<Exchange>>>,
    /// The parent asks.
    pub reverse: Vec<Vec<Vec<Exchange>>>,
}

/// Asker's counter at sending, answerer's, asker's at receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Exchange(pub u64, pub u64, pub u64);

impl Exchange {
    /// As the estimator takes it, the asker as child.
    pub fn two_way(&self) -> TwoWay {
        TwoWay { sent: self.0, answered: self.1, received: self.2 }
    }
}

impl Stamps {
    /// Finds the kernel's line in what a launcher printed, and checks it.
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
        let bad = |rank: &RankPlace| !(rank.ns_per_tick > 1e-3 && rank.ns_per_tick < 1e6);
        if let Some(rank) = stamps.ranks.iter().position(bad) {
            return Err(StampsError::Frequency { rank });
        }
        Ok(stamps)
    }

    /// Nanoseconds a tick of a rank's counter.
    pub fn ns_per_tick(&self, rank: usize) -> f64 {
        self.ranks[rank].ns_per_tick
    }

    /// Whether both ranks run on one kernel and so read one counter: the true offset is 0. Host names
    /// may differ (containers, network namespaces).
    pub fn truth_is_zero(&self, pair: &PairStamps) -> bool {
        let (child, parent) = (&self.ranks[pair.child], &self.ranks[pair.parent]);
        !child.boot_id.is_empty() && child.boot_id == parent.boot_id
    }
}
