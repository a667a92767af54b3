//! Folded stacks: a line per call stack, for flame graphs.

pub mod write;

pub use write::write;
