//! A length of time in documents.

use serde::Serialize;

use crate::causes::Causes;

/// A length of time.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Length {
    /// How long.
    seconds: f64,
    /// The same in ticks of the reference counter.
    pub ticks: i64,
}

impl Length {
    pub fn new(causes: &Causes, ticks: i64) -> Self {
        Self { seconds: causes.clock.seconds(ticks), ticks }
    }
}
