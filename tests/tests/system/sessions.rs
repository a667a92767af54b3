//! Programs that use MPI sessions and never call MPI_Init are recorded, too.

use std::process::{Command, Stdio};

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::{Alignment, GlobalTimeline};
use gammachi_analyzer::trace::Run;
use system_tests::{Job, Mpi, Recorded, command, skip, victim};
use trace_format::header::{Definition, Phase};

/// Debian's Open MPI has no sessions.
const MPI: Mpi = Mpi::Mpich;
const RANKS: u32 = 3;

fn job(mpi: Mpi, over: &str) -> Job {
    Job::new(mpi, &victim(mpi, "uses_sessions")).argument(over).ranks(RANKS)
}

/// Phases of a rank's clock exchanges, in the order in which they were made.
fn exchanges(recorded: &Recorded, rank: usize) -> Vec<Phase> {
    let trace = recorded.trace();
    let definitions = &trace.rank(rank).file.definitions;
    let exchanges = definitions.iter().filter_map(|of| match of {
        Definition::ClockExchange(exchange) => Some(exchange.phase),
        _ => None,
    });
    exchanges.collect()
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
    assert_eq!(exchanges(&recorded, 1), []);
    assert_eq!(matched_messages(&recorded), 10 * u64::from(RANKS));
}

#[test]
fn report_says_that_ranks_which_never_met_have_no_common_clock() {
    let recorded = job(MPI, "self").record();
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

/// How far the counter of one rank is off that of another on the timeline, seconds, and how far it
/// may be. All read the same CLOCK_MONOTONIC_RAW.
fn off(run: &Run, timeline: &GlobalTimeline, (rank, other): (usize, usize)) -> (f64, f64) {
    let at = |rank: usize| {
        let (facts, time) = (&run.ranks[rank].facts, &timeline.ranks[rank]);
        let anchor = facts.anchors.iter().min_by_key(|anchor| anchor.width_ticks).expect("anchors");
        let since_raw_s = anchor.monotonic_raw_ns as f64 * 1e-9;
        let width_s = time.clock.duration_s(anchor.width_ticks);
        let bound_s = time.clock.bound_ns_at(anchor.ticks).expect("a bound") * 1e-9;
        (time.clock.seconds(anchor.ticks) - since_raw_s, bound_s + width_s)
    };
    let ((a, may), (b, other_may)) = (at(rank), at(other));
    // What the frequency may be wrong by, over a run of seconds.
    ((a - b).abs(), may + other_may + 10e-6)
}

#[test]
fn offsets_between_hosts_are_estimated_from_messages() {
    for clock in ["5e9,0", "-3e9,70"] {
        let mut job = job(MPI, "all").ranks(1);
        for host in ["b", "c"] {
            job = job.and_ranks(1).rank_environment("GAMMACHI_TEST_HOST", host);
            job = job.rank_environment("GAMMACHI_TEST_CLOCK", clock);
        }
        let recorded = job.record();
        recorded.expect_code(0);
        let run = Run::open(&recorded.directory()).expect("the run can be read");
        let timeline = GlobalTimeline::new(&run);
        let estimate = timeline.estimate.as_ref().expect("an estimate");
        assert_eq!((estimate.messages, estimate.collectives), (10 * u64::from(RANKS), 10));
        for rank in [1, 2] {
            assert_eq!(timeline.ranks[rank].clock.alignment, Alignment::Estimated);
            let (off_s, may_s) = off(&run, &timeline, (rank, 0));
            assert!(
                off_s <= may_s,
                "{clock}: rank {rank} is off by {off_s} s, more than {may_s} s"
            );
        }
    }
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

// Ranks that begin in MPI_Init do not wait for one that began with a session.
#[test]
fn session_of_one_rank_before_mpi_init_delays_nobody() {
    let recorded = job(MPI, "first").record();
    recorded.expect_code(0);
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
