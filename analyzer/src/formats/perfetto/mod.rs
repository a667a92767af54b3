//! Traces for <https://ui.perfetto.dev>.

pub mod write;

pub use write::write;
