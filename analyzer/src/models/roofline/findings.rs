//! What `gammachi roofline` reports, and the effect of changes to program or machine.

use std::collections::BTreeMap;

use crate::metrics::exchanges::Work;

use super::attainable::{with_overlap, without_overlap};
use super::point::Point;
use super::roofs::Roofs;
use super::sweep::Sweep;
use super::systems::System;
use super::verdict::Verdict;

/// A change whose effect is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WhatIf {
    /// Divides the bytes of communication by this, which raises the intensity.
    Communication(f64),
    /// Multiplies the bandwidth by this.
    Bandwidth(f64),
    /// Multiplies the ceiling of operations by this.
    Peak(f64),
}

/// The text does not describe a change.
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

    /// Name for display.
    pub fn name(&self) -> String {
        match self {
            Self::Communication(k) => format!("communication / {k}"),
            Self::Bandwidth(k) => format!("bandwidth x {k}"),
            Self::Peak(k) => format!("peak x {k}"),
        }
    }

    /// The ridge after the change: the intensity that a program must have before the change to
    /// reach the peak after it.
    pub fn ridge(&self, ridge: f64) -> f64 {
        match self {
            Self::Communication(k) | Self::Bandwidth(k) => ridge / k,
            Self::Peak(k) => ridge * k,
        }
    }

    /// Intensity, roof with overlap, and curve without overlap, after the change.
    pub fn apply(&self, intensity: f64, roofs: &Roofs) -> Option<(f64, f64, f64)> {
        let (f, b) = (roofs.flops_per_s()?, roofs.bytes_per_s()?);
        let (i, f, b) = match self {
            Self::Communication(k) => (intensity * k, f, b),
            Self::Bandwidth(k) => (intensity, f, b * k),
            Self::Peak(k) => (intensity, f * k, b),
        };
        Some((i, with_overlap(f, b, i), without_overlap(f, b, i)))
    }
}

/// A point with its roofs and verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    pub point: Point,
    pub roofs: Roofs,
    /// What bounds it.
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunFindings {
    /// Its directory.
    pub name: String,
    /// Points of the whole run and its hosts, then of each region and its hosts.
    pub assessed: Vec<Assessment>,
    /// Operations seen in the first selection, by function.
    pub work: BTreeMap<String, Work>,
    /// What was not or could not be counted, in sentences.
    pub notes: Vec<String>,
}

/// Everything that the screen, the JSON document and the figures show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Where the ceilings come from; `None` without ceilings.
    pub source: Option<String>,
    pub runs: Vec<RunFindings>,
    pub sweeps: Vec<Sweep>,
    /// Published systems.
    pub systems: Vec<System>,
    /// Changes asked for.
    pub what_if: Vec<WhatIf>,
    /// Remarks.
    pub notes: Vec<String>,
}
