//! Transfers that are not hidden, ranks on the wrong hosts, one rank that accesses files or sleeps: found where they are,
//! with what they cost, and nowhere else.

use trace_format::file_calls::{FileCallKind, FileCalls, FileReads};
use trace_format::header::{File, FileRecording, Phase};
use trace_format::layout::{Team, TeamWaits};

use super::*;
use crate::causes::Context;
use crate::synthetic_losses::{Exchange, meets_after, neighbours_on, on_a_core};

/// The turns of these ranks.
const TURNS: u64 = crate::synthetic_losses::TURNS;

const HOPED: Exchange = Exchange {
    hosts: ["n0"; 2],
    bytes: 4_000_000,
    computed: 5_000_000,
    waited: 3_000_000,
    blocking: 0,
    tests: false,
};

fn no_overlap(of: Exchange) -> Option<NoOverlap> {
    no_overlap_in(&of.ranks())
}

fn no_overlap_in(ranks: &[SyntheticRank]) -> Option<NoOverlap> {
    findings_of(ranks).into_iter().find_map(|finding| match finding {
        Finding::NoOverlap(found) => Some(found),
        _ => None,
    })
}

#[test]
fn transfers_that_computation_could_have_hidden_are_found_with_their_cost() {
    let found = no_overlap(HOPED).expect("nothing is hidden");
    assert_eq!((found.calls, found.of), (2 * TURNS, 2 * TURNS));
    assert!((found.seconds - 2.0 * TURNS as f64 * 3e-3).abs() < 1e-6, "{found:?}");
    assert!((found.share - 3_000.0 / 8_042.0).abs() < 1e-3, "{found:?}");
    assert!((found.mean_computed_s - 5e-3).abs() < 1e-5, "{found:?}");
    let Context::Between(Some(from), Some(to)) = &found.place.0 else { panic!("{found:?}") };
    assert_eq!([&from.function, &to.function], ["MPI_Isend", "MPI_Waitall"]);
}

#[test]
fn short_computation_hides_no_more_than_it_lasts() {
    let found = no_overlap(Exchange { computed: 1_000_000, ..HOPED }).expect("it hides nothing");
    assert!((found.seconds - 2.0 * TURNS as f64 * 1e-3).abs() < 1e-4, "{found:?}");
    assert!((found.mean_wait_s - 3e-3).abs() < 1e-6, "{found:?}");
}

#[test]
fn hidden_transfers_and_such_that_move_in_mpi_are_not_found() {
    assert_eq!(no_overlap(Exchange { waited: 50_000, ..HOPED }), None, "it is hidden");
    assert_eq!(no_overlap(Exchange { bytes: 8_000, ..HOPED }), None, "the library takes it");
    assert_eq!(no_overlap(Exchange { tests: true, ..HOPED }), None, "it moves in MPI_Testall");
    let mut ranks = HOPED.ranks();
    let threads = ("MPICH_ASYNC_PROGRESS".to_owned(), "1".to_owned());
    ranks[0].definitions.push(Definition::Environment(vec![threads]));
    assert_eq!(no_overlap_in(&ranks), None, "a thread moves it");
}

#[test]
fn between_hosts_another_transfer_must_show_that_there_was_time() {
    let apart = Exchange { hosts: ["n0", "n1"], ..HOPED };
    assert_eq!(no_overlap(apart), None);
    let found = no_overlap(Exchange { blocking: 2_000_000, ..apart });
    assert_eq!(found.map(|found| found.calls), Some(2 * TURNS));
    assert_eq!(no_overlap(Exchange { blocking: 4_000_000, ..apart }), None);
}

fn serial_io(function: &str, long: [u64; 3]) -> Option<SerialIo> {
    findings_of(&meets_after(function, long)).into_iter().find_map(|finding| match finding {
        Finding::SerialIo(found) => Some(found),
        _ => None,
    })
}

#[test]
fn one_rank_that_accesses_files_while_others_wait_is_found_with_its_cost() {
    let long = [90_000, 0, 0];
    let found = serial_io("MPI_File_write", long).expect("rank 0 writes alone");
    assert_eq!((found.rank, found.at.function.as_str()), (0, "MPI_File_write"));
    let seconds = TURNS as f64 * 90e-6;
    assert!((found.seconds - seconds).abs() < 1e-6 && found.part > 0.999, "{found:?}");
    // What others do meanwhile is no delay, but not known apart from the accesses.
    assert!((0.75..=1.0).contains(&(found.cost_s / (2.0 * seconds))), "{found:?}");
    assert!((0.75..=1.0).contains(&found.share), "{found:?}");
    let delay = |finding: &Finding| matches!(finding, Finding::Delay(_) | Finding::InTurn { .. });
    let findings = findings_of(&meets_after("MPI_File_write", long));
    assert!(!findings.iter().any(delay), "said twice: {findings:?}");
    assert!(serial_io("MPI_File_write", [90_000, 80_000, 70_000]).is_none(), "all write");
    assert!(serial_io("", long).is_none(), "it computes");
    assert!(serial_io("MPI_Type_commit", long).is_none(), "no file");
}

