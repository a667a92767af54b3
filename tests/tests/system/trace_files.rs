//! Files of a trace: windows, unusable directories, full disks, limits, modes, several jobs with
//! the same directory.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use system_tests::directories::{SmallFileSystem, TempDir};
use system_tests::trace::{Named, Trace};
use system_tests::victim::{Build, built};
use system_tests::{Job, under_both, victim};
use trace_format::files::rank_file_path;
use trace_format::markers::ToolReason;

/// Multiplies the counter's rate by 2 · 10⁷: 215 ticks exceed 32 bits, and two minutes of a counter
/// at 4 GHz still fit in 63.
const FAST_COUNTER: &str = "0,2e13";

fn mode(path: &Path) -> u32 {
    let status = path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    status.permissions().mode() & 0o7777
}

/// A path below a regular file: not even root can make this directory.
fn impossible_directory(temp: &TempDir) -> PathBuf {
    let file = temp.join("file");
    std::fs::write(&file, "a regular file").expect("the folder is writable");
    file.join("run")
}

under_both! {
    fn keeps_all_events_over_many_windows(mpi) {
        let recorded =
            Job::new(mpi, &victim(mpi, "many_calls")).argument("200000").ranks(2).record();
        recorded.expect_code(0);
        for rank in 0..2 {
            let path = recorded.directory().join(rank_file_path(0, rank));
            let bytes = path.metadata().expect("the file").len();
            // Header, definitions and the last two windows, and full windows in few bytes per call.
            assert!(bytes < (700 << 10) + 4 * 200_000, "{bytes} bytes");
        }
        for rank in recorded.trace().ranks {
            assert_eq!(rank.count("MPI_Comm_rank"), 200_000);
            assert_eq!(rank.calls().len(), 200_002);
            assert!(rank.tool_events(ToolReason::Window) > 0, "no window was changed");
            assert_eq!(rank.last().map(|last| last.name.as_str()), Some("TOOL"));
            assert!(rank.is_finalized());
        }
    }

    // The counter's rate is skewed so that every call exceeds a slot's 32 bits without taking long;
    // the two counts put the end of the window before and between the two slots of an event.
    fn keeps_long_events_over_window_changes(mpi) {
        let slow = built(mpi, "slow_comm_rank", Build::Shared);
        for calls in [40_000, 40_001] {
            for first in ["", "odd"] {
                let mut job = Job::new(mpi, &victim(mpi, "long_calls"))
                    .argument(calls.to_string())
                    .preload_after(&slow)
                    .environment("GAMMACHI_TEST_CLOCK", FAST_COUNTER);
                if !first.is_empty() {
                    job = job.argument(first);
                }
                let recorded = job.record();
                recorded.expect_code(0);
                let trace = recorded.trace();
                let rank = trace.rank(0);
                assert_eq!(rank.count("MPI_Comm_rank"), calls, "{first}");
                let fits_32_bits = |named: &&Named| {
                    let event = &named.event;
                    event.end.is_none_or(|end| end - event.begin <= u64::from(u32::MAX))
                };
                let calls = rank.threads[0].events.iter().filter(|named| named.name == "MPI_Comm_rank");
                assert_eq!(calls.filter(fits_32_bits).count(), 0, "calls that fit 32 bits {first}");
                assert!(rank.tool_events(ToolReason::Window) > 0, "no window was changed");
                assert!(rank.is_finalized());
            }
        }
    }

    // The recorder's own work is between the two slots of a long MPI_Finalize.
    fn records_long_finalize(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "returns_3"))
            .environment("GAMMACHI_TEST_CLOCK", FAST_COUNTER)
            .record();
        recorded.expect_code(3);
        let trace = recorded.trace();
        let events = &trace.rank(0).threads[0].events;
        let finalize = events.iter().find(|named| named.name == "MPI_Finalize").expect("it is there");
        let end = finalize.event.end.expect("it has returned");
        assert!(end - finalize.event.begin > u64::from(u32::MAX));
        assert_eq!(trace.rank(0).tool_events(ToolReason::Start), 1);
        assert_eq!(trace.rank(0).tool_events(ToolReason::Finish), 1);
    }

    fn survives_constant_timer_signals(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "timer_signals")).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.stdout, "interrupted\n");
        assert!(recorded.output.recorder_lines().is_empty(), "{}", recorded.output);
        assert_eq!(recorded.trace().rank(0).count("MPI_Comm_rank"), 2_000_000);
        drop(recorded);
        if let Some(memory) = SmallFileSystem::mount(200_000) {
            let out = memory.path().join("run");
            let output = Job::new(mpi, &victim(mpi, "timer_signals")).record_to(&out);
            output.expect_code(0);
            assert!(output.recorder_lines().is_empty(), "{output}");
            let trace = Trace::open(&out, 1).expect("it is sound");
            assert_eq!(trace.rank(0).count("MPI_Comm_rank"), 2_000_000);
        }
    }

    fn does_not_write_to_a_file_opened_as_standard_error(mpi) {
        let temp = TempDir::new();
        let recorded = Job::new(mpi, &victim(mpi, "opens_a_file_as_standard_error"))
            .argument(temp.join("own"))
            // An invalid level, so that the recorder prints a message.
            .environment("GAMMACHI_LEVEL", "9")
            .record();
        recorded.expect_code(0);
        assert_eq!(std::fs::read_to_string(temp.join("own")).expect("it is there"), "own\n");
        assert!(recorded.trace().rank(0).is_finalized());
    }

    fn survives_descriptors_closed_and_reused_by_the_program(mpi) {
        let temp = TempDir::new();
        let recorded =
            Job::new(mpi, &victim(mpi, "closes_descriptors")).argument(temp.join("own")).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.stdout, "my file is as it was\n");
        assert_eq!(std::fs::read_to_string(temp.join("own")).expect("it is there"), "mine");
        let trace = recorded.trace();
        let rank = trace.rank(0);
        if recorded.output.recorder_lines().is_empty() {
            assert_eq!(rank.count("MPI_Comm_rank"), 150_000);
            assert!(rank.is_finalized());
        } else {
            assert_eq!(recorded.output.recorder_lines().len(), 1, "{}", recorded.output);
            assert!(rank.stopped().is_some());
        }
    }

    fn reports_directory_that_cannot_be_made(mpi) {
        let temp = TempDir::new();
        let out = impossible_directory(&temp);
        let job = Job::new(mpi, &victim(mpi, "returns_3")).ranks(2);
        let output = job.record_to(&out);
        let bare = job.bare();
        output.expect_code(3);
        assert_eq!(output.stdout, bare.stdout);
        assert_eq!(output.recorder_lines().len(), 1, "{output}");
        let line = output.recorder_lines()[0];
        assert!(line.contains(out.to_str().expect("paths are text")), "{line}");
    }

    fn survives_full_standard_error_without_a_directory(mpi) {
        let temp = TempDir::new();
        let out = impossible_directory(&temp);
        Job::new(mpi, &victim(mpi, "returns_3"))
            .without_launcher()
            .standard_error_to("/dev/full".as_ref())
            .record_to(&out)
            .expect_code(3);
    }

    fn reports_full_disk_during_the_run(mpi) {
        let Some(small) = SmallFileSystem::mount(2048) else { return };
        let out = small.path().join("run");
        let job = Job::new(mpi, &victim(mpi, "many_calls")).argument("20000000");
        let output = job.record_to(&out);
        output.expect_code(0);
        assert_eq!(output.stdout, "20000000 calls\n");
        assert_eq!(output.recorder_lines().len(), 1, "{output}");
        let trace = Trace::open(&out, 1).expect("what was recorded is sound");
        let count = trace.rank(0).count("MPI_Comm_rank");
        assert!(count > 1000 && count < 20_000_000, "{count} events are there");
        assert!(trace.rank(0).stopped().is_some(), "the trace says why it ends");
    }

    fn survives_full_disk_and_full_standard_error(mpi) {
        let Some(small) = SmallFileSystem::mount(2048) else { return };
        Job::new(mpi, &victim(mpi, "many_calls"))
            .argument("20000000")
            .without_launcher()
            .standard_error_to("/dev/full".as_ref())
            .record_to(&small.path().join("run"))
            .expect_code(0);
    }

    fn reports_full_disk_at_the_start(mpi) {
        for kilobytes in [4, 32, 64] {
            let Some(small) = SmallFileSystem::mount(kilobytes) else { return };
            let job = Job::new(mpi, &victim(mpi, "returns_3"));
            let output = job.record_to(&small.path().join("run"));
            output.expect_code(3);
            assert_eq!(output.recorder_lines().len(), 1, "{kilobytes} KB\n{output}");
        }
    }

    fn respects_file_size_limit(mpi) {
        let job = Job::new(mpi, &victim(mpi, "limits_file_size")).argument("all");
        let recorded = job.record();
        recorded.expect_code(3);
        assert_eq!(recorded.output.stdout, "done\n");
        assert_eq!(recorded.output.recorder_lines().len(), 1, "{}", recorded.output);
        let trace = recorded.trace();
        assert!(trace.rank(0).stopped().is_some(), "the trace says why it ends");
    }

    fn stopped_rank_does_not_block_the_others(mpi) {
        let job = Job::new(mpi, &victim(mpi, "limits_file_size"))
            .ranks(2)
            .environment("GAMMACHI_CLOCK_DEADLINE", "1000");
        for stopped in ["0", "1", "all"] {
            let recorded = job.clone().argument(stopped).record();
            recorded.expect_code(3);
            assert_eq!(recorded.output.stdout, "done\n");
        }
    }

    fn rank_that_cannot_start_does_not_block_the_others(mpi) {
        let temp = TempDir::new();
        let out = temp.join("run");
        let file = out.join(rank_file_path(0, 1));
        std::fs::create_dir_all(file.parent().expect("it has one")).expect("it is writable");
        std::fs::write(&file, "not ours").expect("it is writable");
        let job = Job::new(mpi, &victim(mpi, "returns_3"))
            .ranks(2)
            .environment("GAMMACHI_CLOCK_DEADLINE", "1000");
        job.record_to(&out).expect_code(3);
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "not ours");
    }

    fn survives_trace_removed_by_the_program(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "removes_its_trace")).record();
        recorded.expect_code(3);
        assert!(recorded.output.recorder_lines().len() <= 1, "{}", recorded.output);
    }

    fn second_job_gets_its_own_directory(mpi) {
        let temp = TempDir::new();
        let out = temp.join("run");
        let job = Job::new(mpi, &victim(mpi, "returns_3")).ranks(2);
        for name in ["run", "run-2", "run-3"] {
            job.record_to(&out).expect_code(3);
            for rank in Trace::open(&temp.join(name), 2).expect("it is there").ranks {
                assert_eq!(rank.count("MPI_Comm_rank"), 10);
            }
        }
        let made = std::fs::read_dir(temp.path()).expect("it is there").count();
        assert_eq!(made, 3, "run directories");
    }

    fn run_without_out_is_named_after_the_program(mpi) {
        let temp = TempDir::new();
        Job::new(mpi, &victim(mpi, "returns_3"))
            .in_directory(temp.path())
            .ranks(2)
            .record_to("".as_ref())
            .expect_code(3);
        let names: Vec<String> = std::fs::read_dir(temp.path())
            .expect("it is there")
            .map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].starts_with("returns_3") && names[0].ends_with(".gammachi"), "{names:?}");
        Trace::open(&temp.join(&names[0]), 2).expect("it is sound");
    }

    fn traces_are_private(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "returns_3")).ranks(2).record();
        recorded.expect_code(3);
        let directory = recorded.directory();
        assert_eq!(mode(&directory), 0o700);
        for rank in 0..2 {
            let file = directory.join(rank_file_path(0, rank));
            assert_eq!(mode(file.parent().expect("it has one")), 0o700);
            assert_eq!(mode(&file), 0o600);
        }
    }
}
