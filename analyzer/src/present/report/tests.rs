mod damage;

use trace_format::header::{Definition, Phase};
use trace_format::layout::COMMUNICATOR_WORLD;
use trace_format::markers::ToolReason;

use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::{Metrics, Selection};
use crate::present::shown::Report;
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use crate::trace::ended_ranks::tests::ended as ended_rank;
use crate::trace::run_json::{RunJson, Sender, Termination};

use super::{json, screen};

const MS: u64 = 1_000_000;
const B: u64 = 5_000_000 * MS;

pub(super) fn at(ms: u64) -> u64 {
    B + ms * MS
}

pub(super) fn finish(mut rank: SyntheticRank, end: u64) -> SyntheticRank {
    rank.finalize(at(end), at(end + 20));
    rank.tool(0, ToolReason::Finish, at(end + 1), at(end + 5));
    rank
}

/// Two ranks of a solver that runs for 8 s: BLAS, a region, some waiting.
fn solver() -> [SyntheticRank; 2] {
    let rank = |number: u32, wait: u64| {
        let mut rank = SyntheticRank::complete(number, 2, at(0), at(8310));
        rank.header.compute = "blas".into();
        rank.header.arguments.push("input.dat".into());
        rank.region_name(3, "solve");
        rank.usage(Phase::Init, 0, 0).usage(Phase::Finalize, 10 * MS, 12);
        rank.region_begin(0, 3, at(100));
        rank.compute("cblas_dgemm", at(200), at(3800), 2e11, 1 << 30);
        rank.compute("cblas_dgemm", at(3900), at(6800), 2e11, 1 << 30);
        rank.tool(0, ToolReason::Window, at(6800), at(6808));
        rank.call(0, "MPI_Send", at(6900), at(6900 + wait));
        rank.call(0, "MPI_Recv", at(7900), at(8250));
        rank.region_end(0, 3, at(8260));
        finish(rank, 8310)
    };
    [rank(0, 850), rank(1, 700)]
}

/// The screen and the document of the run in a directory.
pub(super) fn texts(path: &std::path::Path, selection: &Selection) -> Result<[String; 2], String> {
    let run = Run::open(path).map_err(|error| error.to_string())?;
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, selection).map_err(|error| error.to_string())?;
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    Ok([screen(&report, false), json(&report).map_err(|e| e.to_string())?])
}

fn texts_of(ranks: &[SyntheticRank], selection: &Selection) -> [String; 2] {
    let directory = RunDirectory::with_ranks(ranks);
    let texts = texts(directory.path(), selection).unwrap();
    texts.map(|text| {
        text.replace(&*directory.path().to_string_lossy(), "RUN")
            .replace(&*directory.path().file_name().unwrap().to_string_lossy(), "solver.gammachi")
    })
}

