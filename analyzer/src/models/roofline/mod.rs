//! The roofline with communication (SCIENCE E): what a run worked and exchanged, and what the machine
//! can do, come in; for the whole job, each host and each region a point under its roofs, with a
//! verdict, go out.
//!
//! Attainable operations a second of a host are min(F, B·I), I = operations over bytes sent and
//! received (a product; the paper prints a division), where everything overlaps, and
//! 1/(1/F + 1/(B·I)) where nothing does. B counts both directions, as I does.

pub mod findings;
pub mod point;
pub mod roofs;
pub mod sweep;
pub mod systems;
mod verdict;

pub use findings::{Findings, WhatIf, WhatIfError};
pub use point::{Point, Scope};
pub use roofs::Roofs;
pub use verdict::{Bottleneck, Verdict};

/// min(F, B·I): operations a second where communication and computation overlap fully.
pub fn overlapped(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    flops_per_s.min(bytes_per_s * intensity)
}

/// 1/(1/F + 1/(B·I)): operations a second where they never overlap.
pub fn one_after_the_other(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    1.0 / (1.0 / flops_per_s + 1.0 / (bytes_per_s * intensity))
}

/// I* = F/B, where the two roofs meet.
pub fn ridge(flops_per_s: f64, bytes_per_s: f64) -> f64 {
    flops_per_s / bytes_per_s
}

#[cfg(test)]
mod tests;
