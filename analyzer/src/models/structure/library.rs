//! MPI libraries whose choice of algorithms is known.

/// Libraries whose rules are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// MPICH 4 and what is made from it.
    Mpich,
    /// Open MPI 4.1: earlier ones have other sizes, and later ones another component for several hosts.
    OpenMpi,
}

impl Library {
    pub(super) const ALL: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
        }
    }

    /// By what a library says of itself, as in `MPI_Get_library_version`. Those of vendors have rules of their own.
    pub fn named(name: &str) -> Option<Self> {
        let vendors = ["CRAY", "Cray", "Intel", "MVAPICH", "IBM", "Fujitsu"];
        match name {
            name if vendors.iter().any(|vendor| name.contains(vendor)) => None,
            name if name.contains("Open MPI v4.1") => Some(Self::OpenMpi),
            name if name.contains("MPICH") => Some(Self::Mpich),
            _ => None,
        }
    }
}
