//! A length of time in documents.

use serde::Serialize;

use crate::causes::Causes;

/// A length of time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Length {
    seconds: f64,
    pub ticks: i64,
}

impl Length {
    pub fn new(causes: &Causes, ticks: i64) -> Self {
        Self { seconds: causes.clock.seconds(ticks), ticks }
    }
}
