//! Comma-separated tables.

pub mod write;

pub use write::write;
