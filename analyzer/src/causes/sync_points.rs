//! Finds where a line and its delaying rank last met before a wait: the moment from which delays count
//! (decision 85).

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::by_line::ByLine;
use super::hinted_search;
use super::lines::Lines;
use super::matched_conditions::CollectiveSync;
use super::wait::Wait;
use super::waits::{Ended, Waits};

/// When two lines last met before a wait. The times on the two lines differ only by the clock
/// error, unless they are the begins of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncPoint {
    /// Time on the waiting line.
    pub moment: i64,
    /// Time on the delaying rank's line.
    pub on_delaying: i64,
}

/// Lines that synchronised in collective operations, and when, ascending.
#[derive(Debug)]
struct Group<'w> {
    lines: &'w [u32],
    moments: Vec<i64>,
}

/// Most groups of a line in which its meetings are looked for: those that synchronised most often.
const MAX_GROUPS: usize = 64;

/// For each wait where the line and the delaying rank last met. If they never did, or the wait has no
/// delaying rank, that is the begin of the lines.
pub(super) fn before(waits: &Waits, ended: &[Ended], lines: &Lines) -> Vec<SyncPoint> {
    let groups = groups(&waits.collective_syncs);
    let mut groups_of: Vec<Vec<&Group>> = vec![Vec::new(); lines.all.len()];
    for group in &groups {
        let of_lines = group.lines.iter().map(|line| *line as usize);
        of_lines.for_each(|line| {
            if groups_of[line].len() < MAX_GROUPS {
                groups_of[line].push(group);
            }
        });
    }
    let of_line = |pairs: &mut ByLine<SyncPoint>, (number, groups): (usize, Vec<&Group>)| {
        let own = (waits.first_of(number as u32)..).zip(waits.on_line(number as u32));
        let own = own.filter(|(_, wait)| wait.has_delaying_rank());
        let mut own = own.map(|(number, wait)| (wait.until, number)).peekable();
        let mut ended = ended[number].iter().copied().peekable();
        pairs.begin(number as u32);
        let mut last = LastMeetings { pairs, hints: vec![0; groups.len()], groups };
        let begin = |line: u32| lines.all[line as usize].begin;
        let own_begin = begin(number as u32);
        let sync_point = |wait: &Wait| {
            // Of meetings at one moment, the wait with the highest number is the last.
            while let Some(is_own) = earlier(own.peek(), ended.peek(), wait.begin) {
                let next = if is_own { own.next() } else { ended.next() };
                let met = next.map(|(_, number)| &waits.all[number as usize]);
                met.into_iter().for_each(|met| last.add(met, is_own));
            }
            let never = |on_delaying| SyncPoint { moment: own_begin, on_delaying };
            match wait.has_delaying_rank() {
                true => last.before(wait).unwrap_or_else(|| never(begin(wait.delayed_by))),
                false => never(wait.begin),
            }
        };
        waits.on_line(number as u32).iter().map(sync_point).collect::<Vec<_>>()
    };
    let pairs = || ByLine::new(lines.all.len());
    groups_of.into_par_iter().enumerate().map_init(pairs, of_line).flatten_iter().collect()
}

/// Whether the next of a line's own waits is over before its next entry that ended one; `None` if both lie
/// after a moment.
fn earlier(own: Option<&(i64, u32)>, ended: Option<&(i64, u32)>, until: i64) -> Option<bool> {
    let [own, ended] = [own, ended].map(|next| next.filter(|(moment, _)| *moment <= until));
    (own.is_some() || ended.is_some())
        .then(|| ended.is_none_or(|ended| own.is_some_and(|own| own < ended)))
}

/// The groups of lines that synchronised, most often first.
fn groups(syncs: &[CollectiveSync]) -> Vec<Group<'_>> {
    let mut numbers: FxHashMap<&[u32], usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    // Operations of a communicator follow each other, and share their list.
    let mut last: Option<(*const u32, usize)> = None;
    for sync in syncs {
        let at = match last.filter(|(list, _)| *list == sync.lines.as_ptr()) {
            Some((_, at)) => at,
            None => *numbers.entry(&sync.lines).or_insert_with(|| {
                groups.push(Group { lines: &sync.lines, moments: Vec::new() });
                groups.len() - 1
            }),
        };
        last = Some((sync.lines.as_ptr(), at));
        groups[at].moments.push(sync.moment);
    }
    groups.par_iter_mut().for_each(|group| group.moments.sort_unstable());
    groups.sort_unstable_by_key(|group| (Reverse(group.moments.len()), group.lines));
    groups
}

/// What a line last met with.
struct LastMeetings<'w, 'p> {
    pairs: &'p mut ByLine<SyncPoint>,
    groups: Vec<&'w Group<'w>>,
    /// By group the position of the last search.
    hints: Vec<usize>,
}

impl LastMeetings<'_, '_> {
    /// Adds that the line met another one when a wait of either of them ended.
    fn add(&mut self, wait: &Wait, is_own: bool) {
        let Wait { line, delayed_by, until, fulfilled, .. } = *wait;
        let (with, moment, on_delaying) = match is_own {
            true => (delayed_by, until, fulfilled),
            false => (line, fulfilled, until),
        };
        *self.pairs.get_mut(with) = SyncPoint { moment, on_delaying };
    }

    /// Where the line last met the delaying rank of a wait, which had been there when it ended the wait.
    fn before(&mut self, wait: &Wait) -> Option<SyncPoint> {
        let by = wait.fulfilled;
        let mut last = self.pairs.get(wait.delayed_by).filter(|point| point.on_delaying <= by);
        for (group, hint) in self.groups.iter().zip(&mut self.hints) {
            if group.lines.binary_search(&wait.delayed_by).is_err() {
                continue;
            }
            let is_before = |moment: &i64| *moment <= wait.begin.min(by);
            let count = hinted_search::partition_point(&group.moments, hint, is_before);
            let Some(moment) = count.checked_sub(1).map(|at| group.moments[at]) else { continue };
            if last.is_none_or(|last| moment > last.moment) {
                last = Some(SyncPoint { moment, on_delaying: moment });
            }
        }
        last
    }
}
