//! The roofline with communication (Yasuda et al.): a point for the whole job, each host and each
//! region, with its roofs and a verdict on what bounds it.
//!
//! The attainable operations per second of a host are min(F, B·I) where everything overlaps, and
//! 1/(1/F + 1/(B·I)) where nothing does. I is operations over bytes sent and received, and B counts
//! both directions, as I does. (Yasuda et al. print a division in place of the product B·I.)

mod attainable;
pub mod findings;
pub mod point;
pub mod roofs;
pub mod sweep;
pub mod systems;
mod verdict;

pub use attainable::{ridge, with_overlap, without_overlap};
pub use findings::{Findings, WhatIf, WhatIfError};
pub use point::{Point, Scope};
pub use roofs::{Bandwidths, Roofs};
pub use verdict::{Bottleneck, Verdict};

#[cfg(test)]
mod tests;
