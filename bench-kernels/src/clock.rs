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
use serde::Serialize;

use crate::counter;
use crate::failure::Failure;
use crate::world::{World, bytes_of, bytes_of_mut, library_name};

const TAG: i32 = 11;
const TOKEN_TAG: i32 = 12;
const RESULT_TAG: i32 = 13;
/// Number of exchanges before those that count.
const WARM_UP: usize = 4;
/// Time between two checks whether it is this rank's turn.
const NAP: Duration = Duration::from_micros(500);

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
    let world = World::start()?;
    world.need(2, "clock")?;
    let (rank, size) = (world.rank as usize, world.size as usize);
    let hosts = gather_hosts(&world);
    let pairs = pairs(&hosts);
    let measurements = if arguments.drift > 0.0 { 2 } else { 1 };
    let mut stamps: Vec<u64> = Vec::new();
    for measurement in 0..measurements {
        if measurement > 0 {
            std::thread::sleep(Duration::from_secs_f64(arguments.drift));
        }
        measure(arguments, &world, &pairs, &mut stamps);
    }
    let ns_per_tick = world.seconds_per_tick() * 1e9;
    if rank != 0 {
        stamps.push(ns_per_tick.to_bits());
        send_word(&world, stamps.len() as u64, 0, RESULT_TAG);
        world.send(bytes_of(&stamps), 0, RESULT_TAG);
        return Ok(());
    }
    let mut all = vec![stamps];
    let mut ranks = Vec::with_capacity(size);
    for (other, (host, boot_id)) in hosts.into_iter().enumerate() {
        let mut ns_per_tick = ns_per_tick;
        if other > 0 {
            let mut words = vec![0_u64; receive_word(&world, other, RESULT_TAG) as usize];
            world.receive(bytes_of_mut(&mut words), other as i32, RESULT_TAG);
            ns_per_tick = words.pop().map_or(f64::NAN, f64::from_bits);
            all.push(words);
        }
        ranks.push(RankDocument { host, boot_id, ns_per_tick });
    }
    let pairs = documents(arguments, measurements, &pairs, &all);
    let document = Document {
        kernel: "clock",
        mpi: library_name(),
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
fn measure(arguments: &Arguments, world: &World, pairs: &[Pair], stamps: &mut Vec<u64>) {
    let rank = world.rank as usize;
    for (index, &(child, parent)) in pairs.iter().enumerate() {
        if rank == child || rank == parent {
            if let Some(&(before, _)) = index.checked_sub(1).map(|before| &pairs[before])
                && before != rank
            {
                wait_for_token(world, before);
            }
            for _ in 0..arguments.trials {
                for (asker, answerer) in [(child, parent), (parent, child)] {
                    match rank == asker {
                        true => ask(world, answerer, arguments.rounds as usize, stamps),
                        false => answer(world, asker, arguments.rounds as usize),
                    }
                }
            }
        }
        if rank == child
            && let Some(&(next_child, next_parent)) = pairs.get(index + 1)
        {
            for next in [next_child, next_parent] {
                if next != rank {
                    send_word(world, 0, next, TOKEN_TAG);
                }
            }
        }
    }
}

fn ask(world: &World, answerer: usize, rounds: usize, stamps: &mut Vec<u64>) {
    stamps.reserve(3 * rounds);
    for round in 0..WARM_UP + rounds {
        let sent = counter::read();
        send_word(world, sent, answerer, TAG);
        let answered = receive_word(world, answerer, TAG);
        let received = counter::read();
        if round >= WARM_UP {
            stamps.extend([sent, answered, received]);
        }
    }
}

fn answer(world: &World, asker: usize, rounds: usize) {
    for _ in 0..WARM_UP + rounds {
        receive_word(world, asker, TAG);
        send_word(world, counter::read(), asker, TAG);
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
fn gather_hosts(world: &World) -> Vec<(String, String)> {
    let share = |path: &str| {
        let own = std::fs::read_to_string(path).unwrap_or_default();
        world.share_text(own.trim())
    };
    let [names, boot_ids] =
        ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"].map(share);
    names.into_iter().zip(boot_ids).collect()
}

/// Sleeps until the token arrives, so that the measuring pair has the cores.
fn wait_for_token(world: &World, from: usize) {
    while !world.has_come(from as i32, TOKEN_TAG) {
        std::thread::sleep(NAP);
    }
    receive_word(world, from, TOKEN_TAG);
}

#[inline(always)]
fn send_word(world: &World, word: u64, to: usize, tag: i32) {
    world.send(&word.to_ne_bytes(), to as i32, tag);
}

#[inline(always)]
fn receive_word(world: &World, from: usize, tag: i32) -> u64 {
    let mut word = [0; 8];
    world.receive(&mut word, from as i32, tag);
    u64::from_ne_bytes(word)
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
