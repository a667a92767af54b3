//! Replays of synthetic runs, whose times on a network are known by formula.

mod balance;
mod beside;
mod cm5;
mod divided;
mod partners;
mod parts;
mod placement;
mod scale;
mod short;

use proptest::prelude::*;
use trace_format::header::COMMUNICATOR_SELF;

use super::backward::critical_path;
use super::*;
use crate::analysis::Analysis;
use crate::synthetic_messages::{completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Begin and end of the ranks, ns.
const BEGIN: u64 = 1_000_000;
const END: u64 = 3_000_000;

/// o, O, L, G in nanoseconds.
const O: f64 = 100.0;
const COPY: f64 = 0.5;
const L: f64 = 1_000.0;
const G: f64 = 2.0;

fn network() -> Network {
    Network {
        overhead: O * 1e-9,
        overhead_per_byte: COPY * 1e-9,
        latency: [L * 1e-9; 2],
        per_byte: [G * 1e-9; 2],
        eager_bytes: [1e4; 2],
        collective_steps: 1.0,
        collective_bytes: 1.0,
    }
}

/// A program under construction: what each rank does, and when. The recorded calls last [`CALL`]
/// ns, which does not affect replays.
struct Program {
    ranks: Vec<SyntheticRank>,
    now: Vec<u64>,
    end: u64,
}

const CALL: u64 = 10;

/// In nanoseconds, without what the ranks compute behind it.
fn end_of_last_call(graph: &Graph, ends: &[f64]) -> f64 {
    let last = graph.lines.iter().zip(ends);
    last.map(|(line, end)| (end - graph.own[line.ops.end as usize - 1]) * 1e9).fold(0.0, f64::max)
}

impl Program {
    fn new(ranks: u32) -> Self {
        Self::with_end(ranks, END)
    }

    /// A program that was recorded until `end`.
    fn with_end(ranks: u32, end: u64) -> Self {
        let now = vec![BEGIN; ranks as usize];
        let ranks = (0..ranks).map(|rank| SyntheticRank::level_1(rank, ranks, end)).collect();
        Self { ranks, now, end }
    }

    fn works(&mut self, rank: usize, ns: u64) {
        self.now[rank] += ns;
    }

    fn calls(
        &mut self,
        rank: usize,
        name: &str,
        attributes: crate::synthetic_messages::Attributes,
    ) {
        let begin = self.now[rank];
        self.ranks[rank].call_with(name, begin, begin + CALL, attributes);
        self.now[rank] += CALL;
    }

    fn sends(&mut self, from: usize, to: usize, bytes: u32) {
        self.calls(from, "MPI_Send", on_world(to as i32, 5, bytes));
    }

    fn receives(&mut self, from: usize, to: usize, bytes: u32) {
        self.calls(to, "MPI_Recv", on_world(from as i32, 5, bytes));
    }

    /// Builds the graph of the program and passes it to `then`.
    fn with_graph<R>(&self, then: impl FnOnce(Result<Graph, NotReplayable>) -> R) -> R {
        let mut ranks = self.ranks.clone();
        for rank in &mut ranks {
            rank.finalize(self.end, self.end + 10);
        }
        let directory = RunDirectory::with_ranks(&ranks);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        then(Graph::new(&Analysis::new(&run, &timeline)))
    }

    /// Nanoseconds from the begin to the end of the last call on a network, and the number of
    /// released calls. Checks that the critical path adds up to this time.
    fn takes(&self, network: &Network) -> (f64, u64) {
        self.with_graph(|graph| {
            let graph = graph.unwrap();
            let placement = Placement::recorded(&graph);
            let conditions = Conditions::recorded(&graph, network, &placement);
            let replayed = replay(&graph, &conditions);
            if replayed.released == 0 {
                assert_adds_up(&graph, &conditions, &replayed);
            }
            (end_of_last_call(&graph, &replayed.ends), replayed.released)
        })
    }

    #[track_caller]
    fn assert_takes(&self, expected: f64) {
        let (found, released) = self.takes(&network());
        assert_eq!(released, 0);
        assert!((found - expected).abs() < 1e-3, "{found} ns, expected {expected}");
    }
}

/// Checks that the parts of the critical path, each multiplied by its price, add up to the time of
/// the replay.
fn assert_adds_up(graph: &Graph, conditions: &Conditions<'_>, replayed: &Replayed) {
    let path = critical_path(graph, conditions, replayed);
    let network = conditions.network;
    let prices = [
        network.overhead,
        network.overhead_per_byte,
        network.latency[0],
        network.latency[1],
        network.per_byte[0],
        network.per_byte[1],
    ];
    let transfers: f64 = prices.iter().zip(path.by_parameter).map(|(price, by)| price * by).sum();
    let own: f64 = path.by_line.iter().sum();
    let of_contexts: f64 = path.by_context.iter().sum();
    assert!((own - of_contexts).abs() < 1e-12);
    let sum = transfers + own + path.library_s + path.begin_s;
    let end = replayed.ends.iter().copied().fold(0.0, f64::max);
    assert!((sum - end).abs() < 1e-9 * end.max(1e-9), "{sum} against {end}");
}

/// Overhead and copying on one side of an eager message; `way` is the time in between.
fn side(bytes: f64) -> f64 {
    O + COPY * bytes
}

fn way(bytes: f64) -> f64 {
    L + G * bytes
}

#[test]
fn ping_pong_takes_time_of_logp() {
    let mut program = Program::new(2);
    for (from, to) in [(0, 1), (1, 0)].repeat(5) {
        program.sends(from, to, 800);
        program.receives(from, to, 800);
    }
    program.assert_takes(10.0 * (2.0 * side(800.0) + way(800.0)));
}

#[test]
fn pipeline_runs_at_pace_of_slowest_stage() {
    let (items, work, bytes) = (7, 5_000, 800);
    let mut program = Program::new(3);
    for _ in 0..items {
        for rank in 0..3 {
            if rank > 0 {
                program.receives(rank - 1, rank, bytes);
            }
            program.works(rank, work);
            if rank < 2 {
                program.sends(rank, rank + 1, bytes);
            }
        }
    }
    let (work, side, way) = (work as f64, side(800.0), way(800.0));
    let stage = side + work + side;
    // Up to the last receive; the work after it precedes the rank's end.
    program.assert_takes(work + side + way + f64::from(items) * stage + way + side);
}

#[test]
fn messages_down_a_binomial_tree() {
    let mut program = Program::new(8);
    for distance in [4, 2, 1] {
        for from in (0..8).step_by(2 * distance) {
            program.sends(from, from + distance, 0);
            program.receives(from, from + distance, 0);
        }
    }
    program.assert_takes(3.0 * (2.0 * side(0.0) + way(0.0)));
}

#[test]
fn cannons_product_shifts_both_matrices_between_the_steps() {
    let (side_of_grid, work, bytes) = (3, 20_000, 4_000);
    let mut program = Program::new(9);
    for step in 0..side_of_grid {
        for rank in 0..9 {
            program.works(rank, work);
            if step + 1 < side_of_grid {
                let (row, column) = (rank / 3, rank % 3);
                let left = (row * 3 + (column + 2) % 3) as i32;
                let right = (row * 3 + (column + 1) % 3) as i32;
                let up = ((row + 2) % 3 * 3 + column) as i32;
                let down = ((row + 1) % 3 * 3 + column) as i32;
                for (to, from) in [(left, right), (up, down)] {
                    program.calls(rank, "MPI_Sendrecv", on_world(to, 5, bytes));
                    program.ranks[rank].receiving(from, 5, bytes);
                }
            }
        }
    }
    let shift = 2.0 * side(4_000.0) + way(4_000.0);
    let steps = side_of_grid as f64;
    program.assert_takes((steps - 1.0) * (work as f64 + 2.0 * shift));
}

#[test]
fn synchronous_send_waits_for_receiver() {
    let mut program = Program::new(2);
    program.calls(0, "MPI_Ssend", on_world(1, 5, 100));
    program.works(1, 50_000);
    program.receives(0, 1, 100);
    // The receiver asks, the data come: two latencies.
    program.assert_takes(50_000.0 + O + way(100.0) + L + O);
    let mut program = Program::new(2);
    program.works(0, 50_000);
    program.calls(0, "MPI_Ssend", on_world(1, 5, 100));
    program.receives(0, 1, 100);
    // The sender announces, the receiver asks, the data come: three latencies.
    program.assert_takes(50_000.0 + O + L + way(100.0) + L + O);
}

#[test]
fn transfer_hidden_by_computation_costs_nothing() {
    for (work, expected) in
        [(100_000, 100_000.0 + O + O + COPY * 100.0), (0, 2.0 * side(100.0) + way(100.0))]
    {
        let mut program = Program::new(2);
        program.calls(1, "MPI_Irecv", on_world(0, 5, 100).request(3));
        program.works(1, work);
        program.sends(0, 1, 100);
        program.calls(1, "MPI_Wait", completed(3, 0, 5, 100));
        program.assert_takes(expected);
    }
}

#[test]
fn collective_operations_wait_for_required_members() {
    let step = 2.0 * O + L;
    let all = |name: &str, attributes: [(u32, u32); 4]| {
        let mut program = Program::new(4);
        for (rank, (sent, received)) in attributes.into_iter().enumerate() {
            program.works(rank, 1_000 * (4 - rank as u64));
            program.calls(rank, name, on_world(0, received as i32, sent));
        }
        program.takes(&network()).0
    };
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    near(all("MPI_Barrier", [(0, 0); 4]), 4_000.0 + 2.0 * step);
    // Of short data, each of two steps moves all.
    let bytes = 2.0 * 8.0 * (2.0 * COPY + G);
    near(all("MPI_Allreduce", [(8, 8); 4]), 4_000.0 + 2.0 * step + bytes);
    // The root comes last.
    near(all("MPI_Bcast", [(8, 0), (0, 8), (0, 8), (0, 8)]), 4_000.0 + 2.0 * step + bytes);
    near(all("MPI_Reduce", [(8, 8), (8, 0), (8, 0), (8, 0)]), 4_000.0 + 2.0 * step + bytes);
}

#[test]
fn collective_operations_at_one_reading_are_entered_once_each() {
    let mut program = Program::new(2);
    program.works(0, 1_000);
    // The root leaves its data behind at once, as far as a counter with long steps shows.
    for _ in 0..2 {
        let begin = program.now[0];
        program.ranks[0].call_with("MPI_Bcast", begin, begin, on_world(0, 0, 8));
        program.calls(1, "MPI_Bcast", on_world(0, 8, 0));
    }
    let step = 2.0 * O + L + 8.0 * (2.0 * COPY + G);
    let (found, released) = program.takes(&network());
    assert_eq!(released, 0);
    assert!(found >= 1_000.0 + step, "{found}");
}

#[test]
fn root_of_large_broadcast_is_busy_until_its_data_are_sent() {
    let broadcasts = |count: usize| {
        let mut program = Program::new(4);
        for _ in 0..count {
            for rank in 0..4 {
                let (sent, received) = if rank == 0 { (20_000, 0) } else { (0, 20_000) };
                program.calls(rank, "MPI_Bcast", on_world(0, received, sent));
            }
        }
        program.takes(&network()).0
    };
    let (one, two) = (broadcasts(1), broadcasts(2));
    assert!((two - 2.0 * one).abs() < 1e-3, "{one} {two}");
}

/// A program of 20 barriers, in which all ranks enter together and each of the rounds takes 1 us.
fn program_of_barriers(ranks: u32) -> Program {
    let rounds = u64::from(ranks.next_power_of_two().trailing_zeros());
    let mut program = Program::new(ranks);
    for number in 0..20 {
        let begin = BEGIN + 20_000 * (number + 1);
        for rank in &mut program.ranks {
            rank.call_with("MPI_Barrier", begin, begin + 1_000 * rounds, on_world(0, 0, 0));
        }
    }
    program
}

#[test]
fn ranks_that_enter_together_show_cost_of_every_round() {
    program_of_barriers(8).with_graph(|graph| {
        let mut graph = graph.unwrap();
        let placement = Placement::recorded(&graph);
        let (calibration, _) = calibrate(&mut graph, &placement);
        let latency = calibration.network.latency[0];
        assert!((calibration.scale - 1.0).abs() < 0.01, "{}", calibration.scale);
        assert!((latency * 1e6 - 1.0).abs() < 0.01, "{latency}");
    });
}

#[test]
fn calls_that_make_communicators_take_longer_with_slower_messages() {
    let mut program = program_of_barriers(2);
    for rank in &mut program.ranks {
        let begin = BEGIN + 1_000_000;
        rank.call_with("MPI_Comm_dup", begin, begin + 50_000, on_world(0, 0, 0));
    }
    program.with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        let longer = |factor: f64| {
            let answer = what_if.ask(&[Change::Latency(factor)]);
            (answer.elapsed_s - what_if.graph.elapsed_s) * 1e6
        };
        let expected = 20.0 + 50.0;
        assert!((longer(2.0) - expected).abs() < 0.02 * expected, "{}", longer(2.0));
    });
}

