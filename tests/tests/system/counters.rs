//! Hardware and software counters: known numbers of page faults, which the kernel counts on every
//! machine, and counters that are not available.
//!
//! The processor's own events are not tested: few test machines have them.

use system_tests::{Job, Mpi, Recorded, command, under_both, victim};

use gammachi_analyzer::metrics::{CounterMetrics, Metrics, NoCount, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;

/// Page faults beyond those that the program provokes: of stacks, the C library, reading the
/// counters.
const SLACK: f64 = 60.0;
/// An event source with this number exists on no machine.
const ABSENT: &str = "flops=4000000000:1";

fn counting(mpi: Mpi, what: &str, counters: &str) -> Job {
    let job = Job::new(mpi, &victim(mpi, "counts_faults"));
    let job = if what.is_empty() { job } else { job.argument(what) };
    job.environment("GAMMACHI_COUNTERS", counters)
}

fn counters(recorded: &Recorded, selection: &Selection) -> Vec<CounterMetrics> {
    let run = Run::open(&recorded.directory()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, selection).unwrap();
    assert_eq!(metrics.diagnoses, []);
    metrics.counters
}

fn region(name: &str) -> Selection {
    Selection::Region(name.to_owned())
}

#[track_caller]
fn assert_counted(counter: &CounterMetrics, expected: f64, slack: f64) {
    for one in &counter.ranks {
        let count = one.count.as_ref().unwrap_or_else(|why| panic!("rank {}: {why:?}", one.rank));
        let fits = (expected..=expected + slack).contains(&count.value);
        assert!(fits && !count.scaled, "rank {}: {count:?} for {expected}", one.rank);
    }
}

fn gammachi(arguments: &[&str], recorded: &Recorded) -> String {
    let output = std::process::Command::new(command())
        .args(arguments)
        .arg(recorded.directory())
        .current_dir(recorded.directory())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

under_both! {
    fn regions_get_the_counts_between_their_markers(mpi) {
        let job = counting(mpi, "", "faults=software:2,doubled=software:2*2+software:2").ranks(2);
        let bare = job.bare();
        let recorded = job.record();
        recorded.output.expect_same(&bare);
        let marked = recorded.trace();
        assert!(marked.rank(0).threads[0].marked().starts_with(&["MPI_Init", "BEGIN outer"]));
        for (name, expected) in
            [("outer", 1800.0), ("solve", 2000.0), ("threads", 800.0), ("earlier", 250.0)]
        {
            let counters = counters(&recorded, &region(name));
            assert_eq!(counters.len(), 2, "{name}");
            assert_eq!((counters[0].name.as_str(), counters[0].ranks.len()), ("faults", 2));
            assert_counted(&counters[0], expected, SLACK);
            assert_counted(&counters[1], 3.0 * expected, 3.0 * SLACK);
        }
        // The whole run has all of them, and those of MPI between MPI_Init and MPI_Finalize.
        let whole = counters(&recorded, &Selection::Whole);
        let all = 1800.0 + 600.0 + 700.0 + 800.0 + 250.0;
        assert_counted(&whole[0], all, 1000.0);
        assert_eq!(whole[0].events, "software 0x2");
        let text = gammachi(&["report", "--region", "solve"], &recorded);
        assert!(text.contains("COUNTED") && text.contains("software 0x2"), "{text}");
    }

    fn reads_no_counters_by_default(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "counts_faults")).record();
        recorded.expect_code(0);
        assert_eq!(counters(&recorded, &Selection::Whole), []);
        assert!(!gammachi(&["report"], &recorded).contains("COUNTED"));
    }

    fn keeps_counts_of_a_killed_rank(mpi) {
        let recorded = counting(mpi, "dies", "faults=software:2").record();
        let solve = counters(&recorded, &region("solve"));
        assert_counted(&solve[0], 1000.0, SLACK);
        assert!(solve[0].total().is_some());
        let whole = counters(&recorded, &Selection::Whole);
        let count = whole[0].ranks[0].count.as_ref().unwrap();
        // Counted up to the last reading and marked as such: no sum.
        assert!((1000.0..2000.0).contains(&count.value) && count.until_s.is_some(), "{count:?}");
        assert_eq!(whole[0].total(), None);
        let text = gammachi(&["report"], &recorded);
        assert!(text.contains("did not reach the end"), "{text}");
    }

    fn explains_unavailable_counter(mpi) {
        let job = counting(mpi, "", ABSENT).ranks(2);
        let recorded = job.record();
        recorded.output.expect_same(&job.bare());
        let whole = counters(&recorded, &Selection::Whole);
        for one in &whole[0].ranks {
            let why = one.count.as_ref().unwrap_err();
            assert!(
                matches!(why, NoCount::Unavailable(reason) if reason.contains("no such event")),
                "{why:?}"
            );
        }
        let unbroken = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = unbroken(&gammachi(&["report"], &recorded));
        assert!(text.contains("flops: not available on") && text.contains("no such event"), "{text}");
        // The roofline falls back to the calls' operations, and says so.
        let text = unbroken(&gammachi(&["roofline"], &recorded));
        assert!(text.contains("flops: not available on") && text.contains("lower bound"), "{text}");
        // A counter that is unavailable beside one that works.
        let job = counting(mpi, "", &format!("{ABSENT},faults=software:2"));
        let both = counters(&job.record(), &region("solve"));
        assert!(both[0].ranks[0].count.is_err());
        assert_counted(&both[1], 2000.0, SLACK);
    }

    fn roofline_uses_counted_operations(mpi) {
        // Page faults instead of operations: this test does not depend on what is counted.
        let recorded = counting(mpi, "", "flops=software:2*1000,bytes=software:2*64").record();
        recorded.expect_code(0);
        let document: serde_json::Value =
            serde_json::from_str(&gammachi(&["roofline", "--json"], &recorded)).unwrap();
        let points = document["runs"][0]["points"].as_array().unwrap();
        let solve = points.iter().find(|point| point["name"] == "region solve").unwrap();
        let flops = solve["flops"].as_f64().unwrap();
        assert!((2e6..=2.06e6).contains(&flops), "{flops}");
        assert_eq!(solve["flops_from"], "counter");
        assert_eq!(solve["flops_of_calls"], serde_json::Value::Null);
        assert_eq!(solve["counted_bytes"].as_f64().unwrap() * 1000.0 / 64.0, flops);
        assert_eq!(document["runs"][0]["flops_are_a_lower_bound"], false);
        let notes = document["runs"][0]["notes"].to_string();
        assert!(notes.contains("counted by the hardware: perf_event 1000 x software 0x2"), "{notes}");
    }

    fn does_not_read_descriptors_taken_by_the_program(mpi) {
        let recorded = counting(mpi, "closes", "faults=software:2").record();
        assert_eq!(recorded.output.expect_code(0).stdout, "ran\n");
        let solve = counters(&recorded, &region("solve"));
        let why = solve[0].ranks[0].count.as_ref().unwrap_err();
        assert_eq!(*why, NoCount::Unreadable);
    }

    fn invalid_counter_is_reported_and_the_program_runs(mpi) {
        let job = counting(mpi, "", "bytes");
        let recorded = job.record();
        assert_eq!(recorded.output.expect_code(0).stdout, job.bare().stdout);
        let messages = recorded.output.recorder_lines().join("\n");
        assert!(messages.contains("GAMMACHI_COUNTERS") && messages.contains("no built-in choice"), "{messages}");
        assert_eq!(counters(&recorded, &Selection::Whole), []);
    }
}

#[test]
fn command_rejects_invalid_counter() {
    for (wrong, message) in [("bytes", "no built-in choice"), ("a=cache:1", "is not an event")] {
        let output = std::process::Command::new(command())
            .args(["run", "--counters", wrong, "--", "true"])
            .env_remove("GAMMACHI_COUNTERS")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}
