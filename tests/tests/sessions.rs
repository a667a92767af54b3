//! Programs that use MPI sessions and never call MPI_Init are recorded, too.

use std::process::{Command, Stdio};

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::directories::{TempDir, repository};
use system_tests::trace::{RankTrace, Trace};
use system_tests::{Job, Mpi, Recorded, command, skip, victim};
use trace_format::files::rank_file_path;
use trace_format::header::{ClockAnchor, ClockBound, ClockExchange, Definition, Phase};
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;

/// Debian's Open MPI has no sessions.
const MPI: Mpi = Mpi::Mpich;
const RANKS: u32 = 3;

fn job(mpi: Mpi, over: &str) -> Job {
    Job::new(mpi, &victim(mpi, "uses_sessions")).argument(over).ranks(RANKS)
}

fn meeting(mpi: Mpi, how: &str) -> Job {
    Job::new(mpi, &victim(mpi, "meets_in_sessions")).argument(how).ranks(RANKS)
}

/// A rank's clock exchanges, in the order in which they were made.
fn exchanges(rank: &RankTrace) -> Vec<ClockExchange> {
    let exchanges = rank.file.definitions.iter().filter_map(|of| match of {
        Definition::ClockExchange(exchange) => Some(*exchange),
        _ => None,
    });
    exchanges.collect()
}

fn bounds(rank: &RankTrace) -> Vec<ClockBound> {
    let bounds = rank.file.definitions.iter().filter_map(|of| match of {
        Definition::ClockBound(bound) => Some(*bound),
        _ => None,
    });
    bounds.collect()
}

/// Asserts that all ranks compared their clocks once, or none.
fn expect_compared(ranks: &[RankTrace], compared: bool) {
    for (rank, file) in ranks.iter().enumerate() {
        let count = usize::from(compared && rank > 0);
        let (exchanges, bounds) = (exchanges(file), bounds(file));
        assert_eq!((exchanges.len(), bounds.len()), (count, count), "rank {rank}");
        assert!(
            exchanges.iter().all(|exchange| exchange.phase == Phase::Init && exchange.kept > 0)
        );
        assert!(bounds.iter().all(|bound| bound.hops > 0 && bound.bound_ns > 0));
    }
}

/// Asserts that no rank waited in vain for another one's vote. The shortest of these deadlines is 30 s.
fn expect_no_silence(ranks: &[RankTrace]) {
    let events = ranks.iter().flat_map(|rank| &rank.threads).flat_map(|of| &of.events);
    for named in events.filter(|named| named.event.function == TOOL) {
        let end = named.event.end.expect("the recorder's work has ended");
        let per_s = ticks_per_s(&ranks[0]);
        let seconds = (end - named.event.begin) as f64 / per_s;
        assert!(seconds < 20.0, "the recorder waited {seconds} s");
    }
}

fn ticks_per_s(rank: &RankTrace) -> f64 {
    let anchors: Vec<ClockAnchor> = rank
        .file
        .definitions
        .iter()
        .filter_map(|of| match of {
            Definition::ClockAnchor(anchor) => Some(*anchor),
            _ => None,
        })
        .collect();
    let (first, last) = (anchors[0], anchors[anchors.len() - 1]);
    let ns = (last.monotonic_raw_ns - first.monotonic_raw_ns) as f64;
    (last.ticks - first.ticks) as f64 / ns * 1e9
}

fn matched_messages(recorded: &Recorded) -> u64 {
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run");
    let messages = metrics.messages.expect("attributes were recorded");
    assert_eq!(messages.unmatched_count(), 0, "{:?}", messages.unmatched);
    messages.summary.matched
}

fn expect_calls(recorded: &Recorded, talks: usize, sessions: usize) {
    let trace = recorded.trace();
    for rank in 0..RANKS as usize {
        let rank = trace.rank(rank);
        assert!(rank.is_finalized());
        assert_eq!((rank.count("MPI_Sendrecv"), rank.count("MPI_Allreduce")), (talks, talks));
        assert_eq!(rank.count("MPI_Session_init"), sessions);
        assert_eq!(rank.count("MPI_Session_finalize"), sessions);
    }
}

#[test]
fn ranks_are_recorded_and_their_messages_matched() {
    let recorded = job(MPI, "all").record();
    recorded.expect_code(0);
    expect_calls(&recorded, 10, 1);
    expect_compared(&recorded.trace().ranks, true);
    assert_eq!(matched_messages(&recorded), 10 * u64::from(RANKS));
}

#[test]
fn report_says_that_ranks_which_never_met_have_no_common_clock() {
    let recorded = job(MPI, "self").record();
    expect_compared(&recorded.trace().ranks, false);
    recorded.expect_code(0);
    expect_calls(&recorded, 10, 1);
    let report = Command::new(command())
        .arg("report")
        .arg(recorded.directory())
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    let screen = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(screen.contains("clock never measured"), "{screen}");
    assert!(screen.contains("3 ranks"), "{screen}");
}

