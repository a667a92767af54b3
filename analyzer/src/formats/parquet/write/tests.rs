//! A dataset is the same, to the byte, however many processes write it; its parts hold each row once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use trace_format::markers::ToolReason;

use super::*;
use crate::export::Progress;
use crate::export::content::{Choice, Content};
use crate::export::parts::PART_CALLS;
use crate::metrics::{Metrics, Selection};
use crate::processes::{Processes, in_threads};
use crate::synthetic_messages::{completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;

const MS: u64 = 1_000_000;
const RANKS: u32 = 7;

struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

fn silent<'a>(content: &'a Content<'a>) -> Export<'a> {
    Export { content, scratch: Path::new("/tmp"), progress: &Silent }
}

/// Ranks that pass messages on in a ring inside of regions, with collective operations of every
/// kind of trouble: completed later, not called by all, of different functions.
fn ring() -> RunDirectory {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::level_1(number, RANKS, 2000 * MS);
        let (next, previous) = ((number + 1) % RANKS, (number + RANKS - 1) % RANKS);
        rank.region_name(3, "solve").region_name(4, "inner").region_begin(0, 3, 5 * MS);
        for step in 0..20 + u64::from(number) % 3 {
            let at = |ms: u64| (10 + 40 * step + ms) * MS;
            rank.region_begin(0, 4, at(0));
            rank.call_with("MPI_Send", at(1), at(2), on_world(next as i32, 4, 100 << step));
            if step < 20 {
                rank.call_with("MPI_Recv", at(3), at(9), on_world(previous as i32, 4, 0));
                rank.call_with("MPI_Iallreduce", at(11), at(12), on_world(0, 8, 8).request(9));
                rank.tool(0, ToolReason::Window, at(13), at(14));
                rank.call_with("MPI_Wait", at(15), at(16), completed(9, 0, 0, 0).request(9));
            }
            rank.region_end(0, 4, at(20));
        }
        let differs = if number == 3 { "MPI_Bcast" } else { "MPI_Barrier" };
        rank.call_with(differs, 1000 * MS, 1001 * MS, on_world(0, 0, 8));
        if number != 5 {
            rank.call_with("MPI_Barrier", 1100 * MS, 1101 * MS, on_world(0, 0, 0));
        }
        rank.region_end(0, 3, 1900 * MS);
        rank.finalize(2000 * MS, 2001 * MS);
        rank
    };
    RunDirectory::with_ranks(&(0..RANKS).map(rank).collect::<Vec<_>>())
}

/// Exports a run in this process, one of several.
fn export(
    run: &Path,
    to: &Path,
    part_calls: u64,
    choice: &Choice,
    processes: &Processes,
) -> Written {
    let run = Run::open_in(run, processes).unwrap();
    let (timeline, communicators) = (GlobalTimeline::new(&run), CommunicatorTable::new(&run));
    let content = Content::new(&run, &timeline, &communicators, choice);
    write(silent(&content), part_calls, to).unwrap()
}

/// All files below a directory with their bytes, by path.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = fs::read(&path).unwrap();
                    all.insert(path.strip_prefix(directory).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    all
}

/// Rank and begin of all calls in a file.
fn calls_in(path: &Path) -> Vec<(i32, i64)> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| (row.get_int(0).unwrap(), row.get_long(2).unwrap())).collect()
}

#[test]
fn any_number_of_processes_writes_the_same_bytes() {
    let run = ring();
    let folder = RunDirectory::new();
    let window = Choice { ranks: Some(vec![1..3, 3..6]), window_s: Some(0.1..0.9) };
    for (part_calls, choice) in
        [(150, Choice::default()), (1, window), (PART_CALLS, Choice::default())]
    {
        let alone = folder.path().join("alone");
        let written = export(run.path(), &alone, part_calls, &choice, &Processes::alone());
        let expected = files(&alone);
        assert!(expected.contains_key(Path::new("ranks.parquet")), "{:?}", expected.keys());
        for count in [2, 3, 9] {
            let several = folder.path().join("several");
            let by_process = in_threads::run(count, |processes| {
                export(run.path(), &several, part_calls, &choice, &processes)
            });
            assert_eq!(by_process, vec![written; count]);
            let found = files(&several);
            assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found.keys(), expected.keys());
            let differs = found.iter().find(|(path, bytes)| expected.get(*path) != Some(bytes));
            assert_eq!(
                differs.map(|(path, _)| path),
                None,
                "{count} processes, {part_calls} calls"
            );
            fs::remove_dir_all(several).unwrap();
        }
        fs::remove_dir_all(alone).unwrap();
    }
}

