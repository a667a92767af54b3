//! What a rank file says about itself: the header's payload and the definition records.
//!
//! All types are encoded as [`crate::encoding`] describes, fields in the order of declaration.

use serde::{Deserialize, Serialize};

use crate::counters::CounterEvent;

/// Communicator id of a handle that could not be identified.
pub const COMMUNICATOR_UNKNOWN: u16 = 0;
/// Communicator id of MPI_COMM_WORLD.
pub const COMMUNICATOR_WORLD: u16 = 1;
/// Communicator id of MPI_COMM_SELF.
pub const COMMUNICATOR_SELF: u16 = 2;

/// The encoded payload of the header area: who recorded, what, where and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileHeader {
    /// Version of the recorder, such as `0.1.0`.
    pub recorder_version: String,
    /// Absolute path of the program.
    pub program: String,
    /// Build id of the program (ELF note, hexadecimal), empty when it has none.
    pub build_id: String,
    /// Arguments, the program's name first; shortened to 8 KiB in all.
    pub arguments: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Host name.
    pub host: String,
    /// Boot id of the host's kernel: equal on two ranks only when they share a kernel.
    pub boot_id: String,
    /// MPI library's own version text (MPI_Get_library_version), first line.
    pub mpi_library: String,
    /// Which ABI the library was taken for: `openmpi`, `mpich`, `abi` or `unknown`.
    pub mpi_family: String,
    /// MPI standard version that the library reports.
    pub mpi_version: (i32, i32),
    /// Provided thread level: 0 single, 1 funneled, 2 serialized, 3 multiple; −1 unknown.
    pub thread_level: i32,
    /// Whether the counter runs at one constant rate and is shared by the host's cores.
    pub counter_invariant: bool,
    /// What counts as computation: `outside`, `blas` or `regions`.
    pub compute: String,
    /// `name=value` pairs that the user attached to the run.
    pub parameters: Vec<(String, String)>,
    /// Cores that the process may run on when recording began.
    pub affinity: Vec<u32>,
    /// NUMA node of the core that the process ran on when recording began, −1 unknown.
    pub numa_node: i32,
    /// Names of the functions numbered from [`crate::functions::FIRST_FUNCTION`], one a line.
    pub function_names: String,
}

/// One record of a definition chunk. New kinds are appended; a reader skips what it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Definition {
    /// The counter beside the system's clocks.
    ClockAnchor(ClockAnchor),
    /// This rank's counter against another rank's.
    ClockExchange(ClockExchange),
    /// A region's name.
    Region {
        /// Id that REGION_BEGIN and REGION_END slots carry.
        id: u32,
        /// Name as the program gave it.
        name: String,
    },
    /// What the operating system did to a thread so far.
    ThreadUsage(ThreadUsage),
    /// τ_i begins: MPI_Init returns to the program.
    RankBegin {
        /// Counter at that moment.
        ticks: u64,
    },
    /// τ_i ends: the program enters MPI_Finalize.
    RankEnd {
        /// Counter at that moment.
        ticks: u64,
    },
    /// Recording ended before the program did; later calls are missing.
    Stopped {
        /// Counter at that moment.
        ticks: u64,
        /// Why, as a sentence.
        reason: String,
    },
    /// The rank's file is complete: MPI_Finalize returned.
    Finalized {
        /// Event slots that could not be written, over all threads.
        lost_events: u64,
    },
    /// Environment variables that matter for performance, sorted by name.
    Environment(Vec<(String, String)>),
    /// A communicator; valid from `ticks` on, until another takes its id.
    Communicator(Communicator),
    /// A communicator was named.
    CommunicatorName {
        /// Its local id.
        id: u16,
        /// Counter at that moment.
        ticks: u64,
        /// The name.
        name: String,
    },
    /// A window for remote memory access, or a file; valid from `ticks` on.
    Object {
        /// Window or file.
        kind: ObjectKind,
        /// Its local id.
        id: u32,
        /// Counter when it was made.
        ticks: u64,
        /// Local id of the communicator that it was made on.
        communicator: u16,
        /// A file's name; empty for a window.
        name: String,
    },
    /// Code that is mapped into the process, for call sites and paths.
    Module(Module),
    /// How the rank's events are kept.
    Keeping(Keeping),
    /// The file system maps no memory to be shared: what no full window held is lost when the process is
    /// killed.
    Unmapped,
    /// How far this rank's counter is known against that of the tree's root.
    ClockBound(ClockBound),
    /// How well the host's CLOCK_REALTIME follows UTC.
    SystemClock(SystemClock),
    /// A counter that was asked for.
    Counter(Counter),
    /// Counters as they stood where the rank's stretch begins or ends.
    CounterReading(CounterReading),
    /// When the process began and ended, for figures of its whole life.
    ProcessLife(ProcessLife),
    /// Time on a core of the whole process so far.
    ProcessUsage(ProcessUsage),
    /// Definitions of what the program has freed and whose events are totals, left out since.
    LeftOut {
        /// Communicators.
        communicators: u64,
        /// Windows and files.
        objects: u64,
    },
    /// A call path, for slots of [`crate::markers::ToolReason::Path`].
    Path {
        /// Its number, from 0 on.
        number: u32,
        /// Addresses at which the functions on the stack go on, innermost first.
        addresses: Vec<u64>,
    },
}

