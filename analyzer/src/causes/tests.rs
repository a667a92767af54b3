//! Waits, costs and critical paths of synthetic runs with known results.

use std::path::Path;

use trace_format::header::{Definition, Phase};

use super::*;
use crate::metrics::{Question, Selection};
use crate::processes::in_threads;
use crate::synthetic_messages::{completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;

mod certainty;
mod chains;
pub(crate) mod generated;
mod one_sided;
mod parts;
mod path_labels;
mod places;
mod stretches;

/// First tick of the synthetic ranks' calls, begin of the ranks, and their end.
const T: u64 = 2_000_000;
const BEGIN: i64 = 1_000_000;
const END: u64 = 3_000_000;

fn at(ticks: u64) -> u64 {
    T + ticks
}

fn world<const RANKS: usize>() -> [SyntheticRank; RANKS] {
    std::array::from_fn(|rank| SyntheticRank::level_1(rank as u32, RANKS as u32, END))
}

/// Checks what holds for every run: each tick of waiting is charged once, the path is as long as
/// the run, and the profile of each line covers all of it.
fn assert_sums(causes: &Causes) {
    let charged: i64 = causes.charges.causes.values().map(|cost| cost.total()).sum();
    assert_eq!(charged + causes.charges.unattributed, causes.waiting(), "charged and waiting");
    assert_eq!(causes.path.ticks(), causes.whole.1 - causes.whole.0, "the path's length");
    let in_contexts: i64 = causes.path.in_context.values().sum();
    assert_eq!(in_contexts + causes.path.skew, causes.path.ticks(), "the path's contexts");
    for (line, profile) in causes.lines.all.iter().zip(&causes.profiles.of_lines) {
        let filled: i64 = profile.all().map(|(_, ticks)| ticks).sum();
        assert_eq!(filled, line.end - line.begin, "rank {} thread {}", line.rank, line.thread);
    }
    for time in &causes.rank_times {
        let RankTime { computing, waiting, transfer, recorder, gone } = *time;
        let all = computing + waiting + transfer + recorder + gone;
        assert_eq!(all, causes.whole.1 - causes.whole.0, "{time:?}");
    }
    let of_ranks: i64 = causes.rank_times.iter().map(|time| time.waiting).sum();
    assert_eq!(causes.ranks_waited(), of_ranks, "waiting of waits and of ranks");
}

/// Finds the causes of a run, checks what holds for every run, and passes them to `then`.
fn with_causes(ranks: &[SyntheticRank], then: impl FnOnce(&Causes)) {
    with_analysis(ranks, |analysis| {
        let causes = Causes::new(analysis);
        assert_sums(&causes);
        assert_same_in_processes(&analysis.run.directory, MAX_WAITS, &causes);
        then(&causes);
    });
}

fn at_most(max_waits: usize) -> CausesOptions<'static> {
    CausesOptions { max_waits, ..CausesOptions::default() }
}

/// The causes of a part of a run.
fn of_part<'a>(analysis: &Analysis<'a>, selection: &Selection) -> Causes<'a> {
    let metrics =
        Metrics::for_question(analysis, Question::about(selection).without_messages()).unwrap();
    Causes::with_options(analysis, CausesOptions::of_part(&metrics)).unwrap()
}

fn of_iteration<'a>(analysis: &Analysis<'a>, number: usize) -> Causes<'a> {
    let iteration = Causes::iteration(analysis, number).unwrap();
    of_part(analysis, &Selection::Iteration(iteration))
}

/// Asserts that several processes find the same as one.
fn assert_same_in_processes(path: &Path, most: usize, expected: &Causes) {
    let expected = format!("{expected:#?}");
    for count in 2..=3 {
        let of_processes = in_threads::run(count, |processes| {
            let run = Run::open_in(path, &processes).unwrap();
            let timeline = GlobalTimeline::new(&run);
            let analysis = Analysis::divided(&run, &timeline);
            Causes::with_options(&analysis, at_most(most)).map(|causes| format!("{causes:#?}"))
        });
        let (first, others) = of_processes.split_first().unwrap();
        let differs = first.iter().flat_map(|text| text.lines()).zip(expected.lines());
        let differs = differs.enumerate().find(|(_, (a, b))| a != b);
        assert!(first.as_deref() == Some(&expected), "{count} processes: {differs:?}");
        assert!(others.iter().all(Option::is_none));
    }
}

fn with_analysis(ranks: &[SyntheticRank], then: impl FnOnce(&Analysis)) {
    let directory = finished(ranks);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    then(&Analysis::new(&run, &timeline));
}

