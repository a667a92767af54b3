//! The network models LogP (Culler et al.) and LogPQ (Touyama and Horiguchi): their parameters for
//! a measured [`Machine`](super::Machine) ([`Parameters`]), and predicted times of Cannon's product
//! ([`cannon`], beside measured ones in [`study`]) and of a recorded run's messages ([`messages`]).
//!
//! LogP has latency L*, overhead o* and gap g* of a message of m words, or of one word (L₀, o₀,
//! g₀). LogPQ sends m words as m messages of one word. It adds queues at sender, receiver and in
//! the network, and a fixed part n of the overhead.

pub mod cannon;
mod findings;
pub mod messages;
mod parameters;
pub mod study;

pub use findings::Findings;
pub use parameters::{Estimate, LogP, LogPq, ParameterNote, Parameters, SizeRow};

#[cfg(test)]
pub(crate) mod tests;
