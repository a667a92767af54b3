use trace_format::reader::Outlines;

use super::*;
use crate::processes::{decode, encode};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

fn complete(rank: u32, size: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(rank, size, 1_000, 9_000);
    rank.finalize(9_000, 9_100);
    rank
}

fn messages(run: &Run) -> String {
    run.diagnoses.iter().map(|d| format!("{d}\n")).collect()
}

#[test]
fn sound_run_has_its_ranks_in_order_and_no_faults() {
    let directory = RunDirectory::with_ranks(&[complete(1, 2), complete(0, 2)]);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.ranks.iter().map(|r| r.rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((run.world_size, run.missing_count(), messages(&run)), (2, 0, String::new()));
    let main = run.ranks[0].main_thread().unwrap();
    assert_eq!((main.calls, main.first_ticks, main.last_ticks), (2, Some(900), Some(9_100)));
    assert!(main.calls_finalize);
}

#[test]
fn wrong_paths_say_what_to_do() {
    let directory = RunDirectory::new();
    let nothing = Run::open(&directory.path().join("absent")).unwrap_err().to_string();
    assert!(nothing.contains("no such run directory"), "{nothing}");
    let empty = Run::open(directory.path()).unwrap_err().to_string();
    assert!(
        empty.contains("never completed MPI_Init") && empty.contains("gammachi run"),
        "{empty}"
    );
    directory.write(&complete(0, 1));
    let file = Run::open(&directory.file(0)).unwrap_err().to_string();
    let expected = format!("pass the run directory: {}", directory.path().display());
    assert!(file.contains(&expected), "{file}");
}

#[test]
fn missing_and_foreign_files_are_named() {
    let directory = RunDirectory::with_ranks(&[complete(1, 6), complete(4, 6)]);
    directory.write(&complete(2, 9));
    std::fs::write(directory.file(3), vec![7; 70_000]).unwrap();
    std::fs::write(directory.file(5), b"short").unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.missing, [0..=0, 2..=3, 5..=5]);
    let texts = messages(&run);
    assert_eq!(run.diagnoses.len(), 3, "{texts}");
    assert!(texts.contains("rank-000002.gmc: belongs to a run of 9 ranks"), "{texts}");
    assert!(texts.contains("rank-000003.gmc: not a gammachi rank file"), "{texts}");
    assert!(texts.contains("rank-000005.gmc: shorter than"), "{texts}");
}

#[test]
fn error_names_a_file_if_none_is_readable() {
    let directory = RunDirectory::with_ranks(&[complete(0, 1)]);
    std::fs::write(directory.file(0), vec![0; 100_000]).unwrap();
    let error = Run::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("rank-000000.gmc"), "{error}");
}

#[test]
fn file_under_another_ranks_name_is_left_out() {
    let directory = RunDirectory::with_ranks(&[complete(0, 3), complete(1, 3)]);
    std::fs::copy(directory.file(1), directory.file(2)).unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.ranks.len(), 2);
    assert!(messages(&run).contains("says it is rank 1"), "{}", messages(&run));
}

#[test]
fn rank_that_never_returned_from_mpi_init_is_left_out_and_named() {
    let never = |rank| {
        let mut never = SyntheticRank::new(rank, 2);
        never.anchor(400, 1e9, 400);
        never
    };
    let directory = RunDirectory::with_ranks(&[complete(0, 2), never(1)]);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!((run.ranks.len(), run.missing_count()), (1, 1));
    assert!(
        messages(&run).contains("rank 1") && messages(&run).contains("MPI_Init"),
        "{}",
        messages(&run)
    );
    // If no rank has begun, none is left out.
    let directory = RunDirectory::with_ranks(&[never(0), never(1)]);
    assert_eq!(Run::open(directory.path()).unwrap().ranks.len(), 2);
}

#[test]
fn spawned_worlds_are_only_noted() {
    let directory = RunDirectory::with_ranks(&[complete(0, 1)]);
    let spawned = directory.path().join(trace_format::files::rank_file_path(1, 0));
    std::fs::copy(directory.file(0), spawned).unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!((run.ranks.len(), run.notes.len(), run.diagnoses.len()), (1, 1, 0));
}

#[test]
fn damaged_event_is_named_with_its_position_and_ends_the_stream() {
    let mut rank = complete(0, 1);
    let bad = rank.threads[0].last().map(|slot| trace_format::layout::Slot { begin: 5, ..*slot });
    rank.threads[0].push(bad.unwrap());
    let run = Run::open(RunDirectory::with_ranks(&[rank]).path()).unwrap();
    let what = messages(&run);
    assert!(what.contains("rank-000000.gmc: at byte ") && what.contains("out of order"), "{what}");
}