#[test]
fn recording_goes_on_until_the_last_session_ends() {
    let recorded = job(MPI, "overlapping").record();
    recorded.expect_code(0);
    expect_calls(&recorded, 20, 2);
    assert_eq!(matched_messages(&recorded), 20 * u64::from(RANKS));
}

#[test]
fn killed_program_leaves_what_it_did() {
    let recorded = job(MPI, "dies").record();
    let trace = recorded.trace();
    for rank in 0..RANKS as usize {
        let rank = trace.rank(rank);
        assert!(!rank.is_finalized());
        assert_eq!((rank.count("MPI_Allreduce"), rank.count("MPI_Session_finalize")), (10, 0));
    }
}

#[test]
fn program_without_a_launcher_is_one_rank() {
    let recorded = Job::new(MPI, &victim(MPI, "uses_sessions")).without_launcher().record();
    recorded.expect_code(0);
    let trace = recorded.trace();
    assert_eq!((trace.rank(0).count("MPI_Allreduce"), trace.rank(0).is_finalized()), (10, true));
}

// Ranks that begin in MPI_Init know of one that began with a session.
#[test]
fn session_of_one_rank_before_mpi_init_delays_nobody() {
    let recorded = job(MPI, "first").record();
    recorded.expect_code(0);
    let lines = recorded.output.recorder_lines();
    assert!(lines.iter().any(|line| line.contains("began with a session (1)")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("load the recorder")), "{lines:?}");
    let trace = recorded.trace();
    let finalized = trace.ranks.iter().filter(|rank| rank.is_finalized()).count();
    assert!(finalized >= 2, "{finalized} ranks are complete");
}

/// An MPI that can be initialised again; Debian's MPICH cannot, even without the recorder.
fn initialised_again() -> Option<Mpi> {
    let mpi = Mpi::Mpich43;
    if mpi.environment_folder().is_some_and(|folder| folder.join("complete").is_file()) {
        return Some(mpi);
    }
    skip("sessions/in-turn", "PyPI's MPICH 4.3 is not set up (scripts/mpi-matrix --setup mpich43)");
    None
}

#[test]
fn another_session_resumes_recording() {
    let Some(mpi) = initialised_again() else { return };
    for policy in ["first", "totals"] {
        let recorded = job(mpi, "turns").environment("GAMMACHI_KEEP", policy).record();
        recorded.expect_code(0);
        let run = Run::open(&recorded.directory()).expect("the run can be read");
        let timeline = GlobalTimeline::new(&run);
        assert!(timeline.diagnoses.is_empty(), "{:?}", timeline.diagnoses);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures");
        for (name, times) in [("MPI_Session_init", 2), ("MPI_Allreduce", 20)] {
            let found = metrics.calls.iter().find(|call| call.function == name);
            let count = found.map_or(0, |call| call.count);
            assert_eq!(count, times * u64::from(RANKS), "{policy}: {name}");
        }
    }
}

#[test]
fn killed_in_a_later_session_is_not_finished() {
    let Some(mpi) = initialised_again() else { return };
    let recorded = job(mpi, "dies_later").record();
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    assert!(run.ranks.iter().all(|rank| !rank.facts.finalized()));
    let trace = recorded.trace();
    assert_eq!(trace.rank(0).count("MPI_Allreduce"), 20);
}

/// The program sees no message of the recorder and its own error handler; only the first communicator of all
/// costs an exchange, and all cost tool time.
#[test]
fn first_communicator_of_all_compares_clocks_unseen() {
    let recorded = meeting(MPI, "twice").record();
    recorded.expect_code(0);
    let trace = recorded.trace();
    expect_compared(&trace.ranks, true);
    expect_no_silence(&trace.ranks);
    for rank in &trace.ranks {
        assert_eq!(rank.tool_events(ToolReason::Clock), 2);
        assert_eq!((rank.count("MPI_Isend"), rank.count("MPI_Test")), (0, 0));
        assert_eq!(rank.count("MPI_Comm_create_from_group"), 2);
    }
}

/// Which communicator is the first one differs between the ranks. Whether clocks are compared depends on
/// chance; all ranks do the same.
#[test]
fn threads_that_make_communicators_in_another_order_do_not_hang() {
    for how in ["threads", "many"] {
        let recorded = meeting(MPI, how).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        expect_compared(&trace.ranks, !exchanges(trace.rank(1)).is_empty());
        expect_no_silence(&trace.ranks);
    }
}

#[test]
fn mpi_init_at_different_times_after_a_session_does_not_hang() {
    for how in ["init", "cross"] {
        let recorded = meeting(MPI, how).record();
        recorded.expect_code(0);
        expect_compared(&recorded.trace().ranks, true);
        expect_no_silence(&recorded.trace().ranks);
    }
}

