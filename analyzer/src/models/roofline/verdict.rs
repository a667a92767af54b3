//! Decides which of its [`Roofs`] bounds a [`Point`].

use serde::Serialize;

use super::attainable::{with_overlap, without_overlap};
use super::point::Point;
use super::roofs::Roofs;

/// A point that reaches this share of a roof is near it.
pub const NEAR: f64 = 0.75;
/// Beyond this ratio to its roof, the point or the roof must be wrong.
pub const ABOVE: f64 = 1.05;

/// Computation that reaches this share of what memory allows counts as bound by memory: few loops
/// reach the triad's rate.
const EXPLAINED_BY_MEMORY: f64 = 0.5;

/// What bounds a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// No operations were seen.
    NothingSeen,
    /// No ceilings are known.
    NoRoofs,
    /// Above its roof: the roof is not this machine's, or operations are counted too often.
    AboveRoof,
    /// Near the roof of computation.
    Computation,
    /// Near the roof of communication.
    Communication,
    /// Near the roof of communication with messages of its own sizes.
    MessageSizes,
    /// Near the curve where computation and communication take turns.
    NoOverlap,
    /// Ranks compute most of the time, at a rate that memory bandwidth explains.
    Memory,
    /// Below all roofs: ranks compute most of the time, but far below the ceiling.
    SlowComputation,
    /// Below all roofs: much time goes to MPI, more than the bytes need.
    Waiting,
    /// Below all roofs, for several small reasons.
    Mixed,
}

impl Bottleneck {
    /// Name in the JSON document.
    pub fn key(self) -> &'static str {
        match self {
            Self::NothingSeen => "nothing-seen",
            Self::NoRoofs => "no-roofs",
            Self::AboveRoof => "above-roof",
            Self::Computation => "computation",
            Self::Communication => "communication",
            Self::MessageSizes => "message-sizes",
            Self::NoOverlap => "no-overlap",
            Self::Memory => "memory",
            Self::SlowComputation => "slow-computation",
            Self::Waiting => "waiting",
            Self::Mixed => "mixed",
        }
    }
}

/// What bounds a point, with the figures that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What bounds the point.
    #[serde(skip)]
    pub bottleneck: Bottleneck,
    /// Attained over min(F, B·I), or over F where there is no communication.
    pub of_roof: Option<f64>,
    /// Attained over the curve without overlap.
    pub of_no_overlap: Option<f64>,
    /// Rate while computing, over F.
    pub computing_of_ceiling: Option<f64>,
    /// Rate while computing, over what memory allows; `None` where bytes of operands are unknown.
    pub computing_of_memory: Option<f64>,
    /// Seconds that the bytes need at the first bandwidths, and which of its three bounds holds.
    #[serde(skip)]
    pub communication_needs_s: Option<(f64, &'static str)>,
}

impl Verdict {
    /// The verdict on a point under its roofs.
    pub fn new(point: &Point, roofs: &Roofs) -> Self {
        let attained = point.attained().filter(|rate| *rate > 0.0);
        let f = roofs.flops_per_s();
        let moved = point.moved();
        let needs = roofs
            .communication
            .first()
            .filter(|_| moved.both() > 0.0)
            .map(|bandwidths| bandwidths.time_s(moved.sent, moved.received));
        let (Some(flops), Some(attained)) = (point.flops, attained) else {
            return Self::without_figures(Bottleneck::NothingSeen, needs);
        };
        let Some(f) = f else { return Self::without_figures(Bottleneck::NoRoofs, needs) };
        // The rate that communication alone would allow; infinite where there is none.
        let by_bytes = needs.map_or(f64::INFINITY, |(seconds, _)| flops / seconds);
        let roof = f.min(by_bytes);
        let turns = 1.0 / (1.0 / f + 1.0 / by_bytes);
        let own = roofs
            .own_sizes
            .zip(point.intensity())
            .map(|(b, i)| (with_overlap(f, b, i), without_overlap(f, b, i)));
        let computing = point.rate_while_computing().map(|rate| rate / f);
        // Bytes of operands are a lower bound on bytes moved, so this is an upper bound on the
        // rate.
        let memory = roofs.memory.zip(point.memory_intensity()).map(|(b, i)| with_overlap(f, b, i));
        let of_memory =
            memory.filter(|roof| *roof < 0.9 * f).zip(computing).map(|(roof, of)| of * f / roof);
        let share = point.share_computing();
        let near = |roof: f64| attained >= NEAR * roof;
        let bottleneck = match () {
            () if attained > ABOVE * roof => Bottleneck::AboveRoof,
            () if near(roof) && f <= by_bytes => Bottleneck::Computation,
            () if near(roof) => Bottleneck::Communication,
            () if own.is_some_and(|(own, _)| own < NEAR * roof && near(own)) => {
                Bottleneck::MessageSizes
            }
            // Meaningful only where communication matters.
            () if near(turns) && turns < 0.9 * roof => Bottleneck::NoOverlap,
            () if share >= 0.5 && of_memory.is_some_and(|of| of >= EXPLAINED_BY_MEMORY) => {
                Bottleneck::Memory
            }
            () if share >= 0.5 && computing.is_some_and(|of| of < 0.6) => {
                Bottleneck::SlowComputation
            }
            () if share < 0.6 => Bottleneck::Waiting,
            () => Bottleneck::Mixed,
        };
        Self {
            bottleneck,
            of_roof: Some(attained / roof),
            of_no_overlap: Some(attained / turns),
            computing_of_ceiling: computing,
            computing_of_memory: of_memory,
            communication_needs_s: needs,
        }
    }

    fn without_figures(bottleneck: Bottleneck, needs: Option<(f64, &'static str)>) -> Self {
        Self {
            bottleneck,
            of_roof: None,
            of_no_overlap: None,
            computing_of_ceiling: None,
            computing_of_memory: None,
            communication_needs_s: needs,
        }
    }
}
