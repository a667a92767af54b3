//! The contents of a rank file's header and definition records.
//!
//! All types are encoded as described in [`crate::encoding`], with fields in the order of
//! declaration.

use serde::{Deserialize, Serialize};

use crate::counters::CounterEvent;

/// Communicator id for a handle that could not be identified.
pub const COMMUNICATOR_UNKNOWN: u16 = 0;
/// Communicator id of MPI_COMM_WORLD.
pub const COMMUNICATOR_WORLD: u16 = 1;
/// Communicator id of MPI_COMM_SELF.
pub const COMMUNICATOR_SELF: u16 = 2;

/// The encoded payload of the header area: the recorder, the program, the host and the settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FileHeader {
    /// Version of the recorder, such as `0.1.0`.
    pub recorder_version: String,
    /// Absolute path of the program.
    pub program: String,
    /// Build id of the program (ELF note, hexadecimal); empty if it has none.
    pub build_id: String,
    /// Arguments, beginning with the program's name; shortened to 8 KiB in total.
    pub arguments: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Host name.
    pub host: String,
    /// Boot id of the host's kernel: equal on two ranks only if they share a kernel.
    pub boot_id: String,
    /// First line of the MPI library's own version text (MPI_Get_library_version).
    pub mpi_library: String,
    /// ABI that the library was identified as: `openmpi`, `mpich`, `abi` or `unknown`.
    pub mpi_family: String,
    /// MPI standard version that the library reports.
    pub mpi_version: (i32, i32),
    /// Provided thread level: 0 single, 1 funneled, 2 serialized, 3 multiple; −1 unknown.
    pub thread_level: i32,
    /// Whether the counter runs at a constant rate and is shared by the host's cores.
    pub counter_invariant: bool,
    /// What counts as computation: `outside`, `blas` or `regions`.
    pub compute: String,
    /// `name=value` pairs that the user attached to the run.
    pub parameters: Vec<(String, String)>,
    /// Cores that the process may run on when recording began.
    pub affinity: Vec<u32>,
    /// NUMA node of the core that the process ran on when recording began; −1 if unknown.
    pub numa_node: i32,
    /// Names of the functions numbered from [`crate::functions::FIRST_FUNCTION`], one per line.
    pub function_names: String,
}

