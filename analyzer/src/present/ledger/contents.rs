//! The predictions of a ledger.

use std::path::Path;

use crate::ledger::{Difference, Score};

/// Everything that the screen and the document show.
#[derive(Debug, Clone, Copy)]
pub struct LedgerContents<'a> {
    /// The ledger's file.
    pub path: &'a Path,
    /// Its predictions, with the measured times.
    pub score: &'a Score<'a>,
    /// Remarks on what could not be read.
    pub notes: &'a [String],
}

/// How a run differs from the one that was predicted, worded as the end of a sentence.
pub fn differences(of: &[Difference]) -> String {
    let words = of.iter().map(|difference| match difference {
        Difference::RankCount => "the rank count differs",
        Difference::Program => "the program has a different name",
        Difference::Build => "the program was rebuilt",
        Difference::Mpi => "the MPI library differs",
        Difference::Arguments => "the arguments differ",
        Difference::Params => "the parameters differ",
    });
    words.collect::<Vec<_>>().join(", ")
}
