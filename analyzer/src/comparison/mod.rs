//! Stage 4, two runs: reduces each run to a small document ([`RunRecord`]) and says what differs between two sets of
//! them ([`Comparison`]).
//!
//! | file | its idea |
//! |---|---|
//! | `record` | what a run is reduced to |
//! | `reduce` | how |
//! | `partners` | who exchanges messages with whom, as a digest |
//! | `place` | places in the program, alike in two builds |
//! | `subject` | which runs may be compared |
//! | `counts` | what does not vary |
//! | `parts` | differences of time that add up |
//! | `statistics` | intervals, and how many runs they take |
//! | `quantities` | the times that are tested |
//! | `cause` | where in the code, on which ranks |
//! | `guard` | whether a run is slower than a baseline allows |
//! | `baseline` | records in a folder |
//! | `history` | where a series of runs changes |
//!
//! Nothing here opens a trace but `reduce`; everything else works on records, so that a baseline of some kilobytes a
//! run serves as well as the traces.

pub mod baseline;
pub mod cause;
pub mod counts;
pub mod guard;
pub mod history;
pub mod partners;
pub mod parts;
pub mod place;
pub mod quantities;
pub mod record;
pub mod reduce;
pub mod statistics;
pub mod subject;

#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;

use cause::Cause;
use counts::Change;
use parts::{Differences, FactorDifference};
use quantities::{PhaseTime, Tested};
use record::Kind;
use statistics::Estimate;

pub use record::RunRecord;
pub use subject::{Mixed, Relation};

/// Two sets of runs, each of one program with one set of parameters on one machine.
#[derive(Debug)]
pub struct Comparison<'r> {
    /// Runs before the change.
    pub before: &'r [RunRecord],
    /// Runs after it.
    pub after: &'r [RunRecord],
    /// What both have in common, and what not.
    pub relation: Relation,
    /// Elapsed time.
    pub elapsed: Estimate,
    /// Time of an iteration, where both have the same loop.
    pub iteration: Option<Estimate>,
    /// Computing and waiting of the mean rank in an iteration.
    pub of_iteration: Vec<(Kind, Estimate)>,
    /// Loops that all runs have.
    pub phases: Vec<PhaseTime>,
    /// Computing of the program's parts, with what is significant among them.
    pub tested: Vec<Tested>,
    /// Differences of means; empty where the rank counts differ.
    pub differences: Differences,
    /// The efficiency tree.
    pub tree: Vec<FactorDifference>,
    /// What does not vary from run to run, and differs.
    pub changes: Vec<Change>,
    /// How many counts are not compared because they vary among runs that should be alike.
    pub varying: usize,
    /// What made the difference.
    pub cause: Option<Cause>,
    /// Factor by which all computation changed alike, while counts stayed.
    pub drift: Option<f64>,
}

impl<'r> Comparison<'r> {
    /// Of two sets of runs; neither is empty.
    pub fn new(before: &'r [RunRecord], after: &'r [RunRecord], relation: Relation) -> Self {
        let (changes, varying) = counts::changes(before, after);
        let elapsed = quantities::elapsed(before, after);
        let iteration = quantities::iteration(before, after);
        let same_ranks = relation.same_ranks;
        let tested = match same_ranks {
            true => quantities::regions(before, after),
            false => Vec::new(),
        };
        let differences = Differences::new(before, after);
        let drift = cause::drift(&differences, &changes).filter(|_| same_ranks);
        let mut this = Self {
            before,
            after,
            relation,
            elapsed,
            iteration,
            of_iteration: quantities::of_iteration(before, after),
            phases: quantities::phases(before, after),
            tested,
            differences,
            tree: parts::tree(before, after),
            changes,
            varying,
            cause: None,
            drift,
        };
        this.cause = Cause::find(&this);
        this
    }

    /// The time that says whether the program became slower: of an iteration where most of both runs are
    /// iterations, else elapsed time.
    pub fn decisive(&self) -> &Estimate {
        self.iteration.as_ref().filter(|_| self.is_mostly_iterations()).unwrap_or(&self.elapsed)
    }

    /// Whether iterations are most of both runs.
    pub fn is_mostly_iterations(&self) -> bool {
        let mut all = self.before.iter().chain(self.after);
        self.iteration.is_some() && all.all(|record| record.share_of_iterations() >= 0.8)
    }
}
