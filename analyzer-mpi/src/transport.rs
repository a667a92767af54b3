//! Carries bytes between the processes by MPI: MPI_Ialltoallv in rounds of bounded memory, each with
//! a deadline.
//!
//! Calls go through [`mpi::ffi`]. MPI's own error handler ends all processes if a call fails.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gammachi_analyzer::cli::error::eprint_message;
use gammachi_analyzer::processes::Transport;
use gammachi_analyzer::trace::host_name;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::traits::Communicator as _;

/// Target for the bytes that a process sends in one round.
const ROUND_BYTES: usize = 16 << 20;
/// Smallest limit of what it sends to one other process in a round.
const MIN_PIECE_BYTES: usize = 64 << 10;
/// Time for the launcher to print a message before the job is ended.
const TIME_TO_PRINT: Duration = Duration::from_millis(500);
/// How long a waiting process tests without sleeping, and how long it sleeps at most.
const BUSY: Duration = Duration::from_micros(300);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The processes of MPI_COMM_WORLD.
#[derive(Debug, Clone, Copy)]
pub struct Mpi {
    count: usize,
    number: usize,
}

impl Mpi {
    /// The processes that were started together.
    pub fn new(universe: &Universe) -> Self {
        let world = universe.world();
        Self { count: world.size() as usize, number: world.rank() as usize }
    }

    /// Whether this is process 0.
    pub fn is_first(&self) -> bool {
        self.number == 0
    }

    /// A transport whose exchanges take no longer than this. Only the calling thread may use it.
    pub fn transport(self, deadline: Duration) -> MpiTransport {
        let owner = thread::current().id();
        MpiTransport { processes: self, deadline, owner, exchanges: AtomicU64::new(0) }
    }

    /// Makes a panic of any thread the end of all processes, with a message that names this one.
    pub fn abort_on_panic(self) {
        std::panic::set_hook(Box::new(move |panic| {
            eprint_message(&format!("{self}: an error of gammachi-mpi, please report it: {panic}"));
            // mpirun ends the others. A thread other than the main one must not call MPI_Abort.
            std::process::abort();
        }));
    }

    /// Waits for all processes without a deadline, asleep most of the time.
    pub fn rest(self) {
        // SAFETY: guaranteed here: MPI is initialised, and the request outlives its operation.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Ibarrier(ffi::RSMPI_COMM_WORLD, &raw mut request);
            request
        };
        wait(request, |_| {});
    }
}

impl std::fmt::Display for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} of {} on {}", self.number, self.count, host_name())
    }
}

/// Exchanges between the processes, each with a deadline.
#[derive(Debug)]
pub struct MpiTransport {
    processes: Mpi,
    deadline: Duration,
    /// The thread that initialised MPI.
    owner: ThreadId,
    /// Number of exchanges so far.
    exchanges: AtomicU64,
}