/// When a process began and ended. τ_i is the stretch between MPI_Init and MPI_Finalize, this is the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLife {
    /// Counter at some moment of its life.
    pub ticks: u64,
    /// Nanoseconds since the process began, at that moment; the kernel tells them in steps of 10 ms.
    pub age_ns: u64,
    /// Counter when the process ended; 0 where that is not known.
    pub end_ticks: u64,
}

/// Time that all threads of a process were on a core so far, those that ended included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// When.
    pub phase: Phase,
    /// Counter at the reading.
    pub ticks: u64,
    /// Time on a core, nanoseconds (CLOCK_PROCESS_CPUTIME_ID).
    pub on_cpu_ns: u64,
    /// Of that, what threads used that were recorded and have ended, nanoseconds.
    pub ended_threads_ns: u64,
}

/// A counter (perf_event) that was asked for, and what became of it on this rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Number that readings carry; one a counter.
    pub number: u32,
    /// Name as the user gave it.
    pub name: String,
    /// What it adds up; empty where there is no built-in choice.
    pub events: Vec<CounterEvent>,
    /// Whether the events are the built-in choice for the processor.
    pub built_in: bool,
    /// Threads that it was opened for; those that they make later count, too.
    pub threads: u32,
    /// Threads that were there already and could not be counted.
    pub missed_threads: u32,
    /// Why it is not read, as a sentence; empty where it is.
    pub unavailable: String,
}

/// Counters of the process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterReading {
    /// Init where τ_i begins, finalize where it ends.
    pub phase: Phase,
    /// Counter of time: that of RankBegin or RankEnd.
    pub ticks: u64,
    /// Number of the counter, its value since it was opened, state ([`crate::counters::SCALED`] …).
    pub values: Vec<(u32, u64, u32)>,
}

/// A program or shared library as it is mapped into the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Path of its file; of the program itself, too.
    pub path: String,
    /// Build id (ELF note, hexadecimal), empty when it has none.
    pub build_id: String,
    /// What is added to an address in the file to get the one in memory.
    pub base: u64,
    /// First address that belongs to it.
    pub begin: u64,
    /// First address behind it.
    pub end: u64,
    /// Counter when it was seen: addresses may be used again after dlclose.
    pub ticks: u64,
}

/// How a rank's events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// Which events are given up where there are too many.
    pub policy: KeepingPolicy,
    /// Bytes of the file from which on events are given up; 0 no limit.
    pub max_bytes: u64,
}

/// Which events are given up where there are too many; they stay as totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepingPolicy {
    /// The ones after the limit was reached, but for the last.
    First,
    /// The oldest.
    Last,
    /// All of them, but for the last while the process runs.
    Totals,
}

/// The error bound of a rank's [`ClockExchange`] of the same phase, summed over the hops to the root
/// of the tree, at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockBound {
    /// Phase of the exchange.
    pub phase: Phase,
    /// Child's counter of the exchange.
    pub ticks: u64,
    /// Hops to the root.
    pub hops: u32,
    /// Sum of their bounds, nanoseconds, rounded up.
    pub bound_ns: u64,
}

