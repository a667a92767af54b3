//! What is known of the threads and parallel regions of OpenMP.

use serde::Serialize;

use super::paths::Frame;

/// Why there is no efficiency if there is no region.
pub(crate) const NO_REGION: &str = "no parallel region was recorded in it";

/// Seconds of threads without work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleThreads {
    /// At barriers inside regions.
    pub barriers_s: f64,
    /// For locks, critical and ordered sections.
    pub locks_s: f64,
    /// Before they begin a region's code, and at the barrier at its end.
    pub ends_s: f64,
}

impl IdleThreads {
    /// All of it.
    pub fn seconds(&self) -> f64 {
        self.barriers_s + self.locks_s + self.ends_s
    }
}

/// A parallel region by its place in the code, of all ranks together. Seconds of threads unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParallelRegion {
    /// Where it begins.
    #[serde(skip)]
    pub begins_at: Frame,
    /// Times that it was entered, over all ranks.
    pub count: u64,
    /// Number of ranks.
    pub ranks: usize,
    /// Threads of the largest team.
    pub threads: u16,
    /// From begin to end, of one thread each time.
    pub span_s: f64,
    /// Work.
    pub work_s: f64,
    /// Without work.
    #[serde(flatten)]
    pub idle: IdleThreads,
    /// In regions that make tasks: at barriers and waiting for tasks, running tasks or idle.
    pub tasks_s: f64,
    /// While the first thread is in MPI.
    pub with_mpi_s: f64,
    /// Mean work of the threads over the largest, of regions without MPI calls inside; null: there are none.
    pub load_balance: Option<f64>,
    /// The thread that works longer than the others most.
    pub slowest: Option<SlowestThread>,
}

/// A thread of a team that works longer than the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowestThread {
    /// Its rank.
    pub rank: u32,
    /// Its number in the team (omp_get_thread_num).
    pub thread: u32,
    /// How often no thread of the team worked longer.
    pub count: u64,
    /// How much longer it worked than the mean of its team then, in seconds.
    pub excess_s: f64,
}

/// The threads of one rank. Seconds of threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankTeams {
    /// The rank.
    pub rank: u32,
    /// Threads of its largest team.
    pub threads: u16,
    /// Parallel regions in the selection.
    pub parallel_regions: u64,
    /// Work, inside and outside parallel regions.
    pub work_s: f64,
    /// Nothing to do outside parallel regions, and in regions with fewer threads.
    pub serial_s: f64,
    /// Without work inside regions.
    #[serde(flatten)]
    pub idle: IdleThreads,
    /// In regions that make tasks: at barriers and waiting for tasks, running tasks or idle.
    pub tasks_s: f64,
    /// While the first thread is in MPI or the recorder, or before its start or after its end.
    pub mpi_s: f64,
}

/// Efficiency of all threads of all ranks and its factors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hybrid {
    /// Work over all time of all threads = `mpi.efficiency` × `openmp.efficiency`. What threads do while tasks run is
    /// not divided and counts as work.
    pub parallel: f64,
    /// Number of threads over all ranks.
    pub threads: u64,
    /// What MPI costs.
    pub mpi: MpiPart,
    /// What OpenMP costs.
    pub openmp: OpenMpPart,
}

/// What MPI costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MpiPart {
    /// The share of all time that is not charged to MPI.
    pub efficiency: f64,
    /// Seconds that are: of the first threads, and `idle_threads_s`.
    pub lost_s: f64,
    /// Those of threads that have nothing to do because their first thread is in MPI.
    pub idle_threads_s: f64,
}

/// What OpenMP costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenMpPart {
    /// Work over the time that is not charged to MPI = `serial` × `regions`.
    pub efficiency: f64,
    /// Factor for threads that have nothing to do outside parallel regions, or in regions with fewer threads.
    pub serial: f64,
    /// Factor for threads that wait inside parallel regions.
    pub regions: f64,
    /// Seconds to which the first factor belongs.
    pub serial_s: f64,
    /// Seconds to which the second belongs.
    #[serde(flatten)]
    pub idle: IdleThreads,
    /// Seconds that are not divided: at barriers and waiting for tasks in regions that make tasks.
    pub tasks_s: f64,
}

/// Parallel regions of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenMpMetrics {
    /// File names of the OpenMP runtimes that were loaded.
    pub runtimes: Vec<String>,
    /// `None`: see `unknown`.
    pub hybrid: Option<Hybrid>,
    /// Why there is no efficiency of threads.
    pub unknown: Option<&'static str>,
    /// The threads of each participating rank; empty without an efficiency.
    pub ranks: Vec<RankTeams>,
    /// Number of regions of the whole run that the recorder had no room for.
    pub missed: u64,
    /// By place, the most idle time first.
    pub regions: Vec<ParallelRegion>,
}