#[test]
fn screen_of_a_region() {
    let [screen, _] = texts_of(&solver(), &Selection::Region("solve".into()));
    insta::assert_snapshot!(screen, @r"
    solver  N=4000 | Open MPI 4.1.4 | 1 host, 2 ranks on cores 0,1 | solver.gammachi

      80 % efficient, load well balanced. Rank 1 loses 1.66 s: 1.05 s in MPI (MPI_Send 700 ms,
        MPI_Recv 350 ms), 602 ms in code that is neither MPI nor BLAS.

    REGION      solve: 8.16 s of 8.31 s elapsed
    EFFICIENCY  0.80 = load balance 1.00 x communication 0.80      elapsed (τ) 8.16 s
                only BLAS, LAPACK and FFTW calls count as computing
    RANKS (s)   rank  computing (γ)  lost (χ)  in MPI  start and end  other code  core  flop per s
                   0          6.500     1.660   1.200          0.000       0.452     0     49.02 G
                   1          6.500     1.660   1.050          0.000       0.602     1     49.02 G
    TRUST       clock within 10 ns | recorder 0.098 % | no events lost | 2 of 2 ranks finished |
                1 run: spread unknown
    NEXT        gammachi view RUN      shows this part within the whole run

    CALLS       function     count    time  of run time    mean     max  on rank     bytes
                cblas_dgemm      4  13.0 s         80 %  3.25 s  3.60 s        0  4.295 GB
                MPI_Send         2  1.55 s        9.5 %  775 ms  850 ms        0         -
                MPI_Recv         2  700 ms        4.3 %  350 ms  350 ms        0         -
    FLOPS       800.0 G | 98.04 Gflop/s | lower bound: BLAS, LAPACK, FFTW calls, declared work
    ");
}

#[test]
fn screen_of_a_whole_run() {
    let [screen, _] = texts_of(&solver(), &Selection::Whole);
    insta::assert_snapshot!(screen, @r"
    solver  N=4000 | Open MPI 4.1.4 | 1 host, 2 ranks on cores 0,1 | solver.gammachi

      78 % efficient, load well balanced. Rank 0 loses 1.81 s: 1.20 s in MPI (MPI_Send 850 ms,
        MPI_Recv 350 ms), 602 ms in code that is neither MPI nor BLAS.

    EFFICIENCY  0.78 = load balance 1.00 x communication 0.78      elapsed (τ) 8.31 s
                only BLAS, LAPACK and FFTW calls count as computing
    RANKS (s)   rank  computing (γ)  lost (χ)  in MPI  start and end  other code  core  waited for a core  flop per s
                   0          6.500     1.810   1.200          0.000       0.602     0              0.010     48.13 G
                   1          6.500     1.810   1.050          0.000       0.752     1              0.010     48.13 G
    TRUST       clock within 10 ns | recorder 0.096 % | no events lost | 2 of 2 ranks finished |
                1 run: spread unknown
    NEXT        gammachi view RUN      shows when the time was lost

    CALLS       function      count     time  of run time     mean      max  on rank     bytes
                cblas_dgemm       4   13.0 s         78 %   3.25 s   3.60 s        0  4.295 GB
                MPI_Send          2   1.55 s        9.3 %   775 ms   850 ms        0         -
                MPI_Recv          2   700 ms        4.2 %   350 ms   350 ms        0         -
                MPI_Finalize      2  40.0 ms            -  20.0 ms  20.0 ms        0         -
                MPI_Init          2  80.0 ns            -  40.0 ns  40.0 ns        0         -
    FLOPS       800.0 G | 96.27 Gflop/s | lower bound: BLAS, LAPACK, FFTW calls, declared work
    ");
}

#[test]
fn damage_missing_and_killed_ranks_come_first() {
    let [mut first, mut second] = solver();
    for rank in [&mut first, &mut second] {
        rank.fixed.world_size = 4;
        rank.header.compute = "outside".into();
    }
    second.threads[0].truncate(6);
    second.open_call(0, "MPI_Recv", at(7900)).killed();
    let bad = trace_format::layout::Slot { begin: 3, ..first.threads[0][1] };
    first.threads[0].insert(7, bad);
    let [screen, json] = texts_of(&[first, second], &Selection::Whole);
    insta::assert_snapshot!(screen, @r"
    solver  N=4000 | Open MPI 4.1.4 | 1 host, 4 ranks (2 with a file) on cores 0,1 | solver.gammachi

      1 file is damaged (see DAMAGE). No readable trace for 2 of 4 ranks (2,3); all figures cover
        the remaining ranks only.
      Rank 1 never returned from MPI_Finalize (died, or still running): it was inside MPI_Recv for
        at least 0 s. In the recorded part: 89 % efficient, load well balanced. Rank 0 loses 1.01 s:
        850 ms in MPI (MPI_Send 850 ms), 150 ms not recorded.

    DAMAGE      ranks-000/rank-000000.gmc: at byte 33624: an event that begins out of order; the
                later events of thread 0 are left out
    DAMAGE      ranks-000/rank-000000.gmc: events are missing before MPI_Finalize; the rank's
                figures end at the last event that is valid
    CUT         1 rank (0): trace truncated; time after its last valid record counts as lost
    POSITIONS   rank  position      since  for           waits for
                1     in MPI_Recv  7.90 s  at least 0 s  ?
    LAST CALLS  rank 1: MPI_Init at -100 ns; cblas_dgemm x2, last at 3.90 s; MPI_Send at 6.90 s;
                MPI_Recv at 7.90 s
    EFFICIENCY  0.89 = load balance 0.98 x communication 0.91      elapsed (τ) 7.90 s
    RANKS (s)   rank  computing (γ)  lost (χ)  in MPI  start and end  recorder  core  waited for a core  flop per s
                   0          6.892     1.008   0.850          0.150     0.008     0                  ?     51.61 G
                   1          7.192     0.708   0.700          0.000     0.008     1              0.010     50.63 G
    TRUST       clock within 10 ns | recorder 0.10 % | no events lost | 1 of 4 ranks finished |
                1 run: spread unknown
    NEXT        gammachi view RUN      shows what every rank did last

    CALLS       function     count     time  of run time     mean      max  on rank     bytes
                cblas_dgemm      4   13.0 s         82 %   3.25 s   3.60 s        0  4.295 GB
                MPI_Send         2   1.55 s        9.8 %   775 ms   850 ms        0         -
                MPI_Recv         2   350 ms        2.2 %   175 ms   350 ms        0         -
                MPI_Init         2  80.0 ns            -  40.0 ns  40.0 ns        0         -
    FLOPS       800.0 G | 101.3 Gflop/s | lower bound: BLAS, LAPACK, FFTW calls, declared work
    ");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["missing_ranks"], serde_json::json!([[2, 3]]));
    assert_eq!(json["ranks"][1]["finalized"], false);
    assert_eq!(json["ranks"][1]["inside"], "MPI_Recv");
    assert_eq!(json["ranks"][1]["inside_since_s"], 7.9);
    assert_eq!(json["ranks"][0]["ending"], "damaged");
    assert_eq!(json["trust"]["damaged_files"], 1);
    assert!(json["diagnoses"][0]["what"].as_str().unwrap().contains("out of order"));
}

#[test]
fn dead_rank_outside_mpi_is_named_first() {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 3, at(0), at(1000));
        rank.call(0, "MPI_Send", at(100), at(150 + 10 * u64::from(number)));
        if number != 1 {
            rank.open_call(0, "MPI_Barrier", at(300 - 50 * u64::from(number)));
        }
        rank.killed();
        rank
    };
    let [screen, _] = texts_of(&[rank(0), rank(1), rank(2)], &Selection::Whole);
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "3 ranks (0-2) never returned from MPI_Finalize (died, or still \
                    running): rank 1 was outside MPI, after MPI_Send at 160 ms; rank 2 was \
                    inside MPI_Barrier for at least 100 ms, longest of the 2 inside MPI.";
    assert!(words.contains(expected), "{screen}");
}

#[test]
fn rank_killed_in_mpi_init_leaves_no_damage() {
    let complete = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 4, at(0), at(1000));
        rank.finalize(at(1000), at(1020));
        rank
    };
    let mut never = SyntheticRank::new(2, 4);
    never.anchor(400, 1e9, 400);
    let [screen, json] = texts_of(&[complete(0), complete(1), never], &Selection::Whole);
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Rank 2 never returned from MPI_Init; all figures cover the remaining ranks only. No readable \
                    trace for 1 of 4 ranks (3);";
    assert!(words.contains(expected), "{screen}");
    assert!(!words.to_lowercase().contains("damage"), "{screen}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["trust"]["damaged_files"], 0);
    assert!(json["diagnoses"][0]["what"].as_str().unwrap().contains("MPI_Init"), "{json}");
}

