//! `kernels clock`: two-way exchanges between ranks, with every time stamp printed.
//!
//! The pairs are those of a binomial tree over one rank per host and of one over the ranks of each
//! host. In each pair, first the child asks and the parent answers (forward), then the other way
//! round (reverse), with `--rounds` exchanges per trial and `--trials` trials. Both directions use
//! MPI_Send and MPI_Recv: another mode in one direction would look like an offset. Pairs measure
//! one after the other while the other ranks sleep. With `--drift` everything is repeated after
//! that many seconds. `gammachi calibrate clock` starts this program and interprets the stamps.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use mpi::ffi;
use mpi::traits::Communicator;
use serde::Serialize;

use crate::counter::{self, Moment};
use crate::failure::Failure;

const TAG: libc::c_int = 11;
const TOKEN_TAG: libc::c_int = 12;
const RESULT_TAG: libc::c_int = 13;
/// Number of exchanges before those that count.
const WARM_UP: usize = 4;
/// Time between two checks whether it is this rank's turn.
const NAP: Duration = Duration::from_micros(500);
/// Size of a host name and of a boot id.
const NAME_BYTES: usize = 64;

/// Exchange clock readings between ranks and print every stamp (one line of JSON)
#[derive(Args)]
#[command(after_help = "Example:
  mpirun -n 2 kernels clock --rounds 100 --trials 10")]
pub struct Arguments {
    /// Exchanges in each trial
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: u64,
    /// Trials of each pair and direction
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    trials: u64,
    /// Seconds to wait before everything is measured again; 0 to measure once
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    drift: f64,
}

/// Child's and parent's rank.
type Pair = (usize, usize);
/// The asker's counter at sending, the answerer's, and the asker's at receiving.
type Stamps = [u64; 3];

#[derive(Serialize)]
struct Document {
    kernel: &'static str,
    mpi: String,
    counter: &'static str,
    rounds: u64,
    trials: u64,
    drift_s: f64,
    ranks: Vec<RankDocument>,
    pairs: Vec<PairDocument>,
}

#[derive(Serialize)]
struct RankDocument {
    host: String,
    boot_id: String,
    ns_per_tick: f64,
}

#[derive(Serialize, Clone)]
struct PairDocument {
    child: usize,
    parent: usize,
    /// By measurement (one, or two with `--drift`), trial and exchange.
    forward: Vec<Vec<Vec<Stamps>>>,
    reverse: Vec<Vec<Vec<Stamps>>>,
}

/// Measures on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !(0.0..1e6).contains(&arguments.drift) {
        return Err(Failure::Usage("--drift must be a number of seconds, at least 0".into()));
    }
    let universe = mpi::initialize().ok_or(Failure::Init)?;
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    if size < 2 {
        return Err(Failure::Usage("clock needs at least 2 ranks: start with mpirun -n 2".into()));
    }
    let start = Moment::now();
    let hosts = gather_hosts(size);
    let pairs = pairs(&hosts);
    let measurements = if arguments.drift > 0.0 { 2 } else { 1 };
    let mut stamps: Vec<u64> = Vec::new();
    for measurement in 0..measurements {
        if measurement > 0 {
            std::thread::sleep(Duration::from_secs_f64(arguments.drift));
        }
        measure(arguments, &pairs, rank, &mut stamps);
    }
    let ns_per_tick = start.ns_per_tick();
    if rank != 0 {
        stamps.push(ns_per_tick.to_bits());
        send_words(&stamps, 0);
        return Ok(());
    }
    let mut all = vec![stamps];
    let mut ranks = Vec::with_capacity(size);
    for (other, (host, boot_id)) in hosts.into_iter().enumerate() {
        let mut ns_per_tick = ns_per_tick;
        if other > 0 {
            let mut words = receive_words(other);
            ns_per_tick = words.pop().map_or(f64::NAN, f64::from_bits);
            all.push(words);
        }
        ranks.push(RankDocument { host, boot_id, ns_per_tick });
    }
    let pairs = documents(arguments, measurements, &pairs, &all);
    let document = Document {
        kernel: "clock",
        mpi: crate::world::library_name(),
        counter: counter::NAME,
        rounds: arguments.rounds,
        trials: arguments.trials,
        drift_s: arguments.drift,
        ranks,
        pairs,
    };
    let mut text = serde_json::to_string(&document).map_err(io::Error::from)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The pairs of both trees in the order in which they measure. The parent of member i of a binomial
