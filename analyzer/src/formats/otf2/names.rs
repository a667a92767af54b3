//! Names and numbers that writer and reader of archives share: additions of our exports to
//! Score-P's conventions, and numbers of OTF2's enumerations.

pub use crate::export::steps::RECORDER_PREFIX;

/// Name of the archive in its directory.
pub const NAME: &str = "traces";
/// Name and description of the attributes of records, by number: the first two belong to a run of polls, the next
/// two to a compute call, the last two to an I/O operation.
pub const ATTRIBUTES: [(&str, &str); 6] = [
    ("gammachi polls", "Consecutive calls of this function that found nothing, merged into one"),
    ("gammachi polls ns", "Nanoseconds inside those calls"),
    ("gammachi flops", "Floating-point operations of a compute call"),
    ("gammachi bytes", "Bytes of its arguments"),
    ("gammachi calls", "Calls on a file that one operation stands for"),
    ("gammachi calls ns", "Nanoseconds inside them"),
];
/// Numbers of the last two.
pub const CALLS_ATTRIBUTE: u32 = 4;
pub const INSIDE_ATTRIBUTE: u32 = 5;
/// Property of processes: path of the program.
pub const PROGRAM_PROPERTY: &str = "program";
/// Property of processes: what counts as computation.
pub const COMPUTE_PROPERTY: &str = "gammachi compute";
/// Property of processes: bound of the rank's clock, nanoseconds.
pub const CLOCK_BOUND_PROPERTY: &str = "clock bound ns";
/// Beginnings of the names of properties of processes: time that samples do not show, nanoseconds.
pub const UNSAMPLED_PROPERTY: &str = "not sampled ns: ";
/// Description of the region around everything, by which an import recognises it.
pub const PROGRAM_DESCRIPTION: &str = "gammachi: the whole program";

/// OTF2_Type: a 64-bit integer.
pub const TYPE_UINT64: u8 = 4;
/// OTF2_Type: the number of a string.
pub const TYPE_STRING: u8 = 11;
/// OTF2_Paradigm: the program.
pub const PARADIGM_USER: u8 = 1;
/// OTF2_Paradigm: OpenMP.
pub const PARADIGM_OPENMP: u8 = 3;
/// OTF2_Paradigm: MPI.
pub const PARADIGM_MPI: u8 = 4;
/// OTF2_Paradigm: the recorder.
pub const PARADIGM_MEASUREMENT_SYSTEM: u8 = 6;
/// OTF2_Paradigm: sampled functions.
pub const PARADIGM_SAMPLING: u8 = 21;
/// OTF2_GroupType: the locations of MPI's ranks.
pub const GROUP_COMM_LOCATIONS: u8 = 4;
/// OTF2_GroupType: members of a communicator.
pub const GROUP_COMM_GROUP: u8 = 5;
/// OTF2_GroupType: MPI_COMM_SELF of every rank.
pub const GROUP_COMM_SELF: u8 = 6;
/// OTF2_LocationGroupType: a process.
pub const LOCATION_GROUP_PROCESS: u8 = 1;
/// OTF2_LocationType: a thread of a processor.
pub const LOCATION_CPU_THREAD: u8 = 1;