#[test]
fn fence_waits_for_all_and_keeps_time_after_last() {
    let mut program = Program::new(2);
    for (rank, works) in [(0, 1_000), (1, 3_000)] {
        program.works(rank, works);
        let end = BEGIN + 3_500;
        program.ranks[rank].call_with("MPI_Win_fence", program.now[rank], end, on_world(0, 0, 0));
        program.now[rank] = end;
        program.calls(rank, "MPI_Barrier", on_world(0, 0, 0));
    }
    program.assert_takes(3_000.0 + 500.0 + 2.0 * O + L);
    // A call that returned before the other rank entered did not wait.
    let mut program = Program::new(2);
    for (rank, works) in [(0, 1_000), (1, 3_000)] {
        program.works(rank, works);
        program.calls(rank, "MPI_Comm_free", on_world(0, 0, 0));
    }
    program.with_graph(|graph| assert!(graph.unwrap().collectives.is_empty()));
}

#[test]
fn polls_wait_until_message_arrives() {
    let mut program = Program::new(2);
    program.calls(1, "MPI_Irecv", on_world(0, 5, 8).request(3));
    let begin = program.now[1];
    program.ranks[1].polls("MPI_Test", begin, begin + 500_000, 5_000, 400_000);
    program.now[1] += 500_000;
    program.calls(1, "MPI_Test", completed(3, 0, 5, 8));
    program.sends(0, 1, 8);
    program.assert_takes(2.0 * side(8.0) + way(8.0));
}

