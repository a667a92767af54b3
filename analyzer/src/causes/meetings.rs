//! Finds where two lines last met: the moment from which a delay counts (CAUSES, section 2; decision 85).

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::waits::Waits;

/// When both lines were last at the same point before a wait, by the one's time and the other's: alike but
/// for what their clocks may be wrong, and for begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meeting {
    /// On the waiting line.
    pub moment: i64,
    /// On the culprit's.
    pub of_culprit: i64,
}

/// A meeting on one line.
#[derive(Debug, Clone, Copy)]
struct Met {
    moment: i64,
    with: With,
}

#[derive(Debug, Clone, Copy)]
enum With {
    /// That line, by its time then.
    Line(u32, i64),
    /// All of a gathering.
    Gathering(u32),
}

/// Communicators whose last gatherings are remembered on a line.
const MOST_COMMUNICATORS: usize = 64;

/// For each wait where the two met before it; where they never did, and of waits without a culprit, the
/// begins of the lines.
pub(super) fn before(waits: &Waits, lines: &Lines) -> Vec<Meeting> {
    let mut met: Vec<Vec<Met>> = vec![Vec::new(); lines.all.len()];
    for (number, gathering) in (0u32..).zip(&waits.gatherings) {
        for line in gathering.lines.iter() {
            let (moment, with) = (gathering.moment, With::Gathering(number));
            met[*line as usize].push(Met { moment, with });
        }
    }
    for wait in waits.all.iter().filter(|wait| wait.has_culprit()) {
        let (own, other) = (wait.until, wait.fulfilled);
        met[wait.line as usize].push(Met { moment: own, with: With::Line(wait.culprit, other) });
        met[wait.culprit as usize].push(Met { moment: other, with: With::Line(wait.line, own) });
    }
    let of_line = |(number, mut met): (usize, Vec<Met>)| {
        let number = number as u32;
        let mut meetings = Vec::with_capacity(waits.of(number).len());
        met.sort_by_key(|met| met.moment);
        let mut last = Last { waits, pairs: FxHashMap::default(), gatherings: Vec::new() };
        let mut next = 0;
        for wait in waits.of(number) {
            while met.get(next).is_some_and(|met| met.moment <= wait.begin) {
                last.take(met[next]);
                next += 1;
            }
            let begin = |line: u32| lines.all[line as usize].begin;
            meetings.push(match wait.has_culprit() {
                true => last.with(wait.culprit, wait.fulfilled).unwrap_or_else(|| Meeting {
                    moment: begin(number),
                    of_culprit: begin(wait.culprit),
                }),
                false => Meeting { moment: begin(number), of_culprit: wait.begin },
            });
        }
        meetings
    };
    met.into_par_iter().enumerate().flat_map_iter(of_line).collect()
}

/// The last meetings of one line.
struct Last<'w> {
    waits: &'w Waits,
    pairs: FxHashMap<u32, Meeting>,
    /// The latest gathering of each communicator, the latest last.
    gatherings: Vec<u32>,
}

impl Last<'_> {
    fn take(&mut self, met: Met) {
        match met.with {
            With::Line(line, of_culprit) => {
                self.pairs.insert(line, Meeting { moment: met.moment, of_culprit });
            }
            With::Gathering(number) => {
                let communicator = |of: u32| self.waits.gatherings[of as usize].communicator;
                let same = |other: &u32| communicator(*other) == communicator(number);
                match self.gatherings.iter().position(same) {
                    Some(at) => drop(self.gatherings.remove(at)),
                    None if self.gatherings.len() == MOST_COMMUNICATORS => {
                        self.gatherings.remove(0);
                    }
                    None => {}
                }
                self.gatherings.push(number);
            }
        }
    }

    /// The last one with a line that this had come to by then.
    fn with(&self, culprit: u32, by: i64) -> Option<Meeting> {
        let gathered = self.gatherings.iter().rev().find_map(|number| {
            let gathering = &self.waits.gatherings[*number as usize];
            let moment = gathering.moment;
            let was_there = moment <= by && gathering.lines.binary_search(&culprit).is_ok();
            was_there.then_some(Meeting { moment, of_culprit: moment })
        });
        let paired = self.pairs.get(&culprit).copied().filter(|met| met.of_culprit <= by);
        gathered.into_iter().chain(paired).max_by_key(|met| met.moment)
    }
}
