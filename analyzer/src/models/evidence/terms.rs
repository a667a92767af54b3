//! The terms that a time may be a sum of, as functions of the rank count, and their prior
//! probabilities.

/// A function of the rank count p and the relative work w.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// w/p: work shared by the ranks.
    Shared,
    /// w·log₂p/p.
    SharedLog,
    /// p^(−2/3): faces of cubes.
    Faces,
    /// p^(−1/2): edges of squares.
    Edges,
    /// 1.
    Constant,
    /// 1 − 1/p.
    OthersShare,
    /// log₂p.
    Log,
    /// √p.
    Root,
    /// p.
    Linear,
    /// p·log₂p.
    LinearLog,
}

impl Shape {
    /// Value at p ranks with work w.
    pub fn at(self, p: f64, w: f64) -> f64 {
        match self {
            Self::Shared => w / p,
            Self::SharedLog => w * p.log2() / p,
            Self::Faces => p.powf(-2.0 / 3.0),
            Self::Edges => p.powf(-0.5),
            Self::Constant => 1.0,
            Self::OthersShare => 1.0 - 1.0 / p,
            Self::Log => p.log2(),
            Self::Root => p.sqrt(),
            Self::Linear => p,
            Self::LinearLog => p * p.log2(),
        }
    }

    /// The term as an expression of this variable, for constant work.
    pub fn expression(self, p: &str) -> String {
        match self {
            Self::Shared => format!("1/{p}"),
            Self::SharedLog => format!("log2({p})/{p}"),
            Self::Faces => format!("1/{p}^(2/3)"),
            Self::Edges => format!("1/sqrt({p})"),
            Self::Constant => "1".into(),
            Self::OthersShare => format!("1-1/{p}"),
            Self::Log => format!("log2({p})"),
            Self::Root => format!("sqrt({p})"),
            Self::Linear => p.into(),
            Self::LinearLog => format!("{p}*log2({p})"),
        }
    }

    /// Prior scale of the coefficient, relative to the largest that the points allow. Beyond 1 it
    /// makes every further term dearer, most of all those that the points hardly show.
    pub fn scale(self) -> f64 {
        match self {
            Self::Linear | Self::LinearLog => 0.8,
            Self::Root => 1.0,
            _ => 2.0,
        }
    }

    /// Whether both are variants of the same effect, so that no sum has both.
    pub fn excludes(self, other: Self) -> bool {
        const PAIRS: [(Shape, Shape); 3] = [
            (Shape::Constant, Shape::OthersShare),
            (Shape::Linear, Shape::LinearLog),
            (Shape::Faces, Shape::Edges),
        ];
        PAIRS.contains(&(self, other)) || PAIRS.contains(&(other, self))
    }
}

/// The terms that a part of the time may consist of.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Terms that are in every sum.
    pub forced: &'static [Shape],
    /// Optional terms, each with its prior probability.
    pub offered: &'static [(Shape, f64)],
    /// Relative discrepancies of a sum from the truth, each with its prior probability.
    pub discrepancies: &'static [(f64, f64)],
}

/// Computation, as the mean over the ranks.
pub const COMPUTATION: Family = Family {
    forced: &[Shape::Shared],
    offered: &[
        (Shape::Constant, 0.3),
        (Shape::Log, 0.05),
        (Shape::Linear, 0.15),
        (Shape::Edges, 0.05),
    ],
    discrepancies: &[(0.0003, 0.3), (0.001, 0.4), (0.004, 0.3)],
};

/// Imbalance: the computation of the busiest rank beyond the mean.
pub const IMBALANCE: Family = Family {
    forced: &[],
    offered: &[
        (Shape::Shared, 0.8),
        (Shape::SharedLog, 0.3),
        (Shape::Edges, 0.2),
        (Shape::Constant, 0.05),
        (Shape::OthersShare, 0.03),
        (Shape::Linear, 0.03),
    ],
    discrepancies: &[(0.01, 0.2), (0.03, 0.3), (0.1, 0.3), (0.25, 0.2)],
};

/// Overhead, or a whole time about whose parts nothing is known.
pub const OVERHEAD: Family = Family {
    forced: &[],
    offered: &[
        (Shape::Shared, 0.6),
        (Shape::SharedLog, 0.2),
        (Shape::Faces, 0.12),
        (Shape::Edges, 0.25),
        (Shape::Constant, 0.2),
        (Shape::OthersShare, 0.2),
        (Shape::Log, 0.65),
        (Shape::Root, 0.06),
        (Shape::Linear, 0.2),
        (Shape::LinearLog, 0.02),
    ],
    discrepancies: &[(0.01, 0.2), (0.03, 0.3), (0.1, 0.3), (0.25, 0.2)],
};

/// Largest number of terms in a sum, forced ones not counted.
pub const MAX_TERMS: usize = 4;