/// A record of a definition chunk. New kinds are appended; a reader skips unknown ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Definition {
    /// A reading of the counter together with the system's clocks.
    ClockAnchor(ClockAnchor),
    /// This rank's counter compared with another rank's.
    ClockExchange(ClockExchange),
    /// A region's name.
    Region {
        /// Id in REGION_BEGIN and REGION_END slots.
        id: u32,
        /// Name given by the program.
        name: String,
    },
    /// Resource usage of a thread so far.
    ThreadUsage(ThreadUsage),
    /// τ_i begins: MPI_Init, or the first MPI_Session_init, returns to the program. After a RankEnd:
    /// another session resumes the recording, and that end was none.
    RankBegin {
        /// Counter at that moment.
        ticks: u64,
    },
    /// τ_i ends: the program enters MPI_Finalize, or finalizes its last session.
    RankEnd {
        /// Counter at that moment.
        ticks: u64,
    },
    /// Recording stopped before the program ended; later calls are missing.
    Stopped {
        /// Counter at that moment.
        ticks: u64,
        /// The reason, as a sentence.
        reason: String,
    },
    /// The rank's file is complete: that call has returned.
    Finalized {
        /// Number of event slots that could not be written, over all threads.
        lost_events: u64,
    },
    /// Environment variables that matter for performance, sorted by name.
    Environment(Vec<(String, String)>),
    /// A communicator. Valid from `ticks` until another communicator gets its id.
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
    /// A window for remote memory access, or a file. Valid from `ticks` on.
    Object {
        /// Window or file.
        kind: ObjectKind,
        /// Its local id.
        id: u32,
        /// Counter when it was made.
        ticks: u64,
        /// Local id of the communicator on which it was made.
        communicator: u16,
        /// Name of a file; empty for a window.
        name: String,
    },
    /// Code mapped into the process, for call sites and paths.
    Module(Module),
    /// How the rank's events are kept.
    Keeping(Keeping),
    /// The file system does not support shared mappings: if the process is killed, events that were
    /// not in a full window are lost.
    Unmapped,
    /// Error bound of this rank's counter relative to that of the tree's root.
    ClockBound(ClockBound),
    /// How well the host's CLOCK_REALTIME follows UTC.
    SystemClock(SystemClock),
    /// A performance counter requested by the user.
    Counter(Counter),
    /// Readings of the performance counters at the begin or end of the rank's elapsed time.
    CounterReading(CounterReading),
    /// When the process began and ended, for figures of its whole life.
    ProcessLife(ProcessLife),
    /// CPU time of the whole process so far.
    ProcessUsage(ProcessUsage),
    /// Numbers of dropped definitions: their objects were freed and the events folded into totals.
    LeftOut {
        /// Communicators.
        communicators: u64,
        /// Windows and files.
        objects: u64,
    },
    /// A call path, for slots of [`crate::markers::ToolReason::Path`].
    Path {
        /// Its number, counted from 0.
        number: u32,
        /// Return addresses of the functions on the stack, innermost first.
        addresses: Vec<u64>,
    },
    /// The neighbours of this rank in a communicator's topology.
    Topology(Topology),
    /// A group that the program passed to MPI_Win_start or MPI_Win_post.
    Group {
        /// Its number in the bytes of these calls' slots, counted from 1.
        number: u32,
        /// World ranks of the members in order, as runs of (first, stride, count), as in
        /// [`Communicator::members`].
        members: Vec<(i64, i64, u32)>,
    },
    /// The host's processor.
    Processor {
        /// Its model, as the processor or the kernel names it.
        model: String,
    },
    /// What the process has used so far. Written at its begin and end, and now and then between.
    UsageReading(UsageReading),
    /// How the program's own code is sampled.
    Sampling(Sampling),
    /// A function of an interpreted language on call paths and stacks of samples, like a module whose
    /// code is its source lines: the line is the address less `base`. `path` is the source file,
    /// `identity` [`crate::samples::PYTHON`] and the function's name.
    Code(Module),
    /// OpenMP parallel regions are recorded. Written at the begin and the end.
    OpenMp {
        /// File names of the OpenMP runtimes that were loaded then.
        runtimes: Vec<String>,
    },
    /// A file that the program works on.
    File(File),
    /// Calls on files are recorded. Written at the begin and the end.
    FileRecording(FileRecording),
    /// Threads that may run on the same cores. Written where their usage is, when they end.
    ThreadCores(ThreadCores),
    /// Parallel regions that could not be recorded, written at the end if there were any: more threads than the
    /// recorder has room for began some, or were in a team.
    MissedTeams {
        /// Number of regions.
        regions: u64,
    },
    /// Reads of a file, as far as their offsets are known. Written at the end, after another session again.
    FileReads {
        /// Its number.
        file: u32,
        /// All of them so far.
        reads: crate::file_calls::FileReads,
    },
}

/// A file that the program works on, by [`crate::markers::ToolReason::FileCalls`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its number, counted from 1. 0 stands for all files beyond the largest number.
    pub number: u32,
    /// Device, inode and the time when it was made: what makes it the same file. Without that time, it may have the
    /// inode of another one that was deleted before.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// See `device`; nanoseconds since 1970, 0: unknown.
    pub born_ns: u64,
    /// Type of its file system, as statfs tells it.
    pub file_system: u64,
    /// Path; empty if names are not kept.
    pub name: String,
}

/// What is known of calls on files besides events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecording {
    /// Phase of the reading.
    pub phase: Phase,
    /// Whether the library that sees these calls is loaded.
    pub is_loaded: bool,
    /// Bytes that the process has read and written so far, by the kernel's account of all system calls that read and
    /// write (/proc/self/io); `None`: unknown.
    pub moved: Option<(u64, u64)>,
    /// The part of it that went by functions that are seen, but not to files that are recorded: pipes, terminals,
    /// sockets, the recorder's own.
    pub elsewhere: (u64, u64),
    /// Calls of threads without events of their own, and those that could not be kept one by one.
    pub sums: Vec<FileSum>,
}

/// Calls of one kind on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// The file's number.
    pub file: u32,
    /// [`crate::file_calls::FileCallKind`] as a number, with the flags.
    pub kind: u16,
    /// The calls; `span` is 0.
    pub calls: crate::file_calls::FileCalls,
}

/// How the program's own code is sampled, if that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// Samples per second of a thread's CPU time.
    pub rate_hz: u32,
    /// What interrupts the threads.
    pub source: SamplingSource,
    /// Why nothing is sampled, as a sentence; empty if it is.
    pub unavailable: String,
}

/// What interrupts a thread whenever it has computed for a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SamplingSource {
    /// The kernel's task clock in user mode (perf_event), by a high-resolution timer.
    TaskClock,
    /// A timer on the thread's CPU clock. It fires at the kernel's ticks, so code that follows a
    /// tick is sampled too rarely or too often.
    CpuTimer,
}

