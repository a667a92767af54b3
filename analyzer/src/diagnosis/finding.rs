//! What can be found: each kind with its evidence in numbers and units, the figures that it is about, and those that it
//! makes invalid. Nothing here is a sentence.

use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use crate::causes::{CallSite, Context};
use crate::metrics::{ComputeMode, Oversubscription, OwnTime};
use crate::trace::NotBegun;
use crate::trace::run_json::{Exit, Termination};

use super::figures::Figures;
use super::measurement::Measurement;
use super::why::NotRecorded;

/// Something that the figures of a run mean. Shares are fractions, times seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// Files of the run are damaged.
    DamagedFiles {
        /// How many.
        files: usize,
    },
    /// Ranks never returned from MPI_Init.
    NotBegun {
        /// The ranks, and what is known of their processes.
        ranks: Vec<(u32, NotBegun)>,
        /// Size of MPI_COMM_WORLD.
        world: u32,
    },
    /// Ranks without a readable file.
    RanksMissing {
        /// How many.
        count: usize,
        /// First and last of each range.
        ranks: Vec<(u32, u32)>,
        /// Size of MPI_COMM_WORLD.
        world: u32,
    },
    /// Somebody asked `gammachi run` to end.
    EndRequested(Request),
    /// Ranks called MPI_Abort.
    Aborted {
        /// The first of them.
        rank: u32,
        /// When it called.
        at_s: f64,
        /// How many called it.
        ranks: usize,
        /// Exit code of the launcher, if that says something.
        exit_code: Option<u8>,
    },
    /// The program did not end normally.
    Ended {
        /// How.
        end: End,
        /// Whether every rank had finalized MPI before.
        after_finalize: bool,
        /// The signal for which the launcher gives this exit code, too.
        or_signal: Option<u8>,
    },
    /// A rank's process ended by itself, as `gammachi run` saw it.
    Died {
        /// The rank.
        rank: u32,
        /// When it ended; null: after all ranks had returned from MPI_Finalize.
        at_s: Option<f64>,
        /// Its exit code; null: a signal, or unknown.
        code: Option<u8>,
        /// The signal that killed it; null: none, or unknown.
        signal: Option<u8>,
        /// Whether it was the first of several that ended before MPI_Finalize.
        first: bool,
        /// Exit code of the launcher, if another one.
        launcher: Option<u8>,
    },
    /// The only rank outside MPI, for which others waited when a process crashed.
    Crashed {
        /// The rank.
        rank: u32,
        /// Those that waited for it.
        waiting: Vec<u32>,
    },
    /// Ranks that did not finish, and where they were.
    Unfinished {
        /// The ranks whose positions are known.
        ranks: Vec<u32>,
        /// Whether the job is known to be over.
        over: bool,
    },
    /// Ranks wait for each other in a circle.
    Deadlock {
        /// The ranks, ascending.
        ranks: Vec<u32>,
        /// Whether nothing unrecorded can resolve it.
        certain: bool,
    },
    /// Ranks wait for one that does not come.
    Hang {
        /// The rank at the end of the chain.
        by: u32,
        /// Those that wait for it.
        waiting: Vec<u32>,
    },
    /// Calls that never returned take so much of the time that the rest is not judged.
    Stuck,
    /// Ranks waited for cores.
    LackOfCores {
        /// Whether it explains more than anything else, so that other figures say little.
        decisive: bool,
        /// Share of the ranks' time without a core.
        share: Option<f64>,
        /// Least share for which it held them up: they did not wait for other ranks meanwhile.
        held_up: Option<f64>,
        /// What shows it.
        shown_by: Vec<Oversubscription>,
        /// The least and the most for which the rank that waited longest did so in what counts as computing, if
        /// that matters; seconds.
        while_computing_s: Option<(f64, f64)>,
        /// Whether more ranks may be on its hosts than are recorded.
        ranks_missing: bool,
    },
    /// Ranks may use different numbers of cores.
    UnequalPinning {
        /// Number of cores, and the ranks that may use so many.
        groups: Vec<(usize, Vec<u32>)>,
    },
    /// Parallel efficiency, and who computes longest.
    Efficiency(Efficiency),
    /// Who waited for whom is not recorded.
    WaitingNotRecorded {
        /// Why.
        because: NotRecorded,
    },
    /// Transfer takes more of the ranks' time than waiting.
    Transfer {
        /// Share of the ranks' time.
        share: f64,
        /// The call site with most of it, and its part.
        at: Option<(CallSite, f64)>,
        /// Whether it takes so much more that causes of waiting do not matter.
        dominates: bool,
    },
    /// Many messages of few bytes (at most 64) take a notable part (at least 5 %) of the ranks' time.
    SmallMessages {
        /// Point-to-point calls of the functions that move so little.
        calls: u64,
        /// Bytes that such a call moves on average.
        mean_bytes: f64,
        /// Time of all ranks in them, without waiting for others.
        seconds: f64,
        /// Share of the ranks' time.
        share: f64,
        /// The call site with most of it, and its part.
        at: Option<(CallSite, f64)>,
        /// Whether it takes so much more than waiting that causes of waiting do not matter.
        dominates: bool,
    },
    /// Transfers that computation was to hide waited for the calls that complete them.
    NoOverlap(NoOverlap),
    /// Ranks that exchange much are on different hosts.
    Placement(Placement),
    /// Ranks waited for others, or no wait is known.
    Waiting(Waiting),
    /// Most waits are shorter than the clocks' uncertainty.
    UncertainWaits {
        /// Their sum.
        seconds: f64,
    },
    /// Half of the waiting lies in few slow iterations.
    SlowIterations {
        /// How many.
        slow: usize,
        /// Number of all iterations.
        of: usize,
        /// The slowest, counted from 0.
        slowest: usize,
        /// What it takes.
        slowest_s: f64,
        /// What iterations take in the median.
        median_s: f64,
    },
    /// The ranks of a host cause most of the waiting together.
    SlowHost(SlowHost),
    /// The costliest delay: a rank that is late, and where.
    Delay(Delay),
    /// One rank reads or writes files with MPI while others wait.
    SerialIo(SerialIo),
    /// The rank with the costliest delay is not on a core there, and does not wait for one.
    Blocked(Blocked),
    /// No single delay costs much.
    NoMainDelay {
        /// Share of the waiting that the costliest causes.
        share: f64,
    },
    /// Waiting without a known cause.
    Unattributed {
        /// Share of the waiting.
        share: f64,
    },
    /// Ranks compute equally long, but one after the other.
    InTurn {
        /// Serialisation of the efficiency tree.
        serialisation: f64,
        /// Where they wait longest.
        places: Vec<CallSite>,
        /// Whether that is a barrier that is called again and again.
        at_barrier: bool,
    },
    /// What overlapping transfers with computation would save at most.
    Overlap(Saves),
    /// The rank that loses most, where causes are not known.
    LosesMost(Loss),
    /// Many small reads or writes of a file take a notable part (at least 5 %) of the ranks' time.
    SmallFileCalls(SmallFileCalls),
    /// Ranks read most of a file again, which takes a notable part of their time.
    ReadAgain(ReadAgain),
    /// Most reads of a file begin inside a page, and reading it takes a notable part of the ranks' time.
    UnalignedReads(UnalignedReads),
    /// All ranks open one file by themselves, and that takes a notable part of their time.
    FileOfAll(FileOfAll),
    /// A rank spends longer in calls on files than the others, which wait for it as far as that is known.
    SlowFiles(SlowFiles),
    /// The threads of parallel regions have fewer cores than there are of them.
    ThreadsShareCores(ThreadsShareCores),
    /// Ranks slept in what counts as computing.
    Asleep(Asleep),
    /// Something is wrong with the measurement itself.
    #[serde(untagged)]
    Measurement(Measurement),
}

