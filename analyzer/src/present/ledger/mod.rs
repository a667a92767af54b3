//! The screen and the document of `gammachi ledger`, made from [`Score`].

mod document;
mod screen;

use std::path::Path;

use crate::ledger::{Difference, Score};

pub use document::json;
pub use screen::screen;

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The ledger's file.
    pub path: &'a Path,
    /// Its promises, with what was measured.
    pub score: &'a Score<'a>,
    /// What could not be read, in words.
    pub notes: &'a [String],
}

/// Where a run is not what was promised, as the end of a sentence.
pub fn differences(of: &[Difference]) -> String {
    let words = of.iter().map(|difference| match difference {
        Difference::RankCount => "the rank count differs",
        Difference::Program => "the program has another name",
        Difference::Build => "the program was built anew",
        Difference::Mpi => "the MPI library is another",
        Difference::Arguments => "the arguments differ",
        Difference::Params => "the parameters differ",
    });
    words.collect::<Vec<_>>().join(", ")
}
