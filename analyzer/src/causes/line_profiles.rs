//! The profiles of all lines: between which moments each is summed up, and what that yields.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, RankView};

use super::callers::PathCounts;
use super::contexts::{Contexts, LocalContext, LocalContexts, NO_CONTEXT};
use super::iterations::Phase;
use super::lines::{CommonAxis, Lines, has_several_threads};
use super::part::Part;
use super::profile::{Profile, Profiler, Profiles, RankProfile, Together, lock};
use super::regions::{RegionObserver, RegionOccurrences, RegionsOfRank};
use super::sync_points::SyncPoint;
use super::together::Axis;
use super::wait::Wait;
use super::waits::{Ended, Waits};

/// What the profiles are asked for: of all lines on the first process, of a process's own lines on
/// others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ProfileRequest {
    pub waits: Waits,
    /// By line the moments between which its time is summed up, ascending.
    moments: Vec<Vec<i64>>,
    /// By line.
    ended: Vec<Ended>,
}

/// Whose moments profiles are asked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub sync_points: &'w [SyncPoint],
    pub phases: &'w [Phase],
    pub part: Option<&'w Part>,
}

impl ProfileRequest {
    /// The moments that later steps ask for. Of several processes, the first makes them and sends
    /// each the part of its own lines.
    pub fn new(
        analysis: &Analysis,
        lines: &Lines,
        waits: (Waits, Vec<Ended>),
        wanted: Wanted,
    ) -> Self {
        let processes = &analysis.processes;
        let ranks = processes.share(analysis.own_ranks());
        let first = processes.is_first();
        let all = first.then(|| Self::of_all(lines, waits, wanted));
        let part_of = all.as_ref().map(|all| {
            let line = |position: usize| match position < ranks_of(lines) {
                true => lines.first_of(position) as usize,
                false => lines.all.len(),
            };
            let ranks = &ranks;
            move |process: usize| {
                let Range { start, end } = ranks[process].clone();
                all.part(line(start)..line(end))
            }
        });
        let part = processes.scatter(part_of);
        all.or(part).unwrap_or_default()
    }

    fn of_all(
        lines: &Lines,
        (waits, ended): (Waits, Vec<Ended>),
        Wanted { sync_points, phases, part }: Wanted,
    ) -> Self {
        let of_line = |(number, ended): (usize, &Ended)| {
            let mut moments = moments((number, ended), &waits, sync_points);
            let position = lines.all[number].position;
            if lines.first_of(position) as usize == number {
                phases.iter().for_each(|phase| moments.extend(phase.moments(position)));
            }
            moments.extend(part.iter().flat_map(|part| part.moments(position)));
            moments.extend([lines.all[number].begin, lines.all[number].end]);
            // The stable sort merges ascending runs.
            moments.sort();
            moments.dedup();
            moments.shrink_to_fit();
            moments
        };
        let moments = ended.par_iter().enumerate().map(of_line).collect();
        Self { waits, moments, ended }
    }

    /// What is asked of consecutive lines.
    fn part(&self, lines: Range<usize>) -> Self {
        fn only<T: Clone>(all: &[Vec<T>], lines: &Range<usize>) -> Vec<Vec<T>> {
            let mut part = vec![Vec::new(); all.len()];
            part[lines.clone()].clone_from_slice(&all[lines.clone()]);
            part
        }
        let (moments, ended) = (only(&self.moments, &lines), only(&self.ended, &lines));
        Self { waits: self.waits.part(lines), moments, ended }
    }

    /// The profiles and regions of all ranks, on the first process, and the waits.
    pub fn profiles(
        self,
        analysis: &Analysis,
        CommonAxis { clock, lines }: CommonAxis,
    ) -> (Vec<RankProfile>, Vec<RegionOccurrences>, Waits) {
        let Self { waits, moments, ended } = self;
        let moments: Vec<Mutex<Vec<i64>>> = moments.into_iter().map(Mutex::new).collect();
        let profiler = Profiler { clock, lines, waits: &waits, moments: &moments, ended: &ended };
        let has_regions = !analysis.run.region_names().is_empty();
        let regions = has_regions.then_some(RegionObserver { clock, lines, waits: &waits });
        let own = analysis.calls_then(&(profiler, regions), |(profile, regions)| {
            (profile.finish(), regions.map(RegionsOfRank::finish))
        });
        let (mut own, in_regions): (Vec<_>, Vec<_>) = own.into_iter().unzip();
        let ranks = analysis.own_ranks().map(|position| analysis.rank(position));
        let ranks: Vec<RankView> = ranks.collect();
        let axis = Axis { clock, lines, waits: &waits };
        own.par_iter_mut().zip(ranks).filter(|(_, rank)| has_several_threads(*rank)).for_each(
            |(profile, rank)| {
                let mut contexts = LocalContexts::from_all(std::mem::take(&mut profile.contexts));
                // Those of its first line: the iterations of the rank are among them.
                let moments = lock(&moments[lines.first_of(rank.position) as usize]).clone();
                profile.together = Some(Together::new(rank, axis, moments, &mut contexts));
                profile.contexts = contexts.into_all();
            },
        );
        drop((moments, ended));
        let in_regions = in_regions.into_iter().flatten().collect();
        let processes = &analysis.processes;
        (processes.join_at_first(own), processes.join_at_first(in_regions), waits)
    }
}