/// The run's files as another process knows them from outlines.
fn as_sent(run: &Run) -> Vec<Option<RankFile>> {
    let outlines = Outlines::from_files(run.ranks.iter().map(|rank| Some(&rank.file)));
    let sent: Outlines = decode(&encode(&outlines));
    sent.files(&run.ranks.iter().map(|rank| rank.file.path.clone()).collect::<Vec<_>>())
}

fn begins(file: &RankFile) -> Vec<u64> {
    let threads = file.threads.iter();
    threads.flat_map(|thread| file.events(thread)).map(|event| event.begin).collect()
}

#[test]
fn outlines_of_complete_files_stand_for_them() {
    let ranks = [complete(0, 2), SyntheticRank::complete(1, 2, 1_000, 9_000).killed().clone()];
    for directory in [RunDirectory::with_ranks(&ranks), RunDirectory::of_encoded(&ranks)] {
        let run = Run::open(directory.path()).unwrap();
        let [Some(sent), None] = &as_sent(&run)[..] else { panic!("the killed rank has none") };
        let file = &run.ranks[0].file;
        assert_eq!((sent.fixed, &sent.header), (file.fixed, &file.header));
        assert_eq!((&sent.definitions, &sent.threads), (&file.definitions, &file.threads));
        assert_eq!((&sent.diagnoses, sent.file_bytes()), (&file.diagnoses, file.file_bytes()));
        assert_eq!(sent.function_names(), file.function_names());
        assert!(!begins(file).is_empty());
        assert_eq!(begins(sent), begins(file));
        assert_eq!(sent.unreadable(), None);
    }
}

#[test]
fn files_without_a_map_are_read_chunk_by_chunk() {
    let directory = RunDirectory::of_encoded(&[complete(0, 2), complete(1, 2)]);
    let run = Run::open(directory.path()).unwrap();
    let unmapped = |rank: &RankTrace| {
        let mut file = RankFile::open(&rank.file.path).unwrap();
        file.unmap();
        file
    };
    for rank in &run.ranks {
        let file = unmapped(rank);
        assert_eq!((begins(&file), file.unreadable()), (begins(&rank.file), None));
    }
    let gone = unmapped(&run.ranks[0]);
    std::fs::remove_file(directory.file(0)).unwrap();
    assert!(begins(&gone).is_empty());
    assert!(gone.unreadable().is_some());
}

#[test]
fn file_that_is_no_longer_the_outlined_one_is_unreadable() {
    let directory = RunDirectory::with_ranks(&[complete(0, 2), complete(1, 2)]);
    let run = Run::open(directory.path()).unwrap();
    let sent = as_sent(&run);
    std::fs::remove_file(directory.file(0)).unwrap();
    std::fs::rename(directory.file(1), directory.file(0)).unwrap();
    for file in sent.iter().flatten() {
        assert_eq!(file.unreadable(), None, "nothing was read yet");
        assert!(begins(file).is_empty());
        assert_eq!(file.unreadable().map(|at| at.offset), Some(0));
    }
}

#[test]
fn names_of_any_length_are_cut_and_differ() {
    let mut rank = complete(0, 1);
    rank.region_name(3, &("n".repeat(70_000) + "x")).region_name(4, &("n".repeat(70_000) + "y"));
    let directory = RunDirectory::with_ranks(&[rank]);
    let run = Run::open(directory.path()).unwrap();
    let names = run.region_names();
    assert_eq!(names.len(), 2, "they end differently");
    for name in names {
        assert!(name.len() <= 4096 && name.contains("… (70001 bytes, "), "{name}");
    }
}

#[test]
fn files_of_other_kinds_neither_block_nor_fill_memory() {
    let directory = RunDirectory::with_ranks(&[complete(0, 3)]);
    let fifo = directory.path().join(run_json::RUN_JSON);
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero byte and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    std::os::unix::fs::symlink(&fifo, directory.file(1)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.file(2)).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = directory.path().to_owned();
    std::thread::spawn(move || {
        let run = Run::open(&path).unwrap();
        sender.send((run.missing.clone(), messages(&run))).unwrap();
    });
    let opened = receiver.recv_timeout(std::time::Duration::from_secs(60));
    let (missing, texts) = opened.expect("the run is opened without waiting for a writer");
    assert_eq!(missing, [1..=2]);
    for file in ["run.json", "rank-000001.gmc", "rank-000002.gmc"] {
        let line = texts.lines().find(|line| line.contains(file));
        assert!(line.is_some_and(|line| line.contains("not a regular file")), "{texts}");
    }
}
