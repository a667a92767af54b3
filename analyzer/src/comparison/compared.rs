//! Two sets of runs, and how they differ.

use super::basis::Basis;
use super::beside::BesideDifference;
use super::cause::Cause;
use super::code::CodeComparison;
use super::counts::{Change, CountKind};
use super::parts::{Differences, FactorDifference};
use super::quantities::{PhaseTime, Tested};
use super::record::{Kind, RunRecord};
use super::statistics::Estimate;
use super::subject::Relation;

/// Two sets of runs, each of one program with one set of parameters on one machine.
#[derive(Debug)]
pub struct Comparison {
    /// Runs before the change. Call sites that both sides have are those of the runs after.
    pub before: Vec<RunRecord>,
    pub after: Vec<RunRecord>,
    /// What both have in common, and how they differ.
    pub relation: Relation,
    /// Elapsed time.
    pub elapsed: Estimate,
    /// Time of an iteration, if both have the same loop.
    pub iteration: Option<Estimate>,
    /// Computing and waiting of the mean rank per iteration.
    pub of_iteration: Vec<(Kind, Estimate)>,
    /// Loops that all runs have.
    pub phases: Vec<PhaseTime>,
    /// Computing in each part of the program, with the significant differences marked.
    pub tested: Vec<Tested>,
    /// Differences of means; empty if the rank counts differ.
    pub differences: Differences,
    /// The efficiency tree.
    pub tree: Vec<FactorDifference>,
    /// Counts that do not vary between runs of a side, and differ between the sides.
    pub changes: Vec<Change>,
    /// Counts that are not compared because they vary among runs that should be alike.
    pub varying: Vec<CountKind>,
    /// What decides whether the time differs.
    pub basis: Basis,
    /// Own time of functions, if the runs were sampled.
    pub code: CodeComparison,
    /// Times of parallel regions and calls on files, as far as both sides recorded them.
    pub beside: Vec<BesideDifference>,
    /// The cause of the difference.
    pub cause: Option<Cause>,
    /// Factor by which all computation changed alike while counts did not change.
    pub drift: Option<f64>,
}