impl Finding {
    /// The figures that say little or nothing because of it.
    pub fn invalidates(&self) -> &'static [Figures] {
        match self {
            Self::Measurement(found) => found.invalidates(),
            Self::Stuck => Figures::ALL,
            Self::LackOfCores { decisive: true, .. } => Figures::ALL,
            Self::WaitingNotRecorded { because: NotRecorded::MostlyTotals } => &[Figures::Delays],
            Self::WaitingNotRecorded { .. } => &[Figures::Waits, Figures::Delays],
            Self::UncertainWaits { .. } => &[Figures::Delays],
            _ => &[],
        }
    }

    /// The figures that it is about: it is not stated where they are invalid.
    pub(super) fn is_about(&self) -> &'static [Figures] {
        match self {
            // Without a core the recorder takes longer, too.
            Self::Measurement(found) => found.invalidates(),
            Self::Efficiency(_)
            | Self::LosesMost(_)
            | Self::SmallFileCalls(_)
            | Self::ReadAgain(_)
            | Self::UnalignedReads(_)
            | Self::FileOfAll(_)
            | Self::SlowFiles(_)
            | Self::ThreadsShareCores(_)
            | Self::Asleep(_) => &[Figures::Efficiency],
            Self::Transfer { .. }
            | Self::SmallMessages { .. }
            | Self::NoOverlap(_)
            | Self::Waiting(_) => &[Figures::Waits],
            Self::Placement(_) | Self::Overlap(_) => &[Figures::Waits, Figures::Predictions],
            Self::SlowIterations { .. }
            | Self::SlowHost(_)
            | Self::Delay(_)
            | Self::SerialIo(_)
            | Self::Blocked(_)
            | Self::NoMainDelay { .. }
            | Self::Unattributed { .. }
            | Self::InTurn { .. } => &[Figures::Delays],
            Self::UncertainWaits { .. } | Self::WaitingNotRecorded { .. } => &[Figures::Waits],
            _ => &[],
        }
    }

    /// Whether it says that others wait for this rank.
    pub(super) fn blames(&self, rank: u32) -> bool {
        match self {
            Self::Delay(found) => found.rank == rank,
            Self::SerialIo(found) => found.rank == rank,
            Self::SlowHost(found) => found.ranks.contains(&rank),
            _ => false,
        }
    }

    /// Whether both are of one kind.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Measurement(one), Self::Measurement(other)) => {
                discriminant(one) == discriminant(other)
            }
            _ => discriminant(self) == discriminant(other),
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// A process exited with this code.
    ExitCode {
        /// The code.
        code: u8,
    },
    /// A process was killed.
    Signal {
        /// The signal's number.
        signal: u8,
    },
    /// The launcher was killed.
    LauncherKilled {
        /// The signal's number.
        signal: i32,
    },
    /// `timeout` ended the job.
    TimedOut,
}