/// The files of a run; ranks that were not killed call MPI_Finalize.
pub(crate) fn finished(ranks: &[SyntheticRank]) -> RunDirectory {
    let ends = |rank: &SyntheticRank| {
        rank.definitions.iter().any(|definition| matches!(definition, Definition::RankEnd { .. }))
    };
    let mut ranks = ranks.to_vec();
    for rank in ranks.iter_mut().filter(|rank| ends(rank)) {
        rank.finalize(END, END + 10);
    }
    RunDirectory::with_ranks(&ranks)
}

/// State, waiting rank, delaying rank's rank, begin and length in ticks, without waits at the ends of
/// ranks.
fn waits(causes: &Causes) -> Vec<(State, u32, Option<u32>, i64, i64)> {
    let rank = |line: u32| causes.lines.all.get(line as usize).map(|line| line.rank);
    let inside = causes
        .waits
        .iter()
        .filter(|wait| !matches!(wait.state, State::WaitAtFinalize | State::StartSkew));
    let since = T as i64 - BEGIN;
    inside
        .map(|w| (w.state, rank(w.line).unwrap(), rank(w.delayed_by), w.begin - since, w.ticks))
        .collect()
}

/// Rank, abbreviated context, direct and indirect cost.
fn costs(causes: &Causes) -> Vec<(u32, String, i64, i64)> {
    let short = |context: &Context| match context {
        Context::Between(from, to) => {
            let name = |site: &Option<CallSite>| {
                site.as_ref().map_or("-".to_owned(), |site| site.function.clone())
            };
            format!("{}..{}", name(from), name(to))
        }
        Context::Transfer(site) => format!("in {}", site.function),
        Context::InCall(site, _) => format!("call {}", site.function),
        Context::Region(name) => name.clone(),
        other => format!("{other:?}"),
    };
    let all = causes.charges.causes.iter().map(|((line, context), cost)| {
        let rank = causes.lines.all[*line as usize].rank;
        (rank, short(causes.contexts.get(*context)), cost.direct, cost.indirect)
    });
    all.filter(|(.., direct, indirect)| direct + indirect > 0).collect()
}

#[test]
fn of_too_many_waits_the_longest_are_explained() {
    const ALL: u64 = 500;
    let [mut a, mut b] = world();
    for number in 0..ALL {
        let begin = number * 2_000;
        let wait = 1 + number * 613 % 1_000;
        b.call_with("MPI_Recv", at(begin), at(begin + wait + 10), on_world(0, 5, 8));
        a.call_with("MPI_Send", at(begin + wait), at(begin + wait + 5), on_world(1, 5, 8));
    }
    with_analysis(&[a, b], |analysis| {
        let all = waits(&Causes::new(analysis));
        let causes = Causes::with_options(analysis, at_most(100)).unwrap();
        assert_sums(&causes);
        assert_same_in_processes(&analysis.run.directory, 100, &causes);
        let Unknown::Short { count, sum_ns, below_ns } = causes.unknown[0] else {
            panic!("{:?}", causes.unknown)
        };
        let kept = waits(&causes);
        assert_eq!((all.len() as u64, kept.len() as u64 + count), (ALL, ALL));
        let (long, short): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(.., ticks)| *ticks >= below_ns as i64);
        assert_eq!(kept, long);
        assert_eq!(sum_ns as i64, short.iter().map(|(.., ticks)| ticks).sum::<i64>());
        assert!(!kept.is_empty() && count > ALL / 2, "{count}");
    });
}

#[test]
fn receive_waits_for_late_send() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    b.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    a.call_with("MPI_Send", at(110), at(130), on_world(1, 5, 8));
    b.call_with("MPI_Recv", at(20), at(135), on_world(0, 5, 8));
    with_causes(&[a, b], |causes| {
        assert_eq!(waits(causes), [(State::LateSender, 1, Some(0), 20, 90)]);
        // Both left the barrier at 10. Rank 0 spent 100 between its calls, rank 1 spent 10.
        assert_eq!(costs(causes), [(0, "MPI_Barrier..MPI_Send".to_owned(), 90, 0)]);
        assert_eq!(causes.charges.unattributed, 0);
        // The path runs along rank 0 up to its send, then along rank 1.
        let of: Vec<(u32, i64)> =
            causes.path.on_line.iter().map(|(line, ticks)| (*line, *ticks)).collect();
        let turn = T as i64 - BEGIN + 110;
        assert_eq!(of.iter().map(|(_, ticks)| ticks).sum::<i64>(), END as i64 - BEGIN);
        // The ranks end at the same time, so either may be the last; rank 0 never waits.
        assert!(
            of == [(0, END as i64 - BEGIN)] || of == [(0, turn), (1, END as i64 - BEGIN - turn)]
        );
    });
}

