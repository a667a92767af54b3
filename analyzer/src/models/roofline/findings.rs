//! All that `gammachi roofline` has to say, in one value; and what a change would give.

use std::collections::BTreeMap;

use crate::metrics::exchanges::Work;

use super::sweep::Sweep;
use super::systems::System;
use super::{Point, Roofs, Verdict, one_after_the_other, overlapped};

/// A change to look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WhatIf {
    /// Bytes of communication divided by this: the intensity rises.
    Communication(f64),
    /// Bandwidth times this.
    Bandwidth(f64),
    /// Ceiling of operations times this.
    Peak(f64),
}

/// A text that is not a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change is written comm/4, bandwidth*2 or peak*2")]
pub struct WhatIfError;

impl WhatIf {
    /// Reads `comm/4`, `bandwidth*2`, `peak*2`.
    ///
    /// # Errors
    /// The text is none of these, or its factor is not above 0.
    pub fn parse(text: &str) -> Result<Self, WhatIfError> {
        let split = text.split_once(['/', '*']);
        let factor = split.and_then(|(_, factor)| factor.trim().parse::<f64>().ok());
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        match (split.map(|(what, _)| what.trim()), text.contains('/'), factor) {
            (Some("comm"), true, Some(k)) => Ok(Self::Communication(k)),
            (Some("comm"), false, Some(k)) => Ok(Self::Communication(1.0 / k)),
            (Some("bandwidth"), true, Some(k)) => Ok(Self::Bandwidth(1.0 / k)),
            (Some("bandwidth"), false, Some(k)) => Ok(Self::Bandwidth(k)),
            (Some("peak"), true, Some(k)) => Ok(Self::Peak(1.0 / k)),
            (Some("peak"), false, Some(k)) => Ok(Self::Peak(k)),
            _ => Err(WhatIfError),
        }
    }

    /// For people.
    pub fn name(&self) -> String {
        match self {
            Self::Communication(k) => format!("communication / {k}"),
            Self::Bandwidth(k) => format!("bandwidth x {k}"),
            Self::Peak(k) => format!("peak x {k}"),
        }
    }

    /// A ridge after the change: the operations a byte that a program must have today to reach the peak
    /// then.
    pub fn ridge(&self, ridge: f64) -> f64 {
        match self {
            Self::Communication(k) | Self::Bandwidth(k) => ridge / k,
            Self::Peak(k) => ridge * k,
        }
    }

    /// Intensity, the roof with overlap and the curve without, after the change.
    pub fn apply(&self, intensity: f64, roofs: &Roofs) -> Option<(f64, f64, f64)> {
        let (f, b) = (roofs.flops_per_s()?, roofs.bytes_per_s()?);
        let (i, f, b) = match self {
            Self::Communication(k) => (intensity * k, f, b),
            Self::Bandwidth(k) => (intensity, f, b * k),
            Self::Peak(k) => (intensity, f * k, b),
        };
        Some((i, overlapped(f, b, i), one_after_the_other(f, b, i)))
    }
}

/// A point with its roofs and verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The point.
    pub point: Point,
    /// Its roofs.
    pub roofs: Roofs,
    /// What bounds it.
    pub verdict: Verdict,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFindings {
    /// Its directory.
    pub name: String,
    /// The whole run, its hosts, then each region and its hosts.
    pub placed: Vec<Placed>,
    /// Operations that were seen, by function, of the first selection.
    pub work: BTreeMap<String, Work>,
    /// What was not and could not be counted, in sentences.
    pub notes: Vec<String>,
}

/// What goes to the screen, the JSON document and the figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Where the ceilings come from; `None` without any.
    pub source: Option<String>,
    /// Runs.
    pub runs: Vec<RunFindings>,
    /// Sweeps.
    pub sweeps: Vec<Sweep>,
    /// Published systems.
    pub systems: Vec<System>,
    /// Changes to look at.
    pub what_if: Vec<WhatIf>,
    /// What a reader should know.
    pub notes: Vec<String>,
}