/// Parallel efficiency ε_p = Σγ/(p·τ), and how γ differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Efficiency {
    /// ε_p; `None` if the selected stretch has no length.
    pub parallel: Option<f64>,
    /// Mean γ over the largest; `None` if no rank computes.
    pub load_balance: Option<f64>,
    /// The rank that computes longest.
    pub longest: Option<Computing>,
    /// The rank that computes shortest.
    pub shortest: Option<Computing>,
    /// Number of ranks that take part.
    pub ranks: usize,
    /// What counts as computing.
    pub mode: ComputeMode,
    /// Whether every rank was recorded up to its end.
    pub complete: bool,
    /// Whether a later finding says that the others wait for the rank that computes longest.
    pub blamed: bool,
}

/// How long a rank computes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Computing {
    /// The rank.
    pub rank: u32,
    /// γ_i.
    pub seconds: f64,
    /// What it did in that time.
    pub does: Does,
}

/// What a rank does in the time that counts as its computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// It computes, as far as known.
    Computes,
    /// It is asleep or blocked.
    Asleep,
    /// It may do either.
    Unclear,
    /// It is in code that does not count as computing.
    InOtherCode,
    /// It is inside MPI or the recorder.
    InLibrary,
    /// It is inside calls on files.
    OnFiles,
}

impl From<OwnTime> for Does {
    fn from(own: OwnTime) -> Self {
        match own {
            OwnTime::Computes => Self::Computes,
            OwnTime::Asleep => Self::Asleep,
            OwnTime::Unclear => Self::Unclear,
        }
    }
}

/// How long ranks waited for others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Waiting {
    /// Share of the ranks' time.
    pub share: f64,
    /// Time of all ranks together.
    pub seconds: f64,
    /// Time per rank, on average.
    pub per_rank_s: f64,
    /// Whether there is more in calls kept only as totals.
    pub at_least: bool,
    /// If waits too short to be explained are not contained: the share with all of them, and the limit
    /// below which waits are too short.
    pub at_most: Option<(f64, f64)>,
}

