//! SIGKILL at random moments: every call that had returned is in the trace, and every trace can be
//! read.
//!
//! One kind of job exchanges many small messages; the other makes very short calls, so that much of
//! its time goes into encoding and writing full windows. The program proves which calls had
//! returned: after each call it counts in a mapped file of its own. The event is closed before the
//! call returns, so a trace has as many calls as were counted, or one more.
//!
//! `GAMMACHI_TEST_KILLS` says how many jobs (both MPIs together; `scripts/kill-ranks` sets it),
//! `GAMMACHI_TEST_SEED` repeats a run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use system_tests::directories::TempDir;
use system_tests::job::DEADLINE;
use system_tests::{Job, Mpi, victim};
use trace_format::files::rank_file_path;
use trace_format::reader::RankFile;

const KILLS: u64 = 20;
/// Calls that a job makes if it is not killed.
const MESSAGES: u64 = 1_000_000;
const SHORT_CALLS: u64 = 3_000_000;
/// What is kept, and in how many bytes: all calls; those that fit, which newer ones replace again and again.
const ALL: (&str, u64) = ("first", 1 << 30);
const NEWEST: (&str, u64) = ("last", 1 << 19);
/// A job that does not reach its call in this time fails the test.
const MAX_WAIT: Duration = DEADLINE;

fn number_in_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// xorshift64*: the moments need only be spread.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// Number of calls that returned and process ID, as the rank wrote them.
fn proof(prefix: &Path, rank: usize) -> Option<(u64, u64)> {
    let bytes = std::fs::read(format!("{}-{rank}", prefix.display())).ok()?;
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some((word(0)?, word(8).filter(|pid| *pid != 0)?))
}

/// Number of calls in a trace that had returned, how many of them only the totals count, and whether another one had
/// begun.
fn recorded(path: &Path) -> Result<(u64, u64, bool), String> {
    let file = RankFile::open(path).map_err(|error| error.to_string())?;
    if !file.diagnoses.is_empty() {
        return Err(format!("{:?}", file.diagnoses));
    }
    let [thread] = &file.threads[..] else { return Err("not one thread".into()) };
    let counts = |function: u16| {
        matches!(file.function_name(function), Some("MPI_Send" | "MPI_Recv" | "MPI_Initialized"))
    };
    let folded = thread.totals.iter().flat_map(|totals| &totals.calls);
    let folded =
        folded.filter(|entry| counts(entry.function)).map(|entry| entry.count).sum::<u64>();
    let (mut returned, mut open) = (folded, false);
    let mut events = file.events(thread);
    for event in events.by_ref() {
        if counts(event.function) {
            returned += u64::from(event.end.is_some());
            open = event.end.is_none();
        }
    }
    match events.damage() {
        Some(damage) => Err(damage.to_string()),
        None => Ok((returned, folded, open)),
    }
}

#[test]
fn sigkill_at_any_moment_loses_no_message() {
    kill("proves_its_messages", MESSAGES, ALL);
}

#[test]
fn sigkill_during_window_changes_loses_no_call() {
    kill("proves_its_calls", SHORT_CALLS, ALL);
}

#[test]
fn sigkill_while_newer_calls_replace_older_ones_loses_none() {
    kill("proves_its_calls", SHORT_CALLS, NEWEST);
}

/// Kills jobs of a victim that makes this number of calls.
fn kill(program: &str, calls: u64, kept: (&str, u64)) {
    let kills = number_in_environment("GAMMACHI_TEST_KILLS").unwrap_or(KILLS);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = number_in_environment("GAMMACHI_TEST_SEED").unwrap_or(now.as_nanos() as u64 | 1);
    println!("seed {seed}");
    let mut random = Random(seed);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let (mut events, mut replaced, mut ahead, mut open) = (0, 0, 0, 0);
        for _ in 0..kills.div_ceil(2) {
            let temp = TempDir::new();
            let prefix: PathBuf = temp.join("proof");
            let running = Job::new(mpi, &victim(mpi, program))
                .ranks(2)
                .argument(calls.to_string())
                .argument(&prefix)
                .environment("GAMMACHI_KEEP", kept.0)
                .environment("GAMMACHI_MAX_BYTES", kept.1.to_string())
                .start_recording();
            let (at, victim_rank) = (random.below(calls), random.below(2) as usize);
            let begin = Instant::now();
            let process = loop {
                if let Some((_, process)) =
                    proof(&prefix, victim_rank).filter(|(count, _)| *count >= at)
                {
                    break process;
                }
                assert!(begin.elapsed() < MAX_WAIT, "the job does not reach call {at}");
                std::thread::sleep(Duration::from_micros(200));
            };
            // SAFETY: plain numbers; the process is a rank of our own job.
            unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
            let directory = running.directory();
            let job = running.end();
            for rank in 0..2 {
                let (proven, _) = proof(&prefix, rank).expect("the rank wrote it");
                let what = recorded(&directory.join(rank_file_path(0, rank as u32)));
                let (returned, folded, begun) = what.unwrap_or_else(|what| {
                    panic!(
                        "rank {rank}, killed rank {victim_rank} at {at}, seed {seed}: {what}\n{}",
                        job.output
                    )
                });
                assert!(
                    returned == proven || returned == proven + 1,
                    "rank {rank}: {proven} calls had returned, {returned} are in the trace; killed \
                     rank {victim_rank} at {at}, seed {seed}\n{}",
                    job.output
                );
                assert!(kept != ALL || folded == 0, "events were folded, seed {seed}");
                events += returned;
                replaced += folded;
                ahead += returned - proven;
                open += u64::from(begun);
            }
        }
        // A job that is killed early has replaced none.
        assert!(kept == ALL || kills < KILLS || replaced > 0, "no call was replaced, seed {seed}");
        println!(
            "{:<8} {program}: {} jobs killed, {} traces read, {events} calls had returned and are in the traces ({ahead} \
             of them not yet counted by the program), 0 lost, {open} ranks inside a call",
            mpi.suffix(),
            kills.div_ceil(2),
            2 * kills.div_ceil(2),
        );
    }
}
