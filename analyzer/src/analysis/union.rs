//! How much of a selection's stretches intervals cover, for intervals in order of their start; and
//! what the threads of a rank do together ([`Precedence`]).

/// Sorts intervals and merges those that overlap.
pub fn merge_overlapping<T: Ord + Copy>(all: &mut Vec<(T, T)>) {
    all.sort_unstable();
    all.dedup_by(|next, previous| {
        let overlap = next.0 < previous.1;
        if overlap {
            previous.1 = previous.1.max(next.1);
        }
        overlap
    });
}

/// Intersects intervals with a selection's stretches.
///
/// Both are in order of their start, and the stretches do not overlap.
#[derive(Debug, Clone)]
pub struct Clipper<'a> {
    stretches: &'a [(u64, u64)],
}

impl<'a> Clipper<'a> {
    /// Clips to stretches that are in order and do not overlap.
    pub fn new(stretches: &'a [(u64, u64)]) -> Self {
        Self { stretches }
    }

    /// Drops the stretches that end before this start, because no later interval can overlap them.
    #[inline]
    fn move_to(&mut self, begin_ticks: u64) {
        while let [(_, end), rest @ ..] = self.stretches
            && *end <= begin_ticks
        {
            self.stretches = rest;
        }
    }

    /// Ticks that an interval has in common with the stretches.
    #[inline]
    pub fn common_ticks(&mut self, begin_ticks: u64, end_ticks: u64) -> u64 {
        if let Some((begin, end)) = self.stretches.first()
            && *begin <= begin_ticks
            && end_ticks <= *end
        {
            return end_ticks.saturating_sub(begin_ticks);
        }
        self.move_to(begin_ticks);
        let met = self.stretches.iter().take_while(|(begin, _)| *begin < end_ticks);
        met.map(|&(begin, end)| end.min(end_ticks).saturating_sub(begin.max(begin_ticks))).sum()
    }

    /// Whether a moment lies in a stretch, and the moment at which that changes.
    #[inline]
    pub fn around(&mut self, ticks: u64) -> (bool, u64) {
        self.move_to(ticks);
        match self.stretches.first() {
            Some((begin, end)) if *begin <= ticks => (true, *end),
            Some((begin, _)) => (false, *begin),
            None => (false, u64::MAX),
        }
    }

    /// Whether a moment lies in a stretch; the end of a stretch does not belong to it.
    #[inline]
    pub fn contains(&mut self, ticks: u64) -> bool {
        self.move_to(ticks);
        self.stretches.first().is_some_and(|(begin, end)| (*begin..*end).contains(&ticks))
    }
}

/// Sums the union of intervals, clipped to a selection; intervals come in order of their start.
#[derive(Debug)]
pub struct Union<'a> {
    clipper: Clipper<'a>,
    current: Option<(u64, u64)>,
    ticks: u64,
}

impl<'a> Union<'a> {
    /// Clips to stretches that are in order and do not overlap.
    pub fn new(stretches: &'a [(u64, u64)]) -> Self {
        Self { clipper: Clipper::new(stretches), current: None, ticks: 0 }
    }

    /// Adds an interval that begins no earlier than the previous ones.
    #[inline]
    pub fn add(&mut self, begin_ticks: u64, end_ticks: u64) {
        match &mut self.current {
            Some((_, end)) if begin_ticks <= *end => *end = end_ticks.max(*end),
            current => {
                if let Some((begin, end)) = current.replace((begin_ticks, end_ticks)) {
                    self.ticks += self.clipper.common_ticks(begin, end);
                }
            }
        }
    }

    /// Ticks of the union.
    pub fn finish(mut self) -> u64 {
        if let Some((begin, end)) = self.current {
            self.ticks += self.clipper.common_ticks(begin, end);
        }
        self.ticks
    }
}

/// Divides time among activities that overlap, such as those of a rank's threads: each moment
/// belongs to the activity of the highest precedence that goes on, where 0 is the highest.
#[derive(Debug)]
pub struct Precedence<'a, const ACTIVITIES: usize>([Union<'a>; ACTIVITIES]);

