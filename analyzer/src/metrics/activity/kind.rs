//! Kinds of activity, by which timelines are coloured.

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Class, Meaning};
use trace_format::reader::{RankFile, Thread};

/// What a thread does, as a timeline colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The program's own code: outside MPI, recorder and interposed compute functions.
    Own,
    /// Interposed compute functions (BLAS).
    Compute,
    /// Calls that send, or start sends.
    Send,
    /// Calls that receive, or send and receive.
    Receive,
    /// Calls that wait, test or probe.
    Wait,
    Collective,
    /// Remote memory access.
    OneSided,
    /// Files.
    Io,
    /// All other MPI calls.
    OtherMpi,
    /// The recorder itself.
    Tool,
}

impl Kind {
    /// All, in the order of their numbers.
    pub const ALL: [Self; KINDS] = [
        Self::Own,
        Self::Compute,
        Self::Send,
        Self::Receive,
        Self::Wait,
        Self::Collective,
        Self::OneSided,
        Self::Io,
        Self::OtherMpi,
        Self::Tool,
    ];

    /// Name for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own code",
            Self::Compute => "BLAS",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Wait => "wait, test, probe",
            Self::Collective => "collective",
            Self::OneSided => "one-sided",
            Self::Io => "file I/O",
            Self::OtherMpi => "other MPI",
            Self::Tool => "recorder",
        }
    }

    /// Whether it is time inside MPI.
    pub fn is_mpi(self) -> bool {
        !matches!(self, Self::Own | Self::Compute | Self::Tool)
    }

    /// The kind of a function.
    pub fn of_function(name: &str) -> Self {
        match Meaning::by_name(name).class {
            Class::PointToPoint
                if name.contains("recv") || name.contains("Recv") || name.contains("Parrived") =>
            {
                Self::Receive
            }
            Class::PointToPoint => Self::Send,
            Class::Completion | Class::Probe => Self::Wait,
            Class::Collective => Self::Collective,
            Class::OneSided => Self::OneSided,
            Class::Io => Self::Io,
            Class::Compute => Self::Compute,
            Class::Communicators | Class::Datatypes | Class::Lifetime | Class::Other => {
                Self::OtherMpi
            }
        }
    }
}

/// Number of kinds.
pub const KINDS: usize = 10;

/// The kinds of a file's functions.
#[derive(Debug)]
pub(super) struct FunctionKinds(Vec<Kind>);

impl FunctionKinds {
    pub fn new(file: &RankFile) -> Self {
        Self(file.function_names().iter().map(|name| Kind::of_function(name)).collect())
    }

    pub fn kind(&self, function: u16) -> Kind {
        let index = usize::from(function.saturating_sub(FIRST_FUNCTION));
        self.0.get(index).copied().unwrap_or(Kind::OtherMpi)
    }
}

/// Share of each kind in the MPI time of a thread's totals.
pub(super) fn shares_of_totals(thread: &Thread, file: &RankFile) -> [f64; KINDS] {
    let mut shares = [0.0; KINDS];
    for entry in thread.totals.iter().flat_map(|totals| &totals.calls) {
        let Some(name) = file.function_name(entry.function) else { continue };
        let kind = Kind::of_function(name);
        // MPI_Init and MPI_Finalize lie outside the stretch that a row shows.
        if kind.is_mpi() && Meaning::by_name(name).class != Class::Lifetime {
            shares[kind as usize] += entry.ticks as f64;
        }
    }
    let sum: f64 = shares.iter().sum();
    match sum > 0.0 {
        true => shares.map(|share| share / sum),
        false => std::array::from_fn(|kind| f64::from(u8::from(kind == Kind::OtherMpi as usize))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigns_kinds_to_functions() {
        for (name, kind) in [
            ("MPI_Send", Kind::Send),
            ("MPI_Irecv", Kind::Receive),
            ("MPI_Sendrecv", Kind::Receive),
            ("MPI_Send_init", Kind::Send),
            ("MPI_Startall", Kind::Send),
            ("MPI_Waitall", Kind::Wait),
            ("MPI_Iprobe", Kind::Wait),
            ("MPI_Iallreduce", Kind::Collective),
            ("MPI_Put", Kind::OneSided),
            ("MPI_File_write", Kind::Io),
            ("MPI_Comm_split", Kind::OtherMpi),
            ("cblas_dgemm", Kind::Compute),
        ] {
            assert_eq!(Kind::of_function(name), kind, "{name}");
        }
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
