//! Messages and bytes of each pair of ranks in the trace equal those that the program's own
//! wrappers count.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::matching::Reason;
use gammachi_analyzer::trace::Run;
use system_tests::directories::TempDir;
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

/// World rank of a rank of a communicator, from the members that the communicator's rank 0 wrote.
fn world_rank(trace: &Trace, rank: &RankTrace, id: u16, peer: i32) -> usize {
    let own = communicators(rank).find(|c| c.id == id).expect("no id is reused here");
    let identity = (own.hash, own.instance);
    let all = trace.ranks.iter().flat_map(communicators);
    let first = all.into_iter().find(|c| (c.hash, c.instance) == identity && c.rank == 0);
    let mut before = 0;
    for &(first, stride, count) in &first.expect("rank 0 defined it").members {
        let at = i64::from(peer) - before;
        if (0..i64::from(count)).contains(&at) {
            return (first + stride * at) as usize;
        }
        before += i64::from(count);
    }
    panic!("communicator {id} has no rank {peer}")
}

/// The operation of a request.
#[derive(Clone, Copy)]
enum Operation {
    Send { peer: i32, bytes: u64, communicator: u16 },
    Receive { communicator: u16 },
}

/// Adds one message.
fn add(matrix: &mut Matrix, from: usize, to: usize, bytes: u64) {
    matrix[from][to].0 += 1;
    matrix[from][to].1 += bytes;
}

/// Adds the messages that one rank sent and received.
fn add_messages_of_rank(trace: &Trace, me: usize, sent: &mut Matrix, received: &mut Matrix) {
    let rank = trace.rank(me);
    let is_null = |peer: i32| peer < 0;
    let to_world = |communicator: u16, peer: i32| world_rank(trace, rank, communicator, peer);
    let mut open: HashMap<u32, VecDeque<(Operation, bool)>> = HashMap::new();
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
                    let operation = Operation::Send { peer, bytes, communicator };
                    open.entry(event.request).or_default().push_back((operation, persistent));
                }
            }
            "MPI_Irecv" | "MPI_Recv_init" => {
                let operation = Operation::Receive { communicator: event.communicator };
                let persistent = named.name == "MPI_Recv_init";
                open.entry(event.request).or_default().push_back((operation, persistent));
            }
            "MPI_Start" => {
                if let Some((Operation::Send { peer, bytes, communicator }, _)) =
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
                    let queue = open.get_mut(&request).expect("a request that was made");
                    let (operation, persistent) = *queue.front().expect("a request that is open");
                    if let Operation::Receive { communicator } = operation {
                        add(received, to_world(communicator, peer), me, bytes);
                    }
                    if !persistent {
                        queue.pop_front();
                    }
                }
            }
            _ => {}
        }
    }
}

/// The matrix of the report, in which every message must be matched.
fn reported_matrix(directory: &Path) -> Matrix {
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
    fn sums_equal_the_programs_own_counts(mpi) {
        let temp = TempDir::new();
        let recorded = Job::new(mpi, &victim(mpi, "counts_its_messages"))
            .ranks(RANKS as u32)
            .in_directory(temp.path())
            .record();
        recorded.expect_code(0);
        let mut counted = Matrix::default();
        for (from, row) in counted.iter_mut().enumerate() {
            let path = temp.join(format!("counts-{from}"));
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
            add_messages_of_rank(&trace, rank, &mut sent, &mut received);
        }
        assert_eq!(sent, counted, "sent");
        assert_eq!(received, counted, "received");
        assert_eq!(reported_matrix(&recorded.directory()), counted, "the report's matrix");
    }

    fn sizes_are_correct_while_other_threads_free_datatypes(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "frees_types_in_threads")).record();
        recorded.expect_code(0);
        let trace = recorded.trace();
        let events = trace.rank(0).threads.iter().flat_map(|thread| &thread.events);
        let sends: Vec<_> = events.filter(|named| named.name == "MPI_Send").collect();
        assert_eq!(sends.len(), 20_000);
        let wrong = sends.iter().filter(|named| named.event.sent != named.event.tag as u64);
        assert_eq!(wrong.count(), 0, "sends whose bytes differ from their tag");
    }

    fn requests_cancelled_and_freed_do_not_shift_later_messages(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "cancels_and_frees")).ranks(2).record();
        recorded.expect_code(0);
        let run = Run::open(&recorded.directory()).expect("the run can be read");
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("figures of the run");
        let messages = metrics.messages.expect("attributes were recorded");
        let reasons: Vec<Reason> = messages.unmatched.keys().copied().collect();
        assert_eq!(reasons, [Reason::Cancelled], "{:?}", messages.unmatched);
        let cancelled = messages.unmatched[&Reason::Cancelled];
        // Whether a send is cancelled is the library's choice.
        let sent = messages.summary.matched + cancelled.sends;
        assert_eq!((sent, cancelled.receives, messages.summary.size_mismatches), (32, 2, 0));
    }
}
