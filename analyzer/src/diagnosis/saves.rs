//! What advice would save. It is replayed before it is given: without a replay, or if the replay does not tell, none is.

use crate::replay::{Answer, WhatIf};

use super::finding::Saves;

/// Share of the run's time that is worth advice, or that it saves at least in nine of ten cases.
const WORTHWHILE: f64 = super::finding::NOTABLE_SHARE;

impl Saves {
    fn promised_by(what_if: &WhatIf, answer: &Answer) -> Option<Self> {
        answer.time_s().filter(|_| what_if.is_accurate())?;
        let recorded_s = what_if.graph.elapsed_s;
        let (least_s, most_s) = answer.interval_s;
        let seconds = recorded_s - answer.elapsed_s;
        let (lo_s, hi_s) = (recorded_s - most_s, recorded_s - least_s);
        Some(Self { seconds, lo_s, hi_s, share: seconds / recorded_s })
    }

    /// At most so many seconds of the run.
    fn at_most(self, bound_s: f64, elapsed_s: f64) -> Self {
        let seconds = self.seconds.min(bound_s);
        let (lo_s, hi_s) = (self.lo_s.min(bound_s), self.hi_s.min(bound_s));
        Self { seconds, lo_s, hi_s, share: seconds / elapsed_s }
    }
}

/// What hiding all transfers would save at most, which is no more than `bound_s`, if it saves something for certain.
pub(super) fn by_hiding_transfers(what_if: &WhatIf, bound_s: f64) -> Option<Saves> {
    let elapsed_s = what_if.graph.elapsed_s;
    let saves =
        Saves::promised_by(what_if, what_if.on_ideal_network())?.at_most(bound_s, elapsed_s);
    (saves.share >= WORTHWHILE && saves.lo_s > 0.0).then_some(saves)
}

/// What other changes would save, if that is worthwhile. How certain it is, the interval tells.
pub(super) fn by(what_if: &WhatIf, answer: &Answer) -> Option<Saves> {
    Saves::promised_by(what_if, answer).filter(|saves| saves.share >= WORTHWHILE)
}