#[test]
fn deadlocked_ranks_are_released() {
    let mut program = Program::new(2);
    for (rank, other) in [(0, 1), (1, 0)] {
        program.sends(rank, other, 100);
        program.receives(other, rank, 100);
    }
    assert_eq!(program.takes(&network()).1, 0);
    let (time, released) = program.takes(&Network { eager_bytes: [0.0; 2], ..network() });
    assert!(released > 0 && time.is_finite());
}

#[test]
fn ideal_network_keeps_computation_and_order() {
    let mut program = Program::new(2);
    program.works(0, 30_000);
    program.sends(0, 1, 1_000);
    program.works(0, 1_000);
    program.works(1, 20_000);
    program.receives(0, 1, 1_000);
    program.works(1, 7_000);
    let begin = program.now[1];
    program.ranks[1].call(0, "MPI_Type_commit", begin, begin + 100);
    let (time, _) = program.takes(&Network::ideal([1e9; 2]));
    // The last call needs no other rank: `pace` determines its duration.
    assert!((time - 30_100.0).abs() < 1.0, "{time}");
}

#[test]
fn refuses_run_without_attributes_or_with_missing_ranks() {
    let mut program = Program::new(2);
    for rank in &mut program.ranks {
        rank.fixed.level = 0;
    }
    program.with_graph(|graph| assert_eq!(graph.err(), Some(NotReplayable::NoAttributes)));
    let mut program = Program::new(2);
    program.ranks.pop();
    program.with_graph(|graph| assert_eq!(graph.err(), Some(NotReplayable::MissingRanks)));
}

