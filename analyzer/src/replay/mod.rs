//! Replays a run on another machine. The computing of every rank and the dependencies between calls
//! stay the same; a model determines the cost of messages and collective operations
//! (docs/guide/predict.md).
//!
//! | file | task |
//! |---|---|
//! | `graph` | the run as a graph, which is replayed |
//! | `find` | finds which calls belong together |
//! | `build` | builds the graph of a run |
//! | `network` | the cost of transfers |
//! | `algorithm` | algorithms of collective operations, on given hosts |
//! | `dependencies` | what the end of a call depends on |
//! | `exchange` | collective operations in rounds |
//! | `forward` | computes the times of a replay |
//! | `backward` | the critical path, and the sensitivity to parameters |
//! | `calibrate` | determines the network of a run from the durations of its calls |
//! | `assembled` | a network assembled from several sources |
//! | `mapping` | placement of ranks on other hosts |
//! | `grouping` | a placement that keeps traffic inside hosts |
//! | `hiding` | transfers that computation did not hide |
//! | `change` | what can be changed in a replay |
//! | `part` | the replay of a part of the run |
//! | `moments` | times of a thread's calls in the run and in the replay |
//! | `questions` | the effect of changes |
//! | `uncertainty` | how far an answer may be off |
//! | `balance` | computation divided over all ranks |
//! | `beside`, `read_beside` | parallel regions with balanced threads, faster calls on files |
//! | `curves` | the run's time against one parameter |

mod algorithm;
mod assembled;
mod backward;
mod balance;
mod beside;
mod build;
mod calibrate;
mod change;
mod curves;
mod dependencies;
mod exchange;
mod find;
mod forward;
mod graph;
mod grouping;
mod hiding;
mod mapping;
mod moments;
mod movement;
mod network;
mod part;
mod questions;
mod read_beside;
mod uncertainty;
mod what_if;

use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::causes::Part;

pub use assembled::{Assembled, Origin};
pub use backward::{PARAMETERS, Path, critical_path};
pub use beside::Beside;
pub use build::{GraphSearch, NotReplayable};
pub use calibrate::{Calibration, MAX_ERROR, MAX_OFF_S, Samples, calibrate};
pub use change::Change;
pub use forward::{Conditions, Replayed, replay};
pub use graph::{Graph, GraphLine, Op};
pub use grouping::Grouping;
pub use hiding::NotHidden;
pub use mapping::{Layout, Mapping};
pub use moments::Moment;
pub use network::{Hop, Network, Placement};
pub use what_if::{Answer, NoIdeal, WhatIf};

/// Runs with more calls are replayed for `gammachi whatif` only.
const MAX_CALLS: u64 = 5_000_000;

/// Runs with more calls are not replayed along with a report.
const MAX_CALLS_ASIDE: u64 = 1_000_000;

/// Whether a run is small enough to be replayed along with a report.
pub fn is_replayed_aside(run: &crate::trace::Run) -> bool {
    run.calls() <= MAX_CALLS_ASIDE
}

/// Whether a run is small enough to be replayed along with a report.
///
/// # Errors
/// It is not.
pub fn replayed_aside(run: &crate::trace::Run) -> Result<(), NoIdeal> {
    if is_replayed_aside(run) { Ok(()) } else { Err(NoIdeal::NotAside(run.calls())) }
}

/// Answers the standard questions about a run; none if its replay is too far off.
///
/// # Errors
/// Why it cannot be replayed along with a report.
pub fn standard_answers<'a>(analysis: &Analysis<'a>) -> Result<(WhatIf<'a>, Vec<Answer>), NoIdeal> {
    replayed_aside(analysis.run)?;
    let what_if = WhatIf::new(Graph::new(analysis).map_err(NoIdeal::NotReplayable)?);
    let questions = if what_if.is_accurate() { what_if.standard() } else { Vec::new() };
    let answers = questions.par_iter().map(|changes| what_if.ask(changes)).collect();
    Ok((what_if, answers))
}

/// T₀/T of the efficiency tree: the time of a run, or of a part of it, on an ideal network divided by its own.
///
/// # Errors
/// Why it is unknown.
pub fn ideal_time_of(analysis: &Analysis, part: Option<&Part>) -> Result<f64, NoIdeal> {
    ideal_and_replay(analysis, part).0
}

/// The same, and the replay of the whole run if a report has it, too: the run is small enough.
pub fn ideal_and_replay<'a>(
    analysis: &Analysis<'a>,
    part: Option<&Part>,
) -> (Result<f64, NoIdeal>, Option<WhatIf<'a>>) {
    let calls = analysis.run.calls();
    if calls > MAX_CALLS {
        return (Err(NoIdeal::TooManyCalls(calls)), None);
    }
    if part.is_some_and(|part| !part.is_paired()) {
        return (Err(NoIdeal::UnequallyOften), None);
    }
    let what_if = match Graph::cut(analysis, part) {
        Ok(graph) => WhatIf::new(graph),
        Err(why) => return (Err(NoIdeal::NotReplayable(why)), None),
    };
    match part {
        Some(part) if what_if.is_exact() => (what_if.ideal_of(part).map_err(NoIdeal::Off), None),
        Some(_) => (what_if.ideal_if_exact(), None),
        None => {
            let ideal = what_if.ideal_if_exact();
            (ideal, is_replayed_aside(analysis.run).then_some(what_if))
        }
    }
}

#[cfg(test)]
mod tests;