/// Begin, end and activity.
pub type Interval = (u64, u64, usize);

impl<'a, const ACTIVITIES: usize> Precedence<'a, ACTIVITIES> {
    /// Clips to stretches that are in order and do not overlap.
    pub fn new(stretches: &'a [(u64, u64)]) -> Self {
        Self(std::array::from_fn(|_| Union::new(stretches)))
    }

    /// Adds an interval that begins no earlier than the previous ones.
    #[inline]
    pub fn add(&mut self, (begin_ticks, end_ticks, activity): Interval) {
        // Each union is that of an activity and all of higher precedence.
        self.0[activity..].iter_mut().for_each(|union| union.add(begin_ticks, end_ticks));
    }

    /// Ticks of each activity.
    pub fn finish(self) -> [u64; ACTIVITIES] {
        let mut before = 0;
        self.0.map(|union| {
            let ticks = union.finish();
            ticks - std::mem::replace(&mut before, ticks)
        })
    }
}

/// Merges sorted sequences of intervals by start. A linear scan finds the next one, because there
/// are few sequences.
pub fn merged<I: Iterator<Item = Interval>>(sequences: Vec<I>) -> impl Iterator<Item = Interval> {
    let mut heads: Vec<_> = sequences.into_iter().map(Iterator::peekable).collect();
    std::iter::from_fn(move || {
        let begins = heads.iter_mut().enumerate();
        let (next, _) = begins
            .filter_map(|(index, head)| Some((index, head.peek()?.0)))
            .min_by_key(|(_, begin)| *begin)?;
        heads[next].next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn covered(intervals: &[(u64, u64)], ticks: u64) -> bool {
        intervals.iter().any(|(begin, end)| (*begin..*end).contains(&ticks))
    }

    /// Sorted, disjoint stretches from cut points.
    fn stretches_of(mut points: Vec<u64>) -> Vec<(u64, u64)> {
        points.sort_unstable();
        points.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    proptest! {
        #[test]
        fn each_tick_belongs_to_the_activity_of_highest_precedence(
            threads in prop::collection::vec(
                prop::collection::vec((0u64..200, 0u64..30, 0usize..3), 0..20), 0..5),
            points in prop::collection::vec(0u64..230, 0..9),
        ) {
            let stretches = stretches_of(points);
            let mut sequences: Vec<Vec<Interval>> = threads;
            for sequence in &mut sequences {
                for interval in sequence.iter_mut() {
                    interval.1 += interval.0;
                }
                sequence.sort_unstable();
            }
            let all = sequences.concat();
            let mut found = Precedence::<3>::new(&stretches);
            for interval in merged(sequences.into_iter().map(Vec::into_iter).collect()) {
                found.add(interval);
            }
            let mut expected = [0; 3];
            for tick in (0..260).filter(|tick| covered(&stretches, *tick)) {
                let goes_on = all.iter().filter(|(begin, end, _)| (*begin..*end).contains(&tick));
                if let Some(activity) = goes_on.map(|(.., activity)| *activity).min() {
                    expected[activity] += 1;
                }
            }
            prop_assert_eq!(found.finish(), expected);
        }

        #[test]
        fn clipper_agrees_with_counting(
            mut intervals in prop::collection::vec((0u64..200, 0u64..30), 0..20),
            points in prop::collection::vec(0u64..230, 0..9),
        ) {
            let stretches = stretches_of(points);
            intervals.sort_unstable();
            let (mut sums, mut contains) = (Clipper::new(&stretches), Clipper::new(&stretches));
            for (begin, length) in intervals {
                let expected = (begin..begin + length).filter(|t| covered(&stretches, *t)).count();
                prop_assert_eq!(sums.common_ticks(begin, begin + length), expected as u64);
                prop_assert_eq!(contains.contains(begin), covered(&stretches, begin));
            }
        }
    }
}