/// A rank that makes others wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Delay {
    /// The rank that is late.
    pub rank: u32,
    /// Its thread.
    pub thread: u32,
    /// What it does longer.
    pub does: Does,
    /// Where.
    pub place: Context,
    /// Waiting that this causes, directly and indirectly.
    pub seconds: f64,
    /// Share of all waiting.
    pub share: f64,
    /// Number of ranks of the run.
    pub ranks: usize,
    /// Whether it waits nearly as long as the others (at least half as long as they do on average): they delay each
    /// other.
    #[serde(default)]
    pub mutual: bool,
    /// The function in which most of that lies, if samples of the code tell with certainty.
    #[serde(flatten)]
    pub function: Option<LongerFunction>,
    /// Where the place is a parallel region, the thread of its team that works longest there most of the time.
    #[serde(default)]
    pub slowest_thread: Option<u32>,
}

/// A function that takes longer on a delaying rank than on the ranks that wait for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LongerFunction {
    /// Its name. Only if most of the delay lies in it and what it calls, and chance is refused (Holm, 1 %).
    pub function: String,
    /// Program or library.
    pub module: String,
    /// Source file.
    pub file: Option<String>,
    /// The line of it with most time.
    pub line: Option<u32>,
    /// By how many seconds it takes longer on the delaying rank, with what it calls.
    pub longer_s: f64,
    /// Standard error of that.
    pub error_s: f64,
    /// Its part of the delay.
    pub part: f64,
}

/// A host whose ranks make others wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowHost {
    /// The host.
    pub host: String,
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
    /// How many times as long as the ranks elsewhere they compute on average, if each of them computes longer than any
    /// of those.
    pub times: Option<f64>,
    /// What the rank does longer that causes most.
    pub does: Does,
    /// Where they cause most of that, if it is one place.
    pub place: Option<Context>,
    /// Waiting that they cause, directly and indirectly.
    pub seconds: f64,
    /// Share of all waiting.
    pub share: f64,
}

/// What a change would save, as a replay of the whole run predicts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Saves {
    /// Seconds of the run's time.
    pub seconds: f64,
    /// The least in nine of ten cases; negative where it may cost time.
    pub lo_s: f64,
    /// The most in nine of ten cases.
    pub hi_s: f64,
    /// Share of the run's time.
    pub share: f64,
}

/// Ranks began transfers and computed, and then waited for the transfers, which had not moved meanwhile. That is likely, not certain: a trace does not show when a message moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoOverlap {
    /// Calls that waited for such transfers.
    pub calls: u64,
    /// Calls that completed transfers begun before a computation.
    pub of: u64,
    /// Seconds of all ranks in these calls, as far as the computation before each lasted as long.
    pub seconds: f64,
    /// Share of the ranks' time.
    pub share: f64,
    /// What such a call takes on average, seconds.
    pub mean_wait_s: f64,
    /// Computation before it, after both sides had begun, on average, seconds.
    pub mean_computed_s: f64,
    /// Bytes that it receives or sends, whichever is more, on average.
    pub mean_bytes: f64,
    /// The computation that most of these seconds follow, and their part.
    pub place: (Context, f64),
}

/// Ranks that exchange much are on different hosts, although as many ranks on each host could keep more inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Placement {
    /// Bytes of messages between ranks.
    pub bytes: f64,
    /// Of these, between hosts.
    pub between: f64,
    /// The same with the other placement.
    pub between_then: f64,
    /// The other placement: the ranks on each host, as first and last of each range.
    pub hosts: Vec<Vec<(u32, u32)>>,
    /// What it would save.
    pub saves: Saves,
}

/// A rank that reads or writes files with MPI while others wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SerialIo {
    /// The rank.
    pub rank: u32,
    /// Its thread.
    pub thread: u32,
    /// Seconds in these calls, without waiting for others.
    pub seconds: f64,
    /// Its part of the time that all ranks spend in such calls.
    pub part: f64,
    /// The call site with most of that time.
    pub at: CallSite,
    /// Waiting that this causes, directly and indirectly, seconds of all ranks.
    pub cost_s: f64,
    /// Share of all waiting.
    pub share: f64,
    /// Number of ranks of the run.
    pub ranks: usize,
}

/// Bytes of a file that ranks had read before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadAgain {
    /// The file's number.
    pub file: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
    /// Bytes read, on all ranks.
    pub bytes: u64,
    /// At least so many of them the same rank had read before.
    pub again_bytes: u64,
    /// Their part of the time of all ranks in reads of the file, seconds.
    pub seconds: f64,
    /// Share of the ranks' time.
    pub share: f64,
}

