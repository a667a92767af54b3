//! Reads the sweep of intensities that `kernels roofline --json` measured, and checks the roofline
//! against it: each point comes with the roofs measured beside it.

use serde::Deserialize;

use crate::models::kernel_output::{self, KernelOutputError};
use crate::models::machine::{Conditions, Measured};

use super::attainable::{with_overlap, without_overlap};

/// The kernel whose document we read.
const KERNEL: &str = "roofline";

/// The keys that we read from the kernel's document.
#[derive(Debug, Clone, Deserialize)]
struct Output {
    mpi: String,
    ranks: u32,
    message_bytes: u64,
    points: Vec<PointOutput>,
    conditions: Conditions,
}

#[derive(Debug, Clone, Deserialize)]
struct PointOutput {
    flops_per_byte: f64,
    flops_per_s: Measured,
    computation_alone_flops_per_s: Measured,
    communication_alone_bytes_per_s: Measured,
    /// Computed round by round, so that drift of the machine cancels; absent in older outputs.
    #[serde(default)]
    share_of_roof: Option<Measured>,
}

/// One intensity; rates are per rank.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Operations over bytes sent and received.
    pub intensity: f64,
    /// Operations per second with products and communication at once.
    pub attained: Measured,
    /// Operations per second of the same products alone.
    pub flops_per_s: f64,
    /// Bytes per second of the same communication alone.
    pub bytes_per_s: f64,
    /// Attained over its roof, computed round by round, where the kernel reports it.
    pub share_of_roof: Option<f64>,
}

impl SweepPoint {
    /// min(F, B·I) of its own roofs.
    pub fn with_overlap(&self) -> f64 {
        with_overlap(self.flops_per_s, self.bytes_per_s, self.intensity)
    }

    /// 1/(1/F + 1/(B·I)) of its own roofs.
    pub fn without_overlap(&self) -> f64 {
        without_overlap(self.flops_per_s, self.bytes_per_s, self.intensity)
    }

    /// Attained over its roof.
    pub fn of_roof(&self) -> f64 {
        self.share_of_roof.unwrap_or_else(|| self.attained.median / self.with_overlap())
    }

    /// Attained over the curve without overlap.
    pub fn of_no_overlap(&self) -> f64 {
        self.attained.median / self.without_overlap()
    }
}

/// A sweep over intensities.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// MPI library.
    pub mpi: String,
    pub ranks: u32,
    /// Largest message.
    pub message_bytes: u64,
    /// Ascending by intensity.
    pub points: Vec<SweepPoint>,
    /// Why the machine was too noisy, in sentences.
    pub noise: Vec<String>,
}

/// Relative distance that noise may put a point beyond its roof.
pub const ROOF_TOLERANCE: f64 = 0.05;
/// Relative distance by which the ends of the sweep may miss their ceilings.
pub const END_TOLERANCE: f64 = 0.15;

impl Sweep {
    /// Whether a text is the kernel's output.
    pub fn is_output(text: &str) -> bool {
        kernel_output::is_output(text, KERNEL)
    }

    /// Reads the kernel's document.
    ///
    /// # Errors
    /// See [`KernelOutputError`].
    pub fn parse(text: &str) -> Result<Self, KernelOutputError> {
        let mut documents: Vec<Output> = kernel_output::documents(text, KERNEL)?;
        let output = documents.pop().ok_or(KernelOutputError::NoDocument)?;
        let mut points: Vec<SweepPoint> = output
            .points
            .into_iter()
            .map(|point| SweepPoint {
                intensity: point.flops_per_byte,
                attained: point.flops_per_s,
                flops_per_s: point.computation_alone_flops_per_s.median,
                bytes_per_s: point.communication_alone_bytes_per_s.median,
                share_of_roof: point.share_of_roof.map(|share| share.median),
            })
            .collect();
        let positive = |point: &SweepPoint| {
            let values =
                [point.intensity, point.attained.median, point.flops_per_s, point.bytes_per_s];
            values.iter().all(|value| *value > 0.0 && value.is_finite())
        };
        if points.is_empty() || !points.iter().all(positive) {
            let why = "no points, or a point with a figure of 0 or less";
            return Err(KernelOutputError::Impossible(why.into()));
        }
        points.sort_by(|a, b| a.intensity.total_cmp(&b.intensity));
        Ok(Self {
            mpi: output.mpi,
            ranks: output.ranks,
            message_bytes: output.message_bytes,
            points,
            noise: output.conditions.reasons,
        })
    }

    /// Points above their roof by more than [`ROOF_TOLERANCE`].
    pub fn above(&self) -> impl Iterator<Item = &SweepPoint> {
        self.points.iter().filter(|point| point.of_roof() > 1.0 + ROOF_TOLERANCE)
    }

    /// Points below the curve without overlap by more than [`ROOF_TOLERANCE`].
    pub fn below(&self) -> impl Iterator<Item = &SweepPoint> {
        self.points.iter().filter(|point| point.of_no_overlap() < 1.0 - ROOF_TOLERANCE)
    }

    /// Relative distances of the two ends from their ceilings: B·I on the left, F on the right.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        let left = first.attained.median / (first.bytes_per_s * first.intensity) - 1.0;
        Some((left, last.attained.median / last.flops_per_s - 1.0))
    }
}