/// tree is i without its lowest set bit.
fn pairs(host_of_rank: &[(String, String)]) -> Vec<Pair> {
    let mut hosts: Vec<(&(String, String), Vec<usize>)> = Vec::new();
    for (rank, host) in host_of_rank.iter().enumerate() {
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, members)) => members.push(rank),
            None => hosts.push((host, vec![rank])),
        }
    }
    let leaders: Vec<usize> = hosts.iter().map(|(_, members)| members[0]).collect();
    let tree = |members: &[usize]| -> Vec<Pair> {
        (1..members.len()).map(|index| (members[index], members[index & (index - 1)])).collect()
    };
    std::iter::once(&leaders)
        .chain(hosts.iter().map(|(_, members)| members))
        .flat_map(|m| tree(m))
        .collect()
}

/// Measures all pairs in turn. The child of a pair tells the members of the next pair that it is
/// their turn.
fn measure(arguments: &Arguments, pairs: &[Pair], rank: usize, stamps: &mut Vec<u64>) {
    for (index, &(child, parent)) in pairs.iter().enumerate() {
        if rank == child || rank == parent {
            if let Some(&(before, _)) = index.checked_sub(1).map(|before| &pairs[before])
                && before != rank
            {
                wait_for_token(before);
            }
            for _ in 0..arguments.trials {
                for (asker, answerer) in [(child, parent), (parent, child)] {
                    match rank == asker {
                        true => ask(answerer, arguments.rounds as usize, stamps),
                        false => answer(asker, arguments.rounds as usize),
                    }
                }
            }
        }
        if rank == child
            && let Some(&(next_child, next_parent)) = pairs.get(index + 1)
        {
            for next in [next_child, next_parent] {
                if next != rank {
                    send_word(0, next, TOKEN_TAG);
                }
            }
        }
    }
}

fn ask(answerer: usize, rounds: usize, stamps: &mut Vec<u64>) {
    stamps.reserve(3 * rounds);
    for round in 0..WARM_UP + rounds {
        let sent = counter::read();
        send_word(sent, answerer, TAG);
        let answered = receive_word(answerer, TAG);
        let received = counter::read();
        if round >= WARM_UP {
            stamps.extend([sent, answered, received]);
        }
    }
}

fn answer(asker: usize, rounds: usize) {
    for _ in 0..WARM_UP + rounds {
        receive_word(asker, TAG);
        send_word(counter::read(), asker, TAG);
    }
}

/// Assigns the stamps of its two ranks to every pair, in the order in which they were made.
fn documents(
    arguments: &Arguments,
    measurements: usize,
    pairs: &[Pair],
    all: &[Vec<u64>],
) -> Vec<PairDocument> {
    let mut at = vec![0usize; all.len()];
    let empty = |&(child, parent): &Pair| PairDocument {
        child,
        parent,
        forward: Vec::new(),
        reverse: Vec::new(),
    };
    let mut found: Vec<PairDocument> = pairs.iter().map(empty).collect();
    let mut take = |rank: usize| -> Vec<Stamps> {
        let words = 3 * arguments.rounds as usize;
        let taken = all[rank].get(at[rank]..at[rank] + words).unwrap_or_default();
        at[rank] += words;
        taken.chunks_exact(3).map(|three| [three[0], three[1], three[2]]).collect()
    };
    for _ in 0..measurements {
        for pair in &mut found {
            let trials = 0..arguments.trials;
            let (forward, reverse) = trials.map(|_| (take(pair.child), take(pair.parent))).unzip();
            pair.forward.push(forward);
            pair.reverse.push(reverse);
        }
    }
    found
}