#[test]
fn costs_are_passed_on_along_the_chain_of_waits() {
    let [mut a, mut b, mut c] = world();
    for rank in [&mut a, &mut b, &mut c] {
        rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    }
    // Rank 0 computes for 200. Rank 1 waits for it, and rank 2 for rank 1, which adds no delay of
    // its own.
    a.call_with("MPI_Send", at(210), at(220), on_world(1, 5, 8));
    b.call_with("MPI_Recv", at(20), at(225), on_world(0, 5, 8));
    b.call_with("MPI_Send", at(230), at(240), on_world(2, 5, 8));
    c.call_with("MPI_Recv", at(20), at(245), on_world(1, 5, 8));
    with_causes(&[a, b, c], |causes| {
        let expected =
            [(State::LateSender, 1, Some(0), 20, 190), (State::LateSender, 2, Some(1), 20, 210)];
        assert_eq!(waits(causes), expected);
        // Rank 2's 210 are due to contexts of rank 1 that rank 2 does not have (15 in its receive,
        // 5 between its calls; both have the 10 before the receive), and to rank 1's wait of 190
        // for rank 0.
        let costs = costs(causes);
        let of = |rank: u32| costs.iter().filter(move |(other, ..)| *other == rank);
        assert_eq!(of(0).map(|(.., direct, _)| direct).sum::<i64>(), 190);
        assert_eq!(of(0).map(|(.., indirect)| indirect).sum::<i64>(), 190);
        assert_eq!(of(1).map(|(.., direct, _)| direct).sum::<i64>(), 20);
        assert_eq!(of(1).map(|(.., indirect)| indirect).sum::<i64>(), 0);
        assert_eq!(causes.charges.unattributed, 0);
    });
}

#[test]
fn wait_is_not_charged_to_a_delay_that_both_sides_had_waited_for() {
    // A pipeline: rank 0 is 300 late in the first turn, rank 2 is 200 late in the second.
    let mut ranks = world::<4>();
    let mut now = [10; 4];
    for rank in &mut ranks {
        rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    }
    for late in [[300, 0, 0, 0], [0, 0, 200, 0]] {
        let mut sent = 0;
        for (rank, of_rank) in ranks.iter_mut().enumerate() {
            if rank > 0 {
                let done = sent.max(now[rank]) + 5;
                let from = on_world(rank as i32 - 1, 5, 8);
                of_rank.call_with("MPI_Recv", at(now[rank]), at(done), from);
                now[rank] = done;
            }
            now[rank] += 20 + late[rank];
            if rank < 3 {
                sent = now[rank];
                let to = on_world(rank as i32 + 1, 5, 8);
                of_rank.call_with("MPI_Bsend", at(sent), at(sent + 5), to);
                now[rank] += 5;
            }
        }
    }
    let last = now[3];
    for (rank, entered) in ranks.iter_mut().zip(now) {
        rank.call_with("MPI_Barrier", at(entered), at(last + 5), on_world(0, 0, 0));
    }
    with_causes(&ranks, |causes| {
        let costs = costs(causes);
        let of = |rank: u32| {
            let of_rank = costs.iter().filter(|(other, ..)| *other == rank);
            of_rank.map(|(.., direct, indirect)| direct + indirect).sum::<i64>()
        };
        // All three others wait for each. Little more is due to filling and draining the pipeline.
        assert!((900..1_050).contains(&of(0)), "{costs:?}");
        assert!((600..700).contains(&of(2)), "{costs:?}");
    });
}

