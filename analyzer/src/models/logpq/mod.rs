//! The network models LogP and LogPQ (SCIENCE D): a [`Machine`](super::Machine) comes in; parameters
//! ([`Parameters`]), predicted times of Cannon's product ([`cannon`]) beside measured ones
//! ([`study`]), and of a recorded run's messages ([`messages`]) go out.
//!
//! LogP: latency L*, overhead o*, gap g* of a message of m words, or of one word (L₀, o₀, g₀).
//! LogPQ sends m words as m messages of one word, has queues at sender, receiver and in the network,
//! and a fixed part n of the overhead.

pub mod cannon;
mod findings;
pub mod messages;
mod parameters;
pub mod study;

pub use findings::Findings;
pub use parameters::{Estimate, LogP, LogPq, ParameterNote, Parameters, SizeRow};

#[cfg(test)]
mod tests;
