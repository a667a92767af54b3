//! Which findings runs have, and in which order.

use trace_format::header::Definition;

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::metrics::{Metrics, Selection};
use crate::replay::{NoIdeal, ideal_and_replay};
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::finding::{NoOverlap, Placement, SerialIo, SlowHost, ThreadsShareCores};
use super::*;

mod functions;
mod losses;

const BEGIN: u64 = 1_000_000;
const TURNS: u64 = 40;

/// The findings on a run.
fn findings_of(ranks: &[SyntheticRank]) -> Vec<Finding> {
    findings_with(ranks, true)
}

/// The findings on a run that is not replayed.
fn findings_without_replay(ranks: &[SyntheticRank]) -> Vec<Finding> {
    findings_with(ranks, false)
}

fn findings_with(ranks: &[SyntheticRank], is_replayed: bool) -> Vec<Finding> {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let analysis = Analysis::new(&run, &timeline);
    let causes = Causes::new(&analysis);
    let (ideal, replay) = match is_replayed {
        true => ideal_and_replay(&analysis, None),
        false => (Err(NoIdeal::NotAsked), None),
    };
    let (run, timeline, metrics) = (&run, &timeline, &metrics);
    let (causes, replay) = (Some(&causes), replay.as_ref());
    Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay }).findings
}

/// The findings on ranks that compute and meet again and again; `work` is by rank and turn.
fn findings_on(ranks: &[SyntheticRank], work: impl Fn(usize, u64) -> u64) -> Vec<Finding> {
    let mut ranks = ranks.to_vec();
    let mut met = BEGIN;
    for turn in 0..TURNS {
        let entered: Vec<u64> = (0..ranks.len()).map(|rank| met + work(rank, turn)).collect();
        met = entered.iter().max().unwrap() + 10;
        for (rank, entered) in ranks.iter_mut().zip(entered) {
            rank.call_with("MPI_Allreduce", entered, met, on_world(0, 8, 8));
        }
    }
    for rank in &mut ranks {
        rank.definitions.retain(|of| !matches!(of, Definition::RankEnd { .. }));
        rank.definitions.push(Definition::RankEnd { ticks: met });
        rank.finalize(met, met + 10);
    }
    findings_of(&ranks)
}

fn world(count: u32) -> Vec<SyntheticRank> {
    (0..count).map(|rank| SyntheticRank::level_1(rank, count, 4_000_000)).collect()
}

fn delayed_by(findings: &[Finding]) -> Option<u32> {
    findings.iter().find_map(|finding| match finding {
        Finding::Delay(delay) => Some(delay.rank),
        _ => None,
    })
}

#[test]
fn slow_iterations_are_blamed_only_for_waiting_that_they_contain() {
    let usual = |rank: usize| if rank == 1 { 9_000 } else { 5_000 };
    let slow = |findings: &[Finding]| {
        findings.iter().any(|finding| matches!(finding, Finding::SlowIterations { slow: 1, .. }))
    };
    // All ranks take longer in one iteration: nobody waits longer there.
    let all_slow = |rank: usize, turn: u64| usual(rank) + if turn == 19 { 900_000 } else { 0 };
    let findings = findings_on(&world(2), all_slow);
    assert!(!slow(&findings) && delayed_by(&findings) == Some(1), "{findings:?}");
    let one_slow =
        |rank: usize, turn: u64| usual(rank) + if (rank, turn) == (1, 19) { 900_000 } else { 0 };
    let findings = findings_on(&world(2), one_slow);
    assert!(slow(&findings), "{findings:?}");
}

#[test]
fn ranks_that_are_late_by_turns_delay_each_other() {
    let found = |late: &dyn Fn(u64) -> usize| {
        let work = |rank: usize, turn: u64| if late(turn) == rank { 12_000 } else { 10_000 };
        let findings = findings_on(&world(3), work);
        findings.into_iter().find_map(|finding| match finding {
            Finding::Delay(delay) => Some((delay.rank, delay.mutual)),
            _ => None,
        })
    };
    // Rank 1 is late in half of the turns, rank 2 in a third.
    let by_turns = |turn: u64| [1, 2, 0, 1, 2, 1][turn as usize % 6];
    assert_eq!(found(&by_turns), Some((1, true)));
    assert_eq!(found(&|_| 1), Some((1, false)));
}

