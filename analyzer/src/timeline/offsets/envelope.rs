//! The offset between two counters over time, as far as bounds at single moments and the rates of
//! the counters determine it.
//!
//! A bound at one moment holds at any other, widened by what the rates allow in between. The offset
//! lies between the tightest of these on both sides (the tube of Duda et al. 1987 and of Hofmann and
//! Hilgers 1998); its estimate is the middle, its error half the width. The tube's own slope then
//! narrows the rates, and these the tube. Unlike a straight line through the tube, this stays right
//! when the rate wanders.

use crate::timeline::exchange::WANDER;

/// Allowance for rounding of seconds, seconds.
const ROUNDING_S: f64 = 1e-9;
/// How often the rates are narrowed at most.
const MAX_ROUNDS: usize = 16;

/// What the offset may be at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Constraint {
    /// At least this, seconds.
    AtLeast(f64),
    /// At most this, seconds.
    AtMost(f64),
}

/// Why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoOffset {
    /// There are bounds on one side only.
    OneWay,
    /// The bounds contradict each other.
    Contradiction,
}

/// The offset at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Knot {
    /// The moment, seconds.
    pub at_s: f64,
    /// The smallest and the largest offset, seconds.
    range_s: (f64, f64),
    /// The estimate, seconds.
    pub offset_s: f64,
}

impl Knot {
    fn new(at_s: f64, range_s: (f64, f64)) -> Self {
        Self { at_s, range_s, offset_s: (range_s.0 + range_s.1) / 2.0 }
    }

    /// The largest error of the estimate, seconds.
    pub fn error_s(&self) -> f64 {
        let (least, most) = self.range_s;
        (most - self.offset_s).max(self.offset_s - least).max(0.0) + ROUNDING_S
    }
}

/// The number within a range that is nearest to 0.
fn nearest_to_zero((least, most): (f64, f64)) -> f64 {
    // Rounding may have exchanged the two.
    0.0f64.max(least).min(most)
}

/// Slopes that the offset may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slopes {
    pub least: f64,
    pub most: f64,
}

impl Slopes {
    pub fn around(mean: f64, uncertainty: f64) -> Self {
        Self { least: mean - uncertainty, most: mean + uncertainty }
    }

    fn mean(self) -> f64 {
        (self.least + self.most) / 2.0
    }

    /// How far they lie apart.
    fn width(self) -> f64 {
        self.most - self.least
    }
}

/// The offset over time: linear between knots, and outside.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Envelope {
    /// Ascending, at least one.
    pub knots: Vec<Knot>,
    /// What the slope may be at any moment.
    slopes: Slopes,
    /// The slope outside the knots.
    pub slope: f64,
}

impl Envelope {
    fn new(knots: Vec<Knot>, slopes: Slopes) -> Self {
        Self { knots, slopes, slope: slopes.mean() }
    }

    /// The same, but with an offset as near to 0 as possible for an estimate.
    pub fn near_zero(mut self) -> Self {
        for knot in &mut self.knots {
            knot.offset_s = nearest_to_zero(knot.range_s);
        }
        self.slope = nearest_to_zero((self.slopes.least, self.slopes.most));
        self
    }

    /// The envelope of bounds at moments in any order.
    pub fn from_bounds(bounds: &[(f64, Constraint)], slopes: Slopes) -> Result<Self, NoOffset> {
        let is_upper = |bound: &&(f64, Constraint)| matches!(bound.1, Constraint::AtMost(_));
        let uppers = bounds.iter().filter(is_upper).count();
        if uppers == 0 || uppers == bounds.len() {
            return Err(NoOffset::OneWay);
        }
        let mut sorted = bounds.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first = Self::new(tube(&sorted, slopes)?, slopes);
        let mut best = first.clone();
        for _ in 0..MAX_ROUNDS {
            let Some(narrower) = best.narrowed_slopes() else { break };
            match tube(&sorted, narrower) {
                Ok(knots) => best = Self::new(knots, narrower),
                // The rate wandered more than assumed: only what was known before holds.
                Err(_) => return Ok(first),
            }
        }
        Ok(best)
    }

    /// The slopes between the outermost knots, if that narrows them notably.
    fn narrowed_slopes(&self) -> Option<Slopes> {
        let (a, b) = (self.knots.first()?, self.knots.last()?);
        let length_s = b.at_s - a.at_s;
        if length_s <= 0.0 {
            return None;
        }
        // Twice: the mean between two moments may differ from that of the run, and the slope of a
        // moment too.
        let most = (b.range_s.1 - a.range_s.0 + ROUNDING_S) / length_s + 2.0 * WANDER;
        let least = (b.range_s.0 - a.range_s.1 - ROUNDING_S) / length_s - 2.0 * WANDER;
        let narrowed =
            Slopes { least: least.max(self.slopes.least), most: most.min(self.slopes.most) };
        (narrowed.width() < 0.9 * self.slopes.width()).then_some(narrowed)
    }

    /// By how much more than at the knots the offset may be wrong in the middle of an interval
    /// between two of them, seconds.
    pub fn bulge_s(&self, length_s: f64) -> f64 {
        self.slopes.width() * length_s / 2.0
    }

    /// How fast the error grows outside the knots.
    pub fn growth(&self) -> f64 {
        (self.slopes.most - self.slope).max(self.slope - self.slopes.least)
    }
}

/// The tightest range of the offset at the moment of every bound.
fn tube(sorted: &[(f64, Constraint)], slopes: Slopes) -> Result<Vec<Knot>, NoOffset> {
    let mut knots: Vec<Knot> = Vec::with_capacity(sorted.len());
    for (at_s, bound) in sorted {
        let mut range_s = match knots.last() {
            Some(before) => {
                let since_s = at_s - before.at_s;
                let (least, most) = before.range_s;
                (least + slopes.least * since_s, most + slopes.most * since_s)
            }
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        match *bound {
            Constraint::AtLeast(least) => range_s.0 = range_s.0.max(least),
            Constraint::AtMost(most) => range_s.1 = range_s.1.min(most),
        }
        match knots.last_mut() {
            Some(last) if last.at_s == *at_s => *last = Knot::new(*at_s, range_s),
            _ => knots.push(Knot::new(*at_s, range_s)),
        }
    }
    let mut after: Option<Knot> = None;
    for knot in knots.iter_mut().rev() {
        if let Some(after) = after {
            let until_s = after.at_s - knot.at_s;
            let (least, most) = after.range_s;
            let (own_least, own_most) = knot.range_s;
            let least = own_least.max(least - slopes.most * until_s);
            *knot = Knot::new(knot.at_s, (least, own_most.min(most - slopes.least * until_s)));
        }
        after = Some(*knot);
    }
    let contradicts = |knot: &Knot| knot.range_s.0 > knot.range_s.1 + 2.0 * ROUNDING_S;
    match slopes.width() < 0.0 || knots.iter().any(contradicts) {
        true => Err(NoOffset::Contradiction),
        false => Ok(knots),
    }
}