/// The wall clock when the counter of these ranks was 0.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// The verdict of a run whose launcher ended with `code`, 5 s after the ranks' begin.
fn verdict_of(ranks: &[SyntheticRank], argv: &[&str], code: u8) -> String {
    verdict_of_request(ranks, argv, code, None)
}

/// The same if `gammachi run` was asked to end.
fn verdict_of_request(
    ranks: &[SyntheticRank],
    argv: &[&str],
    code: u8,
    termination: Option<Termination>,
) -> String {
    verdict_of_description(ranks, argv, code, |description| {
        description.duration_s = termination.as_ref().map(|_| 4.75);
        description.termination = termination;
    })
}

/// The same of a run with this description.
fn verdict_of_description(
    ranks: &[SyntheticRank],
    argv: &[&str],
    code: u8,
    describe: impl FnOnce(&mut RunJson),
) -> String {
    let directory = RunDirectory::with_ranks(ranks);
    let mut description = crate::trace::run_json::tests::example();
    let end_ns = EPOCH_NS + at(5000);
    description.argv = argv.iter().map(|word| (*word).to_owned()).collect();
    description.end = Some(crate::trace::run_json::Instant::from_unix_ns(end_ns));
    description.exit = Some(crate::trace::run_json::Exit { code, signal: None });
    describe(&mut description);
    description.write(directory.path()).unwrap();
    let [screen, _] = texts(directory.path(), &Selection::Whole).unwrap();
    // The paragraph between the head and the first label.
    screen.split("\n\n").nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn verdict_begins_with_how_the_job_ended() {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 2, at(0), at(1000));
        rank.call(0, "MPI_Send", at(100), at(150 + 10 * u64::from(number)));
        rank.killed();
        rank
    };
    let mpirun = ["mpirun", "-n", "2", "./solver"];
    let mut waits = rank(0);
    waits.open_call(0, "MPI_Recv", at(200));

    let mut aborts = rank(1);
    aborts.open_call(0, "MPI_Abort", at(300));
    let verdict = verdict_of(&[waits.clone(), aborts], &mpirun, 7);
    let expected = "Rank 1 called MPI_Abort at 300 ms, which ended the run; the exit code is 7.";
    assert!(verdict.starts_with(expected), "{verdict}");

    let stands = "2 ranks (0,1) ended before MPI_Finalize: rank 1 was outside MPI, after MPI_Send at \
                  160 ms; rank 0 was inside MPI_Recv for 4.80 s.";
    let verdict = verdict_of(&[waits.clone(), rank(1)], &mpirun, 3);
    let expected = format!("The program ended with exit code 3. {stands}");
    assert!(verdict.starts_with(&expected), "{verdict}");

    // Nothing is known of what both did outside MPI until they died.
    let verdict = verdict_of(&[rank(0), rank(1)], &mpirun, 3);
    assert!(verdict.contains("In the recorded part: "), "{verdict}");

    let with_partners = |mut rank: SyntheticRank| {
        rank.fixed.level = 1;
        let number = rank.fixed.rank;
        rank.communicator(COMMUNICATOR_WORLD, 0, (7, 0), number, 2, &[(0, 1, 2)]);
        rank
    };
    let mut receives = with_partners(rank(0));
    receives.open_call_with("MPI_Recv", at(200), on_world(1, 7, 8));
    let verdict = verdict_of(&[receives, with_partners(rank(1))], &mpirun, 139);
    let expected = "A process was killed by SIGSEGV (signal 11: an invalid memory access): \
                    the exit code is 139. It was probably rank 1, outside MPI, after MPI_Send";
    assert!(verdict.starts_with(expected), "{verdict}");
    assert!(verdict.contains("rank 0 waited for it."), "{verdict}");

    // Ranks wait for 4.8 s: the efficiency must not be that of the first 200 ms.
    let timeout = ["timeout", "5", "mpirun", "./solver"];
    let verdict = verdict_of(&[waits, rank(1)], &timeout, 124);
    assert!(verdict.contains("`timeout` ended it"), "{verdict}");
    assert!(verdict.contains("2.5 % efficient"), "{verdict}");

    let finished = finish(SyntheticRank::complete(0, 1, at(0), at(1000)), 1000);
    let verdict = verdict_of(&[finished], &mpirun, 4);
    let expected = "The program ended with exit code 4, after every rank had finalized MPI.";
    assert!(verdict.starts_with(expected), "{verdict}");
}

