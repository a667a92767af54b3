//! What is kept if not every event can be: limits, rings, totals alone, memory that cannot be
//! mapped.

use std::collections::BTreeSet;
use std::process::Command;

use gammachi_analyzer::metrics::{Frame, Metrics, PathRow, Selection, SiteMetrics};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::{Run, RunNote};
use system_tests::directories::repository;
use system_tests::job::Output;
use system_tests::trace::Trace;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recorded, command, under_both, under_mpich, victim};
use trace_format::files::rank_file_path;
use trace_format::header::Definition;

const MESSAGES: u64 = 40_000;
/// Events of every rank that are kept in any case.
const LAST_EVENTS: usize = 4096;

fn job(mpi: Mpi, keep: &str, max_bytes: u64) -> Job {
    Job::new(mpi, &victim(mpi, "sends_sizes"))
        .argument(MESSAGES.to_string())
        .ranks(2)
        .environment("GAMMACHI_KEEP", keep)
        .environment("GAMMACHI_MAX_BYTES", max_bytes.to_string())
}

fn metrics_of(recorded: &Recorded) -> (Run, Metrics) {
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run");
    (run, metrics)
}

/// Checks what must hold whatever was kept: every call and byte is counted, and times add up.
fn expect_all_calls(metrics: &Metrics) {
    let call =
        |name: &str| metrics.calls.iter().find(|call| call.function == name).expect("called");
    let bytes = (0..MESSAGES).map(|i| i % 4096).sum::<u64>();
    for name in ["MPI_Send", "MPI_Recv"] {
        assert_eq!(call(name).count, MESSAGES);
        assert_eq!(call(name).bytes, Some(bytes), "{name}");
    }
    assert_eq!(call("MPI_Barrier").count, 2 * (MESSAGES / 100));
    let sum: f64 = metrics.ranks.iter().map(|rank| rank.compute_s + rank.lost_s).sum();
    let all = metrics.elapsed_s * metrics.ranks.len() as f64;
    assert!((sum - all).abs() < 1e-6 * all, "{sum} s of {all} s");
}

fn kept_calls(trace: &Trace, rank: usize) -> usize {
    trace.rank(rank).threads.iter().map(|thread| thread.calls().len()).sum()
}

