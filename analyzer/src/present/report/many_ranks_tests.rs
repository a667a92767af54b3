//! Reports of runs with many ranks: their length, their groups of ranks, the descriptors that they hold open.

use super::tests::{at, finish, texts};
use crate::metrics::Selection;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::trace::Run;

const RANKS: u32 = 1200;

/// Rank 0 computes alone for a while and rank 700 is killed. The others wait in one reduction, a tenth of them
/// longer than the rest.
fn rank(number: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(number, RANKS, at(0), at(1000));
    let waits = match number {
        0 => 10,
        _ if number % 10 == 9 => 600,
        _ => 500,
    };
    rank.call(0, "MPI_Allreduce", at(900 - waits), at(900));
    if number == 700 {
        rank.open_call(0, "MPI_Barrier", at(950)).killed();
        return rank;
    }
    finish(rank, 1000)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn many_ranks_are_grouped_and_hold_no_descriptors() {
    let directory = RunDirectory::new();
    (0..RANKS).for_each(|number| directory.write(&rank(number)));
    let folders: Vec<usize> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap().count())
        .collect();
    assert_eq!(folders.len(), 2, "a directory holds at most 1,000 rank files");
    assert_eq!((folders.iter().min(), folders.iter().max()), (Some(&200), Some(&1000)));

    // Other tests of this process hold a few descriptors of their own.
    let before = descriptors();
    let run = Run::open(directory.path()).unwrap();
    assert!(descriptors() < before + 200, "{before} descriptors, then {}", descriptors());
    assert_eq!(run.ranks.len(), RANKS as usize);

    let [screen, json] = texts(directory.path(), &Selection::Whole).unwrap();
    assert!(screen.lines().count() < 50, "{screen}");
    let groups: Vec<&str> =
        screen.lines().skip_while(|line| !line.contains("similar ranks")).take(5).collect();
    insta::assert_snapshot!(groups.join("\n"), @r"
    RANKS (s)   count  similar ranks (means)                             computing (γ)  lost (χ)  in MPI  start and end  state of the first
                  120  9,19,29,39,49,59,69,79,89,99,109,119,129,139,14…          0.400     0.600   0.600          0.000
                    1  700                                                       0.450     0.550   0.550          0.000  in MPI_Barrier since 950 ms
                 1078  1-8,10-18,20-28,30-38,40-48,50-58,60-68,70-78,8…          0.500     0.500   0.500          0.000
                    1  0                                                         0.990     0.010   0.010          0.000
    ");
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["ranks"].as_array().unwrap().len(), RANKS as usize);
    let reductions = document["calls"].as_array().unwrap().iter();
    let count = reductions.filter(|call| call["function"] == "MPI_Allreduce");
    assert_eq!(count.map(|call| call["count"].as_u64().unwrap()).sum::<u64>(), u64::from(RANKS));
}
