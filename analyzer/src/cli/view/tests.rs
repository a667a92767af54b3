use super::*;
use crate::metrics::{Metrics, Selection};
use crate::synthetic_code::{LIBRARY, sampled};
use crate::synthetic_messages::{completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};

const B: u64 = 1_000_000;
const STEPS: u64 = 500;

/// Ranks that send to each other and meet in barriers, from 1 ms on, with a step every 10 µs.
fn ranks() -> Vec<SyntheticRank> {
    let end = B + STEPS * 10_000;
    let rank = |number: u32| {
        let mut rank = SyntheticRank::level_1(number, 2, end);
        rank.call(0, "MPI_Comm_rank", B + 10, B + 20);
        for step in 0..STEPS {
            let at = B + 100 + step * 10_000;
            let other = 1 - number as i32;
            match number {
                0 => rank.call_with("MPI_Isend", at, at + 300, on_world(other, 7, 64).request(3)),
                _ => rank.call_with("MPI_Irecv", at, at + 200, on_world(other, 7, 64).request(3)),
            };
            rank.several("MPI_Waitall", at + 1000, at + 2000, &[completed(3, other, 7, 64)]);
            rank.call_with(
                "MPI_Barrier",
                at + 3000 + u64::from(number),
                at + 5000,
                on_world(0, 0, 0),
            );
        }
        rank.finalize(end, end + 1000);
        rank
    };
    vec![rank(0), rank(1)]
}

struct Shown {
    run: Run,
    timeline: GlobalTimeline,
    communicators: CommunicatorTable,
    index: ActivityIndex,
}

impl Shown {
    fn new(directory: &RunDirectory) -> Self {
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let index = make_index(&run, &timeline, true);
        Self { communicators: CommunicatorTable::new(&run), run, timeline, index }
    }

    /// The JSON document of calls in a stretch, in seconds; `None` if it is refused.
    fn calls(&self, query: &str) -> Option<serde_json::Value> {
        let Self { run, timeline, communicators, index } = self;
        let view = View::new(IndexReader { run, timeline, index }, communicators);
        let replay = CheckpointedMatching::new(run, timeline, communicators);
        let answer = answer(&view, Some(&replay), "calls", query)?;
        Some(serde_json::from_slice(&answer.body).unwrap())
    }

    fn request(&self, path: &str, query: &str) -> Option<Vec<u8>> {
        let Self { run, timeline, communicators, index } = self;
        let view = View::new(IndexReader { run, timeline, index }, communicators);
        Some(answer(&view, None, path, query)?.body)
    }
}

#[test]
fn stretches_have_calls_and_messages_of_run() {
    let directory = RunDirectory::with_ranks(&ranks());
    let shown = Shown::new(&directory);
    let metrics = Metrics::new(&shown.run, &shown.timeline, &Selection::Whole).unwrap();
    let all = shown.calls("from=0&to=1&rows=0-1").unwrap();
    let count = |value: &serde_json::Value| value.as_array().unwrap().len() as u64;
    assert_eq!(count(&all["messages"]), metrics.messages.unwrap().total.count);
    assert_eq!(count(&all["collectives"]), STEPS);
    // Calls between MPI_Init and MPI_Finalize.
    let rows: Vec<u64> = all["rows"].as_array().unwrap().iter().map(|row| count(&row[1])).collect();
    assert_eq!(rows, [3 * STEPS + 1 + 1, 3 * STEPS + 1 + 1]);
    // Step 200, from inside the send to inside the barrier.
    let at = (200.0 * 10_000.0 + 100.0) * 1e-9;
    let some = shown.calls(&format!("from={}&to={}&rows=0-0", at + 100e-9, at + 4000e-9)).unwrap();
    assert_eq!(count(&some["messages"]), 1);
    assert_eq!(count(&some["collectives"]), 1);
    assert_eq!(count(&some["rows"][0][1]), 3);
    let (sent, received) = (&some["messages"][0][3], &some["messages"][0][5]);
    assert!((sent.as_f64().unwrap() - at - 300e-9).abs() < 1e-12, "{sent}");
    assert!((received.as_f64().unwrap() - at - 2000e-9).abs() < 1e-12, "{received}");
}

