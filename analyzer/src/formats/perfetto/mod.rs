//! Traces for <https://ui.perfetto.dev>.

mod encoded;
#[cfg(test)]
mod lane_tests;
mod lanes;
#[cfg(test)]
mod sample_tests;
mod samples;
mod tracks;
pub mod write;

pub use write::write;