fn ranks_of(lines: &Lines) -> usize {
    lines.all.last().map_or(0, |line| line.position + 1)
}

/// The moments of a line that waits need.
fn moments((number, ended): (usize, &Ended), waits: &Waits, sync_points: &[SyncPoint]) -> Vec<i64> {
    let on_line = waits.on_line(number as u32);
    let own = || on_line.iter().zip(&sync_points[waits.first[number]..]);
    let ended = || {
        let numbers = ended.iter().map(|(_, number)| *number as usize);
        numbers.map(|number| (&waits.all[number], &sync_points[number]))
    };
    let mut moments = Vec::with_capacity(3 * (on_line.len() + ended().len()) + 2);
    let mut add = |moment: i64| {
        if moments.last() != Some(&moment) {
            moments.push(moment);
        }
    };
    own().for_each(|(wait, _)| add(wait.begin));
    own().for_each(|(wait, _)| add(wait.until));
    own().for_each(|(_, point)| add(point.moment));
    ended().for_each(|(wait, _)| add(wait.fulfilled));
    ended().for_each(|(wait, _)| add(wait.until));
    ended().for_each(|(_, point)| add(point.on_delaying));
    moments
}

/// What every line and rank did between the moments that were asked for, and the context of each
/// wait's call.
#[derive(Debug, Default)]
pub(super) struct Profiled {
    pub contexts: Contexts,
    pub profiles: Profiles,
    pub wait_contexts: Vec<u32>,
    pub delayed_by_contexts: Vec<u32>,
    /// For each wait the ticks for which its rank waits; `None` if these are those of the wait itself.
    pub rank_waits: Option<Vec<i64>>,
}

impl Profiled {
    /// Merges the profiles of all ranks, and finds the contexts of the phases.
    pub fn new(
        analysis: &Analysis,
        lines: &Lines,
        of_ranks: Vec<RankProfile>,
        (waits, phases): (&[Wait], &mut [Phase]),
    ) -> Self {
        let contexts: Vec<&[LocalContext]> =
            of_ranks.iter().map(|rank| rank.contexts.as_slice()).collect();
        let counts: Vec<&PathCounts> = of_ranks.iter().map(|rank| &rank.path_counts).collect();
        let (contexts, numbers) = Contexts::merge(analysis.run, &contexts, &counts);
        for phase in phases {
            let anchor = LocalContext::Transfer(phase.anchor);
            let number = of_ranks[0].contexts.iter().position(|context| *context == anchor);
            phase.context = number.map_or(NO_CONTEXT, |number| numbers[0][number]);
        }
        let of_lines = vec![Profile::default(); lines.all.len()];
        let mut all = Self {
            contexts,
            profiles: Profiles { of_lines, together: BTreeMap::new() },
            wait_contexts: vec![NO_CONTEXT; waits.len()],
            delayed_by_contexts: vec![NO_CONTEXT; waits.len()],
            rank_waits: None,
        };
        for (position, (rank, numbers)) in of_ranks.into_iter().zip(numbers).enumerate() {
            for (number, context) in rank.wait_contexts {
                all.wait_contexts[number as usize] = numbers[context as usize];
            }
            for (number, context) in rank.delayed_by_contexts {
                all.delayed_by_contexts[number as usize] = numbers[context as usize];
            }
            for (line, mut profile) in rank.profiles {
                profile.renumber(&numbers);
                all.profiles.of_lines[line as usize] = profile;
            }
            if let Some(Together { mut profile, waited }) = rank.together {
                profile.renumber(&numbers);
                all.profiles.together.insert(lines.first_of(position), profile);
                let of_waits = || waits.iter().map(|wait| wait.ticks).collect();
                let rank_waits = all.rank_waits.get_or_insert_with(of_waits);
                for (wait, ticks) in waited {
                    rank_waits[wait as usize] = ticks;
                }
            }
        }
        all
    }
}
