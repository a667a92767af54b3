//! Which of its [`Roofs`] bounds a [`Point`].

use super::{Point, Roofs, one_after_the_other, overlapped};

/// A point at this share of a roof is near it.
pub const NEAR: f64 = 0.75;
/// A point above its roof by more than this is wrong, or the roof is.
pub const ABOVE: f64 = 1.05;

/// Computation that reaches this share of what memory allows is explained by memory: few loops reach
/// the triad's rate.
const HALF: f64 = 0.5;

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
    /// Ranks compute most of the time, at a rate that memory explains.
    Memory,
    /// Under all: ranks compute most of the time, far below the ceiling.
    SlowComputation,
    /// Under all: time goes to MPI, though the bytes would not need it.
    Waiting,
    /// Under all, by a little of each.
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

/// A verdict in figures and a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What bounds it.
    pub bottleneck: Bottleneck,
    /// Attained over min(F, B·I), or over F where there is no communication.
    pub of_roof: Option<f64>,
    /// Attained over the curve without overlap.
    pub of_no_overlap: Option<f64>,
    /// Rate while computing over F.
    pub computing_of_ceiling: Option<f64>,
    /// Rate while computing over what memory allows, where bytes of operands are known.
    pub computing_of_memory: Option<f64>,
    /// Seconds that the bytes need at the measured bandwidths, and which bandwidth it is.
    pub communication_needs_s: Option<(f64, &'static str)>,
}

impl Verdict {
    /// Of a point under its roofs.
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
            return Self::nothing(Bottleneck::NothingSeen, needs);
        };
        let Some(f) = f else { return Self::nothing(Bottleneck::NoRoofs, needs) };
        // Rates that the communication alone would allow; infinite without any.
        let by_bytes = needs.map_or(f64::INFINITY, |(seconds, _)| flops / seconds);
        let roof = f.min(by_bytes);
        let turns = 1.0 / (1.0 / f + 1.0 / by_bytes);
        let own = roofs
            .own_sizes
            .zip(point.intensity())
            .map(|(b, i)| (overlapped(f, b, i), one_after_the_other(f, b, i)));
        let computing = point.rate_while_computing().map(|rate| rate / f);
        // Operands bound the bytes from below, so this is the most that memory allows.
        let memory = roofs.memory.zip(point.memory_intensity()).map(|(b, i)| overlapped(f, b, i));
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
            // Only where communication matters at all.
            () if near(turns) && turns < 0.9 * roof => Bottleneck::NoOverlap,
            () if share >= 0.5 && of_memory.is_some_and(|of| of >= HALF) => Bottleneck::Memory,
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

    fn nothing(bottleneck: Bottleneck, needs: Option<(f64, &'static str)>) -> Self {
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
