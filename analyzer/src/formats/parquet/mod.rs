//! Parquet tables.

pub mod write;

pub use write::write;