#[test]
fn no_rank_is_blamed_where_most_waits_are_below_the_clocks_uncertainty() {
    let mut ranks = world(3);
    (ranks[1].header.host, ranks[1].header.boot_id) = ("n1".into(), "boot-n1".into());
    for definition in &mut ranks[1].definitions {
        if let Definition::ClockExchange(exchange) = definition {
            (exchange.same_host, exchange.bound_ticks) = (false, 20_000);
        }
    }
    // Rank 0 reads the clock of rank 2 and waits a little; rank 1 on another host waits longer.
    let work = |rank: usize, _| [9_900, 5_000, 10_000][rank];
    let findings = findings_on(&ranks, work);
    let uncertain = |finding: &Finding| matches!(finding, Finding::UncertainWaits { .. });
    assert!(findings.iter().any(uncertain) && delayed_by(&findings).is_none(), "{findings:?}");
    // On one host the same is certain.
    assert_eq!(delayed_by(&findings_on(&world(3), work)), Some(2));
}

/// Four ranks on the given hosts, of which ranks 2 and 3 take turns in being late at a barrier.
fn slow_host_of(hosts: [&str; 4]) -> Option<String> {
    let end = 3_000_000;
    let mut ranks: [SyntheticRank; 4] =
        std::array::from_fn(|rank| SyntheticRank::level_1(rank as u32, 4, end));
    for (number, (rank, host)) in ranks.iter_mut().zip(hosts).enumerate() {
        rank.header.host = host.into();
        for turn in 0..20 {
            let begin = 2_000_000 + turn * 10_000;
            let is_late = number >= 2 && turn as usize % 2 == number - 2;
            let entered = begin + if is_late { 8_000 } else { 1_000 };
            rank.call_with("MPI_Barrier", entered, begin + 8_010, on_world(0, 0, 0));
        }
        rank.finalize(end, end + 10);
    }
    slow_host_in(&findings_of(&ranks)).map(|found| found.host)
}

fn slow_host_in(findings: &[Finding]) -> Option<SlowHost> {
    findings.iter().find_map(|finding| match finding {
        Finding::SlowHost(found) => Some(found.clone()),
        _ => None,
    })
}

#[test]
fn slow_host_is_named_where_no_single_rank_of_it_is_to_blame() {
    assert_eq!(slow_host_of(["a", "a", "b", "b"]).as_deref(), Some("b"));
    assert_eq!(slow_host_of(["a", "b", "a", "b"]), None);
    assert_eq!(slow_host_of(["a"; 4]), None);
}

#[test]
fn slow_host_is_named_instead_of_its_last_rank_if_all_its_ranks_compute_longer() {
    let with_work = |work: [u64; 4]| {
        let mut ranks = world(4);
        ranks[2..].iter_mut().for_each(|rank| rank.header.host = "b".into());
        findings_on(&ranks, move |rank, _| work[rank])
    };
    // Rank 3 always comes last.
    let findings = with_work([5_000, 5_200, 9_800, 10_000]);
    let found = slow_host_in(&findings).expect("both ranks of host b compute longer");
    assert_eq!((found.host.as_str(), &found.ranks[..]), ("b", &[2, 3][..]));
    // Before and after the turns, all compute equally long.
    assert!(found.times.is_some_and(|times| (1.1..2.0).contains(&times)), "{found:?}");
    assert!(found.place.is_some() && found.share > 0.9, "{found:?}");
    assert_eq!(delayed_by(&findings), None, "said twice: {findings:?}");
    let blamed = |finding: &Finding| matches!(finding, Finding::Efficiency(of) if of.blamed);
    assert!(findings.iter().any(blamed), "{findings:?}");
    // One of its ranks computes as the others do.
    let findings = with_work([5_000, 5_200, 5_100, 10_000]);
    assert_eq!((slow_host_in(&findings), delayed_by(&findings)), (None, Some(3)));
}