#[test]
fn replays_open_call_of_killed_rank_as_recorded() {
    let mut program = Program::new(2);
    program.sends(0, 1, 8);
    program.receives(0, 1, 8);
    program.works(0, 5_000);
    let begin = program.now[0];
    program.ranks[0].open_call_with("MPI_Recv", begin, on_world(1, 5, 8));
    program.ranks[0].killed();
    let directory = RunDirectory::with_ranks(&program.ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let graph = Graph::new(&Analysis::new(&run, &timeline)).unwrap();
    let what_if = WhatIf::new(graph);
    assert!(what_if.replayed.elapsed_s.is_finite());
    assert_eq!(what_if.replayed.released, 0);
}

/// The next step of a generated program: how long each rank works, then sender, distance to the
/// receiver, and bytes.
type Step = (Vec<u64>, usize, usize, u32);

fn steps() -> impl Strategy<Value = (usize, Vec<Step>)> {
    (2..7_usize).prop_flat_map(|ranks| {
        let works = prop::collection::vec(0..5_000_u64, ranks);
        let step = (works, 0..ranks, 1..ranks, prop_oneof![0..50_u32, 5_000..20_000_u32]);
        (Just(ranks), prop::collection::vec(step, 1..30))
    })
}

fn generated((ranks, steps): &(usize, Vec<Step>)) -> Program {
    let mut program = Program::new(*ranks as u32);
    for (number, (works, from, distance, bytes)) in steps.iter().enumerate() {
        let to = (from + distance) % ranks;
        for (rank, work) in works.iter().enumerate() {
            program.works(rank, *work);
        }
        match number % 4 {
            0 => {
                program.sends(*from, to, *bytes);
                program.receives(*from, to, *bytes);
            }
            1 => {
                let request = number as u32 + 1;
                program.calls(to, "MPI_Irecv", on_world(*from as i32, 5, *bytes).request(request));
                program.works(to, works[to]);
                program.sends(*from, to, *bytes);
                program.calls(to, "MPI_Wait", completed(request, *from as i32, 5, *bytes));
            }
            2 => {
                program.calls(*from, "MPI_Ssend", on_world(to as i32, 5, *bytes));
                program.receives(*from, to, *bytes);
            }
            _ => {
                (0..*ranks).for_each(|rank| program.calls(rank, "MPI_Allreduce", on_world(0, 8, 8)))
            }
        }
    }
    (0..*ranks).for_each(|rank| program.calls(rank, "MPI_Allreduce", on_world(0, 8, 8)));
    program
}

proptest! {
    /// The path adds up (checked by `takes`), slower networks are not faster, and faster ones are
    /// not slower.
    #[test]
    fn replays_of_generated_programs(plan in steps()) {
        let program = generated(&plan);
        let (time, released) = program.takes(&network());
        prop_assert_eq!(released, 0);
        let slower = Network { latency: [3e-6; 2], ..network() };
        prop_assert!(program.takes(&slower).0 >= time - 1e-6);
        let faster = Network { per_byte: [1e-10; 2], overhead: 0.0, ..network() };
        prop_assert!(program.takes(&faster).0 <= time + 1e-6);
        let ideal = program.takes(&Network::ideal(network().eager_bytes)).0;
        let longest = (0..plan.0).map(|rank| {
            plan.1.iter().map(|(works, ..)| works[rank]).sum::<u64>()
        });
        prop_assert!(ideal >= longest.max().unwrap_or(0) as f64 - 1.0);
    }
}

#[test]
fn threads_of_a_rank_are_no_ranks_to_balance() {
    let mut program = Program::new(1);
    let alone = on_world(0, 0, 0);
    for turn in 0..5 {
        program.works(0, 100_000);
        program.calls(0, "MPI_Barrier", alone);
        // Its second thread has less to do between the same calls.
        let begin = BEGIN + 20_000 * (turn + 1);
        let on_thread = alone.communicator(COMMUNICATOR_SELF);
        program.ranks[0].thread_call_with(1, "MPI_Barrier", begin, begin + CALL, on_thread);
    }
    program.with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        assert_eq!(what_if.graph.lines.len(), 2);
        for change in [Change::Balance(None), Change::MedianRank] {
            let [before, after] =
                [vec![], vec![change.clone()]].map(|changes| what_if.ask(&changes));
            let saved = before.elapsed_s - after.elapsed_s;
            assert!(saved.abs() < 1e-9, "{change:?} saves {saved} s of one rank");
        }
    });
}