#[test]
fn refuses_invalid_requests() {
    let directory = RunDirectory::with_ranks(&ranks());
    let shown = Shown::new(&directory);
    assert!(shown.request("shares", "level=0&tile=0&rows=0-1").is_some());
    assert!(String::from_utf8(shown.request("", "").unwrap()).unwrap().contains("timeline-data"));
    for query in [
        "",
        "level=0&tile=0",
        "level=0&tile=1&rows=0-0",
        "level=64&tile=0&rows=0-0",
        "level=-1&tile=0&rows=0-0",
        "level=0&tile=0&rows=0-2",
        "level=0&tile=0&rows=1-0",
        "level=0&tile=0&rows=0-18446744073709551615",
    ] {
        assert!(shown.request("shares", query).is_none(), "{query}");
    }
    for query in
        ["from=0&to=1", "from=1&to=0&rows=0-0", "from=nan&to=1&rows=0-0", "from=0&to=1&rows=x-y"]
    {
        assert!(shown.calls(query).is_none(), "{query}");
    }
    for path in ["run.json", "../run.json", "shares/", "index.html"] {
        assert!(shown.request(path, "").is_none(), "{path}");
    }
}

#[test]
fn sums_and_panels_agree_with_report() {
    let directory = RunDirectory::with_ranks(&ranks());
    let shown = Shown::new(&directory);
    let length_s = shown.timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
    let sums = shown.request("sums", &format!("from=0&to={length_s}&rows=0-1")).unwrap();
    let sums: Vec<f32> =
        sums.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    let metrics = Metrics::new(&shown.run, &shown.timeline, &Selection::Whole).unwrap();
    for (kinds, rank) in sums.chunks_exact(10).zip(&metrics.ranks) {
        let mpi_s: f32 = kinds[2..9].iter().sum();
        assert!((f64::from(mpi_s) - rank.mpi_s).abs() < 1e-6, "{mpi_s} {}", rank.mpi_s);
    }
    for query in ["from=1&to=0&rows=0-0", "from=0&to=1&rows=0-2", "from=0&to=1"] {
        assert!(shown.request("sums", query).is_none(), "{query}");
    }
    let parts: serde_json::Value =
        serde_json::from_slice(&shown.request("parts", "").unwrap()).unwrap();
    let html = parts["html"].as_str().unwrap();
    assert!(html.contains("id=\"verdict\"") && html.contains("data-rank=\"1\""));
    assert!(!html.contains("style="), "the content security policy forbids it");
}

#[test]
fn answers_with_the_samples_of_a_time() {
    let Some(library) = &*LIBRARY else { return };
    let directory =
        RunDirectory::with_ranks(&sampled(library, 5, &vec![vec![[20_000_000; 4]; 40]; 2]));
    let shown = Shown::new(&directory);
    let length_s = shown.timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
    let samples = |from: f64, to: f64| {
        let body = shown.request("samples", &format!("from={from}&to={to}")).unwrap();
        let found: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(found["threads"].as_array().unwrap().len(), 2);
        assert_eq!((found["from_s"].as_f64(), found["to_s"].as_f64()), (Some(from), Some(to)));
        found["cells"].as_str().unwrap().len()
    };
    let whole = samples(0.0, length_s);
    let (first, second) = (samples(0.0, 1.0), samples(1.0, length_s));
    assert!(first > 0 && second > 0 && first < whole && second < whole, "{first} {second} {whole}");
    for query in ["from=1&to=0", "from=1&to=1", "from=0", "from=0&to=x"] {
        assert!(shown.request("samples", query).is_none(), "{query}");
    }
    let directory = RunDirectory::with_ranks(&ranks());
    let nothing = Shown::new(&directory).request("samples", "from=0&to=1").unwrap();
    assert_eq!(nothing, b"null");
}

#[test]
fn shows_run_despite_missing_rank_and_unwritable_index() {
    let mut all = ranks();
    all.remove(0);
    let directory = RunDirectory::with_ranks(&all);
    // Occupies the path of the index.
    std::fs::create_dir_all(directory.path().join(INDEX_FILE).join("x")).unwrap();
    let shown = Shown::new(&directory);
    assert!(matches!(StoredIndex::read(directory.path()), Err(Unusable::Stale(_))));
    let calls = shown.calls("from=0&to=1&rows=0-0").unwrap();
    assert_eq!(calls["messages"].as_array().unwrap().len(), 0);
    assert_eq!(calls["rows"][0][1].as_array().unwrap().len() as u64, 3 * STEPS + 2);
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "no partial index is left");
}

#[test]
fn explains_empty_or_absent_run() {
    let nothing = RunDirectory::new();
    let view_of = |run: PathBuf| {
        let arguments =
            ViewArguments { run: Some(run), index_only: true, ..ViewArguments::default() };
        view(&arguments).unwrap_err().to_string()
    };
    assert!(view_of(nothing.path().to_owned()).contains("no rank file"));
    assert!(view_of(nothing.path().join("absent")).contains("no such run directory"));
}
