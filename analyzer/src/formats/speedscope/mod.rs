//! Speedscope's JSON, <https://www.speedscope.app>.

pub mod write;

pub use write::write;
