//! What single measured times say about a time near them, whatever the weighed curves say.
//!
//! No sum of terms falls faster than 1/p or grows faster than p (but for logarithms). A curve that
//! leaves a measured time far behind within a doubling is no explanation of it, and a time that all
//! curves miss still was measured.

use super::measured::Measured;

/// Factor between a measured time and the curves from which it contradicts them.
const CONTRADICTS: f64 = 1.5;
/// Factor that noise and logarithms may add to the steepest fall.
const MARGIN: f64 = 1.25;
/// One in this many possible times follows a time that contradicts the curves, or that was measured
/// without enough cores: enough to reach the ends of the 90 % interval.
const FOLLOWS: usize = 8;

/// A measured time that contradicts the curves through all points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contradiction {
    /// Rank count.
    pub p: f64,
    /// The measured time, seconds.
    pub measured_s: f64,
    /// The curves' time there, seconds.
    pub curves_s: f64,
}

/// The measured points, and how each relates to the curves.
#[derive(Debug, Clone)]
pub(super) struct Neighbours {
    points: Vec<(Measured, f64)>,
}

impl Neighbours {
    /// Points, each with the curves' time there in seconds.
    pub fn new(points: Vec<(Measured, f64)>) -> Self {
        Self { points }
    }

    pub fn contradictions(&self) -> impl Iterator<Item = Contradiction> {
        self.points.iter().filter(|point| contradicts(point)).map(|(point, curves_s)| {
            Contradiction { p: point.p, measured_s: point.tau_s, curves_s: *curves_s }
        })
    }

    /// The point whose time is the furthest from the curves.
    pub fn furthest_off(&self) -> Option<Measured> {
        let off = |(point, curves_s): &(Measured, f64)| (point.tau_s / curves_s).ln().abs();
        let worst = self.points.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        worst.map(|(point, _)| *point)
    }

    /// Moves possible times at p ranks with work w to where measured times allow them to be.
    pub fn bound(&self, times: &mut [f64], p: f64, work: f64) {
        // Points that some of the possible times follow; each has its own of them.
        let mut followed = 0;
        for (point, curves_s) in &self.points {
            if point.work != work {
                continue;
            }
            let (fall, rise) = ((point.p / p).min(p / point.p), (p / point.p).max(1.0));
            let near = (0.5..=2.0).contains(&(p / point.p));
            let is_slow = point.tau_s > *curves_s;
            let is_off = contradicts(&(*point, *curves_s));
            if !is_off && near {
                let floor_s = point.tau_s * fall / MARGIN;
                times.iter_mut().for_each(|time_s| *time_s = time_s.max(floor_s));
            }
            // Ranks that share cores take longer the more of them there are.
            let follows_s = match (is_off, is_slow) {
                (true, false) => Some(point.tau_s * fall).filter(|_| p >= point.p / 2.0),
                (true, true) => Some(point.tau_s * rise).filter(|_| p > point.p / 2.0),
                (false, _) => Some(point.tau_s * rise).filter(|_| point.lacks_cores && p > point.p),
            };
            if let Some(follows_s) = follows_s {
                let own = times.iter_mut().skip(followed % FOLLOWS).step_by(FOLLOWS);
                own.for_each(|time_s| *time_s = follows_s);
                followed += 1;
            }
        }
    }
}

fn contradicts((point, curves_s): &(Measured, f64)) -> bool {
    let ratio = point.tau_s / curves_s;
    !(1.0 / CONTRADICTS..=CONTRADICTS).contains(&ratio)
}
