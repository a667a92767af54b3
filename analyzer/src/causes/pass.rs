//! The pass over all calls that fills the profiles and the regions, once the waits are known.

use rayon::prelude::*;

use crate::analysis::Analysis;

use super::NO_CONTEXT;
use super::contexts::{Contexts, LocalContext, LocalContexts};
use super::iterations::Phase;
use super::lines::Lines;
use super::profile::{Profile, Profiler, ProfilerOfRank};
use super::regions::Regions;
use super::sync_points::SyncPoint;
use super::waits::{Wait, Waits};
use super::whole_ticks::WholeTicks;

/// What the pass found.
pub(super) struct Profiled {
    pub contexts: Contexts,
    pub profiles: Vec<Profile>,
    pub wait_contexts: Vec<u32>,
    pub culprit_contexts: Vec<u32>,
    pub regions: Regions,
}

/// The moments of each line between which its time is summed up, with repetitions; in a few long ascending runs,
/// which are sorted quickly.
fn moments(waits: &Waits, lines: &Lines, sync_points: &[SyncPoint]) -> Vec<Vec<i64>> {
    let mut moments: Vec<Vec<i64>> = vec![Vec::new(); lines.all.len()];
    let of_line: [fn(&Wait, &SyncPoint) -> i64; 3] =
        [|wait, _| wait.begin, |wait, _| wait.until, |_, point| point.moment];
    let of_culprit: [fn(&Wait, &SyncPoint) -> i64; 3] =
        [|wait, _| wait.fulfilled, |wait, _| wait.until, |_, point| point.on_culprit];
    let mut add = |line: u32, moment: i64| {
        let moments = &mut moments[line as usize];
        if moments.last() != Some(&moment) {
            moments.push(moment);
        }
    };
    for line in 0..lines.all.len() as u32 {
        let first = waits.first[line as usize];
        let all = || waits.of(line).iter().zip(&sync_points[first..]);
        for moment in of_line {
            all().for_each(|(wait, point)| add(line, moment(wait, point)));
        }
        for moment in of_culprit {
            let with_culprit = all().filter(|(wait, _)| wait.has_culprit());
            with_culprit.for_each(|(wait, point)| add(wait.culprit, moment(wait, point)));
        }
    }
    moments
}

/// Sums what every line did between the moments that later steps ask for, and in each region, and finds the
/// context of each wait's call.
pub(super) fn profiles(
    analysis: &Analysis,
    (clock, lines): (&WholeTicks, &Lines),
    waits: &Waits,
    (sync_points, phases): (&[SyncPoint], &mut [Phase]),
) -> Profiled {
    let mut moments = moments(waits, lines, sync_points);
    for position in 0..analysis.run.ranks.len() {
        let moments = &mut moments[lines.first_of(position) as usize];
        phases.iter().for_each(|phase| moments.extend(phase.moments(position)));
    }
    let mut ended: Vec<Vec<(i64, u32)>> = vec![Vec::new(); lines.all.len()];
    for (number, wait) in (0u32..).zip(&waits.all).filter(|(_, wait)| wait.has_culprit()) {
        ended[wait.culprit as usize].push((wait.fulfilled, number));
    }
    ended.par_iter_mut().for_each(|of_line| of_line.sort_unstable());
    let profiler = Profiler { clock, lines, waits, moments: &moments, ended: &ended };
    let regions = Regions::observer(analysis.run, (clock, lines), waits);
    let observed = analysis.calls(&(profiler, regions)).into_iter();
    let (mut of_ranks, of_regions): (Vec<ProfilerOfRank>, Vec<Option<_>>) = observed.unzip();
    let of_regions: Vec<_> = of_regions.into_iter().flatten().collect();
    let regions = Regions::new(analysis.run, waits.all.len(), &of_regions);
    of_ranks.iter_mut().for_each(ProfilerOfRank::add_silent_line);
    let contexts: Vec<&LocalContexts> = of_ranks.iter().map(|rank| &rank.contexts).collect();
    let (contexts, numbers) = Contexts::merge(analysis.run, &contexts);
    let mut profiles = vec![Profile::default(); lines.all.len()];
    let mut wait_contexts = vec![NO_CONTEXT; waits.all.len()];
    let mut culprit_contexts = wait_contexts.clone();
    for phase in phases {
        let anchor = of_ranks[0].contexts.known(LocalContext::Transfer(phase.anchor));
        phase.context = anchor.map_or(NO_CONTEXT, |anchor| numbers[0][anchor as usize]);
    }
    for (rank, numbers) in of_ranks.into_iter().zip(numbers) {
        for (number, context) in rank.wait_contexts {
            wait_contexts[number as usize] = numbers[context as usize];
        }
        for (number, context) in rank.culprit_contexts {
            culprit_contexts[number as usize] = numbers[context as usize];
        }
        for (line, mut profile) in rank.profiles {
            profile.renumber(&numbers);
            profiles[line as usize] = profile;
        }
    }
    Profiled { contexts, profiles, wait_contexts, culprit_contexts, regions }
}