impl MpiTransport {
    /// Waits for an operation; ends all processes if that takes too long.
    fn wait(&self, request: ffi::MPI_Request) {
        wait(request, |waited| {
            if waited > self.deadline {
                eprint_message(&format!(
                    "{}: the others did not come to exchange {} within {} s: one of them hangs, or its part \
                     takes much longer to read; --deadline SECONDS waits longer",
                    self.processes,
                    self.exchanges.load(Relaxed),
                    self.deadline.as_secs(),
                ));
                // MPICH's launcher drops what it has not yet printed when a process aborts.
                thread::sleep(TIME_TO_PRINT);
                // SAFETY: guaranteed here: MPI is initialised until the universe is dropped.
                unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 1) };
            }
        });
    }

    /// Each process's numbers for this one: how much it sends here, and the most that it sends to
    /// anybody.
    fn lengths(&self, outgoing: &[Vec<u8>]) -> Vec<[u64; 2]> {
        let most = outgoing.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let sent: Vec<[u64; 2]> = outgoing.iter().map(|bytes| [bytes.len() as u64, most]).collect();
        let mut received = vec![[0u64; 2]; sent.len()];
        // SAFETY: guaranteed here: both buffers hold two numbers for each process and outlive the
        // operation, which `wait` completes.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
            let (kind, world) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Ialltoall(from, 2, kind, to, 2, kind, world, &raw mut request);
            request
        };
        self.wait(request);
        received
    }

    /// One round: sends a piece to each process and appends what each sent.
    fn round(&self, sent: &[&[u8]], expected: &[usize], received: &mut [Vec<u8>]) {
        let mut outgoing = sent.concat();
        let mut incoming = Vec::with_capacity(expected.iter().sum::<usize>() + 1);
        incoming.resize(expected.iter().sum(), 0u8);
        // The address of an empty vector without room is 1, which is Open MPI's MPI_IN_PLACE.
        outgoing.reserve(1);
        let (send_counts, send_begins) = layout(sent.iter().map(|piece| piece.len()));
        let (counts, begins) = layout(expected.iter().copied());
        // SAFETY: guaranteed here: counts and displacements describe the two buffers, one entry for
        // each process; all of them outlive the operation, which `wait` completes.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (kind, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Ialltoallv(
                outgoing.as_ptr().cast(),
                send_counts.as_ptr(),
                send_begins.as_ptr(),
                kind,
                incoming.as_mut_ptr().cast(),
                counts.as_ptr(),
                begins.as_ptr(),
                kind,
                world,
                &raw mut request,
            );
            request
        };
        self.wait(request);
        let mut rest = incoming.as_slice();
        for (all, bytes) in received.iter_mut().zip(expected) {
            let (piece, others) = rest.split_at(*bytes);
            all.extend_from_slice(piece);
            rest = others;
        }
    }
}

impl Transport for MpiTransport {
    fn count(&self) -> usize {
        self.processes.count
    }

    fn number(&self) -> usize {
        self.processes.number
    }

    fn all_to_all(&self, mut outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert_eq!(thread::current().id(), self.owner, "MPI calls come from one thread");
        self.exchanges.fetch_add(1, Relaxed);
        let Mpi { number, count } = self.processes;
        let to_itself = std::mem::take(&mut outgoing[number]);
        let lengths = self.lengths(&outgoing);
        let most = lengths.iter().map(|[_, most]| *most as usize).max().unwrap_or(0);
        let piece = (ROUND_BYTES / count).max(MIN_PIECE_BYTES);
        let mut received: Vec<Vec<u8>> =
            lengths.iter().map(|[bytes, _]| Vec::with_capacity(*bytes as usize)).collect();
        for begin in (0..most).step_by(piece) {
            let part = |bytes: usize| begin.min(bytes)..(begin + piece).min(bytes);
            let sent: Vec<&[u8]> = outgoing.iter().map(|all| &all[part(all.len())]).collect();
            let expected: Vec<usize> =
                lengths.iter().map(|[bytes, _]| part(*bytes as usize).len()).collect();
            self.round(&sent, &expected, &mut received);
        }
        received[number] = to_itself;
        received
    }
}

/// Counts and displacements of consecutive pieces. A round is far smaller than 2³¹ bytes.
fn layout(lengths: impl Iterator<Item = usize>) -> (Vec<i32>, Vec<i32>) {
    let mut end = 0;
    lengths
        .map(|length| {
            let begin = end;
            end += length as i32;
            (length as i32, begin)
        })
        .unzip()
}

/// Waits until an operation is complete; `waiting` is called with the time waited so far.
fn wait(mut request: ffi::MPI_Request, waiting: impl Fn(Duration)) {
    let begin = Instant::now();
    loop {
        let mut done = 0;
        // SAFETY: guaranteed by the caller: the request came from MPI, and its buffers live on.
        unsafe { ffi::MPI_Test(&raw mut request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
        if done != 0 {
            return;
        }
        let waited = begin.elapsed();
        waiting(waited);
        match waited < BUSY {
            true => thread::yield_now(),
            false => thread::sleep((waited / 16).min(LONGEST_SLEEP)),
        }
    }
}
