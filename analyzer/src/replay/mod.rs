//! Replays a run on another machine: what every rank computed stays, and what waits for what; what messages and
//! collective operations cost is told by a model (CAUSES, section 6).
//!
//! | file | its idea |
//! |---|---|
//! | `graph` | what is replayed |
//! | `build` | a run becomes a graph |
//! | `network` | what transfers cost |
//! | `branches` | what the end of a call depends on |
//! | `exchange` | collective operations in rounds |
//! | `forward` | times from all that |
//! | `backward` | the critical path, and what it says of parameters |
//! | `calibrate` | the network of a run, from what its calls took |
//! | `questions` | what can be different, and what each change would do |

mod backward;
mod branches;
mod build;
mod calibrate;
mod exchange;
mod forward;
mod graph;
mod network;
mod questions;

pub use backward::{PARAMETERS, Path, critical_path};
pub use build::NotReplayable;
pub use calibrate::{Calibration, Samples, calibrate};
pub use forward::{Conditions, Replayed, replay};
pub use graph::{Graph, GraphLine, Op};
pub use network::{Hop, Network, Placement};
pub use questions::{Answer, Change, MOST_ERROR, WhatIf};

use crate::analysis::Analysis;

/// T₀/T of the efficiency tree: the time of a run on an ideal network over its own. `None` where it cannot be
/// replayed well enough.
pub fn ideal_time(analysis: &Analysis) -> Option<f64> {
    let what_if = WhatIf::new(Graph::new(analysis).ok()?);
    what_if.is_right().then(|| what_if.ideal())
}

#[cfg(test)]
mod tests;
