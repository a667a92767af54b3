//! Harness of the whole-system tests: a small C program, a real MPI, the real `libgammachi.so`.
//!
//! | module | what it does |
//! |---|---|
//! | [`mpi`] | the MPIs: Debian's Open MPI and MPICH, PyPI's wheels; their compilers and launchers |
//! | [`mod@victim`] | builds `victims/*.c` once for each MPI, into the cargo target directory |
//! | [`mod@kernels`] | builds the kernels and `gammachi-mpi` for each MPI, and the command |
//! | [`conformity`] | compares every recorded call with what a program is known to do |
//! | [`library`] | finds or builds `libgammachi.so` |
//! | [`job`] | runs a victim, bare or recorded, with a deadline; captures output and exit code |
//! | [`delays`] | records runs whose delays are known, until the machine did not disturb one |
//! | [`languages`] | the same small program in every language |
//! | [`directories`] | where tests build and record |
//! | [`mod@skip`] | skips a test that cannot run here, if `tests/may-skip` permits it |
//! | [`exit_codes`] | compares exit codes that vary between runs |
//! | [`trace`] | opens what was recorded: names and times of calls by rank and thread |
//!
//! A test runs a program and compares the trace with what the program does, or its output with the
//! bare program's:
//!
//! ```ignore
//! under_both! {
//!     fn records_all_calls(mpi) {
//!         let recorded = Job::new(mpi, &victim(mpi, "many_calls")).argument("10").record();
//!         recorded.expect_code(0);
//!         assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 10);
//!     }
//! }
//! ```
//!
//! Nothing is skipped silently: a missing MPI fails its tests and names the Debian package, and a
//! test can be skipped only if `tests/may-skip` names it ([`mod@skip`]). No test measures time. A
//! job that does not end is killed after [`job::DEADLINE`], and its output is shown.

pub mod conformity;
pub mod delays;
pub mod directories;
pub mod exit_codes;
pub mod job;
pub mod kernels;
pub mod languages;
pub mod library;
pub mod mpi;
pub mod skip;
pub mod trace;
pub mod victim;

pub use job::{Job, Recorded, Recording};
pub use kernels::{command, kernels, parallel, synthetic_run};
pub use mpi::Mpi;
pub use skip::skip;
pub use victim::victim;

/// Makes two tests of each function, one for each MPI: `name::open_mpi` and `name::mpich`.
///
/// `fn name(mpi) { … }` is the body; attributes (`#[ignore = "…"]`) apply to both tests.
#[macro_export]
macro_rules! under_both {
    ($($functions:tt)*) => {
        $crate::under_each! { [cfg(all())] $($functions)* }
    };
}

/// As [`under_both`], but `name::open_mpi` runs with `scripts/test --all` only: for tests of what is made of a
/// recording, which the other tests under Open MPI show to be right.
#[macro_export]
macro_rules! under_mpich {
    ($($functions:tt)*) => {
        $crate::under_each! { [ignore = "with scripts/test --all"] $($functions)* }
    };
}

/// The tests of [`under_both`], with an attribute for those under Open MPI.
#[macro_export]
macro_rules! under_each {
    ([$open_mpi:meta]
     $($(#[$attribute:meta])* fn $name:ident($mpi:ident) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports)] // Not every test needs all of its file's names.
            use super::*;

            fn check($mpi: $crate::Mpi) $body

            $(#[$attribute])*
            #[$open_mpi]
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

/// Expands names with repeat counts to a sequence: `[("MPI_Init", 1), ("MPI_Send", 3)]`.
pub fn sequence<'a>(runs: &[(&'a str, usize)]) -> Vec<&'a str> {
    runs.iter().flat_map(|(name, count)| std::iter::repeat_n(*name, *count)).collect()
}
