//! Values of MPI's constants, which differ between libraries.

/// Constants that may be passed to a call instead of a rank or tag, and the types of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiConstants {
    /// MPI_ANY_SOURCE.
    pub any_source: i32,
    /// MPI_ANY_TAG.
    pub any_tag: i32,
    /// MPI_PROC_NULL.
    pub proc_null: i32,
    /// MPI_ROOT.
    pub root: i32,
    /// MPI_LOCK_EXCLUSIVE.
    pub lock_exclusive: u32,
    /// MPI_LOCK_SHARED.
    pub lock_shared: u32,
}

impl MpiConstants {
    /// The constants of a family as named in the file header: `openmpi`, `mpich` (also Intel MPI)
    /// or `abi`. `None` for a library that the recorder did not know, for which it recorded no
    /// arguments.
    pub fn of_family(family: &str) -> Option<Self> {
        let ((any_source, any_tag, proc_null, root), (lock_exclusive, lock_shared)) = match family {
            "openmpi" => ((-1, -1, -2, -4), (1, 2)),
            "mpich" => ((-2, -1, -1, -3), (234, 235)),
            "abi" => ((-1, -2, -3, -4), (301, 302)),
            _ => return None,
        };
        Some(Self { any_source, any_tag, proc_null, root, lock_exclusive, lock_shared })
    }
}