/// Two ranks, of which the first sends many messages of `bytes` to the second, which posts its receives a little later.
fn with_messages(bytes: u32) -> [SyntheticRank; 2] {
    const MESSAGES: u64 = 600;
    let end = BEGIN + MESSAGES * 2_000;
    let [mut sender, mut receiver] = [0, 1].map(|rank| SyntheticRank::level_1(rank, 2, end));
    for number in 0..MESSAGES {
        let at = BEGIN + number * 2_000;
        sender.call_with("MPI_Send", at + 1_000, at + 1_600, on_world(1, 7, bytes));
        receiver.call_with("MPI_Recv", at + 1_100, at + 1_500, on_world(0, 7, bytes));
    }
    [sender, receiver].map(|mut rank| {
        rank.finalize(end, end + 10);
        rank
    })
}

#[test]
fn many_small_messages_are_found_with_their_cost() {
    let small = |bytes| {
        findings_of(&with_messages(bytes)).into_iter().find_map(|finding| match finding {
            Finding::SmallMessages { calls, mean_bytes, seconds, share, at, .. } => {
                Some((calls, mean_bytes, seconds, share, at.expect("a place").0.function))
            }
            _ => None,
        })
    };
    // 600 times 600 ns in MPI_Send, of which 100 are waiting for the receive, and 400 ns in MPI_Recv, of two ranks'
    // 1.2 ms.
    let (calls, mean_bytes, seconds, share, function) = small(8).expect("they are small");
    assert_eq!((calls, mean_bytes, function.as_str()), (1_200, 8.0, "MPI_Send"));
    assert!((seconds - 540e-6).abs() < 1e-9 && (share - 0.225).abs() < 1e-3, "{seconds} {share}");
    assert!(small(64).is_some() && small(65).is_none() && small(100_000).is_none());
    // They take all of the transfer, which is not said again.
    let transfer = |bytes| {
        let is_it = |finding: &Finding| matches!(finding, Finding::Transfer { .. });
        findings_of(&with_messages(bytes)).iter().any(is_it)
    };
    assert!(!transfer(8) && transfer(100_000));
}

#[test]
fn delays_that_cost_little_are_not_told_of_a_job_that_was_killed() {
    const END: u64 = BEGIN + 2_000_000;
    let findings = |late: u64, killed: bool| {
        let mut ranks = [0, 1].map(|rank| SyntheticRank::level_1(rank, 2, END));
        for (number, rank) in ranks.iter_mut().enumerate() {
            for turn in 0..10 {
                let begin = BEGIN + 200_000 * turn;
                let entered = begin + 100_000 + late * number as u64;
                rank.call_with("MPI_Allreduce", entered, begin + 100_010 + late, on_world(0, 8, 8));
            }
            if killed {
                rank.killed();
            } else {
                rank.finalize(END, END + 10);
            }
        }
        findings_of(&ranks)
    };
    assert_eq!(delayed_by(&findings(16_000, false)), Some(1));
    assert_eq!(delayed_by(&findings(16_000, true)), None, "4 % of the time");
    assert_eq!(delayed_by(&findings(60_000, true)), Some(1), "a sixth of the time");
}

#[test]
fn runs_without_partners_say_so_and_blame_nobody() {
    let mut ranks = [0, 1].map(|rank| SyntheticRank::complete(rank, 2, BEGIN, 4_000_000));
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.call(0, "MPI_Barrier", BEGIN + 100_000 * number as u64, BEGIN + 900_000);
        rank.finalize(4_000_000, 4_000_010);
    }
    let findings = findings_of(&ranks);
    let unknown = Finding::WaitingNotRecorded { because: NotRecorded::Level0 };
    assert!(findings.contains(&unknown) && delayed_by(&findings).is_none(), "{findings:?}");
}
