//! What is recorded of computation: interposed functions and performance counters.

pub mod compute;
pub mod counters;
