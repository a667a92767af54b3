//! Joining parts as hosts and staging directories leave them.

use std::fs;
use std::path::{Path, PathBuf};

use trace_format::header::Definition;

use super::*;
use crate::synthetic_trace::SyntheticRank;

fn rank_of(run: u8, rank: u32, world_size: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(rank, world_size, 1_000, 9_000);
    rank.fixed.run_id = [run; 16];
    rank
}

/// Writes a rank's file below a directory, as a host would.
fn put(directory: &Path, rank: &SyntheticRank) -> PathBuf {
    let path = directory.join(rank_file_path(0, rank.fixed.rank));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, rank.bytes()).unwrap();
    path
}

fn join(run: &Path, parts: &[&Path], id: u8) -> Result<Collected, String> {
    let parts: Vec<PathBuf> = parts.iter().map(|part| (*part).to_owned()).collect();
    let found = Found::in_directories(&parts).map_err(|error| error.to_string())?;
    let id = format!("{id:02x}").repeat(16);
    let key = found.runs().into_keys().find(|key| key.id == id).cloned();
    collect(run, &key.expect("the run is there"), &found, |_| {}).map_err(|error| error.to_string())
}

#[test]
fn parts_of_two_hosts_become_one_run() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (a, b, run) = (root.join("a"), root.join("b/deep/app.gammachi"), root.join("run"));
    for rank in [0, 1] {
        put(&a, &rank_of(7, rank, 4));
    }
    let third = put(&b, &rank_of(7, 2, 4));
    put(&b, &rank_of(8, 0, 4));
    let collected = join(&run, &[&a, &root.join("b")], 7).unwrap();
    assert_eq!(collected.copied.len(), 3);
    assert_eq!(collected.missing, [3..=3]);
    let copy = run.join(rank_file_path(0, 2));
    assert_eq!(fs::read(copy).unwrap(), fs::read(third).unwrap());
    let opened = crate::trace::Run::open(&run).unwrap();
    assert_eq!((opened.ranks.len(), opened.missing_count()), (3, 1));
    let again = join(&run, &[&a, &root.join("b"), &run], 7).unwrap();
    assert_eq!((again.copied.len(), again.already), (0, 6), "each rank twice: part and run");
}

#[test]
fn complete_file_replaces_an_incomplete_one() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (run, stage) = (root.join("run"), root.join("stage"));
    let mut half = rank_of(7, 0, 1);
    half.definitions.retain(|d| !matches!(d, Definition::Finalized { .. }));
    put(&run, &half);
    let whole = put(&stage, &rank_of(7, 0, 1));
    let collected = join(&run, &[&stage], 7).unwrap();
    assert_eq!((collected.copied.len(), collected.unfinished.len()), (1, 0));
    let there = run.join(rank_file_path(0, 0));
    assert_eq!(fs::read(&there).unwrap(), fs::read(whole).unwrap());

    put(&stage, &half);
    assert_eq!(join(&run, &[&stage], 7).unwrap().copied.len(), 0, "never the other way round");
}

#[test]
fn files_of_another_run_are_never_overwritten() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (run, part) = (root.join("run"), root.join("part"));
    let theirs = put(&run, &rank_of(9, 0, 2));
    let before = fs::read(&theirs).unwrap();
    put(&part, &rank_of(7, 0, 2));
    let why = join(&run, &[&part], 7).unwrap_err();
    assert!(why.contains("different run"), "{why}");
    assert_eq!(fs::read(&theirs).unwrap(), before);

    fs::write(&theirs, b"no trace at all").unwrap();
    let why = join(&run, &[&part], 7).unwrap_err();
    assert!(why.contains("move it away"), "{why}");
}

#[test]
fn unreadable_files_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let good = put(root, &rank_of(7, 0, 2));
    let mut bytes = fs::read(&good).unwrap();
    bytes[20] ^= 1;
    fs::write(good.with_file_name("rank-000001.gmc"), bytes).unwrap();
    let found = Found::in_directories(&[root.to_owned()]).unwrap();
    assert_eq!((found.files.len(), found.unreadable.len()), (1, 1));
    assert!(found.unreadable[0].contains("rank-000001.gmc"), "{}", found.unreadable[0]);
}

/// A file may claim any number of ranks; memory and time must not grow with it.
#[test]
fn claimed_number_of_ranks_costs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (part, run) = (root.join("part"), root.join("run"));
    for rank in [0, 2] {
        put(&part, &rank_of(7, rank, u32::MAX));
    }
    let collected = join(&run, &[&part], 7).unwrap();
    assert_eq!(collected.missing, [1..=1, 3..=u32::MAX - 1]);
}