/// The neighbours of this rank in a communicator's topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Local id of the communicator.
    pub communicator: u16,
    /// Counter when it was made; not before that of the communicator's own definition.
    pub ticks: u64,
    /// Ranks of the communicator that it receives from; −1 for MPI_PROC_NULL.
    pub sources: Vec<i32>,
    /// Ranks of the communicator that it sends to; −1 for MPI_PROC_NULL.
    pub destinations: Vec<i32>,
}

/// When a process began and ended. τ_i is the time between MPI_Init and MPI_Finalize; this covers
/// the whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLife {
    /// Counter at some moment of the process's life.
    pub ticks: u64,
    /// Nanoseconds since the process began, at that moment. The kernel's resolution is 10 ms.
    pub age_ns: u64,
    /// Counter when the process ended; 0 if unknown.
    pub end_ticks: u64,
}

/// CPU time of all threads of a process so far, including those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Phase of the reading.
    pub phase: Phase,
    /// Counter at the reading.
    pub ticks: u64,
    /// CPU time in nanoseconds (CLOCK_PROCESS_CPUTIME_ID).
    pub on_cpu_ns: u64,
    /// Part of it used by recorded threads that have ended, in nanoseconds.
    pub ended_threads_ns: u64,
}

/// What a process has used so far. Of those during the run only the last two are kept, so that a
/// rank that dies leaves one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReading {
    /// Phase of the reading.
    pub phase: Phase,
    /// Counter at the reading.
    pub ticks: u64,
    /// CPU time of all threads, in nanoseconds.
    pub on_cpu_ns: u64,
    /// Part of it used by recorded threads that have ended, in nanoseconds.
    pub ended_threads_ns: u64,
    /// CPU time of the thread that called MPI_Init, in nanoseconds; 0: unknown.
    pub first_thread_on_cpu_ns: u64,
    /// How long that thread was ready to run but had no core, in nanoseconds.
    pub first_thread_run_queue_ns: u64,
    /// Memory that the process holds, in bytes; 0: unknown.
    pub resident_bytes: u64,
    /// The most that it has held so far, in bytes; 0: unknown.
    pub peak_resident_bytes: u64,
}

/// A performance counter (perf_event) requested by the user, and the outcome on this rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Number of the counter in readings.
    pub number: u32,
    /// Name given by the user.
    pub name: String,
    /// The events that it adds up; empty if there is no built-in choice.
    pub events: Vec<CounterEvent>,
    /// Whether the events are the built-in choice for the processor.
    pub built_in: bool,
    /// Number of threads that it was opened for. Threads made by these later count, too.
    pub threads: u32,
    /// Number of threads that existed already and could not be counted.
    pub missed_threads: u32,
    /// Why it is not read, as a sentence; empty if it is.
    pub unavailable: String,
}

/// Readings of the process's performance counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterReading {
    /// Init at the begin of τ_i, Finalize at its end.
    pub phase: Phase,
    /// Time counter: that of RankBegin or RankEnd.
    pub ticks: u64,
    /// Number of the counter, its value since it was opened, state ([`crate::counters::SCALED`] …).
    pub values: Vec<(u32, u64, u32)>,
}

/// A program or shared library mapped into the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Path of its file, including the program's own.
    pub path: String,
    /// What tells it from others of the same path: its build id (ELF note, hexadecimal; empty if it
    /// has none), or what [`Definition::Code`] says.
    pub identity: String,
    /// Offset to add to an address in the file to get the address in memory.
    pub base: u64,
    /// First address that belongs to it.
    pub begin: u64,
    /// First address behind it.
    pub end: u64,
    /// Counter when it was first seen. Addresses may be reused after dlclose.
    pub ticks: u64,
}

/// How a rank's events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// Which events become totals if there are too many.
    pub policy: KeepingPolicy,
    /// Size of the file in bytes from which on events become totals; 0: no limit.
    pub max_bytes: u64,
}

/// Which events are folded into totals if there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepingPolicy {
    /// Those after the limit was reached, except for the last.
    First,
    /// The oldest.
    Last,
    /// All of them, except for the last while the process runs.
    Totals,
}

/// Sum of the error bounds of the [`ClockExchange`]s of one phase over the hops from a rank to the
/// root of the tree, at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockBound {
    /// Phase of the exchange.
    pub phase: Phase,
    /// Child's counter of the exchange.
    pub ticks: u64,
    /// Hops to the root.
    pub hops: u32,
    /// Sum of the bounds of the hops in nanoseconds, rounded up.
    pub bound_ns: u64,
}

