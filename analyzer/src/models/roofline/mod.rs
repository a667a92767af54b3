//! The roofline with communication (Yasuda et al.): a point for the whole job, each host and each
//! region, with its roofs and a verdict on what bounds it.
//!
//! The attainable operations per second of a host are min(F, B·I) where everything overlaps, and
//! 1/(1/F + 1/(B·I)) where nothing does. I is operations over bytes sent and received, and B counts
//! both directions, as I does. (Yasuda et al. print a division in place of the product B·I.)

pub mod findings;
pub mod point;
pub mod roofs;
pub mod sweep;
pub mod systems;
mod verdict;

pub use findings::{Findings, WhatIf, WhatIfError};
pub use point::{Point, Scope};
pub use roofs::{Bandwidths, Roofs};
pub use verdict::{Bottleneck, Verdict};

/// min(F, B·I): operations per second where communication and computation overlap fully.
pub fn with_overlap(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    flops_per_s.min(bytes_per_s * intensity)
}

/// 1/(1/F + 1/(B·I)): operations per second where they never overlap.
pub fn without_overlap(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    1.0 / (1.0 / flops_per_s + 1.0 / (bytes_per_s * intensity))
}

/// I* = F/B: the intensity at which the two roofs meet.
pub fn ridge(flops_per_s: f64, bytes_per_s: f64) -> f64 {
    flops_per_s / bytes_per_s
}

#[cfg(test)]
mod tests;
