//! Runs that are read while they end: the recorder shortens its files then, while others read them.
//!
//! `GAMMACHI_TEST_READS=10000` makes that many reports on ending runs of each kind instead of a
//! few.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::{Job, Mpi, command, under_both, victim};
use trace_format::files::rank_file_path;
use trace_format::header::is_finalized;
use trace_format::reader::RankFile;

const RANKS: u32 = 4;
/// Keep policies and limits: each leaves different bytes at the end of a file.
const KEEP_POLICIES: [(&str, &str); 3] = [("first", "0"), ("first", "1048576"), ("totals", "0")];
/// Processes that read simultaneously.
const READERS: usize = 2;
const DEFAULT_READS: usize = 12;

fn job(mpi: Mpi, (keep, max_bytes): (&str, &str), tenths: u32) -> Job {
    Job::new(mpi, &victim(mpi, "meets_for_a_while"))
        .argument(tenths.to_string())
        .ranks(RANKS)
        .environment("GAMMACHI_KEEP", keep)
        .environment("GAMMACHI_MAX_BYTES", max_bytes)
        .environment("GAMMACHI_CLOCK_ROUNDS", "10")
}

/// Reports on a run until it has ended and once more after that; returns the number of reports.
fn report_until(ended: &AtomicBool, directory: &Path) -> usize {
    let mut reports = 0;
    loop {
        let is_last = ended.load(Relaxed);
        if directory.join(rank_file_path(0, 0)).exists() {
            let mut report = Command::new(command());
            let report = report.arg("report").arg(directory).stdin(Stdio::null()).output();
            let report = report.expect("the command runs");
            let stderr = String::from_utf8_lossy(&report.stderr);
            // Perhaps no file has its header yet.
            let is_early = report.status.code() == Some(1) && stderr.contains("can be read");
            assert!(report.status.signal().is_none(), "ended by {}", report.status);
            assert!(report.status.success() || is_early && !is_last, "{}: {stderr}", report.status);
            assert!(!stderr.contains("panicked"), "{stderr}");
            reports += 1;
        }
        if is_last {
            return reports;
        }
    }
}

under_both! {
    fn run_opened_before_its_end_can_be_read_afterwards(mpi) {
        for policy in KEEP_POLICIES {
            let mut recording = job(mpi, policy, 5).start_recording();
            recording.wait_for(|trace| (trace.rank(0).count("MPI_Sendrecv") > 100).then_some(()));
            let run = Run::open(&recording.directory()).expect("it can be read");
            assert!(run.ranks.iter().any(|rank| !rank.facts.finalized()), "the run has not ended");
            let calls: u64 = run.ranks.iter().flat_map(|rank| &rank.threads).map(|t| t.calls).sum();
            recording.end().expect_code(0);
            let timeline = GlobalTimeline::new(&run);
            let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures");
            run.check_readable().expect("nothing needed was cut off");
            assert_eq!(metrics.calls.iter().map(|call| call.count).sum::<u64>(), calls, "{policy:?}");
        }
    }

    // A window lasts a millisecond or less.
    fn process_that_fills_windows_meanwhile_is_read_without_gaps(mpi) {
        let job = Job::new(mpi, &victim(mpi, "many_calls")).argument(i32::MAX.to_string());
        let mut recording = job.start_recording();
        recording.wait_for(|trace| (trace.rank(0).count("MPI_Comm_rank") > 10_000).then_some(()));
        let path = recording.directory().join(rank_file_path(0, 0));
        for _ in 0..50 {
            let file = RankFile::open(&path).expect("it can be read");
            assert_eq!(file.diagnoses, []);
            assert!(!is_finalized(&file.definitions), "it goes on for minutes");
        }
        recording.signal_all(libc::SIGKILL);
        recording.end();
    }

    fn reports_on_ending_runs_all_succeed(mpi) {
        let wanted = std::env::var("GAMMACHI_TEST_READS").ok();
        let wanted = wanted.map_or(DEFAULT_READS, |number| number.parse().expect("a number"));
        for policy in KEEP_POLICIES {
            let (reports, mut runs) = (AtomicUsize::new(0), 0);
            while reports.load(Relaxed) < wanted {
                let recording = job(mpi, policy, 1).start_recording();
                let (directory, ended) = (recording.directory(), AtomicBool::new(false));
                std::thread::scope(|scope| {
                    for _ in 0..READERS {
                        scope.spawn(|| reports.fetch_add(report_until(&ended, &directory), Relaxed));
                    }
                    // Set `ended` even if this thread panics, or the others would wait forever.
                    let recorded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| recording.end()));
                    // Dropping `recorded` removes the directory: the last reports come before.
                    ended.store(true, Relaxed);
                    recorded
                })
                .expect("the job ends")
                .expect_code(0);
                runs += 1;
            }
            println!("{policy:?}: {} reports on {runs} runs", reports.load(Relaxed));
        }
    }
}