#[test]
fn strict_sessions_find_nothing_left_of_the_recorder() {
    let Some(mpi) = initialised_again() else { return };
    let recorded = meeting(mpi, "strict").record();
    recorded.expect_code(0);
    expect_compared(&recorded.trace().ranks, true);
}

#[test]
fn sessions_opened_again_by_two_threads_resume_recording_once() {
    let Some(mpi) = initialised_again() else { return };
    let recorded = meeting(mpi, "turns").record();
    recorded.expect_code(0);
    let run = Run::open(&recorded.directory()).expect("the run can be read");
    let timeline = GlobalTimeline::new(&run);
    assert!(timeline.diagnoses.is_empty(), "{:?}", timeline.diagnoses);
    let trace = recorded.trace();
    expect_compared(&trace.ranks, true);
    expect_no_silence(&trace.ranks);
}

/// Ranks of the communicator are not those of the trace.
#[test]
fn communicator_in_another_order_compares_no_clocks() {
    let recorded = meeting(MPI, "reversed").record();
    recorded.expect_code(0);
    expect_compared(&recorded.trace().ranks, false);
}

/// The files of the ranks that were recorded, if rank 1 was not.
fn recorded_without_rank_1(recorded: &Recorded) -> Vec<RankTrace> {
    recorded.expect_code(0);
    let open = |rank| RankTrace::open(&recorded.directory().join(rank_file_path(0, rank)));
    [0, 2].map(|rank| open(rank).expect("the rank's file is whole")).into()
}

#[test]
fn rank_that_cannot_record_stops_no_other() {
    let job = || Job::new(MPI, &victim(MPI, "meets_in_sessions")).argument("twice").and_ranks(1);
    // A place where nothing can be written, and no recorder.
    for (name, value) in [("GAMMACHI_OUT", "/dev/null/run"), ("LD_PRELOAD", "")] {
        let recorded = job().rank_environment(name, value).and_ranks(1).record();
        let ranks = recorded_without_rank_1(&recorded);
        expect_compared(&ranks, false);
        expect_no_silence(&ranks);
    }
    // A program that closes the recorder's sockets.
    let recorded = meeting(MPI, "closes").record();
    recorded.expect_code(0);
    expect_compared(&recorded.trace().ranks, false);
    expect_no_silence(&recorded.trace().ranks);
}

/// As in MPI_Init: leaders of the hosts first, then the ranks of each host.
#[test]
fn bounds_add_up_over_hops_between_hosts() {
    let hosts = ["a", "b", "a", "b"];
    let mut job = Job::new(MPI, &victim(MPI, "meets_in_sessions")).argument("twice");
    for (rank, host) in hosts.iter().enumerate() {
        job = if rank == 0 { job } else { job.and_ranks(1) };
        job = job.rank_environment("GAMMACHI_TEST_HOST", host);
    }
    let recorded = job.record();
    recorded.expect_code(0);
    let trace = recorded.trace();
    expect_compared(&trace.ranks, true);
    for (rank, (parent, same_host, hops)) in
        [(1, (0, false, 1)), (2, (0, true, 1)), (3, (1, true, 2))]
    {
        let (exchange, bound) = (exchanges(trace.rank(rank))[0], bounds(trace.rank(rank))[0]);
        assert_eq!((exchange.parent, exchange.same_host, bound.hops), (parent, same_host, hops));
    }
}

/// Two hosts that do not see each other's sockets.
#[test]
fn hosts_compare_their_clocks() {
    let rig = repository().join("tests/rigs/two-hosts");
    let check = Command::new(&rig).arg("check").output().expect("the rig can be started");
    if !check.status.success() {
        return skip("two-hosts", String::from_utf8_lossy(&check.stderr).trim());
    }
    let temp = TempDir::new();
    let directory = temp.join("run");
    // One rank on each: with more, Debian's MPICH may hang between hosts even without the recorder.
    let output = Command::new(&rig)
        .args(["run", "mpich", "1", "1", "timeout", "120"])
        .arg(command())
        .args(["run", "--out"])
        .arg(&directory)
        .args(["--", "LAUNCH"])
        .arg(victim(MPI, "meets_in_sessions"))
        .arg("twice")
        .output()
        .expect("the rig starts");
    Command::new(&rig).arg("down").output().expect("the rig ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = Trace::open(&directory, 2).expect("the ranks' files are whole");
    expect_compared(&trace.ranks, true);
    expect_no_silence(&trace.ranks);
    let exchange = exchanges(trace.rank(1))[0];
    assert_eq!((exchange.parent, exchange.same_host), (0, false));
    let left: Vec<_> = temp.path().read_dir().expect("it is there").flatten().collect();
    assert_eq!(left.len(), 1, "rank 0's starting file is removed: {left:?}");
}
