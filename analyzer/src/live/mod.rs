//! What the ranks of a run that is going on do at this moment, and did in the last seconds.
//!
//! The windows of the ranks' files are read, never the whole trace, and nothing in the ranks takes part. Only ranks of
//! this host are followed: elsewhere, files of a shared file system are not up to date.

mod alarms;
mod asking;
mod closings;
pub mod counter;
mod first_death;
mod hosts;
mod iterations;
mod memory;
mod moment;
mod new_calls;
mod rank;
mod run;
mod schedstat;
mod seconds;
mod settling;
mod snapshots;
mod totals;
mod waiting;

pub use alarms::{Alarm, Alarms};
pub use first_death::Unsure;
pub use hosts::{Hosts, Others, Silent};
pub use iterations::{Iterations, IterationsNow, SlowIteration};
pub use memory::{Memory, MemoryGrowth};
pub use moment::{Moment, RankNow};
pub use rank::{LiveRank, RankState};
pub use run::LiveRun;
pub use seconds::{Place, SPAN_S};
pub use settling::{FirstDeath, first_death};
pub use snapshots::{NotTaken, Snapshots, Taken};
pub use waiting::{Waiting, WaitingAnalysis};
