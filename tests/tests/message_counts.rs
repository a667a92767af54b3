//! Messages and bytes of each pair of ranks in the trace are those that the program's own wrappers counted.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::place::Fresh;
use system_tests::trace::{RankTrace, Trace};
use system_tests::{Job, under_both, victim};
use trace_format::header::{Communicator, Definition};
use trace_format::layout::COMPLETED;

const RANKS: usize = 4;

/// Messages and bytes by sender and receiver.
type Matrix = [[(u64, u64); RANKS]; RANKS];

fn communicators(rank: &RankTrace) -> impl Iterator<Item = &Communicator> {
    rank.file.definitions.iter().filter_map(|definition| match definition {
        Definition::Communicator(communicator) => Some(communicator),
        _ => None,
    })
}

/// World rank of a rank of a communicator, by the members that its rank 0 has written.
fn world_rank(trace: &Trace, rank: &RankTrace, id: u16, peer: i32) -> usize {
    let own = communicators(rank).find(|c| c.id == id).expect("no id is used again here");
    let identity = (own.hash, own.instance);
    let all = trace.ranks.iter().flat_map(communicators);
    let first = all.into_iter().find(|c| (c.hash, c.instance) == identity && c.rank == 0);
    let mut before = 0;
    for &(first, stride, count) in &first.expect("rank 0 has written it").members {
        let at = i64::from(peer) - before;
        if (0..i64::from(count)).contains(&at) {
            return (first + stride * at) as usize;
        }
        before += i64::from(count);
    }
    panic!("communicator {id} has no rank {peer}")
}

/// What was asked for by a request.
#[derive(Clone, Copy)]
enum Asked {
    Send { peer: i32, bytes: u64, communicator: u16 },
    Receive { communicator: u16 },
}

/// Adds one message.
fn add(matrix: &mut Matrix, from: usize, to: usize, bytes: u64) {
    matrix[from][to].0 += 1;
    matrix[from][to].1 += bytes;
}

/// What one rank sent, and what it received.
fn walk(trace: &Trace, me: usize, sent: &mut Matrix, received: &mut Matrix) {
    let rank = trace.rank(me);
    let is_null = |peer: i32| peer < 0;
    let to_world = |communicator: u16, peer: i32| world_rank(trace, rank, communicator, peer);
    let mut open: HashMap<u32, VecDeque<(Asked, bool)>> = HashMap::new();
    for named in &rank.threads[0].events {
        let event = &named.event;
        match named.name.as_str() {
            "MPI_Send" | "MPI_Ssend" | "MPI_Bsend" | "MPI_Rsend" | "MPI_Isend" | "MPI_Issend"
            | "MPI_Ibsend" | "MPI_Irsend" | "MPI_Sendrecv" | "MPI_Send_init" => {
                let (peer, bytes, communicator) = (event.peer, event.sent, event.communicator);
                let persistent = named.name == "MPI_Send_init";
                if !persistent && !is_null(peer) {
                    add(sent, me, to_world(communicator, peer), bytes);
                }
                if event.request != 0 {
                    let asked = Asked::Send { peer, bytes, communicator };
                    open.entry(event.request).or_default().push_back((asked, persistent));
                }
            }
            "MPI_Irecv" | "MPI_Recv_init" => {
                let asked = Asked::Receive { communicator: event.communicator };
                let persistent = named.name == "MPI_Recv_init";
                open.entry(event.request).or_default().push_back((asked, persistent));
            }
            "MPI_Start" => {
                if let Some((Asked::Send { peer, bytes, communicator }, _)) =
                    open[&event.request].front()
                {
                    add(sent, me, to_world(*communicator, *peer), *bytes);
                }
            }
            "MPI_Waitall" | "MPI_Waitany" => {
                let single = (event.request, event.peer, event.sent);
                let states: Vec<(u32, i32, u64)> = match named.name.as_str() {
                    "MPI_Waitany" => {
                        assert_eq!(event.communicator & COMPLETED, COMPLETED);
                        vec![single]
                    }
                    _ => {
                        let states = rank.file.requests(event);
                        states.map(|state| (state.request, state.peer, state.bytes)).collect()
                    }
                };
                for (request, peer, bytes) in states {
                    let asked = open.get_mut(&request).expect("a request that was made");
                    let (what, persistent) = *asked.front().expect("a request that is open");
                    if let Asked::Receive { communicator } = what {
                        add(received, to_world(communicator, peer), me, bytes);
                    }
                    if !persistent {
                        asked.pop_front();
                    }
                }
            }
            _ => {}
        }
    }
}

/// The matrix that the report shows, every message of which must be matched.
fn reported(directory: &Path) -> Matrix {
    let run = Run::open(directory).expect("a run directory");
    let timeline = GlobalTimeline::new(&run);
    let metrics =
        Metrics::new(&run, &timeline, &Selection::Whole).expect("metrics of the whole run");
    let messages = metrics.messages.expect("attributes were recorded");
    assert_eq!(messages.unmatched_count(), 0, "{:?}", messages.unmatched);
    let mut matrix = Matrix::default();
    for ((from, to), traffic) in &messages.matrix.pairs {
        matrix[*from as usize][*to as usize] = (traffic.count, traffic.bytes);
    }
    matrix
}

under_both! {
    fn sums_are_those_of_the_programs_own_count(mpi) {
        let fresh = Fresh::new();
        let recorded = Job::new(mpi, &victim(mpi, "counts_its_messages"))
            .ranks(RANKS as u32)
            .in_directory(fresh.path())
            .record();
        recorded.expect_code(0);
        let mut counted = Matrix::default();
        for (from, row) in counted.iter_mut().enumerate() {
            let path = fresh.join(format!("counts-{from}"));
            let text = std::fs::read_to_string(&path).expect("the program has written its counts");
            for (cell, line) in row.iter_mut().zip(text.lines()) {
                let (messages, bytes) = line.split_once(' ').expect("two numbers");
                *cell = (messages.parse().expect("messages"), bytes.parse().expect("bytes"));
            }
        }
        assert!(counted.iter().flatten().map(|cell| cell.0).sum::<u64>() > 700, "{counted:?}");
        let trace = recorded.trace();
        let (mut sent, mut received) = (Matrix::default(), Matrix::default());
        for rank in 0..RANKS {
            walk(&trace, rank, &mut sent, &mut received);
        }
        assert_eq!(sent, counted, "sent");
        assert_eq!(received, counted, "received");
        assert_eq!(reported(&recorded.directory()), counted, "the report's matrix");
    }

    fn sizes_are_right_while_other_threads_free_datatypes(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "frees_types_in_threads")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let events = trace.rank(0).threads.iter().flat_map(|thread| &thread.events);
        let sends: Vec<_> = events.filter(|named| named.name == "MPI_Send").collect();
        assert_eq!(sends.len(), 20_000);
        let wrong = sends.iter().filter(|named| named.event.sent != named.event.tag as u64);
        assert_eq!(wrong.count(), 0, "sends with other bytes than their tag says");
    }
}