#[test]
fn rank_that_sleeps_while_others_wait_is_found_with_the_least_that_it_sleeps() {
    let long = 3_000_000;
    let blocked = |asleep: u64| {
        let mut ranks = meets_after("", [long, 0, 0]);
        on_a_core(&mut ranks, |number| {
            TURNS * (long + 30_000) - if number == 0 { TURNS * asleep } else { 0 }
        });
        findings_of(&ranks).into_iter().find_map(|finding| match finding {
            Finding::Blocked(found) => Some(found),
            _ => None,
        })
    };
    let found = blocked(2_500_000).expect("it sleeps");
    let per_turn = 1e-9 * TURNS as f64;
    assert_eq!(found.rank, 0);
    assert!((found.seconds / per_turn - 3_020_000.0).abs() < 150_000.0, "{found:?}");
    let least = found.asleep_s / per_turn;
    assert!(least <= 2_500_000.0 && least > 2_200_000.0, "{found:?}");
    assert_eq!((blocked(0), blocked(1_000_000)), (None, None));
}

fn placement(hosts: [&'static str; 4], bytes: u32) -> Option<Placement> {
    findings_of(&neighbours_on(hosts, bytes)).into_iter().find_map(|finding| match finding {
        Finding::Placement(found) => Some(found),
        _ => None,
    })
}

#[test]
fn ranks_that_exchange_much_on_different_hosts_are_found_with_what_a_replay_saves() {
    let found = placement(["a", "b", "a", "b"], 100_000).expect("neighbours are apart");
    assert_eq!(found.hosts, [vec![(0, 1)], vec![(2, 3)]]);
    assert!(found.between / found.bytes > 0.9 && found.between_then / found.bytes < 0.1);
    // Of 671 µs, 100,000 bytes take 520 µs far, and 12 µs near; 8,000 then take 60 µs instead of 3 µs.
    assert!((0.55..0.8).contains(&found.saves.share), "{found:?}");
    assert!(found.saves.lo_s < found.saves.seconds && found.saves.seconds < found.saves.hi_s);
    assert_eq!(placement(["a", "a", "b", "b"], 100_000), None, "they are together");
    assert_eq!(placement(["a"; 4], 100_000), None, "there is one host");
    assert_eq!(placement(["a", "b", "c", "d"], 100_000), None, "a host has one rank");
}

#[test]
fn nothing_is_promised_without_a_replay() {
    let ranks = neighbours_on(["a", "b", "a", "b"], 100_000);
    let promises = |finding: &Finding| matches!(finding, Finding::Overlap(_));
    let found = findings_of(&ranks);
    let Some(Finding::Overlap(saves)) = found.iter().find(|finding| promises(finding)) else {
        panic!("nothing is promised: {found:?}");
    };
    assert!(0.0 < saves.lo_s && saves.lo_s <= saves.seconds && saves.seconds <= saves.hi_s);
    assert!(!findings_without_replay(&ranks).iter().any(promises));
}

/// Two ranks that meet after 90 ms; rank 0 makes these calls on a file, of so many ms in all.
fn files_of(kind: FileCallKind, calls: (u64, u64, u64)) -> Vec<Finding> {
    files_read(kind, calls, FileReads::default())
}

/// The same, with what is known of where it reads.
fn files_read(
    kind: FileCallKind,
    (calls, bytes, ms): (u64, u64, u64),
    reads: FileReads,
) -> Vec<Finding> {
    const MS: u64 = 1_000_000;
    let mut ranks: Vec<SyntheticRank> =
        (0..2).map(|rank| SyntheticRank::level_1(rank, 2, 100 * MS)).collect();
    for rank in &mut ranks {
        let recording = FileRecording {
            phase: Phase::Init,
            is_loaded: true,
            moved: None,
            elsewhere: (0, 0),
            sums: Vec::new(),
        };
        let file = File {
            number: 1,
            device: 1,
            inode: 5,
            born_ns: 0,
            file_system: 1,
            name: String::new(),
        };
        rank.definitions.extend([Definition::FileRecording(recording), Definition::File(file)]);
    }
    ranks[0].definitions.push(Definition::FileReads { file: 1, reads });
    let calls = FileCalls { calls, bytes, inside: ms * MS, span: ms * MS };
    ranks[0].file_calls((kind as u16, 1), BEGIN + MS, calls);
    if kind == FileCallKind::Open {
        ranks[1].file_calls((kind as u16, 1), BEGIN + MS, calls);
    }
    let end = BEGIN + 90 * MS;
    ranks[0].call_with("MPI_Allreduce", end - 10, end, on_world(0, 8, 8));
    let entered = if kind == FileCallKind::Open { end - 10 } else { BEGIN + MS };
    ranks[1].call_with("MPI_Allreduce", entered, end, on_world(0, 8, 8));
    for rank in &mut ranks {
        rank.finalize(BEGIN + 99 * MS, BEGIN + 100 * MS);
    }
    findings_of(&ranks)
}

#[test]
fn calls_on_files_are_found_if_they_cost_much() {
    let of = |kind, calls| files_of(kind, calls);
    let small = |findings: &[Finding]| {
        findings.iter().find_map(|finding| match finding {
            Finding::SmallFileCalls(found) => Some((found.calls, found.writes)),
            _ => None,
        })
    };
    let slow = |findings: &[Finding]| {
        findings.iter().find_map(|finding| match finding {
            Finding::SlowFiles(found) => Some((found.rank, found.written_bytes)),
            _ => None,
        })
    };
    let (write, read) = (FileCallKind::Write, FileCallKind::Read);
    let found = of(write, (20_000, 320_000, 60));
    assert_eq!((small(&found), slow(&found)), (Some((20_000, true)), Some((0, 320_000))));
    let found = of(read, (2_000, 32_000, 60));
    assert_eq!((small(&found), slow(&found)), (Some((2_000, false)), Some((0, 0))));
    let found = of(write, (20, 1 << 30, 60));
    assert_eq!((small(&found), slow(&found)), (None, Some((0, 1 << 30))), "they are large");
    let found = of(write, (20_000, 320_000, 3));
    assert_eq!((small(&found), slow(&found)), (None, None), "they cost little");
    let found = of(FileCallKind::Open, (1, 0, 30));
    let of_all = |finding: &Finding| matches!(finding, Finding::FileOfAll(of) if of.opens == 2);
    assert!(found.iter().any(of_all) && slow(&found).is_none(), "{found:?}");
}

#[test]
fn reads_of_the_same_bytes_or_inside_pages_are_found() {
    let of = |calls: u64, unaligned: u64, bytes: u64, end: u64| {
        let reads = FileReads { calls, unaligned, bytes, end };
        let found = files_read(FileCallKind::Read, (calls, bytes, 60), reads);
        let again = found.iter().find_map(|finding| match finding {
            Finding::ReadAgain(of) => Some(of.again_bytes),
            _ => None,
        });
        let unaligned = found.iter().find_map(|finding| match finding {
            Finding::UnalignedReads(of) => Some(of.unaligned),
            _ => None,
        });
        (again, unaligned)
    };
    assert_eq!(of(100, 0, 100 << 20, 10 << 20), (Some(90 << 20), None));
    assert_eq!(of(100, 99, 100 << 20, 100 << 20), (None, None), "once each, and few");
    assert_eq!(of(2000, 1500, 20 << 20, 20 << 20), (None, Some(1500)));
    assert_eq!(of(2000, 900, 20 << 20, 20 << 20), (None, None));
    assert_eq!(of(2000, 1500, 2 << 20, 2 << 20), (None, None), "small reads are told");
}

/// Ranks whose parallel regions take 60 of 100 ms, with teams of so many threads and the cores that they may use.
fn teams_of(ranks: &[(u16, &[u32])]) -> Option<ThreadsShareCores> {
    const MS: u64 = 1_000_000;
    let count = ranks.len() as u32;
    let ranks = ranks.iter().zip(0..).map(|((threads, cores), rank)| {
        let mut rank = SyntheticRank::level_1(rank, count, 100 * MS);
        rank.header.affinity = cores.to_vec();
        rank.definitions.push(Definition::OpenMp { runtimes: vec!["libgomp.so.1".into()] });
        let all = u64::from(*threads) * 60 * MS;
        let team = Team { span: 60 * MS, inside: all, work: all, longest: 60 * MS };
        rank.team((*threads, 0), BEGIN + 80 * MS, (team, TeamWaits::default()));
        let end = BEGIN + 90 * MS;
        rank.call_with("MPI_Allreduce", end - 10, end, on_world(0, 8, 8));
        rank.finalize(BEGIN + 99 * MS, BEGIN + 100 * MS);
        rank
    });
    let found = findings_of(&ranks.collect::<Vec<_>>());
    found.into_iter().find_map(|finding| match finding {
        Finding::ThreadsShareCores(found) => Some(found),
        _ => None,
    })
}

#[test]
fn threads_that_have_too_few_cores_are_found() {
    let short = |of: Option<ThreadsShareCores>| of.map(|of| (of.ranks, of.threads, of.cores));
    assert_eq!(short(teams_of(&[(4, &[0, 1, 2, 3]), (4, &[4, 5, 6, 7])])), None);
    // The second rank is pinned to one core.
    assert_eq!(short(teams_of(&[(4, &[0, 1, 2, 3]), (4, &[4])])), Some((vec![1], 4, 1)));
    // Each could have its cores, both together cannot.
    let all: &[u32] = &[0, 1, 2, 3];
    assert_eq!(short(teams_of(&[(4, all), (4, all)])), Some((vec![0, 1], 8, 4)));
    assert_eq!(short(teams_of(&[(2, all), (2, all)])), None);
}
