//! Traces as Extrae writes them: the contents of records follow its `mpi_prv_semantics.c`,
//! `trace_communication.c` and `paraver_generator.c`; records are in the order of its merger, a
//! communication by its physical send.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use trace_format::reader::Event;

use super::import;
use crate::import::{ImportError, ImportNote, Imported};
use crate::metrics::{Metrics, Selection};
use crate::synthetic_trace::RunDirectory;
use crate::timeline::{ElapsedScope, GlobalTimeline, KnownRates};
use crate::trace::Run;

/// Two tasks for a millisecond: a blocking send, one that is longer than the wait that receives it, a
/// broadcast from rank 1, an exchange; I/O outside MPI; every MPI event with its callers.
const EXTRAE: &str = "\
#Paraver (03/09/2015 at 15:19):1000000_ns:1(2):1:2(1:1,1:1),3
c:1:1:2:1:2
c:1:2:1:1
c:1:3:1:2
1:1:1:1:1:0:100000:1
1:2:1:2:1:0:50000:2
1:2:1:2:1:50000:100000:1
1:1:1:1:1:100000:200000:15
1:2:1:2:1:100000:200000:15
2:1:1:1:1:100000:50000003:31:40000018:77
2:2:1:2:1:100000:50000003:31:40000018:78
1:1:1:1:1:200000:300000:1
1:2:1:2:1:200000:390000:3
2:1:1:1:1:200000:50000003:0
2:2:1:2:1:200000:50000003:0
2:2:1:2:1:200000:50000001:2:70000001:4:70000002:5:70000003:6:80000001:7
1:1:1:1:1:300000:400000:4
2:1:1:1:1:300000:50000001:1:70000001:3:70000002:4:70000003:5
1:2:1:2:1:390000:505000:1
2:2:1:2:1:390000:50000001:0
1:1:1:1:1:400000:500000:1
2:1:1:1:1:400000:50000001:0
3:1:1:1:1:300000:400000:2:1:2:1:200000:390000:1000:7
1:1:1:1:1:500000:600000:13
2:1:1:1:1:500000:50000002:7:50100001:0:50100002:64:50100004:1:70000001:3
1:2:1:2:1:505000:610000:13
2:2:1:2:1:505000:50000002:7:50100001:64:50100002:0:50100004:1:50100003:1
1:1:1:1:1:600000:610000:1
2:1:1:1:1:600000:50000002:0
1:1:1:1:1:610000:690000:4
1:2:1:2:1:610000:620000:1
2:1:1:1:1:610000:50000001:1:70000002:4
2:2:1:2:1:610000:50000002:0
1:2:1:2:1:620000:625000:11
2:2:1:2:1:620000:50000001:4
1:2:1:2:1:625000:630000:1
2:2:1:2:1:625000:50000001:0
1:2:1:2:1:630000:660000:8
2:2:1:2:1:630000:50000001:6
1:2:1:2:1:660000:760000:1
2:2:1:2:1:660000:50000001:0
1:1:1:1:1:690000:700000:1
2:1:1:1:1:690000:50000001:0
3:1:1:1:1:610000:690000:2:1:2:1:625000:660000:500000:9
1:1:1:1:1:700000:750000:12
1:1:1:1:1:750000:760000:1
1:1:1:1:1:760000:780000:16
1:2:1:2:1:760000:780000:16
2:1:1:1:1:760000:50000001:41:70000002:4
2:2:1:2:1:760000:50000001:41:70000002:4
3:1:1:1:1:760000:760000:2:1:2:1:760000:780000:10:1
3:2:1:2:1:760000:760000:1:1:1:1:760000:780000:20:1
1:1:1:1:1:780000:800000:1
1:2:1:2:1:780000:800000:1
2:1:1:1:1:780000:50000001:0
2:2:1:2:1:780000:50000001:0
1:1:1:1:1:800000:900000:15
1:2:1:2:1:800000:900000:15
2:1:1:1:1:800000:50000003:32
2:2:1:2:1:800000:50000003:32
1:1:1:1:1:900000:1000000:1
1:2:1:2:1:900000:950000:1
2:1:1:1:1:900000:50000003:0
2:2:1:2:1:900000:50000003:0
1:2:1:2:1:950000:1000000:2
";

