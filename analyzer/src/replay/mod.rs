//! Replays a run on another machine: what every rank computed stays, and what waits for what; what messages and
//! collective operations cost is told by a model (CAUSES, section 6).
//!
//! | file | its idea |
//! |---|---|
//! | `graph` | what is replayed |
//! | `find` | which calls belong together |
//! | `build` | a run becomes a graph |
//! | `network` | what transfers cost |
//! | `branches` | what the end of a call depends on |
//! | `exchange` | collective operations in rounds |
//! | `forward` | times from all that |
//! | `backward` | the critical path, and what it says of parameters |
//! | `calibrate` | the network of a run, from what its calls took |
//! | `assembled` | a network from several sources |
//! | `mapping` | ranks on other hosts |
//! | `change` | what can be different |
//! | `moments` | when a thread's calls were, and when they are then |
//! | `questions` | what each change would do |

mod assembled;
mod backward;
mod branches;
mod build;
mod calibrate;
mod change;
mod exchange;
mod find;
mod forward;
mod graph;
mod mapping;
mod moments;
mod network;
mod questions;

pub use assembled::{Assembled, Origin};
pub use backward::{PARAMETERS, Path, critical_path};
pub use build::NotReplayable;
pub use calibrate::{Calibration, Samples, calibrate};
pub use change::Change;
pub use forward::{Conditions, Replayed, replay};
pub use graph::{Graph, GraphLine, Op};
pub use mapping::{Layout, Mapping};
pub use moments::Moment;
pub use network::{Hop, Network, Placement};
pub use questions::{Answer, MOST_ERROR, WhatIf};

use rayon::prelude::*;

use crate::analysis::Analysis;

/// Why T₀ is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoIdeal {
    /// Nobody asked.
    NotAsked,
    /// The run has so many calls that its replay is asked for by itself.
    TooManyCalls(u64),
    /// It cannot be replayed.
    NotReplayable(NotReplayable),
    /// Its replay is off by so much, of one.
    Off(f64),
}

/// Runs of more calls are replayed for `gammachi whatif` only.
const MOST_CALLS: u64 = 5_000_000;

/// Runs of more calls are not asked beside a report.
const MOST_CALLS_ASIDE: u64 = 1_000_000;

fn calls(run: &crate::trace::Run) -> u64 {
    let threads = run.ranks.iter().flat_map(|rank| &rank.threads);
    threads.map(|thread| thread.calls).sum()
}

/// The standard questions of a run, where it is not too large to be asked beside a report, and can be replayed.
pub fn asked_aside<'a>(analysis: &Analysis<'a>) -> Option<(WhatIf<'a>, Vec<Answer>)> {
    if calls(analysis.run) > MOST_CALLS_ASIDE {
        return None;
    }
    let what_if = WhatIf::new(Graph::new(analysis).ok()?);
    if !what_if.is_right() {
        return None;
    }
    let answers = what_if.standard().par_iter().map(|changes| what_if.ask(changes)).collect();
    Some((what_if, answers))
}

/// T₀/T of the efficiency tree: the time of a run on an ideal network over its own.
///
/// # Errors
/// Why it is not known.
pub fn ideal_time(analysis: &Analysis) -> Result<f64, NoIdeal> {
    let calls = calls(analysis.run);
    if calls > MOST_CALLS {
        return Err(NoIdeal::TooManyCalls(calls));
    }
    let what_if = WhatIf::new(Graph::new(analysis).map_err(NoIdeal::NotReplayable)?);
    match what_if.is_right() {
        true => Ok(what_if.ideal()),
        false => Err(NoIdeal::Off(what_if.calibration.error)),
    }
}

#[cfg(test)]
mod tests;
