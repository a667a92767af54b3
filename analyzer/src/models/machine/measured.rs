//! A measured quantity, and the conditions of a measurement.

use serde::{Deserialize, Serialize};

/// A quantity with its uncertainty and spread, in the unit that its key names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured {
    /// Median over the repetitions.
    pub median: f64,
    /// Lower end of the median's 95 % interval (order statistics).
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest value.
    pub max: f64,
    /// Repetitions.
    pub repetitions: usize,
    /// Values more than three interquartile ranges beyond a quartile; they are not removed.
    pub outliers: usize,
    /// The worst of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers_listed: Vec<Outlier>,
}

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outlier {
    /// Which repetition, from 0.
    pub repetition: usize,
    /// Its value.
    pub value: f64,
}

/// The conditions under which a kernel measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Hosts in the order of their lowest ranks.
    pub hosts: Vec<Host>,
    /// Share of its time that the worst rank was ready to run but had no core.
    pub off_cpu_share: Option<f64>,
    /// Involuntary context switches, all ranks together.
    pub involuntary_switches: f64,
    /// Typical ratio of interquartile range to median over the kernel's figures.
    pub typical_spread: Option<f64>,
    /// Whether the machine was too noisy to trust the figures.
    pub noisy: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

impl Measured {
    /// Half the width of the 95 % interval over the median.
    pub fn relative_uncertainty(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median.abs().max(f64::MIN_POSITIVE)
    }
}

/// A host of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Ranks on it.
    pub ranks: Vec<u32>,
    /// Processors online.
    pub processors: u32,
    /// Processors that each rank may run on.
    pub affinity: Vec<String>,
    /// Whether each rank has processors of its own.
    pub pinned: bool,
    /// Model name of the processor.
    pub processor: String,
    /// Frequency reported by the system, hertz.
    pub stated_hz: Option<f64>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Whether the host runs under a hypervisor.
    pub virtual_machine: bool,
    /// One-minute load average at the start.
    pub load_1min: Option<f64>,
}
