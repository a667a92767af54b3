//! Parts of a run: their waits are clipped to them, and those of adjacent parts add up.

use proptest::prelude::*;

use super::*;
use crate::metrics::Bound;

fn seconds(from: f64, to: f64) -> Selection {
    Selection::Window { from: Bound::Seconds(from), to: Bound::Seconds(to) }
}

/// Checks what holds for every part: each tick of waiting is charged once, no rank does more than
/// there is time, and the part's length holds what any rank does in it.
fn assert_part(causes: &Causes) {
    let part = causes.part.as_ref().unwrap();
    let charged: i64 = causes.charges.causes.values().map(|cost| cost.total()).sum();
    assert_eq!(charged + causes.charges.unattributed, causes.waiting(), "charged and waiting");
    assert!(causes.charges.unattributed >= 0);
    let all: i64 = (0..causes.waits.len() as u32).map(|number| causes.ticks_of(number)).sum();
    assert_eq!(all, causes.waiting(), "waits and groups");
    for (position, time) in causes.rank_times.iter().enumerate() {
        let RankTime { computing, waiting, transfer, recorder, gone } = *time;
        let inside: i64 = part.stretches(position).iter().map(|(begin, end)| end - begin).sum();
        assert_eq!(computing + waiting + transfer + recorder + gone, inside, "{time:?}");
        assert!(inside <= causes.elapsed(), "{inside} in {}", causes.elapsed());
        assert!([computing, waiting, transfer, recorder, gone].iter().all(|ticks| *ticks >= 0));
        // Of a rank with one thread, the waits that are listed are what it waits.
        if causes.lines.of_rank(position).len() == 1 {
            let number = causes.lines.first_of(position);
            let of_line = (0u32..).zip(&causes.waits).filter(|(_, wait)| wait.line == number);
            let listed: i64 = of_line.map(|(wait, _)| causes.ticks_of(wait)).sum();
            assert_eq!(listed, waiting, "rank {position}");
        }
    }
}

fn added(causes: &[Causes]) -> (i64, Vec<i64>) {
    let ranks = causes[0].rank_times.len();
    let of_rank = |rank: usize| causes.iter().map(|of| of.rank_times[rank].waiting).sum();
    (causes.iter().map(Causes::waiting).sum(), (0..ranks).map(of_rank).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(32)))]
    #[test]
    fn waits_of_adjacent_parts_add_up(ranks in generated::runs_with_loops(), share in 0.01..0.99f64) {
        with_analysis(&ranks, |analysis| {
            let all = Causes::new(analysis);
            let elapsed = all.clock.seconds(all.whole.1 - all.whole.0);
            let middle = share * elapsed;
            let halves = [(0.0, middle), (middle, elapsed + 1.0)].map(|(from, to)| {
                of_part(analysis, &seconds(from, to))
            });
            halves.iter().for_each(assert_part);
            assert_eq!(added(&halves), added(std::slice::from_ref(&all)));
            let Some(phase) = all.phases.first() else { return };
            let count = phase.iterations.len();
            let turns: Vec<Causes> = (0..count).map(|at| of_iteration(analysis, at)).collect();
            turns.iter().for_each(assert_part);
            let of_wait = |wait: &Wait| {
                let moments = phase.moments(all.lines.all[wait.line as usize].position);
                let (begin, end) = (moments[0], moments[count]);
                ((wait.begin + wait.ticks).min(end) - wait.begin.max(begin)).max(0)
            };
            assert_eq!(added(&turns).0, all.waits.iter().map(of_wait).sum::<i64>());
            for region in all.regions.all.iter().filter(|region| region.ticks > 0) {
                let causes = of_part(analysis, &Selection::Region(region.name.clone()));
                assert_part(&causes);
                assert_eq!((causes.ranks_waited(), causes.elapsed()), (region.waiting, region.ticks));
            }
        });
    }
}

/// Rank 1 computes for 900 ticks where rank 0 needs 100, in a region that begins 500 ticks earlier;
/// before that, rank 0 is late by 300.
fn unequal_region() -> [SyntheticRank; 2] {
    let mut ranks = world();
    for (number, rank) in ranks.iter_mut().enumerate() {
        let late = [300, 0][number];
        rank.region_name(4, "solve");
        rank.call_with("MPI_Barrier", at(100 + late), at(410), on_world(0, 0, 0));
        rank.region_begin(0, 4, at(500));
        rank.call_with("MPI_Barrier", at([600, 1_400][number]), at(1_410), on_world(0, 0, 0));
        rank.region_end(0, 4, at(1_500));
    }
    ranks
}

#[test]
fn a_region_has_the_waits_inside_it_and_their_causes() {
    with_analysis(&unequal_region(), |analysis| {
        let causes = of_part(analysis, &Selection::Region("solve".into()));
        assert_part(&causes);
        assert_eq!((causes.waiting(), causes.elapsed()), (800, 1_000));
        assert_eq!(costs(&causes), [(1, "solve".into(), 800, 0)]);
        let times = causes.rank_times.iter().map(|of| (of.computing, of.waiting));
        assert_eq!(times.collect::<Vec<_>>(), [(190, 800), (990, 0)]);
        let tree = causes.tree(analysis.run, None).unwrap();
        assert_eq!((tree.parallel, tree.communication), (1_180.0 / 2_000.0, 0.99));
    });
}

#[test]
fn a_window_cuts_the_wait_in_its_middle() {
    with_analysis(&unequal_region(), |analysis| {
        let all = Causes::new(analysis);
        let at_s = |ticks: u64| all.clock.seconds(at(ticks) as i64 - BEGIN);
        let causes = of_part(analysis, &seconds(at_s(1_000), at_s(1_200)));
        assert_part(&causes);
        assert_eq!((causes.waiting(), causes.elapsed()), (200, 200));
        assert_eq!(costs(&causes), [(1, "solve".into(), 200, 0)]);
        let both = Selection::of_all(vec![
            Selection::Region("solve".into()),
            seconds(at_s(0), at_s(1_000)),
        ]);
        let causes = of_part(analysis, &both);
        assert_part(&causes);
        assert_eq!((causes.waiting(), causes.elapsed()), (400, 500));
    });
}
