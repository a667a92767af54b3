//! Converts times of a thread in the run to times in the replay.

use crate::replay::Moment;

/// Converts times: linearly between moments. Before the first and after the last moment, times are
/// shifted.
#[derive(Debug, Clone)]
pub struct Warp {
    /// Neither time ever decreases; not empty.
    moments: Vec<Moment>,
}

impl Warp {
    /// Passes through the given moments. Without moments, times do not change.
    pub fn new(moments: Vec<Moment>) -> Self {
        match moments.is_empty() {
            true => Self { moments: vec![Moment { was_s: 0.0, is_s: 0.0 }] },
            false => Self { moments },
        }
    }

    /// The time in the replay of a time in the run; seconds.
    pub fn at(&self, was_s: f64) -> f64 {
        let behind = self.moments.partition_point(|moment| moment.was_s <= was_s);
        let next = self.moments.get(behind);
        let Some(last) = behind.checked_sub(1).map(|last| self.moments[last]) else {
            let first = self.moments[0];
            return first.is_s - (first.was_s - was_s);
        };
        let since = was_s - last.was_s;
        match next {
            None => last.is_s + since,
            Some(next) => last.is_s + since * (next.is_s - last.is_s) / (next.was_s - last.was_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_moments_are_stretched_and_others_shifted() {
        let moment = |was_s, is_s| Moment { was_s, is_s };
        // A call from 2 to 3 that ends at once, after computation that takes half as long.
        let warp =
            Warp::new(vec![moment(1.0, 1.0), moment(2.0, 1.5), moment(3.0, 1.5), moment(4.0, 2.5)]);
        let moved = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 9.0].map(|was| warp.at(was));
        assert_eq!(moved, [0.5, 1.0, 1.25, 1.5, 1.5, 1.5, 2.0, 2.5, 7.5]);
        assert_eq!(Warp::new(Vec::new()).at(3.25), 3.25);
        // Two moments at one time: what comes then is after both.
        assert_eq!(Warp::new(vec![moment(1.0, 1.0), moment(1.0, 2.0)]).at(1.0), 2.0);
    }
}