#[test]
fn standard_send_waits_if_its_receive_best_explains_its_end() {
    let [mut a, mut b] = world();
    // This send returned before its receive was posted.
    a.call_with("MPI_Send", at(10), at(20), on_world(1, 5, 64));
    a.call_with("MPI_Send", at(30), at(150), on_world(1, 5, 64));
    // This call also receives the message sent at 270.
    a.call_with("MPI_Sendrecv", at(200), at(300), on_world(1, 5, 64)).receiving(1, 6, 8);
    b.call_with("MPI_Recv", at(50), at(60), on_world(0, 5, 64));
    b.call_with("MPI_Recv", at(140), at(151), on_world(0, 5, 64));
    b.call_with("MPI_Bsend", at(270), at(271), on_world(0, 6, 8));
    b.call_with("MPI_Recv", at(284), at(301), on_world(0, 5, 64));
    // Here the message came early, and the call ended when its receiver came.
    a.call_with("MPI_Sendrecv", at(400), at(500), on_world(1, 5, 64)).receiving(1, 6, 8);
    b.call_with("MPI_Bsend", at(410), at(411), on_world(0, 6, 8));
    b.call_with("MPI_Recv", at(490), at(501), on_world(0, 5, 64));
    with_causes(&[a, b], |causes| {
        let expected = [
            (State::LateReceiver, 0, Some(1), 30, 110),
            (State::LateSender, 0, Some(1), 200, 70),
            (State::LateReceiver, 0, Some(1), 400, 90),
        ];
        assert_eq!(waits(causes), expected);
    });
}

#[test]
fn waitall_waits_for_the_last_and_waitsome_for_the_first() {
    let [mut a, mut b, mut c] = world();
    a.call_with("MPI_Send", at(50), at(60), on_world(2, 5, 8));
    b.call_with("MPI_Send", at(90), at(95), on_world(2, 5, 8));
    a.call_with("MPI_Send", at(150), at(160), on_world(2, 6, 8));
    b.call_with("MPI_Send", at(190), at(195), on_world(2, 6, 8));
    for (tag, from, request) in [(5, 0, 11), (5, 1, 12), (6, 0, 13), (6, 1, 14)] {
        let posted = at(request - 10);
        c.call_with("MPI_Irecv", posted, posted, on_world(from, tag, 8).request(request as u32));
    }
    let done = |request, from, tag| completed(request, from, tag, 8);
    c.several("MPI_Waitall", at(10), at(100), &[done(11, 0, 5), done(12, 1, 5)]);
    c.several("MPI_Waitsome", at(110), at(200), &[done(13, 0, 6), done(14, 1, 6)]);
    with_causes(&[a, b, c], |causes| {
        let expected =
            [(State::LateSender, 2, Some(1), 10, 80), (State::LateSender, 2, Some(0), 110, 40)];
        assert_eq!(waits(causes), expected);
    });
}

#[test]
fn polls_wait_for_what_ended_them() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Send", at(100), at(110), on_world(1, 5, 8));
    b.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 8).request(11));
    // The polls last from 10 to 130, with 60 inside MPI; the message is sent after three quarters
    // of that.
    b.polls("MPI_Test", at(10), at(130), 20, 60);
    b.call_with("MPI_Test", at(131), at(133), completed(11, 0, 5, 8));
    with_causes(&[a, b], |causes| {
        assert_eq!(waits(causes), [(State::LateSender, 1, Some(0), 10, 45)]);
    });
}

#[test]
fn testall_waits_for_the_last_of_its_messages() {
    let [mut a, mut b, mut c] = world();
    a.call_with("MPI_Send", at(50), at(60), on_world(2, 5, 8));
    b.call_with("MPI_Send", at(90), at(95), on_world(2, 5, 8));
    for (from, request) in [(0, 11), (1, 12)] {
        let posted = at(u64::from(request) - 10);
        c.call_with("MPI_Irecv", posted, posted, on_world(from, 5, 8).request(request));
    }
    c.polls("MPI_Testall", at(10), at(90), 20, 40);
    c.several("MPI_Testall", at(91), at(93), &[completed(11, 0, 5, 8), completed(12, 1, 5, 8)]);
    with_causes(&[a, b, c], |causes| {
        assert_eq!(waits(causes), [(State::LateSender, 2, Some(1), 10, 40)]);
    });
}

#[test]
fn matched_probe_waits_for_the_send_of_its_message() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Bsend", at(100), at(110), on_world(1, 5, 8));
    b.call_with("MPI_Mprobe", at(20), at(112), on_world(0, 5, 8).request(77));
    b.call_with("MPI_Mrecv", at(120), at(125), on_world(0, 5, 8).request(77));
    with_causes(&[a, b], |causes| {
        assert_eq!(waits(causes), [(State::LateSender, 1, Some(0), 20, 80)]);
        assert_eq!(causes.unknown, []);
    });
}

