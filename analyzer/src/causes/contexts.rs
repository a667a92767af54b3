//! Names what a thread was doing, as precisely as the run allows and in the same way on all ranks.

use serde::{Deserialize, Serialize};
use trace_format::file_calls::FileCallKind;

use crate::metrics::Frame;
use crate::trace::symbols::SourceLocation;

use super::local_site::LocalSite;
use super::numbering::Numbering;

/// A place in the program that calls MPI.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallSite {
    /// Name of the function, [`PARALLEL_REGION`], or what calls on files do ([`CallSite::is_on_files`]).
    pub function: String,
    /// Path of the program or library that made the call; empty if unknown.
    pub module: String,
    /// Address in that file to which the call returns.
    pub address: u64,
    /// Function, file and line, as far as the module's debug information provides them.
    pub place: SourceLocation,
    /// Whether the module is a library, not the user's own program.
    pub is_in_library: bool,
    /// Where the user's own program called that library, if a call path tells.
    pub caller: Option<Box<Frame>>,
}

impl CallSite {
    /// Whether it stands for calls on files: `write` for all functions that write.
    pub fn is_on_files(&self) -> bool {
        ON_FILES.contains(&self.function.as_str())
    }

    /// Whether both are in one function or, if its name is not known, the same call in the code,
    /// wherever their library was called.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let same_function = match &self.place.function {
            None => self.address == other.address,
            name => *name == other.place.function,
        };
        self.module == other.module && same_function
    }
}

/// In place of functions: what calls on files do, in the order of [`FileCallKind::ALL`].
const ON_FILES: [&str; FileCallKind::ALL.len()] =
    ["open", "read", "write", "fsync", "ftruncate", "close", "mmap"];

/// The name of calls on files.
pub(super) fn name_on_files(kind: FileCallKind) -> &'static str {
    ON_FILES[kind as usize]
}

/// In place of a function: where an OpenMP parallel region begins.
pub const PARALLEL_REGION: &str = "parallel region";

/// What a thread was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// It waited for a known rank.
    Waiting,
    /// It waited, but it is not known for which rank.
    WaitingForUnknown,
    /// The recorder's own time.
    Recorder,
    /// The program's own code in this marked region, the innermost one.
    Region(String),
    /// The program's own code between two MPI calls; `None` is the begin or end of the run.
    Between(Option<CallSite>, Option<CallSite>),
    /// The program's own code in a BLAS, LAPACK or FFTW call, an OpenMP parallel region or calls on files, within a
    /// region or between two MPI calls. Delays are found in whole stretches; if one call holds most of what makes a
    /// stretch longer, it is named instead.
    InCall(CallSite, Box<Context>),
    /// Inside an MPI call, without waiting.
    Transfer(CallSite),
    /// Inside MPI calls for which only totals were kept.
    Totals,
}

/// Numbers of contexts that every run has.
pub const WAITING: u32 = 0;
pub const WAITING_FOR_UNKNOWN: u32 = 1;
pub const RECORDER: u32 = 2;
pub const TOTALS: u32 = 3;
/// How many these are.
const FIXED: usize = 4;

impl Context {
    /// The region or stretch in which a BLAS, LAPACK or FFTW call, a parallel region or calls on files lie, else the
    /// context itself.
    pub fn outer(&self) -> &Self {
        match self {
            Self::InCall(_, outer) => outer,
            other => other,
        }
    }

    /// Whether the thread was outside MPI and outside the recorder.
    pub fn is_computing(&self) -> bool {
        matches!(self, Self::Region(_) | Self::Between(..) | Self::InCall(..))
    }
}

/// A context with its rank's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LocalContext {
    Fixed(u32),
    Region(u32),
    Between(Option<LocalSite>, Option<LocalSite>),
    Transfer(LocalSite),
    /// The same for a call with a path, by its number: the place of a wait. What lines did is summed
    /// without paths, which the short calls of the ranks that come late do not have.
    OnPath(LocalSite, u32),
}

/// The contexts of one rank in the order in which they first occurred.
#[derive(Debug, Default)]
pub(crate) struct LocalContexts {
    numbers: Numbering<LocalContext>,
    /// Numbers of the fixed ones, which come after any other.
    fixed: [Option<u32>; FIXED],
}

impl LocalContexts {
    #[inline]
    pub fn number(&mut self, context: LocalContext) -> u32 {
        match context {
            LocalContext::Fixed(fixed) => {
                let numbers = &mut self.numbers;
                *self.fixed[fixed as usize].get_or_insert_with(|| numbers.number(context))
            }
            other => self.numbers.number(other),
        }
    }

    /// Goes on from contexts that have numbers already.
    pub fn from_all(all: Vec<LocalContext>) -> Self {
        Self { numbers: all.into_iter().collect(), ..Self::default() }
    }

    #[inline]
    pub fn get(&self, number: u32) -> LocalContext {
        self.numbers.all()[number as usize]
    }

    /// The contexts by their numbers.
    pub fn all(&self) -> &[LocalContext] {
        self.numbers.all()
    }

    /// The same, without what is needed to add more.
    pub fn into_all(self) -> Vec<LocalContext> {
        self.numbers.into_all()
    }
}

#[derive(Debug, Default)]
pub struct Contexts {
    /// By number.
    pub all: Vec<Context>,
}

impl Contexts {
    pub fn get(&self, number: u32) -> &Context {
        &self.all[number as usize]
    }
}

/// Marks the absence of a context.
pub const NO_CONTEXT: u32 = u32::MAX;
