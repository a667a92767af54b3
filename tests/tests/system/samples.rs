//! Samples of the program's own code: where they are found, what they cost the program (nothing that
//! it could notice), and what is left of them when it dies.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use system_tests::trace::RankTrace;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, under_both};
use trace_format::header::{Definition, SamplingSource};
use trace_format::reader::SampledThread;
use trace_format::settings::SAMPLE;

/// A job whose program is sampled.
fn sampled(mpi: Mpi, name: &str, rate: &str) -> Job {
    Job::new(mpi, &built(mpi, name, Build::Optimised)).environment(SAMPLE.name, rate)
}

/// Addresses of a function in the memory of a rank that ran this program.
fn addresses_of(rank: &RankTrace, program: &Path, name: &str) -> Range<u64> {
    let listed = Command::new("nm").arg("-S").arg(program).output().expect("nm starts");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find(|line| line.ends_with(&format!(" {name}")));
    let mut words = line.unwrap_or_else(|| panic!("{name} in {listed}")).split(' ');
    let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
    let (at, size) = (number(), number());
    let base = rank.file.definitions.iter().find_map(|definition| match definition {
        Definition::Module(module) if Path::new(&module.path) == program => Some(module.base),
        _ => None,
    });
    let at = at + base.expect("the program is a module");
    at..at + size
}

/// Number of samples taken below a function of the program.
fn samples_below(thread: &SampledThread, function: &Range<u64>) -> usize {
    let is_below = |path: &Vec<u64>| path.iter().any(|caller| function.contains(&(caller - 1)));
    let below: Vec<bool> = thread.paths.iter().map(is_below).collect();
    let is_inside = |of: &&trace_format::reader::Sample| {
        function.contains(&of.address) || of.path.is_some_and(|path| below[path as usize])
    };
    thread.samples.iter().filter(is_inside).count()
}

/// Checks that a thread that spends two thirds of its CPU time in `heavy` is seen to.
fn check_shares(rank: &RankTrace, program: &Path, thread: &SampledThread) {
    let n = thread.samples.len();
    assert!(n >= 60, "{n} samples, {thread:?}");
    assert_eq!(thread.delivered, n as u64 + thread.in_mpi + thread.lost);
    assert!(thread.cpu_ns > 0 && thread.lost == 0);
    let complete = thread.samples.iter().filter(|sample| sample.complete).count();
    assert!(complete as f64 >= 0.98 * n as f64, "{complete} of {n} stacks are complete");
    assert!(thread.samples.is_sorted_by_key(|sample| sample.ticks));
    let heavy = samples_below(thread, &addresses_of(rank, program, "heavy"));
    let light = samples_below(thread, &addresses_of(rank, program, "light"));
    let (share, truth) = (heavy as f64 / (heavy + light) as f64, 2.0 / 3.0);
    let deviation = (truth * (1.0 - truth) / (heavy + light) as f64).sqrt();
    assert!((share - truth).abs() < 5.0 * deviation, "{heavy} and {light} of {n} samples");
    assert!(heavy + light >= n * 9 / 10, "{heavy} and {light} of {n} samples");
}

/// Runs a victim that checks for itself whether anything is disturbed. Returns what the recorder said.
fn check_unharmed(mpi: Mpi, what: &str) -> Vec<String> {
    let (said, output) = check_same(&sampled(mpi, "lives_beside_samples", "499").argument(what));
    assert!(output.contains("unharmed"), "{output}");
    said
}

/// Checks that a program prints the same with and without samples, and that there are some unless the recorder says why.
/// Returns what the recorder and what the program said.
fn check_same(job: &Job) -> (Vec<String>, String) {
    let recorded = job.record();
    recorded.expect_code(0);
    assert_eq!(recorded.output.stdout, job.bare().stdout, "{}", recorded.output);
    let trace = recorded.trace();
    let rank = trace.rank(0);
    assert!(rank.is_finalized() && rank.count("MPI_Comm_rank") >= 20);
    let sampling = rank.file.sampling().expect("it was asked for");
    let samples: usize = rank.file.sampled_threads().iter().map(|of| of.samples.len()).sum();
    assert_eq!(samples == 0, !sampling.unavailable.is_empty(), "{samples}, {sampling:?}");
    let said = recorded.output.recorder_lines().into_iter().map(str::to_owned).collect();
    (said, recorded.output.stdout.clone())
}