/// State of the kernel's own clock (adjtimex).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemClock {
    /// Counter at the reading.
    pub ticks: u64,
    /// Whether something (NTP, PTP) keeps CLOCK_REALTIME at UTC.
    pub synchronised: bool,
    /// The kernel's bound of its distance from UTC in nanoseconds; meaningless if the clock is not
    /// synchronised.
    pub most_error_ns: u64,
}

/// Kind of an [`Definition::Object`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A window.
    Window,
    /// A file.
    File,
}

/// A communicator as seen by one rank.
///
/// It is identified without communication. `hash` covers the world ranks of its members in order
/// (and the tag or string tag with which it was made), and `instance` counts earlier communicators
/// with the same members. Equal (`hash`, `instance`) on two ranks means the same communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// Local id, used in events.
    pub id: u16,
    /// Counter when it was made.
    pub ticks: u64,
    /// Hash of the ordered members.
    pub hash: u64,
    /// Number of earlier communicators with this hash.
    pub instance: u32,
    /// Number of ranks (of the local group, for an intercommunicator).
    pub size: u32,
    /// This process's rank in it.
    pub rank: u32,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// World ranks of the members in order, written by rank 0 only, as runs of (first, stride,
    /// count). A first of −1 with stride 0 means processes outside the initial world.
    pub members: Vec<(i64, i64, u32)>,
    /// Ranks of an intercommunicator's remote group in the same form; on rank 0 only.
    pub remote_members: Vec<(i64, i64, u32)>,
    /// Size of the remote group, 0 for an intracommunicator.
    pub remote_size: u32,
    /// Local id of the communicator from which it was made; 0 if unknown.
    pub parent: u16,
    /// Number of the function that made it; 0 for predefined communicators.
    pub made_by: u16,
}

/// The system's clocks, read between two reads of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// Mean of the two counter reads.
    pub ticks: u64,
    /// Ticks between the two reads, which is the uncertainty of the reading.
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
    /// Phase of the exchange.
    pub phase: Phase,
    /// The parent's rank in the same world.
    pub parent: u32,
    /// Whether parent and child share host and an invariant counter.
    pub same_host: bool,
    /// Exchanges made.
    pub rounds: u32,
    /// Number of exchanges with the lowest round trips, over which the estimate is the mean.
    pub kept: u32,
    /// Child's counter.
    pub child_ticks: u64,
    /// Parent's counter at that moment, from the mean midpoint of these exchanges.
    pub parent_ticks: u64,
    /// Uncertainty of the estimate in child's ticks: every exchange allows only offsets within it.
    pub bound_ticks: u64,
    /// Lowest round trip, child's ticks.
    pub min_round_trip_ticks: u64,
    /// Median round trip, child's ticks.
    pub median_round_trip_ticks: u64,
}

impl ClockExchange {
    /// With rank 0, whose counter shows the same within a bound, without a message.
    pub fn on_one_clock(phase: Phase, ticks: u64, bound_ticks: u64) -> Self {
        Self {
            phase,
            parent: 0,
            same_host: false,
            rounds: 0,
            kept: 0,
            child_ticks: ticks,
            parent_ticks: ticks,
            bound_ticks,
            min_round_trip_ticks: 0,
            median_round_trip_ticks: 0,
        }
    }
}

/// Resource usage of a thread from its start to the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Number of the thread in event chunks; `u32::MAX` for a thread that made no MPI call.
    pub thread: u32,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// Phase of the reading.
    pub phase: Phase,
    /// Counter at the reading.
    pub ticks: u64,
    /// CPU time in nanoseconds (schedstat).
    pub on_cpu_ns: u64,
    /// Time ready to run but waiting for a core, in nanoseconds (schedstat).
    pub run_queue_ns: u64,
    /// Number of voluntary context switches.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches.
    pub involuntary_switches: u64,
    /// Number of page faults without input or output.
    pub minor_faults: u64,
    /// Core that it ran on.
    pub core: u32,
}

/// Cores on which threads may run, when their usage is read at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCores {
    /// The cores, ascending.
    pub cores: Vec<u32>,
    /// Operating system's ids of the threads.
    pub thread_os_ids: Vec<u32>,
}

/// Whether a rank's file is complete, according to its definitions in their order.
pub fn is_finalized(definitions: &[Definition]) -> bool {
    let mut last = definitions.iter().rev();
    let last =
        last.find(|of| matches!(of, Definition::Finalized { .. } | Definition::RankBegin { .. }));
    matches!(last, Some(Definition::Finalized { .. }))
}
