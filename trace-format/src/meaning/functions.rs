//! Numbers of the functions that may occur in a trace.
//!
//! The functions of [`crate::procedures`] and [`crate::compute`] are numbered in order from
//! [`FIRST_FUNCTION`]. Their meaning is defined in [`crate::meaning`].

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::compute::{self, Group};
use crate::procedures;

/// Number of the first function named in a file's header.
pub const FIRST_FUNCTION: u16 = 16;
/// Greater than the number of any function.
pub const MAX_FUNCTIONS: u16 = crate::layout::FUNCTION_MASK;
/// Name under which work declared by the program is recorded: an event without length.
pub const DECLARED_WORK: &str = "gammachi_work";

/// Names of all functions in numbering order: MPI's procedures, then [`compute_names`].
pub fn names() -> Vec<String> {
    procedures::all().into_iter().map(|p| p.name).chain(compute_names()).collect()
}

/// Names of interposed compute functions and of declared work, in order of their numbers.
pub fn compute_names() -> Vec<String> {
    let table = compute::all().into_iter().map(|function| function.name);
    table.chain(compute::fftw()).chain([DECLARED_WORK.to_owned()]).collect()
}

/// Whether a compute function is one of the small ones (BLAS 1 and 2, except for trsv). Its
/// operations count, but for `--compute blas`, which covers the larger calls, it is the program's
/// own code.
pub fn is_light(name: &str) -> bool {
    static LIGHT: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let all = compute::all().into_iter();
        all.filter(|function| function.group == Group::Light)
            .map(|function| function.name)
            .collect()
    });
    LIGHT.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_below_the_flags() {
        let last = usize::from(FIRST_FUNCTION) + names().len();
        assert!(last <= usize::from(crate::layout::FUNCTION_MASK));
    }
}