// What is kept does not depend on the MPI; of Open MPI, ranks that wait for messages keep a core busy.
under_mpich! {
    fn sums_calls_beyond_the_limit_and_keeps_the_last(mpi) {
        let recorded = job(mpi, "first", 1 << 20).record();
        recorded.expect_code(0);
        let (run, metrics) = metrics_of(&recorded);
        expect_all_calls(&metrics);
        let totals = metrics.totals.as_ref().expect("totals");
        assert_eq!(totals.ranks, 2);
        assert!(totals.calls > MESSAGES / 2, "{}", totals.calls);
        let row = totals.rows.iter().find(|row| row.function == "MPI_Send").expect("sends");
        assert_eq!(row.peer.map(|peer| peer.name()), Some("same host"));
        assert_eq!(row.histogram.iter().map(|bin| bin.count).sum::<u64>(), row.count);
        assert!(row.min_s <= row.max_s && row.time_s >= row.max_s);
        let trace = recorded.trace();
        for (rank, opened) in run.ranks.iter().enumerate() {
            let path = recorded.directory().join(rank_file_path(0, rank as u32));
            let bytes = path.metadata().expect("the file").len();
            assert!(bytes < (1 << 20) + (700 << 10), "{bytes} bytes");
            assert!(kept_calls(&trace, rank) > LAST_EVENTS + 6000);
            let thread = &opened.file.threads[0];
            assert!(opened.file.events_before_totals(thread).count() > 6000);
            assert!(opened.file.events_behind_totals(thread).count() >= LAST_EVENTS);
            assert!(trace.rank(rank).calls().contains(&"MPI_Init"));
            assert_eq!(trace.rank(rank).calls().last(), Some(&"MPI_Finalize"));
        }
    }

    fn keeps_the_newest_calls_on_request(mpi) {
        let recorded = job(mpi, "last", 1 << 20).record();
        recorded.expect_code(0);
        let (_, metrics) = metrics_of(&recorded);
        expect_all_calls(&metrics);
        let trace = recorded.trace();
        for rank in 0..2 {
            assert!(kept_calls(&trace, rank) > 13_000, "{}", kept_calls(&trace, rank));
            assert!(!trace.rank(rank).calls().contains(&"MPI_Init"));
            assert_eq!(trace.rank(rank).calls().last(), Some(&"MPI_Finalize"));
        }
    }

    fn totals_alone_take_less_than_a_hundred_kilobytes(mpi) {
        let recorded = job(mpi, "totals", 0).without_samples().record();
        recorded.expect_code(0);
        let (run, metrics) = metrics_of(&recorded);
        expect_all_calls(&metrics);
        assert_eq!(metrics.totals.as_ref().map(|totals| totals.kept_calls), Some(0));
        for rank in &run.ranks {
            let bytes = rank.file.file_bytes();
            assert!(bytes < 100_000, "{bytes} bytes");
        }
    }

    // A report blames nobody if calls are kept only as totals, but explains what a limit has left.
    fn waiting_is_explained_unless_most_calls_are_totals(mpi) {
        let screen_of = |keep: &str, max_bytes: u64| {
            let recorded = job(mpi, keep, max_bytes).record();
            recorded.expect_code(0);
            let mut report = Command::new(command());
            report.arg("report").arg(recorded.directory());
            let output = report.output().expect("the command starts");
            let screen = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && screen.contains("TRUST"), "{screen}");
            screen
        };
        let shows_waits =
            |screen: &str| screen.lines().any(|line| line.starts_with("WAIT STATES"));
        // Under load, the totals may take more time than what is left: another sentence says so.
        let says_unknown = |screen: &str| {
            let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            words.contains("Who waited for whom is unknown: calls were kept only as totals")
        };
        let totals = screen_of("totals", 0);
        assert!(!shows_waits(&totals) && says_unknown(&totals), "{totals}");
        let limited = screen_of("first", 1 << 20);
        assert!(shows_waits(&limited) && !says_unknown(&limited), "{limited}");
    }

    // A killed run with each policy: every call that returned is counted, individually or in
    // totals.
    fn killed_process_loses_no_totals(mpi) {
        for (keep, max_bytes) in [("first", 1 << 20), ("last", 1 << 20), ("totals", 0)] {
            let recorded = job(mpi, keep, max_bytes).argument("die").record();
            let (run, metrics) = metrics_of(&recorded);
            let call = |name: &str| metrics.calls.iter().find(|call| call.function == name);
            assert_eq!(call("MPI_Send").map(|call| call.count), Some(MESSAGES), "{keep}");
            assert_eq!(call("MPI_Recv").map(|call| call.count), Some(MESSAGES), "{keep}");
            let trace = Trace::open(&recorded.directory(), 2).expect("sound files");
            for (index, rank) in run.ranks.iter().enumerate() {
                assert!(!rank.facts.finalized());
                assert!(kept_calls(&trace, index) >= LAST_EVENTS, "{keep}");
            }
        }
    }

    // The limits also apply to definitions, on disk and in memory; objects not yet freed are
    // described.
    fn freed_communicators_take_no_space(mpi) {
        const TIMES: u64 = 20_000;
        let limits = [("totals", 0, 100_000), ("first", 1 << 20, (1 << 20) + (700 << 10)), ("last", 1 << 20, (1 << 20) + (700 << 10))];
        // With one rank, MPI_Comm_dup needs no communication, which would take long.
        let job = Job::new(mpi, &victim(mpi, "duplicates_and_frees"))
            .argument(TIMES.to_string());
        let growth_kb = |output: &Output| -> i64 {
            let grew = output.stdout.split_whitespace().nth(1).and_then(|kb| kb.parse().ok());
            grew.unwrap_or_else(|| panic!("{output}"))
        };
        let bare = job.bare();
        bare.expect_code(0);
        for (keep, max_bytes, most_bytes) in limits {
            let recorded = job
                .clone()
                .environment("GAMMACHI_KEEP", keep)
                .environment("GAMMACHI_MAX_BYTES", max_bytes.to_string())
                .without_samples()
                .record();
            recorded.expect_code(0);
            let more_kb = growth_kb(&recorded.output) - growth_kb(&bare);
            assert!(more_kb < 512, "{keep}: {more_kb} kB of memory");
            let (run, metrics) = metrics_of(&recorded);
            let count = |name: &str| metrics.calls.iter().find(|c| c.function == name).map(|c| c.count);
            assert_eq!(count("MPI_Comm_free"), Some(TIMES + 1), "{keep}");
            for rank in &run.ranks {
                let path = recorded.directory().join(&rank.name);
                let bytes = path.metadata().expect("the file").len();
                assert!(bytes < most_bytes, "{keep}: {bytes} bytes");
                let names = rank.file.definitions.iter().filter(|definition| {
                    matches!(definition, Definition::CommunicatorName { name, .. } if name == "kept")
                });
                assert_eq!(names.count(), 1, "{keep}");
            }
            assert!(run.notes.iter().any(|note| matches!(note, RunNote::FreedInTotals { .. })), "{:?}", run.notes);
        }
    }

    // A thread's totals need space of their own. Under a limit, threads that follow each other share it.
    fn short_threads_stay_within_the_limit(mpi) {
        const THREADS: u64 = 400;
        for (keep, max_bytes, most_bytes) in
            [("first", 1 << 17, 1 << 20), ("last", 1 << 17, 1 << 20), ("totals", 0, 100_000)]
        {
            let recorded = Job::new(mpi, &victim(mpi, "starts_short_threads"))
                .argument(THREADS.to_string())
                .environment("GAMMACHI_KEEP", keep)
                .environment("GAMMACHI_MAX_BYTES", max_bytes.to_string())
                .without_samples()
                .record();
            recorded.expect_code(0);
            let (run, metrics) = metrics_of(&recorded);
            let calls = metrics.calls.iter().find(|call| call.function == "MPI_Comm_rank");
            assert_eq!(calls.map(|call| call.count), Some(10 * THREADS), "{keep}");
            let bytes = run.ranks[0].file.file_bytes();
            assert!(bytes < most_bytes, "{keep}: {bytes} bytes");
            let sum: f64 = metrics.ranks.iter().map(|rank| rank.compute_s + rank.lost_s).sum();
            assert!((sum - metrics.elapsed_s).abs() < 1e-6 * sum, "{keep}: {sum} s");
        }
    }

    // Errors that a file server reports when it writes data back are printed and noted in the
    // trace.
    fn reports_late_write_errors(mpi) {
        let library = built(mpi, "refuses_late", Build::Shared);
        let recorded = job(mpi, "first", 0).preload_before(&library).record();
        recorded.expect_code(0);
        let messages = recorded.output.recorder_lines().join("\n");
        assert_eq!(messages.matches("is incomplete").count(), 2, "{messages}");
        assert!(messages.contains("quota"), "{messages}");
        let run = Run::open(&recorded.directory()).expect("the run can be read");
        let what: Vec<String> = run.diagnoses.iter().map(ToString::to_string).collect();
        assert!(what.len() == 2 && what.iter().all(|one| one.contains("quota")), "{what:?}");
    }

    fn writes_windows_when_memory_cannot_be_mapped(mpi) {
        let library = built(mpi, "maps_nothing", Build::Shared);
        let bare = job(mpi, "first", 0).preload_before(&library).bare();
        bare.expect_code(0);
        let recorded = job(mpi, "first", 0).preload_before(&library).record();
        recorded.expect_code(0);
        let (run, metrics) = metrics_of(&recorded);
        expect_all_calls(&metrics);
        for rank in &run.ranks {
            assert!(rank.file.definitions.contains(&Definition::Unmapped));
        }
        assert!(metrics.totals.is_none());
    }
}

