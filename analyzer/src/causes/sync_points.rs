//! Finds where a line and its culprit last met before a wait: the moment from which delays count
//! (decision 85).

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::waits::Waits;

/// When two lines last met before a wait. The times on the two lines differ only by the clock
/// error, unless they are the begins of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPoint {
    /// Time on the waiting line.
    pub moment: i64,
    /// Time on the culprit's line.
    pub on_culprit: i64,
}

/// A moment at which a line met others.
#[derive(Debug, Clone, Copy)]
struct LineSync {
    moment: i64,
    with: Partner,
}

#[derive(Debug, Clone, Copy)]
enum Partner {
    /// One line, with its time.
    Line(u32, i64),
    /// All members of a collective operation, by its number.
    All(u32),
}

/// Most communicators whose last collective synchronisation is remembered per line.
const MAX_COMMUNICATORS: usize = 64;

/// For each wait where the line and the culprit last met. If they never did, or the wait has no
/// culprit, that is the begin of the lines.
pub(super) fn before(waits: &Waits, lines: &Lines) -> Vec<SyncPoint> {
    let mut syncs: Vec<Vec<LineSync>> = vec![Vec::new(); lines.all.len()];
    for (number, sync) in (0u32..).zip(&waits.collective_syncs) {
        for line in sync.lines.iter() {
            let (moment, with) = (sync.moment, Partner::All(number));
            syncs[*line as usize].push(LineSync { moment, with });
        }
    }
    for wait in waits.all.iter().filter(|wait| wait.has_culprit()) {
        let (own, other) = (wait.until, wait.fulfilled);
        syncs[wait.line as usize]
            .push(LineSync { moment: own, with: Partner::Line(wait.culprit, other) });
        syncs[wait.culprit as usize]
            .push(LineSync { moment: other, with: Partner::Line(wait.line, own) });
    }
    let of_line = |(number, mut syncs): (usize, Vec<LineSync>)| {
        let number = number as u32;
        let mut sync_points = Vec::with_capacity(waits.of(number).len());
        syncs.sort_by_key(|sync| sync.moment);
        let mut last =
            LastSyncs { waits, pairs: FxHashMap::default(), collective_syncs: Vec::new() };
        let mut next = 0;
        for wait in waits.of(number) {
            while syncs.get(next).is_some_and(|sync| sync.moment <= wait.begin) {
                last.add(syncs[next]);
                next += 1;
            }
            let begin = |line: u32| lines.all[line as usize].begin;
            sync_points.push(match wait.has_culprit() {
                true => last.with(wait.culprit, wait.fulfilled).unwrap_or_else(|| SyncPoint {
                    moment: begin(number),
                    on_culprit: begin(wait.culprit),
                }),
                false => SyncPoint { moment: begin(number), on_culprit: wait.begin },
            });
        }
        sync_points
    };
    syncs.into_par_iter().enumerate().flat_map_iter(of_line).collect()
}

/// What a line last met with.
struct LastSyncs<'w> {
    waits: &'w Waits,
    pairs: FxHashMap<u32, SyncPoint>,
    /// Latest collective synchronisation of each communicator, in order of time.
    collective_syncs: Vec<u32>,
}

impl LastSyncs<'_> {
    fn add(&mut self, sync: LineSync) {
        match sync.with {
            Partner::Line(line, on_culprit) => {
                self.pairs.insert(line, SyncPoint { moment: sync.moment, on_culprit });
            }
            Partner::All(number) => {
                let communicator = |of: u32| self.waits.collective_syncs[of as usize].communicator;
                let same = |other: &u32| communicator(*other) == communicator(number);
                match self.collective_syncs.iter().position(same) {
                    Some(at) => drop(self.collective_syncs.remove(at)),
                    None if self.collective_syncs.len() == MAX_COMMUNICATORS => {
                        self.collective_syncs.remove(0);
                    }
                    None => {}
                }
                self.collective_syncs.push(number);
            }
        }
    }

    /// Where this line last met a culprit that had reached that point by the time `by`.
    fn with(&self, culprit: u32, by: i64) -> Option<SyncPoint> {
        let collective = self.collective_syncs.iter().rev().find_map(|number| {
            let sync = &self.waits.collective_syncs[*number as usize];
            let moment = sync.moment;
            let was_there = moment <= by && sync.lines.binary_search(&culprit).is_ok();
            was_there.then_some(SyncPoint { moment, on_culprit: moment })
        });
        let paired = self.pairs.get(&culprit).copied().filter(|point| point.on_culprit <= by);
        collective.into_iter().chain(paired).max_by_key(|point| point.moment)
    }
}
