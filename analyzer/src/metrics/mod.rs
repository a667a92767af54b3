//! Where the time went: derives [`Metrics`] from a [`Run`], its [`GlobalTimeline`] and a
//! [`Selection`].
//!
//! With τ_i the time that rank i spends in the selection, and τ the latest end less the earliest
//! start over the ranks:
//!
//! - computing (γ_i) depends on the mode, see [`ComputeMode`]; with several threads it is the time
//!   in which any of them does useful work;
//! - lost (χ_i) = in MPI + recorder + other code + start and end, summed from these parts, so that
//!   p·τ = Σγ_i + Σχ_i is a check; a rank with several threads is in MPI while none does useful work
//!   and any is in MPI, and in the recorder in the rest of the time that any is there;
//! - efficiency (ε_p) = Σγ_i/(p·τ) = load balance (mean γ / max γ) × communication efficiency
//!   (max γ / τ).
//!
//! Sums are kept in whole ticks of the rank's own counter and become seconds at the end. Memory
//! grows with the number of ranks (and of occurrences of a selected region), not with that of
//! events.

pub mod activity;
mod answer;
pub mod code;
pub mod exchanges;

mod calls;
mod combined;
mod competitor;
mod compute_mode;
mod counters;
mod cpu_time;
mod failed;
mod figures;
mod file_numbers;
mod file_use;
mod files;
mod late_partner;
mod marks;
mod memory;
mod memory_growth;
mod messages;
mod note;
mod openmp;
mod passes;
mod paths;
mod resolve;
mod selection;
mod selection_index;
mod sites;
mod sums;
mod system;
mod teams;
mod totals;
mod unfinished;

use crate::analysis::Analysis;
pub use crate::analysis::segments::ComputeMode;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

pub use answer::{Answer, Page, Question};
pub use calls::CallMetrics;
pub use competitor::{Competitor, CoreUse, cores_of};
pub use counters::{Count, CounterMetrics, NoCount, RankCount};
pub use cpu_time::{CpuTime, OwnTime};
pub use figures::{Efficiency, Metrics, PollMetrics, RankMetrics, RankState, ThreadMetrics};
pub(crate) use file_numbers::FileNumbers;
pub use file_use::{FileMetrics, FileUse, RankFiles, SlowestRank, Unseen};
pub use late_partner::{CollectiveRow, LatePartner, MessageRow, NoTables, OwnCost};
pub use memory::{Grown, Memory};
pub use messages::{CommunicatorMetrics, Matrix, MessageMetrics, OneSided, SizeClass, Traffic};
pub use note::{FailedCalls, ImpossibleWork, MessageNote, Note};
pub use paths::{Frame, PathRow};
pub(crate) use paths::{FrameKey, keys_of_paths};
pub use resolve::{EmptyWindow, SelectionError};
pub use selection::{Bound, Iteration, Selection, WindowError};
pub use sites::{SiteMetrics, SiteRow};
pub use system::{Oversubscription, Pinning};
pub(crate) use teams::NO_REGION;
pub use teams::{
    Hybrid, IdleThreads, MpiPart, OpenMpMetrics, OpenMpPart, ParallelRegion, RankTeams,
    SlowestThread,
};
pub use totals::{Bin, TotalsMetrics, TotalsRow};
pub use unfinished::{
    Arguments, Awaited, CallRecord, Cause, CauseKind, Deadlock, Need, OpenCollective, Partner,
    Ranks, StackFunction, ThreadPosition, ThreadStack, Unfinished, UnfinishedRank, WaitsFor,
};

impl Metrics {
    /// Derives the figures of a selection.
    ///
    /// # Errors
    /// The selection names something that the run does not have.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        Self::for_question(&Analysis::new(run, timeline), Question::about(selection))
    }

    /// The figures that a question is about, of an analysis that may be divided among processes:
    /// see [`Answer::new`]. Without matching, [`Metrics::messages`] is `None`.
    ///
    /// # Errors
    /// As [`Metrics::new`].
    pub fn for_question(analysis: &Analysis, question: Question) -> Result<Self, SelectionError> {
        Answer::new(analysis, &question).map(|answer| answer.metrics)
    }
}

#[cfg(test)]
mod counter_tests;
#[cfg(test)]
mod divided_tests;
#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod openmp_tests;
#[cfg(test)]
mod tests;