struct Traced {
    folder: RunDirectory,
    imported: Result<Imported, ImportError>,
}

impl Traced {
    fn new(text: &str) -> Self {
        let folder = RunDirectory::new();
        fs::create_dir_all(folder.path()).unwrap();
        let file = folder.path().join("trace.prv");
        fs::write(&file, text).unwrap();
        let imported = import(&file, &folder.path().join("run"), None);
        Self { folder, imported }
    }

    fn run(&self) -> Run {
        let run: PathBuf = self.folder.path().join("run");
        Run::open(&run).unwrap()
    }

    fn missing(&self) -> BTreeMap<&'static str, u64> {
        self.imported.as_ref().unwrap().missing.clone()
    }
}

fn metrics(run: &Run, whole: ElapsedScope) -> Metrics {
    let timeline = GlobalTimeline::over(run, &KnownRates::default(), whole);
    Metrics::new(run, &timeline, &Selection::Whole).unwrap()
}

fn calls(run: &Run, rank: usize, name: &str) -> Vec<Event> {
    let file = &run.ranks[rank].file;
    let thread = &file.threads[0];
    let events = file.events(thread);
    events.filter(|event| file.function_name(event.function) == Some(name)).collect()
}

fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
}

#[test]
fn the_error_of_the_clocks_can_be_given() {
    // On two hosts, whose clocks are estimated from messages without it.
    let text = EXTRAE
        .replace("1000000_ns:1(2):", "1000000_ns:2(2,2):")
        .replace("2(1:1,1:1)", "2(1:1,1:2)");
    let bound_ns = |given: Option<f64>| {
        let folder = RunDirectory::new();
        fs::create_dir_all(folder.path()).unwrap();
        let (file, run) = (folder.path().join("trace.prv"), folder.path().join("run"));
        fs::write(&file, &text).unwrap();
        import(&file, &run, given).unwrap();
        GlobalTimeline::new(&Run::open(&run).unwrap()).ends_bound_ns
    };
    assert!(bound_ns(None) > Some(2_000.0));
    assert_eq!(bound_ns(Some(2_000.0)).map(f64::round), Some(2_000.0));
}

