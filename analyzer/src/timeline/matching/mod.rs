//! Matches the sends of a run with its receives, and combines collective calls into instances.
//! Needs a run recorded at level 1 or 2; passes messages, collective instances and what could not
//! be matched to a [`MatchSink`], one by one.
//!
//! MPI's rule is that messages between two processes on one communicator do not overtake each
//! other. After completion a receive has a source and a tag from its status, even if it was posted
//! with wildcards. So the n-th send of (communicator, source, destination, tag) meets the n-th
//! receive of these, in the order in which receives were posted. The order is uncertain only while
//! an earlier wildcard receive is not complete. A matched probe counts as the posting of its
//! receive. The k-th collective calls of all members of a communicator form one instance.
//! Persistent operations are distinguished by the order of their initialisation, and the starts of
//! each are counted separately; partitioned operations likewise.
//!
//! | file | content |
//! |---|---|
//! | `operations` | what each function does |
//! | `call` | what is stored of a call in flight |
//! | `requests` | the operation behind each request handle |
//! | `routes` | cache of the channels that arguments name |
//! | `rank_state` | turns one rank's events into sends, receives and collective calls |
//! | `access` | accesses to other ranks' memory, and their epochs |
//! | `probed` | probes, and messages received by handle |
//! | `completion` | effects of waits, tests, cancels and frees |
//! | `channel_key`, `in_flight`, `channel`, `channels` | MPI's rule on the order of messages |
//! | `pairs` | buffer of matched pairs |
//! | `fate`, `settlement` | completions and cancellations of sends |
//! | `collectives` | collective instances |
//! | `unfinished`, `active` | operations that were not complete at the end |
//! | `findings`, `emitter` | what the sink receives |
//! | `clocks` | conversion to global time |
//! | `state`, `start` | what is shared by all ranks while matching |
//! | `share`, `shares` | matching with several threads |
//! | `checkpoints` | matching again from any moment on |
//!
//! The ranks' events are read once, interleaved by the end of each call on the global timeline.
//! Errors of the clocks affect how much is in flight, but not the result, with one exception: a
//! cancelled send that a wrong clock shows too late.
//!
//! # Memory
//! Bounded by what is in flight, not by the number of events: sends not yet received, receives not
//! yet complete, active requests, and collective instances that some member has not reached. Each
//! takes some 100 bytes, an instance 120 per member. In addition there are the table of
//! communicators and one cursor per thread. What can never be matched, because the partner has no
//! file or no more events, is not kept.

mod access;
mod active;
mod call;
mod channel;
mod channel_key;
mod channels;
pub mod checkpoints;
mod clocks;
mod collectives;
mod completion;
mod emitter;
mod fate;
mod findings;
mod in_flight;
mod matcher;
mod operations;
mod pairs;
mod probed;
mod rank_state;
pub(crate) mod requests;
mod routes;
mod settlement;
mod share;
mod shares;
mod start;
mod state;
mod unfinished;

use crate::trace::Run;

use super::communicators::CommunicatorTable;
use super::global::GlobalTimeline;

pub use call::Call;
pub use findings::{
    Access, ActiveOperation, ActiveWork, CollectiveInstance, CollectiveMember, Epoch, MatchFinding,
    MatchInterest, MatchSink, MatchingSummary, Message, MessageEnd, Polls, ProbedMessage, Reason,
    Side, Sides, Unmatched,
};
pub use matcher::Matcher;
pub use shares::{ProcessShare, match_in_shares};
pub use start::is_possible;

/// Matches a whole run.
///
/// Messages arrive in the order in which their matches become certain. That is roughly the order of
/// completion, and always the same for the same files.
pub fn match_run(
    run: &Run,
    timeline: &GlobalTimeline,
    communicators: &CommunicatorTable,
    sink: &mut dyn MatchSink,
) -> MatchingSummary {
    let mut matcher = Matcher::wanting(run, timeline, communicators, sink.wants());
    while matcher.step(sink) {}
    matcher.finish(sink)
}

#[cfg(test)]
mod tests;
