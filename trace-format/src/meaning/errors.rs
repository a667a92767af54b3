//! MPI's error classes, whose numbers differ between libraries.
//!
//! An event holds the class as the library numbers it; a file's `mpi_family` says which numbering
//! that is. Sources: `mpi.h` of Open MPI 4.1 and MPICH 4.0; for the standard ABI, MPI 5.0, section
//! 20.3.

/// MPI_SUCCESS.
pub const SUCCESS: u32 = 0;

/// Classes that recording and analysis treat specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorClasses {
    /// MPI_ERR_TRUNCATE: the message was received, and longer than its buffer.
    pub truncate: u32,
    /// MPI_ERR_OTHER: the operation began and failed.
    pub other: u32,
    /// MPI_ERR_IN_STATUS: each status has an error of its own.
    pub in_status: u32,
    /// MPI_ERR_PENDING: this request neither failed nor completed.
    pub pending: u32,
}

impl ErrorClasses {
    /// Numbers in Open MPI.
    pub const OPEN_MPI: Self = Self { truncate: 15, other: 16, in_status: 18, pending: 19 };
    /// Numbers in MPICH and its derivatives.
    pub const MPICH: Self = Self { truncate: 14, other: 15, in_status: 17, pending: 18 };
    /// Numbers in the standard ABI.
    pub const ABI: Self = Self { truncate: 15, other: 16, in_status: 19, pending: 18 };

    /// Numbers of a family as named in a file's header. `None` if they are unknown.
    pub fn of_family(family: &str) -> Option<Self> {
        match family {
            "openmpi" => Some(Self::OPEN_MPI),
            "mpich" => Some(Self::MPICH),
            "abi" => Some(Self::ABI),
            _ => None,
        }
    }

    /// Whether an operation that returned this class took place nevertheless: its message was
    /// received (and truncated), or it was begun together with the other ranks.
    pub fn took_place(self, class: u32, collective: bool) -> bool {
        class == self.truncate || collective && class == self.other
    }
}

/// Names of the classes from 1 on, without `MPI_ERR_`.
const OPEN_MPI: &str = "\
    BUFFER COUNT TYPE TAG COMM RANK REQUEST ROOT GROUP OP TOPOLOGY DIMS ARG UNKNOWN TRUNCATE \
    OTHER INTERN IN_STATUS PENDING ACCESS AMODE ASSERT BAD_FILE BASE CONVERSION DISP DUP_DATAREP \
    FILE_EXISTS FILE_IN_USE FILE INFO_KEY INFO_NOKEY INFO_VALUE INFO IO KEYVAL LOCKTYPE NAME \
    NO_MEM NOT_SAME NO_SPACE NO_SUCH_FILE PORT QUOTA READ_ONLY RMA_CONFLICT RMA_SYNC SERVICE \
    SIZE SPAWN UNSUPPORTED_DATAREP UNSUPPORTED_OPERATION WIN";

/// Like [`OPEN_MPI`].
const MPICH: &str = "\
    BUFFER COUNT TYPE TAG COMM RANK ROOT GROUP OP TOPOLOGY DIMS ARG UNKNOWN TRUNCATE OTHER \
    INTERN IN_STATUS PENDING REQUEST ACCESS AMODE BAD_FILE CONVERSION DUP_DATAREP FILE_EXISTS \
    FILE_IN_USE FILE INFO INFO_KEY INFO_VALUE INFO_NOKEY IO NAME NO_MEM NOT_SAME NO_SPACE \
    NO_SUCH_FILE PORT QUOTA READ_ONLY SERVICE SPAWN UNSUPPORTED_DATAREP UNSUPPORTED_OPERATION \
    WIN BASE LOCKTYPE KEYVAL RMA_CONFLICT RMA_SYNC SIZE DISP ASSERT";

/// Like [`OPEN_MPI`], for the numbers that have been fixed since MPI-1.
const ABI: &str = "\
    BUFFER COUNT TYPE TAG COMM RANK REQUEST ROOT GROUP OP TOPOLOGY DIMS ARG UNKNOWN TRUNCATE \
    OTHER INTERN PENDING IN_STATUS";

/// The name of an error class in a family, or its number if the name is unknown.
pub fn class_name(family: &str, class: u32) -> String {
    let names = match family {
        "openmpi" => OPEN_MPI,
        "mpich" => MPICH,
        "abi" => ABI,
        _ => "",
    };
    let index = (class as usize).checked_sub(1);
    match index.and_then(|index| names.split(' ').nth(index)).filter(|name| !name.is_empty()) {
        Some(name) => format!("MPI_ERR_{name}"),
        None => format!("error class {class}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_numbers() {
        for family in ["openmpi", "mpich", "abi"] {
            let classes = ErrorClasses::of_family(family).unwrap();
            for (class, name) in [
                (classes.truncate, "MPI_ERR_TRUNCATE"),
                (classes.other, "MPI_ERR_OTHER"),
                (classes.in_status, "MPI_ERR_IN_STATUS"),
                (classes.pending, "MPI_ERR_PENDING"),
            ] {
                assert_eq!(class_name(family, class), name, "{family}");
            }
        }
        assert_eq!(class_name("openmpi", 53), "MPI_ERR_WIN");
        assert_eq!(class_name("mpich", 53), "MPI_ERR_ASSERT");
        assert_eq!(class_name("mpich", 37), "MPI_ERR_NO_SUCH_FILE");
        assert_eq!(class_name("openmpi", 42), "MPI_ERR_NO_SUCH_FILE");
    }

    #[test]
    fn shows_number_of_unknown_class() {
        assert_eq!(class_name("unknown", 5), "error class 5");
        assert_eq!(class_name("mpich", 0), "error class 0");
        assert_eq!(class_name("openmpi", 99), "error class 99");
    }
}