#[test]
fn verdict_names_who_asked_the_run_to_end() {
    let mut rank = SyntheticRank::complete(0, 1, at(0), at(1000));
    rank.call(0, "MPI_Send", at(100), at(150));
    rank.killed();
    let ranks = [rank];
    let mpirun = ["/usr/bin/mpirun", "-n", "1", "./solver"];
    let slurm = Sender { pid: 812, name: Some("slurmstepd".into()) };
    let request = Termination { signal: 15, after_s: 4.5, sender: Some(slurm), forwarded: true };
    let verdict = verdict_of_request(&ranks, &mpirun, 1, Some(request.clone()));
    let expected = "After 4.50 s, `slurmstepd` (process 812) sent SIGTERM to gammachi run, which \
                    passed it on; `mpirun` ended 250 ms later with exit code 1. Rank 0";
    assert!(verdict.starts_with(expected), "{verdict}");
    assert!(!verdict.contains("The program ended"), "{verdict}");

    let keyboard = Termination { signal: 2, sender: None, forwarded: false, ..request };
    let verdict = verdict_of_request(&ranks, &mpirun, 130, Some(keyboard));
    let expected = "After 4.50 s, the system sent SIGINT to the whole job (Ctrl-C); `mpirun` \
                    ended 250 ms later with exit code 130.";
    assert!(verdict.starts_with(expected), "{verdict}");
}