/// Reads of a file that begin inside a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnalignedReads {
    /// The file's number.
    pub file: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
    /// Reads whose offset is known, on all ranks.
    pub reads: u64,
    /// Those that begin at no multiple of 4096.
    pub unaligned: u64,
    /// Time of all ranks in all reads of the file, seconds.
    pub seconds: f64,
    /// Share of the ranks' time.
    pub share: f64,
}

/// Many reads or writes of few bytes on a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SmallFileCalls {
    /// The file's number.
    pub file: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
    /// Whether the calls write; otherwise they read.
    pub writes: bool,
    /// How many, on all ranks.
    pub calls: u64,
    /// Bytes that a call moves on average.
    pub mean_bytes: f64,
    /// Time of all ranks in them, seconds.
    pub seconds: f64,
    /// Share of the ranks' time.
    pub share: f64,
}

/// A file that every rank opens by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileOfAll {
    /// The file's number.
    pub file: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
    /// Number of ranks.
    pub ranks: u64,
    /// How often it is opened.
    pub opens: u64,
    /// Time of all ranks in opening it, seconds.
    pub seconds: f64,
    /// Share of the ranks' time.
    pub share: f64,
}

/// A rank that spends longer in calls on files, outside MPI, than the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowFiles {
    /// The rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u64,
    /// Its seconds in these calls.
    pub seconds: f64,
    /// The median of the others.
    pub others_s: f64,
    /// How long the others waited on average, in the whole selection; null: not known.
    pub others_wait_s: Option<f64>,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// Number of the file that took most of it.
    pub file: u64,
    /// Its path; null: names were not kept.
    pub name: Option<String>,
}

/// Threads of parallel regions that share cores, because the cores that their ranks may use are fewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadsShareCores {
    /// The host.
    pub host: String,
    /// The ranks.
    pub ranks: Vec<u32>,
    /// Threads of their largest teams, together.
    pub threads: u64,
    /// Distinct cores that they may use.
    pub cores: usize,
}

/// A rank that is asleep or blocked where others wait for it. On what is not recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// Where.
    pub place: Context,
    /// Seconds that it spends there outside MPI.
    pub seconds: f64,
    /// Of these, the least in which it was neither on a core nor waiting for one.
    pub asleep_s: f64,
    /// Waiting that its time there causes, seconds of all ranks.
    pub cost_s: f64,
}

/// Ranks that slept in what counts as computing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Asleep {
    /// The rank that slept longest.
    pub rank: u32,
    /// Its γ.
    pub compute_s: f64,
    /// The longest that it was on a core meanwhile.
    pub on_cpu_s: f64,
    /// Whether it slept nearly all the time.
    pub nearly_all: bool,
    /// How many ranks slept for a notable part of the run.
    pub ranks: usize,
    /// Whether these are all.
    pub all: bool,
}

/// A signal that asked the run to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Request {
    /// What `gammachi run` received.
    pub received: Termination,
    /// File name of the launcher.
    pub launcher: String,
    /// Seconds from the signal to the launcher's end.
    pub later_s: Option<f64>,
    /// How it ended.
    pub exit: Option<Exit>,
}

/// What a rank loses, and to what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Loss {
    /// The rank.
    pub rank: u32,
    /// All of it (χ).
    pub seconds: f64,
    /// Its notable parts, the largest first.
    pub parts: Vec<(LostTo, f64)>,
    /// The calls with a notable part of the time in MPI; none where calls of several threads overlap.
    pub calls: Vec<(String, f64)>,
    /// What counts as computing.
    pub mode: ComputeMode,
}

/// To what time is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LostTo {
    /// MPI.
    Mpi,
    /// Code that does not count as computing.
    OtherCode,
    /// The recorder.
    Recorder,
    /// The time before its begin and after its end.
    StartAndEnd,
    /// The rest of the stretch outside its own part.
    RestOfStretch,
    /// Time of which nothing is recorded.
    NotRecorded,
    /// The time after its last event, at which it died or computed on.
    AfterLastEvent,
}

/// Share of τ below which a part of the lost time is not mentioned.
pub const NOTABLE_SHARE: f64 = 0.01;
/// Share of the waiting from which a rank is said to delay the others.
pub(super) const MAIN_SHARE: f64 = 0.25;
/// Share of the waiting below which a cause is not mentioned.
pub(super) const NOTABLE_CAUSE: f64 = 0.05;