/// What the kernel says of its own clock (adjtimex).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemClock {
    /// Counter at the reading.
    pub ticks: u64,
    /// Whether something (NTP, PTP) keeps CLOCK_REALTIME at UTC.
    pub synchronised: bool,
    /// The kernel's bound of its distance from UTC, nanoseconds; means nothing where it is not
    /// synchronised.
    pub most_error_ns: u64,
}

/// What an [`Definition::Object`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A window.
    Window,
    /// A file.
    File,
}

/// A communicator as one rank knows it.
///
/// It is identified without communication: `hash` is of the world ranks of its members in order (and
/// of the tag or string tag that it was made with), `instance` counts the earlier ones on the same
/// members. Equal (`hash`, `instance`) on two ranks is the same communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// Local id, as events carry it.
    pub id: u16,
    /// Counter when it was made.
    pub ticks: u64,
    /// Hash of the ordered members.
    pub hash: u64,
    /// Count of earlier communicators with this hash.
    pub instance: u32,
    /// Number of ranks (of the local group, for an intercommunicator).
    pub size: u32,
    /// This process's rank in it.
    pub rank: u32,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// World ranks of the members in order, written by rank 0 only: runs of (first, stride, count);
    /// a first of −1 with stride 0 is a process outside the initial world.
    pub members: Vec<(i64, i64, u32)>,
    /// Ranks of an intercommunicator's remote group, coded alike; on rank 0 only.
    pub remote_members: Vec<(i64, i64, u32)>,
    /// Size of the remote group, 0 for an intracommunicator.
    pub remote_size: u32,
    /// Local id of the communicator that it was made from, 0 unknown.
    pub parent: u16,
    /// Number of the function that made it, 0 for the predefined ones.
    pub made_by: u16,
}

/// The counter beside the system's clocks, read between two counter reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// Counter, middle of the two reads.
    pub ticks: u64,
    /// Ticks between the two reads: the reading's uncertainty.
    pub width_ticks: u64,
    /// CLOCK_MONOTONIC_RAW, nanoseconds.
    pub monotonic_raw_ns: u64,
    /// CLOCK_REALTIME, nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// When a clock exchange was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Before MPI_Init returned to the program.
    Init,
    /// After the program entered MPI_Finalize.
    Finalize,
    /// In between, before a collective operation on MPI_COMM_WORLD.
    During,
}

/// Two-way exchanges between this rank (the child) and another (the parent).
///
/// At the moment when the child's counter stood at `child_ticks`, the parent's stood at
/// `parent_ticks`, within `bound_ticks` of the child's counter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// When.
    pub phase: Phase,
    /// The parent's rank in the same world.
    pub parent: u32,
    /// Whether parent and child share host and an invariant counter.
    pub same_host: bool,
    /// Exchanges made.
    pub rounds: u32,
    /// Exchanges of lowest round trip that the estimate is the mean of.
    pub kept: u32,
    /// Child's counter.
    pub child_ticks: u64,
    /// Parent's counter at that moment, by the mean midpoint of the kept exchanges.
    pub parent_ticks: u64,
    /// Uncertainty of the estimate, child's ticks: every exchange allows only offsets within it.
    pub bound_ticks: u64,
    /// Lowest round trip, child's ticks.
    pub min_round_trip_ticks: u64,
    /// Median round trip, child's ticks.
    pub median_round_trip_ticks: u64,
}

/// What the operating system did to a thread between its start and the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Thread as event chunks number it; `u32::MAX` for a thread that called no MPI.
    pub thread: u32,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// When.
    pub phase: Phase,
    /// Counter at the reading.
    pub ticks: u64,
    /// Time on a core, nanoseconds (schedstat).
    pub on_cpu_ns: u64,
    /// Time ready to run but waiting for a core, nanoseconds (schedstat).
    pub run_queue_ns: u64,
    /// Context switches that the thread asked for.
    pub voluntary_switches: u64,
    /// Context switches forced on it.
    pub involuntary_switches: u64,
    /// Page faults without input or output.
    pub minor_faults: u64,
    /// Core that it ran on.
    pub core: u32,
}