#[test]
fn verdict_names_the_rank_that_was_seen_to_die_first() {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 3, at(0), at(1000));
        rank.fixed.level = 1;
        rank.communicator(COMMUNICATOR_WORLD, 0, (7, 0), number, 3, &[(0, 1, 3)]);
        rank.call_with("MPI_Barrier", at(100), at(150), on_world(0, 0, 0));
        rank.killed();
        rank
    };
    let waits = |number| {
        let mut rank = rank(number);
        rank.open_call_with("MPI_Barrier", at(200), on_world(0, 0, 0));
        rank
    };
    let ranks = [waits(0), rank(1), waits(2)];
    let verdict = |code, ended: &[(u32, u64, i32)]| {
        verdict_of_description(&ranks, &["mpirun", "-n", "3", "./solver"], code, |description| {
            description.ended_ranks = ended
                .iter()
                .map(|(rank, ms, status)| ended_rank(*rank, EPOCH_NS + at(*ms), *status))
                .collect();
        })
    };
    // MPICH's code is that by which the others were killed.
    let found = verdict(9, &[(1, 3000, 3 << 8), (0, 3010, 9), (2, 3010, 9)]);
    let expected = "Rank 1 ended first, at 3.00 s, with exit code 3, before MPI_Finalize; the launcher's exit code is \
                    9. 2 ranks waited for rank 1. 3 ranks (0-2) ended before MPI_Finalize: rank 1 was outside MPI, \
                    after MPI_Barrier at 150 ms; rank 0 was inside MPI_Barrier for";
    assert!(found.starts_with(expected), "{found}");
    let found = verdict(139, &[(1, 3000, 11), (0, 3010, 9), (2, 3010, 9)]);
    let expected = "Rank 1 died first, at 3.00 s, killed by SIGSEGV (signal 11: an invalid memory access); the exit code \
                    is 139. 2 ranks waited for rank 1.";
    assert!(found.starts_with(expected), "{found}");
    // Nobody saw rank 2 end: it may have been the first.
    let found = verdict(137, &[(1, 3000, 9), (0, 3010, 9)]);
    assert!(found.starts_with("A process was killed by SIGKILL"), "{found}");
    let found = verdict(137, &[(0, 3000, 9), (1, 3000, 9), (2, 3000, 9)]);
    assert!(found.starts_with("A process was killed by SIGKILL"), "seen at once: {found}");
}

#[test]
fn shows_regions_with_names_of_any_length() {
    let mut rank = SyntheticRank::complete(0, 1, at(0), at(1000));
    for (id, end) in [(3, "x"), (4, "y")] {
        rank.region_name(id, &("n".repeat(70_000) + end));
        let begin = at(200 * u64::from(id));
        rank.region_begin(0, id, begin).region_end(0, id, begin + at(100));
    }
    // Text is aligned up to 65,535 characters; beyond that, Rust panics.
    let [screen, json] = texts_of(&[finish(rank, 1000)], &Selection::Whole);
    assert!(!screen.contains(&"n".repeat(5000)) && !json.contains(&"n".repeat(5000)));
}