/// Lines of the victim that call this function.
fn lines_of(name: &str) -> Vec<u32> {
    let text = include_str!("../../victims/call_sites.c");
    let numbered = text.lines().zip(1..).filter(|(line, _)| line.contains(&format!("{name}(")));
    numbered.map(|(_, number)| number).collect()
}

/// Function, module, address in the module, calls and number of calling ranks.
type Site = (String, String, u64, u64, u64);

fn sites_of(sites: &SiteMetrics) -> BTreeSet<Site> {
    let rows = sites.rows.iter();
    rows.map(|row| {
        (row.function.clone(), row.module.clone(), row.address, row.count, row.ranks as u64)
    })
    .collect()
}

/// Call sites as found by the reader that was written from docs/reference/trace-format.md alone.
fn sites_by_the_second_reader(recorded: &Recorded) -> BTreeSet<Site> {
    let mut reader =
        std::process::Command::new(repository().join("experiments/accuracy/recompute-efficiency"));
    let output = reader.arg(recorded.directory()).output().expect("python3 is installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sites = found["sites"].as_array().expect("sites");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    sites
        .iter()
        .map(|site| {
            let (address, count) = (number(&site["address"]), number(&site["count"]));
            let (function, module) = (text(&site["function"]), text(&site["module"]));
            (function, module, address, count, number(&site["ranks"]))
        })
        .collect()
}

under_both! {
    fn long_calls_record_their_call_path(mpi) {
        let deep = ["inner", "middle", "outer", "main"];
        // The compiler may have inlined the main program into `main`.
        let of_fortran = ["inner", "middle", "three_deep", "main"];
        for (name, build, functions) in [
            ("three_deep", Build::Optimised, &deep[..]),
            ("three_deep", Build::FramePointers, &deep[..]),
            ("three_deep_fortran", Build::Fortran, &of_fortran[..3]),
        ] {
            let job = Job::new(mpi, &built(mpi, name, build)).ranks(2);
            let recorded = job.environment("GAMMACHI_LEVEL", "2").record();
            recorded.expect_code(0);
            let (_, metrics) = metrics_of(&recorded);
            let sites = metrics.sites.expect("sites");
            let barriers = sites.paths.iter().filter(|row| row.function == "MPI_Barrier");
            let barriers: Vec<&PathRow> = barriers.collect();
            // Rank 1 is 2 ms late each of 20 times, so rank 0 waits unless it has waited for a core.
            let count: u64 = barriers.iter().map(|row| row.count).sum();
            let time_s: f64 = barriers.iter().map(|row| row.time_s).sum();
            assert!(count >= 10 && time_s > 0.01, "{barriers:?}");
            // The compiler may have made several copies of a loop or function
            // (`middle.constprop.0`).
            for row in barriers {
                let name = |frame: &Frame| frame.place.function.clone().unwrap_or_default();
                let found: Vec<String> = row.frames.iter().map(name).collect();
                let stems = found.iter().map(|name| name.split('.').next().unwrap_or_default());
                // Names of Fortran procedures begin with the module.
                let stems = stems.map(|name| name.rsplit("_MOD_").next().unwrap_or_default());
                let stems: Vec<&str> = stems.collect();
                let is_complete = stems.len() == functions.len() || stems[3..] == of_fortran[3..];
                assert!(stems.starts_with(functions) && is_complete, "{found:?}");
            }
        }
    }

    fn short_calls_record_no_call_path(mpi) {
        let from = |time: &str| {
            let job = Job::new(mpi, &built(mpi, "three_deep", Build::Optimised)).ranks(2);
            let job = job.environment("GAMMACHI_LEVEL", "2");
            job.environment("GAMMACHI_PATHS_FROM", time).record()
        };
        let all = from("0us");
        let (_, metrics) = metrics_of(&all);
        let paths = metrics.sites.expect("sites").paths;
        let barriers = paths.iter().filter(|row| row.function == "MPI_Barrier");
        assert_eq!(barriers.map(|row| row.count).sum::<u64>(), 40);
        assert!(paths.iter().any(|row| row.function == "MPI_Comm_rank" && row.count == 2), "{paths:?}");
        let none = from("100s");
        let (_, metrics) = metrics_of(&none);
        assert_eq!(metrics.sites.expect("sites").paths, []);
    }

    fn call_sites_belong_to_the_plugin_that_was_there(mpi) {
        let plugins = ["plugin_alpha", "plugin_omega"].map(|name| built(mpi, name, Build::Shared));
        let recorded = Job::new(mpi, &victim(mpi, "opens_plugins_in_turn"))
            .argument(&plugins[0])
            .argument(&plugins[1])
            .record();
        recorded.expect_code(0);
        let sites = metrics_of(&recorded).1.sites.expect("sites");
        assert_eq!(sites.unusable, []);
        let count = |plugin: &str| -> u64 {
            let of_it = sites.rows.iter().filter(|row| row.module.contains(plugin));
            of_it.map(|row| row.count).sum()
        };
        assert_eq!((count("plugin_alpha"), count("plugin_omega")), (70, 30), "{:?}", sites.rows);
        assert!(sites.rows.iter().all(|row| row.place.file.is_some()), "{:?}", sites.rows);
    }

    fn calls_record_their_call_site(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "call_sites")).ranks(2).record();
        recorded.expect_code(0);
        let (_, metrics) = metrics_of(&recorded);
        let sites = metrics.sites.expect("sites");
        assert_eq!(sites.unusable, []);
        let mut barriers: Vec<_> = sites
            .rows
            .iter()
            .filter(|row| row.function == "MPI_Barrier")
            .map(|row| (row.place.line, row.count, row.ranks, row.place.function.clone()))
            .collect();
        barriers.sort();
        let lines = lines_of("MPI_Barrier");
        let exchange = || Some("exchange".to_owned());
        assert_eq!(
            barriers,
            [(Some(lines[0]), 202, 2, exchange()), (Some(lines[1]), 2, 2, exchange())]
        );
        let asked = sites.rows.iter().find(|row| row.function == "MPI_Initialized").expect("asked");
        assert_eq!(asked.place.line, Some(lines_of("MPI_Initialized")[0]));
        assert_eq!(asked.place.function.as_deref(), Some("ask"));
        assert!(asked.place.file.as_deref().is_some_and(|file| file.ends_with("call_sites.c")));
        assert_eq!(sites_by_the_second_reader(&recorded), sites_of(&sites));
    }

    fn calls_through_both_fortran_modules_record_their_call_site(mpi) {
        let program = built(mpi, "mixes_fortran_modules", Build::Fortran);
        let recorded = Job::new(mpi, &program).ranks(2).record();
        recorded.expect_code(0);
        let (_, metrics) = metrics_of(&recorded);
        let sites = metrics.sites.expect("sites");
        assert_eq!(sites.unusable, []);
        let barriers = sites.rows.iter().filter(|row| row.function == "MPI_Barrier");
        // Without debugging information, names are those of symbols.
        let name = |function: &Option<String>| {
            function.as_deref().unwrap_or_default().trim_end_matches('_').to_owned()
        };
        let found = barriers.map(|row| (name(&row.place.function), row.count));
        let mut found: Vec<(String, u64)> = found.collect();
        found.sort();
        assert_eq!(found, [("with_mpi".to_owned(), 12), ("with_mpi_f08".to_owned(), 12)]);
    }
}