#[test]
fn parts_are_blocks_of_ranks_in_order_of_time_with_statistics() {
    let run = ring();
    let folder = RunDirectory::new();
    let (whole, divided) = (folder.path().join("whole"), folder.path().join("divided"));
    let all = Choice::default();
    let written = export(run.path(), &whole, PART_CALLS, &all, &Processes::alone());
    assert_eq!(export(run.path(), &divided, 250, &all, &Processes::alone()), written);
    assert_eq!((written.messages, written.collectives), (140, 22));
    let parts = files(&divided);
    let parts = parts.keys().filter(|path| path.starts_with("calls.parquet"));
    let parts: Vec<_> = parts.map(|path| divided.join(path)).collect();
    assert!(parts.len() > 1 && parts[1].ends_with("part=0001/calls.parquet"), "{parts:?}");
    let mut rows = Vec::new();
    let mut next_rank = 0;
    for part in parts {
        let calls = calls_in(&part);
        assert!(calls.is_sorted_by_key(|(rank, begin_ns)| (*begin_ns, *rank)));
        let ranks = calls.iter().map(|(rank, _)| *rank);
        assert_eq!(ranks.clone().min(), Some(next_rank));
        next_rank = ranks.max().unwrap() + 1;
        let reader = SerializedFileReader::new(File::open(&part).unwrap()).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        for column in [0, 2] {
            let statistics = columns[column].statistics().unwrap();
            assert!(statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some());
        }
        rows.extend(calls);
    }
    assert_eq!(rows.len() as u64, written.calls);
    rows.sort_by_key(|(rank, begin_ns)| (*begin_ns, *rank));
    assert_eq!(rows, calls_in(&whole.join("calls.parquet")));
}

#[test]
fn a_failure_of_one_process_is_one_of_all() {
    let run = ring();
    let folder = RunDirectory::new();
    let to = folder.path().join("out");
    let errors = in_threads::run(3, |processes| {
        let run = Run::open_in(run.path(), &processes).unwrap();
        let (timeline, communicators) = (GlobalTimeline::new(&run), CommunicatorTable::new(&run));
        let choice = Choice::default();
        let content = Content::new(&run, &timeline, &communicators, &choice);
        // Of the third process, what it writes has no place.
        let to = if processes.number() == 2 { to.join("missing") } else { to.clone() };
        let written = write(silent(&content), 1, &to);
        written.unwrap_err().to_string()
    });
    assert!(errors[0].starts_with("process 2 on "), "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("cannot be written")), "{errors:?}");
}

#[test]
fn tables_of_the_report_have_its_figures_in_both_formats() {
    let (directory, out) = (ring(), RunDirectory::new());
    let run = Run::open(directory.path()).unwrap();
    let (timeline, communicators) = (GlobalTimeline::new(&run), CommunicatorTable::new(&run));
    let choice = Choice::default();
    let content = Content::new(&run, &timeline, &communicators, &choice);
    let (text, binary) = (out.path().join("csv"), out.path().join("parquet"));
    crate::formats::csv::write(silent(&content), &text).unwrap();
    write(silent(&content), PART_CALLS, &binary).unwrap();
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let expected: Vec<f64> = metrics.ranks.iter().map(|rank| rank.lost_s).collect();

    let mut csv = csv::Reader::from_path(text.join("report_ranks.csv")).unwrap();
    let titles: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
    let lost = titles.iter().position(|title| title == "lost_s").unwrap();
    let of_row = |row: Result<csv::StringRecord, _>| row.unwrap()[lost].parse::<f64>().unwrap();
    assert_eq!(csv.records().map(of_row).collect::<Vec<_>>(), expected);

    let file = File::open(binary.join("report_ranks.parquet")).unwrap();
    let parquet = SerializedFileReader::new(file).unwrap();
    let fields = parquet.metadata().file_metadata().schema().get_fields().to_vec();
    assert!(fields.iter().map(|field| field.name()).eq(&titles));
    let rows = parquet.get_row_iter(None).unwrap().map(|row| row.unwrap());
    assert_eq!(rows.map(|row| row.get_double(lost).unwrap()).collect::<Vec<_>>(), expected);

    let calls = fs::read_to_string(text.join("report_calls.csv")).unwrap();
    assert!(calls.starts_with("function,class,count,time_s,share,"), "{calls}");
    assert!(calls.contains("\nMPI_Barrier,collective,"), "words as on the screen: {calls}");
    assert!(!text.join("report_waits.csv").exists(), "nobody waited: a table without rows");
}