under_both! {
    fn shares_are_those_of_the_cpu_clock(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let recorded = sampled(mpi, "computes_in_functions", "99").argument("2").ranks(2).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        for rank in [trace.rank(0), trace.rank(1)] {
            let sampling = rank.file.sampling().expect("it was asked for");
            assert_eq!((sampling.rate_hz, sampling.unavailable.as_str()), (99, ""));
            let threads = rank.file.sampled_threads();
            let first = threads.iter().find(|of| of.thread == Some(0)).expect("it is sampled");
            assert!(first.end.is_some());
            check_shares(rank, &program, first);
        }
    }

    fn full_halves_are_in_the_file(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let recorded = sampled(mpi, "computes_in_functions", "499").argument("6").record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let threads = trace.rank(0).file.sampled_threads();
        // The timer of last resort gives fewer.
        let ticks = trace.rank(0).file.sampling().is_some_and(|of| of.rate_hz < 499);
        assert!(ticks || threads[0].samples.len() > 2048, "{} samples", threads[0].samples.len());
        check_shares(trace.rank(0), &program, &threads[0]);
    }

    fn threads_that_make_no_call_are_sampled(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let job = sampled(mpi, "computes_in_functions", "99").argument("2").argument("3");
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let threads = trace.rank(0).file.sampled_threads();
        let others = threads.iter().filter(|of| of.thread.is_none() && of.samples.len() >= 60);
        assert_eq!(others.clone().count(), 3, "{threads:?}");
        others.for_each(|of| check_shares(trace.rank(0), &program, of));
    }

    fn killed_rank_leaves_its_samples(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let job = sampled(mpi, "computes_in_functions", "99").ranks(2).argument("2");
        let recorded = job.argument("dies").record();
        let trace = recorded.trace();
        let dead = trace.rank(1);
        assert!(!dead.is_finalized() && dead.file.diagnoses.is_empty(), "{:?}", dead.file.diagnoses);
        let threads = dead.file.sampled_threads();
        assert_eq!(threads[0].end, None);
        check_shares(dead, &program, &threads[0]);
    }

    fn timer_of_last_resort_is_named(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let job = sampled(mpi, "computes_in_functions", "499").argument("2").argument("refused");
        let recorded = job.record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let sampling = trace.rank(0).file.sampling().expect("it was asked for");
        assert_eq!((sampling.source, sampling.rate_hz), (SamplingSource::CpuTimer, 99));
        let threads = trace.rank(0).file.sampled_threads();
        // Its shares may be wrong: it follows the kernel's ticks.
        let heavy = samples_below(&threads[0], &addresses_of(trace.rank(0), &program, "heavy"));
        assert!(heavy >= 30, "{heavy} of {} samples", threads[0].samples.len());
    }

    fn nothing_is_sampled_unless_asked_for(mpi) {
        let program = built(mpi, "computes_in_functions", Build::Optimised);
        let recorded = Job::new(mpi, &program).argument("0.1").record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        assert_eq!(trace.rank(0).file.sampling(), None);
        assert_eq!(trace.rank(0).file.sampled_threads(), []);
    }

    fn programs_own_profiler_is_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "own_profiler"), [""; 0]);
    }

    fn program_that_handles_all_signals_ends_the_samples(mpi) {
        let said = check_unharmed(mpi, "own_handlers");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("samples end here"), "{said:?}");
    }

    fn program_that_handles_all_signals_before_is_not_sampled(mpi) {
        let said = check_unharmed(mpi, "early_handlers");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("nothing is sampled"), "{said:?}");
    }

    fn program_that_waits_for_signals_is_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "waits_for_signals"), [""; 0]);
    }

    fn children_are_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "children"), [""; 0]);
    }

    fn jumps_are_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "jumps"), [""; 0]);
    }

    fn small_stacks_are_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "small_stacks"), [""; 0]);
    }

    fn fibres_are_unharmed(mpi) {
        assert_eq!(check_unharmed(mpi, "fibres"), [""; 0]);
    }

    fn real_time_signals_are_the_programs(mpi) {
        assert_eq!(check_unharmed(mpi, "real_time_handlers"), [""; 0]);
    }

    fn program_that_the_process_becomes_gets_no_signal(mpi) {
        assert_eq!(check_unharmed(mpi, "becomes_another"), [""; 0]);
    }

    fn library_closed_by_another_thread_is_not_read(mpi) {
        let job = sampled(mpi, "lives_beside_samples", "499").argument("closes_library");
        let job = job.argument(built(mpi, "calls_back", Build::Shared));
        assert_eq!(check_same(&job).0, [""; 0]);
    }

    fn no_system_call_is_interrupted(mpi) {
        let (said, output) = check_same(&sampled(mpi, "makes_blocking_calls", "499"));
        assert_eq!(said, [""; 0]);
        assert!(output.lines().all(|line| line.ends_with(": 0 interrupted")), "{output}");
    }
}