/// Host name and boot id of every rank.
fn gather_hosts(size: usize) -> Vec<(String, String)> {
    let mut own = [0u8; 2 * NAME_BYTES];
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let names = [read("/proc/sys/kernel/hostname"), read("/proc/sys/kernel/random/boot_id")];
    for (host, name) in own.chunks_exact_mut(NAME_BYTES).zip(&names) {
        let name = name.trim().as_bytes();
        let length = name.len().min(NAME_BYTES);
        host[..length].copy_from_slice(&name[..length]);
    }
    let mut all = vec![0u8; size * own.len()];
    let count = own.len() as libc::c_int;
    // SAFETY: guaranteed here: both buffers hold the bytes that the counts say; MPI is initialised.
    unsafe {
        let byte = ffi::RSMPI_UINT8_T;
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        ffi::MPI_Allgather(from, count, byte, to, count, byte, ffi::RSMPI_COMM_WORLD);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    all.chunks_exact(own.len())
        .map(|both| (text(&both[..NAME_BYTES]), text(&both[NAME_BYTES..])))
        .collect()
}

/// Sleeps until the token arrives, so that the measuring pair has the cores.
fn wait_for_token(from: usize) {
    loop {
        let mut flag = 0;
        // SAFETY: guaranteed here: `flag` outlives the call; MPI is initialised.
        unsafe {
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            let world = ffi::RSMPI_COMM_WORLD;
            ffi::MPI_Iprobe(from as libc::c_int, TOKEN_TAG, world, &raw mut flag, ignore);
        }
        if flag != 0 {
            break;
        }
        std::thread::sleep(NAP);
    }
    receive_word(from, TOKEN_TAG);
}

#[inline(always)]
fn send_word(word: u64, to: usize, tag: libc::c_int) {
    // SAFETY: guaranteed here: one 8-byte word that outlives the call; MPI is initialised.
    unsafe {
        let from = (&raw const word).cast();
        ffi::MPI_Send(from, 1, ffi::RSMPI_UINT64_T, to as libc::c_int, tag, ffi::RSMPI_COMM_WORLD);
    }
}

#[inline(always)]
fn receive_word(from: usize, tag: libc::c_int) -> u64 {
    let mut word = 0_u64;
    // SAFETY: guaranteed here: room for one 8-byte word that outlives the call; MPI is initialised.
    unsafe {
        let (to, world) = ((&raw mut word).cast(), ffi::RSMPI_COMM_WORLD);
        let from = from as libc::c_int;
        ffi::MPI_Recv(to, 1, ffi::RSMPI_UINT64_T, from, tag, world, ffi::RSMPI_STATUS_IGNORE);
    }
    word
}

fn send_words(words: &[u64], to: usize) {
    send_word(words.len() as u64, to, RESULT_TAG);
    // SAFETY: guaranteed here: the buffer holds as many words as the count says; MPI is initialised.
    unsafe {
        let (from, count) = (words.as_ptr().cast(), words.len() as libc::c_int);
        let to = to as libc::c_int;
        ffi::MPI_Send(from, count, ffi::RSMPI_UINT64_T, to, RESULT_TAG, ffi::RSMPI_COMM_WORLD);
    }
}

fn receive_words(from: usize) -> Vec<u64> {
    let mut words = vec![0u64; receive_word(from, RESULT_TAG) as usize];
    // SAFETY: guaranteed here: room for as many words as the sender announced; MPI is initialised.
    unsafe {
        let (to, count) = (words.as_mut_ptr().cast(), words.len() as libc::c_int);
        let (word, world) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_COMM_WORLD);
        let from = from as libc::c_int;
        ffi::MPI_Recv(to, count, word, from, RESULT_TAG, world, ffi::RSMPI_STATUS_IGNORE);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_form_one_tree_over_hosts_and_one_in_each_host() {
        let host = |host: &str| (host.to_owned(), "boot".to_owned());
        let hosts = [host("a"), host("a"), host("b"), host("c"), host("b")];
        assert_eq!(pairs(&hosts), [(2, 0), (3, 0), (1, 0), (4, 2)]);
        assert_eq!(pairs(&vec![host("a"); 5]), [(1, 0), (2, 0), (3, 2), (4, 0)]);
    }
}