#[test]
fn finds_every_message_and_takes_no_callers_for_polls() {
    let traced = Traced::new(EXTRAE);
    let run = traced.run();
    let metrics = metrics(&run, ElapsedScope::Mpi);
    let messages = metrics.messages.as_ref().unwrap();
    assert_eq!(messages.total.count, 4);
    assert_eq!(messages.total.bytes, 1000 + 500_000 + 10 + 20);
    assert_eq!(messages.unmatched_count(), 0);
    assert!(metrics.ranks.iter().all(|rank| rank.polls.calls == 0));
    let counts: BTreeMap<_, _> =
        metrics.calls.iter().map(|call| (call.function.as_str(), call.count)).collect();
    let expected = [
        ("MPI_Bcast", 2),
        ("MPI_Finalize", 2),
        ("MPI_Init", 2),
        ("MPI_Irecv", 1),
        ("MPI_Recv", 1),
        ("MPI_Send", 2),
        ("MPI_Sendrecv", 2),
        ("MPI_Waitall", 1),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    assert_eq!(traced.missing(), BTreeMap::new());
}

#[test]
fn every_member_gets_the_root() {
    let traced = Traced::new(EXTRAE);
    let run = traced.run();
    for rank in 0..2 {
        assert_eq!(calls(&run, rank, "MPI_Bcast")[0].peer, 1, "rank {rank}");
    }
    // If no member is marked as the root, no rank is assumed to be it.
    let traced = Traced::new(&EXTRAE.replace(":50100003:1", ""));
    let run = traced.run();
    for rank in 0..2 {
        assert_eq!(calls(&run, rank, "MPI_Bcast")[0].peer, crate::import::rank::ANY_SOURCE);
    }
    assert_eq!(traced.missing().values().sum::<u64>(), 2, "{:?}", traced.missing());
}

#[test]
fn whole_trace_gives_the_figures_of_pop() {
    let traced = Traced::new(EXTRAE);
    let run = traced.run();
    // Sums of the state Running over the length of the trace.
    let whole = metrics(&run, ElapsedScope::Process);
    assert_near(whole.elapsed_s, 1e-3);
    assert_near(whole.ranks[0].compute_s, 450e-6);
    assert_near(whole.ranks[1].compute_s, 350e-6);
    assert_near(whole.efficiency.unwrap().parallel, 0.4);
    // Between MPI_Init and MPI_Finalize.
    let inside = metrics(&run, ElapsedScope::Mpi);
    assert_near(inside.elapsed_s, 600e-6);
    assert_near(inside.ranks[0].compute_s, 250e-6);
    let notes = &traced.imported.as_ref().unwrap().notes;
    assert!(notes.contains(&ImportNote::OtherStates(vec![(12, 50_000)])), "{notes:?}");
}

#[test]
fn counts_what_cannot_be_matched() {
    let lost = EXTRAE
        // A message that no call sends, a receive without a message, a communicator without definition.
        .replace("3:1:1:1:1:300000:400000:2:1:2:1:200000:390000:1000:7\n", "")
        .replace("3:1:1:1:1:760000:760000:", "3:1:1:1:1:755000:760000:")
        .replace("50100002:64:50100004:1", "50100002:64:50100004:9");
    let traced = Traced::new(&lost);
    let missing = traced.missing();
    let count = |word: &str| {
        let found = missing.iter().find(|(what, _)| what.contains(word));
        found.map_or(0, |(_, count)| *count)
    };
    assert_eq!(count("without a message"), 3, "{missing:?}");
    assert_eq!(count("in no call"), 1, "{missing:?}");
    assert_eq!(count("does not define"), 1, "{missing:?}");
    let run = traced.run();
    assert_eq!(calls(&run, 0, "MPI_Bcast")[0].communicator, 0);
    assert_eq!(metrics(&run, ElapsedScope::Mpi).messages.unwrap().total.count, 2);
}

#[test]
fn names_invalid_lines_and_shortens_them_between_characters() {
    let head = EXTRAE.lines().next().unwrap().replace(",3", "");
    let traced = Traced::new(&format!("{head}\n9:x{}\n", "ä".repeat(60)));
    let error = traced.imported.unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("äää"), "{error}");
    let traced = Traced::new(&format!("{head}\n3:1:1:1:1:0:0:1:1:9:1:0:0:1:1\n"));
    let error = traced.imported.unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("no task 9"), "{error}");
}

/// A regression test: each receive without a message, and vice versa, was once compared with all
/// others.
#[test]
fn reads_many_messages_without_calls_once() {
    const COUNT: u64 = 60_000;
    let mut text = EXTRAE.lines().next().unwrap().replace(",3", "") + "\n";
    for number in 0..COUNT {
        let at = number * 10;
        text += &format!("2:2:1:2:1:{at}:50000001:4\n2:2:1:2:1:{}:50000001:0\n", at + 2);
        let (sent, posted) = (at + 5, at + 4);
        text += &format!("3:1:1:1:1:{sent}:{sent}:2:1:2:1:{posted}:{}:8:1\n", at + 6);
    }
    let traced = Traced::new(&text);
    assert_eq!(traced.missing().values().sum::<u64>(), 3 * COUNT, "{:?}", traced.missing());
}
