//! Predicts the time at other rank counts from what the program does: the critical path by label, counts and sizes
//! continued by exact laws of p, calls priced as messages and bytes, computation by its time on the path and its mean
//! over all ranks. What has no law is continued by sums of few terms.
//!
//! | file | content |
//! |---|---|
//! | `labels` | what a run did, by label |
//! | `spreads`, `first_use`, `sizes`, `alternatives` | labels that are joined or divided before anything is continued |
//! | `basis`, `laws` | exact laws of p |
//! | `smooth` | sums of few terms, weighed |
//! | `quantities` | a count, size or time at another rank count |
//! | `machine`, `work`, `shape` | times of messages; messages of a call; rounds of messages on a communicator |
//! | `ways`, `algorithms`, `rules`, `mpich`, `open_mpi`, `library` | how calls are carried out, usually and by library |
//! | `calls`, `extremes`, `part`, `parts` | a label's part of the time: calls, the longest stretch, all |
//! | `centre` | one rank that serves the others |
//! | `size_laws`, `problem_size` | laws of the problem size and p; runs at a problem size that was not measured |
//! | `regimes` | where a call begins to be carried out in another way |
//! | `forecast`, `held_back`, `abstains` | the sum of the parts, its interval, the largest run held back, or why none |
//! | `counts` | how often each place calls on all ranks |
//!
//! Everything here is a pure function of the labels of some runs.

mod abstains;
mod algorithms;
mod alternatives;
mod basis;
mod calls;
mod centre;
mod counts;
mod extremes;
mod first_use;
mod forecast;
mod held_back;
mod labels;
mod laws;
mod library;
mod machine;
mod mpich;
mod open_mpi;
mod part;
mod parts;
mod problem_size;
mod quantities;
mod regimes;
mod rules;
mod shape;
mod size_laws;
mod sizes;
mod smooth;
mod spreads;
#[cfg(test)]
mod tests;
mod ways;
mod work;

pub use abstains::{Abstains, LEAST_RUNS};
pub use counts::{Checked, Counts, Place, Quantity};
pub use forecast::{Forecast, Structure};
pub use held_back::HeldBack;
pub use labels::{FirstRank, Group, Key, Kind, Label, Pattern, PlaceCounts, RunLabels, Spread};
pub use library::Library;
pub use machine::{MachineTimes, MessageTime, MessageTimes};
pub use part::Part;
pub use regimes::{Change, Regime};
pub use size_laws::SizedRun;
