//! Predicts the time at other rank counts from what the program does: the critical path by label
//! (`labels`), counts and sizes continued by exact laws of p (`laws`), calls priced as messages and bytes
//! of the usual ways to carry them out and of what libraries choose (`calls`), and computation by its time on the path and its mean
//! over all ranks (`parts`). What has no law is continued by sums of few terms (`smooth`).
//!
//! Everything here is a pure function of the labels of some runs. The largest run is held back to
//! see whether the others predict it ([`Structure::held_back`]).

mod algorithms;
mod alternatives;
mod basis;
mod calls;
mod counts;
mod extremes;
mod first_use;
mod forecast;
mod labels;
mod laws;
mod library;
mod machine;
mod mpich;
mod open_mpi;
mod parts;
mod quantities;
mod regimes;
mod rules;
mod shape;
mod sizes;
mod smooth;
#[cfg(test)]
mod tests;
mod ways;
mod work;

pub use counts::{Checked, Counts, Place, Quantity};
pub use forecast::{Abstains, Forecast, HeldBack, Part, Structure};
pub use labels::{Group, Key, Kind, Label, Pattern, PlaceCounts, RunLabels, Spread};
pub use library::Library;
pub use machine::{MachineTimes, MessageTime, MessageTimes};
pub use regimes::{Change, Regime};
