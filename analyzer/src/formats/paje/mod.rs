//! Pajé's text, for ViTE and pajeng.

pub mod write;

pub use write::write;
