//! Values of MPI's constants, which differ between libraries: a family's name as the file header
//! gives it comes in, its constants go out.

/// Constants that stand in a call's arguments in place of a rank or tag.
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
}

impl MpiConstants {
    /// Those of a family: `openmpi`, `mpich` (Intel MPI, too) or `abi`. `None` for a library that
    /// the recorder did not know: it recorded no attributes then.
    pub fn of_family(family: &str) -> Option<Self> {
        let (any_source, any_tag, proc_null, root) = match family {
            "openmpi" => (-1, -1, -2, -4),
            "mpich" => (-2, -1, -1, -3),
            "abi" => (-1, -2, -3, -4),
            _ => return None,
        };
        Some(Self { any_source, any_tag, proc_null, root })
    }
}
