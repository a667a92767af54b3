//! Calls on files in known traces, with 1 GHz counters and times in milliseconds since the rank's start at `B`.

use trace_format::file_calls::{FileCallKind, FileCalls};
use trace_format::header::{Definition, File, FileRecording, FileSum, ObjectKind, Phase};

use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

use super::*;

const MS: u64 = 1_000_000;
const B: u64 = 5_000_000 * MS;
const INSIDE: u16 = FileCallKind::INSIDE_MPI;

fn recording(phase: Phase, written: u64, sums: Vec<FileSum>) -> Definition {
    Definition::FileRecording(FileRecording {
        phase,
        is_loaded: true,
        moved: Some((0, written)),
        elsewhere: (0, written / 2),
        sums,
    })
}

fn file(number: u32, inode: u64, name: &str) -> Definition {
    let name = name.to_owned();
    Definition::File(File { number, device: 7, inode, born_ns: 1, file_system: 0xef53, name })
}

fn calls(calls: u64, bytes: u64, ms: u64) -> FileCalls {
    FileCalls { calls, bytes, inside: ms * MS, span: 2 * ms * MS }
}

/// A rank that runs for 100 ms.
fn rank(number: u32, of: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(number, of, B, B + 100 * MS);
    rank.definitions.push(recording(Phase::Init, 1000, Vec::new()));
    rank
}

fn files_of(mut ranks: Vec<SyntheticRank>, selection: &str) -> FileMetrics {
    for rank in &mut ranks {
        rank.finalize(B + 100 * MS, B + 120 * MS);
    }
    let directory = RunDirectory::with_ranks(&ranks);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let selection = match selection {
        "" => Selection::Whole,
        window => Selection::parse_window(window).unwrap(),
    };
    Metrics::new(&run, &timeline, &selection).unwrap().files.unwrap()
}

#[test]
fn sums_by_file_and_rank() {
    let mut ranks = vec![rank(0, 2), rank(1, 2)];
    // The same file has another number on each rank.
    ranks[0].definitions.extend([file(1, 50, ""), file(2, 60, "")]);
    ranks[1].definitions.push(file(1, 60, ""));
    ranks[0].file_calls((FileCallKind::Write as u16, 1), B + 10 * MS, calls(4, 4096, 5));
    ranks[0].file_calls((FileCallKind::Write as u16 | INSIDE, 2), B + 40 * MS, calls(1, 100, 2));
    ranks[1].file_calls((FileCallKind::Read as u16, 1), B + 10 * MS, calls(2, 200, 20));
    ranks[1].file_calls((FileCallKind::Open as u16, 1), B + 60 * MS, calls(1, 0, 1));
    let sums = vec![FileSum { file: 1, kind: FileCallKind::Write as u16, calls: calls(3, 30, 4) }];
    ranks[1].definitions.push(recording(Phase::Finalize, 9000, sums));
    let found = files_of(ranks, "");
    assert!(found.is_loaded);
    let [shared, own] = found.files.as_slice() else { panic!("{found:?}") };
    assert_eq!((shared.ranks, own.ranks), (2, 1));
    assert_eq!((shared.number, own.number, &shared.name), (2, 1, &None));
    assert_eq!((shared.reads, shared.read_bytes, shared.opens), (2, 200, 1));
    assert_eq!((shared.writes, shared.written_bytes, shared.calls), (4, 130, 7));
    assert!((shared.seconds - 0.027).abs() < 1e-9 && (shared.inside_mpi_s - 0.002).abs() < 1e-9);
    assert!((shared.other_threads_s - 0.004).abs() < 1e-9);
    assert_eq!(shared.slowest.map(|of| of.rank), Some(1));
    assert_eq!((own.writes, own.written_bytes), (4, 4096));
    let [first, second] = found.ranks.as_slice() else { panic!("{found:?}") };
    assert_eq!((first.files, first.written_bytes, first.writes), (2, 4196, 5));
    assert_eq!((second.files, second.read_bytes, second.written_bytes), (1, 200, 30));
    // Rank 1 wrote 8000 bytes, 4000 of which went elsewhere and 30 to the file.
    assert_eq!(found.unseen, Some(Unseen { read_bytes: 0, written_bytes: 3970 }));
}

#[test]
fn selection_has_the_part_of_records_inside() {
    let mut rank = rank(0, 1);
    rank.definitions.extend([file(1, 50, "/data/a"), file(2, 50, "/data/b")]);
    rank.file_calls((FileCallKind::Write as u16, 1), B + 10 * MS, calls(10, 1000, 10));
    rank.file_calls((FileCallKind::Read as u16, 2), B + 50 * MS, calls(10, 1000, 10));
    let found = files_of(vec![rank], "0.02,0.05");
    let [of] = found.files.as_slice() else { panic!("{found:?}") };
    assert_eq!(of.name.as_deref(), Some("/data/a"));
    assert_eq!((of.writes, of.written_bytes, found.unseen), (5, 500, None));
    assert!((of.seconds - 0.005).abs() < 1e-9, "{of:?}");
}

/// Rank 0 writes for both, inside the same call of MPI.
#[test]
fn calls_of_mpi_are_matched_with_those_below() {
    let mut ranks: Vec<SyntheticRank> = (0..2)
        .map(|number| {
            let mut rank = SyntheticRank::level_1(number, 2, B + 100 * MS);
            rank.definitions.push(recording(Phase::Init, 0, Vec::new()));
            rank.definitions.push(Definition::Object {
                kind: ObjectKind::File,
                id: 5 + number,
                ticks: B,
                communicator: 0,
                name: "out".into(),
            });
            let object = (5 + number) as i32;
            let (begin, end) = (B + 10 * MS, B + 30 * MS);
            rank.call_with("MPI_File_write_all", begin, end, on_world(0, object, 1000));
            rank
        })
        .collect();
    ranks[0].definitions.extend([file(1, 50, ""), file(2, 60, "")]);
    let write = FileCallKind::Write as u16 | INSIDE;
    ranks[0].file_calls((write, 1), B + 30 * MS, calls(2, 2000, 5));
    ranks[0].file_calls((write, 2), B + 30 * MS, calls(1, 8, 1));
    ranks[0].call_with("MPI_File_sync", B + 40 * MS, B + 41 * MS, on_world(0, 5, 0));
    ranks[0].file_calls((write, 2), B + 41 * MS, calls(9, 9, 1));
    let found = files_of(ranks, "");
    let by_mpi: Vec<_> =
        found.files.iter().map(|of| (of.number, of.mpi_calls, of.mpi_bytes)).collect();
    assert_eq!(by_mpi, [(1, 2, 2000), (2, 0, 0)], "{found:?}");
}

#[test]
fn run_without_them_has_no_files() {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
    rank.finalize(B + 100 * MS, B + 120 * MS);
    let directory = RunDirectory::with_ranks(&[rank]);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    assert_eq!(Metrics::new(&run, &timeline, &Selection::Whole).unwrap().files, None);
}
