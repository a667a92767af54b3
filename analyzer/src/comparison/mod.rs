//! Compares two sets of runs. Each run is reduced to a small document ([`RunRecord`]); a
//! [`Comparison`] shows what differs between the sets.
//!
//! | file | task |
//! |---|---|
//! | `record` | the document that a run is reduced to |
//! | `reduce` | reduces a run to its record |
//! | `partners` | who exchanges messages with whom, as a digest |
//! | `place` | places in the program |
//! | `alignment` | matches call sites across builds |
//! | `joined` | joins places that one side divides differently |
//! | `public_arguments` | what a baseline keeps of a command line |
//! | `subject` | which runs may be compared |
//! | `configurations` | which runs belong together where there are several configurations |
//! | `counts` | compares what does not vary |
//! | `parts` | differences of time that add up |
//! | `teams_and_files` | what a record keeps of parallel regions and calls on files |
//! | `sampled` | what a record keeps of the samples of the program's code |
//! | `beside` | parallel regions and calls on files |
//! | `code` | differences of functions, from samples |
//! | `statistics` | intervals, and how many runs they require |
//! | `quantities` | times that are tested for differences |
//! | `doubts` | what the diagnoses of the runs take from it |
//! | `basis` | what a statement on the time rests on |
//! | `cause` | the cause of a difference: where in the code, on which ranks |
//! | `guard` | whether a run is slower than a baseline allows |
//! | `baseline` | records in a folder |
//! | `history` | finds changes in a series of runs |
//!
//! Only `reduce` opens traces. Everything else works on records, so a baseline of a few kilobytes
//! per run serves as well as the traces.

mod alignment;
pub mod baseline;
pub mod basis;
pub mod beside;
pub mod cause;
pub mod code;
mod compared;
pub mod configurations;
pub mod counts;
pub mod doubts;
mod explained;
pub mod guard;
pub mod history;
mod joined;
pub mod partners;
pub mod parts;
pub mod place;
pub mod public_arguments;
pub mod quantities;
pub mod record;
pub mod reduce;
pub mod sampled;
pub mod statistics;
pub mod subject;
pub mod teams_and_files;

#[cfg(test)]
mod basis_tests;
#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod synthetic_runs;
#[cfg(test)]
mod tests;

use crate::diagnosis::{Figures, Finding};

use basis::Basis;
use cause::{Cause, CauseKind};
use code::{CodeComparison, FunctionDifference};
pub use compared::Comparison;
use counts::{Change, CountKind};
use parts::Differences;
pub use record::RunRecord;
use statistics::Estimate;
pub use subject::{Mixed, Relation};

impl Comparison {
    /// Compares two sets of runs; neither is empty.
    pub fn new(before: &[RunRecord], after: &[RunRecord], relation: Relation) -> Self {
        let (mut own_before, mut own_after) = (before.to_vec(), after.to_vec());
        alignment::align(own_after.iter_mut().chain(&mut own_before));
        let (changes, varying) = counts::changes(&own_before, &own_after);
        joined::join(&mut own_before, &mut own_after);
        let (before, after) = (&own_before[..], &own_after[..]);
        let elapsed = quantities::elapsed(before, after);
        let iteration = quantities::iteration(before, after);
        let same_ranks = relation.same_ranks;
        let tested = match same_ranks {
            true => quantities::regions(before, after),
            false => Vec::new(),
        };
        let differences = Differences::new(before, after);
        let drift = explained::drift(&differences, &changes).filter(|_| same_ranks);
        let mut this = Self {
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
            basis: Basis::Scatter,
            cause: None,
            code: CodeComparison::new(before, after, same_ranks),
            beside: if same_ranks { beside::differences(before, after) } else { Vec::new() },
            drift,
            before: own_before,
            after: own_after,
        };
        if same_ranks {
            this.basis = Basis::find(this.sides(), this.decisive(), &this.changes);
        }
        if matches!(this.basis, Basis::LackOfCores { .. }) {
            this.withdraw_statements();
        }
        this.cause = Cause::find(&this);
        this
    }

    /// Takes back what assumes that nothing but the program made times differ.
    fn withdraw_statements(&mut self) {
        let tested = self.tested.iter_mut().map(|tested| {
            tested.is_significant = false;
            &mut tested.estimate
        });
        let phases = self.phases.iter_mut().map(|phase| &mut phase.estimate);
        let of_iteration = self.of_iteration.iter_mut().map(|(_, estimate)| estimate);
        let all = tested.chain(phases).chain(of_iteration).chain(&mut self.iteration);
        self.beside.iter_mut().for_each(|of| of.is_significant = false);
        self.code.withdraw_assumed();
        for estimate in all.chain([&mut self.elapsed]).filter(|estimate| estimate.is_assumed) {
            *estimate = estimate.of_unknown_scatter();
        }
    }

    /// Whether the time that decides differs with certainty.
    pub fn is_certain(&self) -> bool {
        match self.basis {
            Basis::Scatter => self.decisive().is_certain(),
            Basis::Counts => true,
            Basis::LackOfCores { .. } => false,
        }
    }

    /// The finding of one of the runs that makes some figures invalid, if one does.
    pub fn invalidated_by(&self, figures: Figures) -> Option<&Finding> {
        doubts::doubt(self.before.iter().chain(&self.after), figures)
    }

    /// The runs before and after.
    pub fn sides(&self) -> [&[RunRecord]; 2] {
        [&self.before, &self.after]
    }

    /// The time that decides whether the program became slower: that of an iteration if most of
    /// both runs are iterations, else elapsed time.
    pub fn decisive(&self) -> &Estimate {
        self.iteration.as_ref().filter(|_| self.is_mostly_iterations()).unwrap_or(&self.elapsed)
    }

    /// Whether iterations make up most of both runs, and both have equally many.
    pub fn is_mostly_iterations(&self) -> bool {
        let mut all = self.before.iter().chain(&self.after);
        self.iteration.is_some()
            && self.more_iterations().is_none()
            && all.all(|record| record.share_of_iterations() >= 0.8)
    }

    /// The function that explains the difference, if samples tell and the machine does not.
    pub fn explaining_function(&self) -> Option<&FunctionDifference> {
        let of_machine = |cause: &Cause| cause.kind == CauseKind::Machine;
        match self.cause.as_ref().is_some_and(of_machine) {
            true => None,
            false => self.code.explaining(self.elapsed.difference()),
        }
    }

    /// The number of iterations before and after, if it changed.
    pub fn more_iterations(&self) -> Option<&Change> {
        self.changes.iter().find(|change| change.what == CountKind::Iterations)
    }
}