#[test]
fn names_unsuitable_compute_mode_and_sleeping_rank() {
    let mut rank = SyntheticRank::complete(0, 1, at(0), at(1000));
    rank.thread_usage(0, Phase::Init, 0, 0, 0).thread_usage(0, Phase::Finalize, 100 * MS, 0, 0);
    rank.process_usage(Phase::Init, 0, 0).process_usage(Phase::Finalize, 100 * MS, 0);
    let mut rank = finish(rank, 1000);
    let words = |rank: &SyntheticRank| {
        let [screen, _] = texts_of(std::slice::from_ref(rank), &Selection::Whole);
        screen.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let screen = words(&rank);
    let expected = "Time outside MPI counts as computing, but rank 0 was asleep or blocked for nearly all of it: it was \
                    on a core for at most 100 ms of 1.00 s.";
    assert!(screen.contains(expected), "{screen}");
    assert!(!screen.contains("does not suit"), "{screen}");
    rank.header.compute = "blas".into();
    rank.threads[0].insert(1, {
        let mut other = SyntheticRank::new(0, 1);
        other.compute("dgemm_", at(10), at(12), 1e6, 8);
        other.threads[0][0]
    });
    let screen = words(&rank);
    assert!(
        screen.contains("--compute blas does not suit this program: it spends 100 % of its time"),
        "{screen}"
    );
}

#[test]
fn similar_ranks_are_grouped() {
    let ranks: Vec<_> = (0..30u32)
        .map(|number| {
            let mut rank = SyntheticRank::complete(number, 30, at(0), at(1000));
            rank.header.host = format!("n{}", number / 10);
            // Rank 7 waits for half of the run, the others for 100 to 110 ms of a second.
            let wait_ms = if number == 7 { 500 } else { 100 + u64::from(number) / 3 };
            rank.call(0, "MPI_Barrier", at(100), at(100 + wait_ms));
            finish(rank, 1000)
        })
        .collect();
    let [screen, json] = texts_of(&ranks, &Selection::Whole);
    let rows: Vec<&str> =
        screen.lines().skip_while(|line| !line.contains("count  similar ranks")).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(rows[1])[..2], ["1", "7"], "{screen}");
    assert_eq!(words(rows[2])[..2], ["29", "0-6,8-29"], "{screen}");
    assert!(!words(rows[3])[0].starts_with(char::is_numeric), "two groups\n{screen}");
    assert!(screen.contains("3 hosts, 30 ranks |"), "{screen}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ranks"].as_array().unwrap().len(), 30);
}

