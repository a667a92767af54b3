//! Finds where a line and its delaying rank last met before a wait: the moment from which delays count
//! (decision 85).

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::hinted_search;
use super::lines::Lines;
use super::matched_conditions::CollectiveSync;
use super::wait::Wait;
use super::waits::Waits;

/// When two lines last met before a wait. The times on the two lines differ only by the clock
/// error, unless they are the begins of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPoint {
    /// Time on the waiting line.
    pub moment: i64,
    /// Time on the delaying rank's line.
    pub on_delaying: i64,
}

/// A moment at which a line met another one.
#[derive(Debug, Clone, Copy)]
struct Meeting {
    moment: i64,
    with: u32,
    /// The other line's time.
    on_other: i64,
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
pub(super) fn before(waits: &Waits, lines: &Lines) -> Vec<SyncPoint> {
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
    let mut meetings: Vec<Vec<Meeting>> = vec![Vec::new(); lines.all.len()];
    for wait in waits.all.iter().filter(|wait| wait.has_delaying_rank()) {
        let Wait { line, delayed_by, until: own, fulfilled: other, .. } = *wait;
        meetings[line as usize].push(Meeting { moment: own, with: delayed_by, on_other: other });
        meetings[delayed_by as usize].push(Meeting { moment: other, with: line, on_other: own });
    }
    let of_line = |(number, (mut meetings, groups)): (usize, (Vec<Meeting>, Vec<&Group>))| {
        meetings.sort_by_key(|meeting| meeting.moment);
        let mut last =
            LastMeetings { pairs: FxHashMap::default(), hints: vec![0; groups.len()], groups };
        let mut meetings = meetings.into_iter().peekable();
        let begin = |line: u32| lines.all[line as usize].begin;
        let own_begin = begin(number as u32);
        let sync_point = |wait: &Wait| {
            while let Some(meeting) = meetings.next_if(|meeting| meeting.moment <= wait.begin) {
                last.add(meeting);
            }
            let never = |on_delaying| SyncPoint { moment: own_begin, on_delaying };
            match wait.has_delaying_rank() {
                true => last.before(wait).unwrap_or_else(|| never(begin(wait.delayed_by))),
                false => never(wait.begin),
            }
        };
        waits.on_line(number as u32).iter().map(sync_point).collect::<Vec<_>>()
    };
    let of_lines = meetings.into_par_iter().zip(groups_of).enumerate();
    of_lines.flat_map_iter(of_line).collect()
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
struct LastMeetings<'w> {
    pairs: FxHashMap<u32, SyncPoint>,
    groups: Vec<&'w Group<'w>>,
    /// By group the position of the last search.
    hints: Vec<usize>,
}

impl LastMeetings<'_> {
    fn add(&mut self, Meeting { moment, with, on_other }: Meeting) {
        self.pairs.insert(with, SyncPoint { moment, on_delaying: on_other });
    }

    /// Where the line last met the delaying rank of a wait, which had been there when it ended the wait.
    fn before(&mut self, wait: &Wait) -> Option<SyncPoint> {
        let by = wait.fulfilled;
        let mut last =
            self.pairs.get(&wait.delayed_by).copied().filter(|point| point.on_delaying <= by);
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
