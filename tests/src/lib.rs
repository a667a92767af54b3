//! Harness of the whole-system tests: a small C program, a real MPI, the real `libgammachi.so`.
//!
//! | module | what it does |
//! |---|---|
//! | [`mpi`] | the MPIs: Debian's Open MPI and MPICH, PyPI's wheels; their compilers and launchers |
//! | [`mod@victim`] | builds `victims/*.c` once for each MPI, into the cargo target directory |
//! | [`mod@kernels`] | builds the kernels for each MPI, and the command |
//! | [`conformity`] | compares every recorded call with what a program is known to do |
//! | [`library`] | finds or builds `libgammachi.so` |
//! | [`job`] | runs a victim, bare or recorded, with a deadline; catches output and exit code |
//! | [`mod@skip`] | says that a test cannot be run here, where that is accepted |
//! | [`exit_codes`] | compares exit codes that a launcher draws by lot |
//! | [`trace`] | opens what was recorded: names and times of calls by rank and thread |
//!
//! A test says what a program does and compares it with the trace or with the bare program:
//!
//! ```ignore
//! under_both! {
//!     fn all_calls_are_there(mpi) {
//!         let recorded = Job::new(mpi, &victim(mpi, "many_calls")).argument("10").record();
//!         recorded.expect_code(0);
//!         assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 10);
//!     }
//! }
//! ```
//!
//! Nothing is skipped silently: a missing MPI fails its tests and names the Debian package, and what
//! `tests/may-skip` does not name may not be skipped ([`mod@skip`]). No test measures time; a job that does not end is killed after [`job::DEADLINE`] and shown.

pub mod conformity;
pub mod exit_codes;
pub mod job;
pub mod kernels;
pub mod languages;
pub mod late;
pub mod library;
pub mod mpi;
pub mod place;
pub mod skip;
pub mod trace;
pub mod victim;

pub use job::{Job, Recorded, Recording};
pub use kernels::{command, kernels};
pub use mpi::Mpi;
pub use skip::skip;
pub use victim::victim;

/// Writes each function as two tests, one for each MPI: `name::open_mpi` and `name::mpich`.
///
/// `fn name(mpi) { … }` is the body; attributes (`#[ignore = "…"]`) go to both tests.
#[macro_export]
macro_rules! under_both {
    ($($(#[$attribute:meta])* fn $name:ident($mpi:ident) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports)] // Not every test needs all of its file's names.
            use super::*;

            fn check($mpi: $crate::Mpi) $body

            $(#[$attribute])*
            #[test]
            fn open_mpi() {
                check($crate::Mpi::OpenMpi);
            }

            $(#[$attribute])*
            #[test]
            fn mpich() {
                check($crate::Mpi::Mpich);
            }
        }
    )*};
}

/// A sequence of names from runs of equal ones: `[("MPI_Init", 1), ("MPI_Send", 3)]`.
pub fn sequence<'a>(runs: &[(&'a str, usize)]) -> Vec<&'a str> {
    runs.iter().flat_map(|(name, count)| std::iter::repeat_n(*name, *count)).collect()
}