#[test]
fn names_programs_and_unequal_pinning_of_an_mpmd_run() {
    let ranks: Vec<_> = (0..4u32)
        .map(|number| {
            let mut rank = SyntheticRank::complete(number, 4, at(0), at(1000));
            if number == 0 {
                rank.header.program = "/opt/bin/coupler".into();
                rank.header.affinity = vec![0, 1];
                let job = [("SLURM_JOB_ID", "8814207"), ("SLURM_STEP_ID", "0")];
                let job = job.map(|(name, value)| (name.to_owned(), value.to_owned()));
                rank.definitions.push(Definition::Environment(job.into()));
            }
            rank.header.arguments = vec!["x".into()];
            finish(rank, 1000)
        })
        .collect();
    let [screen, json] = texts_of(&ranks, &Selection::Whole);
    assert!(screen.contains("JOB         Slurm job 8814207.0 | pinned unequally: "), "{screen}");
    let words: Vec<&str> = screen.split_whitespace().collect();
    let pinning = "rank 1-3 may use 1 core; rank 0 may use 2 cores";
    assert!(words.join(" ").contains(pinning), "{screen}");
    let programs: Vec<&str> =
        screen.lines().skip_while(|line| !line.starts_with("PROGRAMS")).take(3).collect();
    assert!(programs[1].trim_start().starts_with("coupler  0 "), "{screen}");
    assert!(programs[2].trim_start().starts_with("solver   1-3"), "{screen}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["job"]["id"], "8814207");
    assert_eq!(json["programs"][1]["ranks"], serde_json::json!([1, 2, 3]));
}

#[test]
fn sums_of_the_document_agree() {
    let [_, text] = texts_of(&solver(), &Selection::Whole);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let ranks = json["ranks"].as_array().unwrap();
    let sum: f64 = ranks.iter().map(|r| number(&r["compute_s"]) + number(&r["lost_s"])).sum();
    assert!((sum / (2.0 * number(&json["elapsed_s"])) - 1.0).abs() < 1e-9);
    let computed: f64 = ranks.iter().map(|r| number(&r["compute_s"])).sum();
    let expected = computed / (2.0 * number(&json["elapsed_s"]));
    assert!((number(&json["efficiency"]["parallel"]) / expected - 1.0).abs() < 1e-12);
    assert_eq!(json["params"], serde_json::json!({"N": "4000"}));
    assert_eq!(json["ranks"][0]["off_cpu_s"], 0.01);
    let events: u64 = ranks.iter().map(|r| r["events"].as_u64().unwrap()).sum();
    let calls = json["calls"].as_array().unwrap();
    assert_eq!(events, calls.iter().map(|c| c["count"].as_u64().unwrap()).sum::<u64>());
}

#[test]
fn control_characters_of_a_trace_never_reach_the_terminal() {
    let ranks = solver().map(|mut rank| {
        rank.header.program = "/bin/a\u{1b}[31mb".into();
        rank.region_name(5, "x\u{7}y");
        rank.header.parameters = vec![("K".into(), "\u{1b}]0;title".into())];
        rank
    });
    let [screen, _] = texts_of(&ranks, &Selection::Whole);
    assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
}

#[test]
fn colour_only_emphasises() {
    let directory = RunDirectory::with_ranks(&solver());
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    let coloured = screen(&report, true);
    assert!(coloured.contains("\x1b[1mEFFICIENCY\x1b[0m"));
    let plain = coloured.replace("\x1b[1m", "").replace("\x1b[0m", "");
    assert_eq!(plain, screen(&report, false));
}

#[test]
fn report_says_from_what_offsets_between_hosts_were_estimated() {
    let texts = |goes_back: bool| {
        let mut ranks = [0, 1].map(|number| SyntheticRank::level_1(number, 2, 1_000_000_000));
        for (rank, host) in ranks.iter_mut().zip(["n0", "n1"]) {
            (rank.header.host, rank.header.boot_id) = (host.into(), host.into());
            rank.definitions.retain(|d| !matches!(d, Definition::ClockExchange(_)));
        }
        let [first, second] = &mut ranks;
        for at in (100_000_000..900_000_000).step_by(100_000_000) {
            first.call_with("MPI_Send", at, at + 10, on_world(1, 5, 8));
            second.call_with("MPI_Recv", at, at + 40_000, on_world(0, 5, 8));
            if goes_back {
                second.call_with("MPI_Send", at + 50_000, at + 50_010, on_world(0, 5, 8));
                first.call_with("MPI_Recv", at + 50_000, at + 90_000, on_world(1, 5, 8));
            }
        }
        ranks.iter_mut().for_each(|rank| _ = rank.finalize(1_000_000_000, 1_000_000_100));
        texts_of(&ranks, &Selection::Whole)
    };
    let [screen, json] = texts(true);
    let words: Vec<&str> = screen.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("(offsets between hosts estimated from 16 messages)"), "{screen}");
    let clock = &serde_json::from_str::<serde_json::Value>(&json).unwrap()["clock"];
    let estimated = &clock["estimated"];
    // Half of the 40 µs that a message takes each way, and what the drift adds in between.
    assert!((40_000.0..80_000.0).contains(&clock["bound_ns"].as_f64().unwrap()), "{clock}");
    assert_eq!((&estimated["messages"], &clock["aligned"]), (&16.into(), &true.into()));
    let [screen, json] = texts(false);
    assert!(
        screen.contains("1 rank not aligned") && !screen.contains("estimated from"),
        "{screen}"
    );
    let clock = &serde_json::from_str::<serde_json::Value>(&json).unwrap()["clock"];
    assert_eq!(clock["estimated"]["unconnected"][0], 1);
}
