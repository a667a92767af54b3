//! Predicts the time at other rank counts from what the program does: the critical path by label
//! (`labels`), counts and sizes continued by exact laws of p (`laws`), calls priced as messages and bytes
//! of the usual ways to carry them out (`price`), and computation by its time on the path and its mean
//! over all ranks (`parts`). What has no law is continued by sums of few terms (`smooth`).
//!
//! Everything here is a pure function of the labels of some runs. The largest run is held back to
//! see whether the others predict it ([`Structure::held_back`]).

mod algorithms;
mod alternatives;
mod basis;
mod calls;
mod counts;
mod first_use;
mod forecast;
mod labels;
mod laws;
mod library;
mod parts;
mod price;
mod quantities;
mod regimes;
mod sizes;
mod smooth;
#[cfg(test)]
mod tests;

pub use counts::{Checked, Counts, Place, Quantity};
pub use forecast::{Abstains, Forecast, HeldBack, Part, Structure};
pub use labels::{Group, Key, Kind, Label, Pattern, PlaceCounts, RunLabels, Spread};
pub use library::Library;
pub use price::{MachineTimes, MessageTime, MessageTimes};
pub use regimes::{Change, Regime};