#[test]
fn abandoned_polls_have_no_delaying_rank() {
    let [mut a, mut b] = world();
    b.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 8).request(11));
    b.polls("MPI_Test", at(10), at(130), 20, 60);
    // Rank 0 sends only after it has received these.
    b.call_with("MPI_Bsend", at(140), at(142), on_world(0, 6, 8));
    b.call_with("MPI_Bsend", at(143), at(145), on_world(0, 6, 8));
    b.call_with("MPI_Test", at(250), at(252), completed(11, 0, 5, 8));
    a.call_with("MPI_Recv", at(10), at(145), on_world(1, 6, 8));
    a.call_with("MPI_Recv", at(146), at(148), on_world(1, 6, 8));
    a.call_with("MPI_Bsend", at(200), at(201), on_world(1, 5, 8));
    with_causes(&[a, b], |causes| {
        let expected =
            [(State::LateSender, 0, Some(1), 10, 130), (State::Polling, 1, None, 10, 60)];
        assert_eq!(waits(causes), expected);
        assert_eq!(causes.unknown, []);
    });
}

#[test]
fn open_call_has_no_delaying_rank() {
    let [mut a, mut b] = world();
    a.killed();
    b.killed();
    a.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    b.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    a.call_with("MPI_Comm_rank", at(500), at(501), on_world(0, 0, 0));
    b.open_call_with("MPI_Recv", at(20), on_world(0, 5, 8));
    with_causes(&[a, b], |causes| {
        let found = waits(causes);
        assert_eq!(found.len(), 1, "{found:?}");
        let (state, rank, delayed_by, begin, _) = found[0];
        assert_eq!((state, rank, delayed_by, begin), (State::OpenAtEnd, 1, None, 20));
        assert_eq!(causes.charges.unattributed, causes.waiting());
    });
}

#[test]
fn killed_rank_is_gone_and_waits_for_nobody() {
    let [mut a, mut b] = world();
    b.killed();
    a.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    b.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
    with_causes(&[a, b], |causes| {
        let [survivor, killed] = [0, 1].map(|position| causes.rank_times[position]);
        let after = causes.whole.1 - causes.lines.all[1].end;
        assert!(after > 0 && survivor.gone == 0, "{survivor:?}, {after}");
        assert_eq!((killed.gone, killed.waiting), (after, 0), "{killed:?}");
        assert!(causes.waits.iter().all(|wait| wait.state != State::WaitAtFinalize));
    });
}

#[test]
fn non_blocking_collective_may_wait_for_progress() {
    let mut ranks = world::<3>();
    // Longer than what is examined at least, 100 µs.
    const LONG: u64 = 300_000;
    for (rank, waits) in ranks.iter_mut().zip([60, LONG, 70]) {
        let begin = on_world(0, 8, 8).request(11);
        rank.call_with("MPI_Iallreduce", at(10), at(12), begin);
        rank.call_with("MPI_Wait", at(waits), at(LONG + 90), completed(11, 0, 0, 0));
    }
    with_causes(&ranks, |causes| {
        let of = |rank, begin: u64| {
            let ticks = (LONG - begin) as i64;
            (State::LateProgress, rank, Some(1), begin as i64, ticks)
        };
        assert_eq!(waits(causes), [of(0, 60), of(2, 70)]);
    });
}

#[test]
fn time_without_a_core_bounds_what_a_state_has_of_it() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Send", at(110), at(130), on_world(1, 5, 8));
    b.call_with("MPI_Recv", at(20), at(135), on_world(0, 5, 8));
    for (waited_ns, most) in [(30, 30), (5_000, 90)] {
        let mut b = b.clone();
        b.usage(Phase::Init, 5, 0).usage(Phase::Finalize, 5 + waited_ns, 0);
        with_causes(&[a.clone(), b], |causes| {
            assert_eq!(causes.off_cpu.of_line, [None, Some(waited_ns as i64)]);
            assert_eq!(causes.off_cpu.at_most[&State::LateSender], Some(most));
        });
    }
    with_causes(&[a, b], |causes| {
        assert_eq!(causes.off_cpu.at_most[&State::LateSender], None);
    });
}

#[test]
fn level_0_has_computing_times_but_no_waits() {
    let mut ranks: Vec<SyntheticRank> =
        (0..2).map(|rank| SyntheticRank::complete(rank, 2, BEGIN as u64, END)).collect();
    for rank in &mut ranks {
        rank.call(0, "MPI_Barrier", at(0), at(100));
    }
    with_causes(&ranks, |causes| {
        assert_eq!(causes.unknown, [Unknown::NoAttributes]);
        assert!(waits(causes).is_empty());
        assert_eq!(causes.computing(0), END as i64 - BEGIN - 100);
    });
}
