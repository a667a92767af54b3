//! What computation is made of: the time in functions of the program, from samples of its code.
//!
//! A sample stands for 1/HZ seconds of its thread's CPU time outside MPI and the recorder. Of n samples k fall into a
//! function that takes the share p of the time with the probability of a binomial distribution, so k/HZ seconds have an
//! error of √(n·p·(1−p))/HZ.
//!
//! | file | content |
//! |---|---|
//! | `functions` | the functions on stacks |
//! | `times` | seconds of each function, on each rank and thread and on all |
//! | `sampled_paths` | the samples by call path and time |

mod functions;
mod sampled_paths;
mod times;

pub use functions::{Function, PathPlaces, RankStacks, StackPlaces};
pub use sampled_paths::{BinnedPaths, PathFrame, PathLimits, PathNode, SampledPaths};
pub(super) use times::notes;
pub use times::{Code, CodeMetrics, CodeRow, LineRow, RankCode};

#[cfg(test)]
mod kept_names_tests;
#[cfg(test)]
mod tests;
