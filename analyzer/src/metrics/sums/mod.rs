//! Sums up every rank's ticks by activity and its calls by function, for several selections at
//! once.
//!
//! | file | what it does |
//! |---|---|
//! | `accumulator` | accumulates sums |
//! | `thread` | routes a thread's spans into the sums of all selections |

mod accumulator;
mod pass;
mod thread;
mod together;

pub(super) use pass::RankPass;
pub(super) use thread::Sums;
