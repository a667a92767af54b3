//! Lanes of the timeline, as `lanes.js` reads them.

use serde::Serialize;

use crate::metrics::activity::lanes::{self, Stretch};

/// Row, begin and length in nanoseconds, number, and thousandths of the height.
type Packed = (usize, i64, i64, u64, u32);

#[derive(Debug, Serialize)]
pub(super) struct Lanes {
    teams: Vec<Packed>,
    files: Vec<Packed>,
}

impl Lanes {
    pub fn new(of: &lanes::Lanes) -> Self {
        let packed = |all: &[Stretch]| -> Vec<Packed> {
            let one = |of: &Stretch| {
                let part = (1e3 * of.part).round() as u32;
                (of.row, of.begin_ns, of.end_ns - of.begin_ns, of.count, part)
            };
            all.iter().map(one).collect()
        };
        Self { teams: packed(&of.teams), files: packed(&of.files) }
    }
}
