//! The job: starts MPI, knows the ranks and the hosts they run on, and makes the kernels' MPI
//! calls.
//!
//! Calls go through [`mpi::ffi`], so each one uses the dynamic symbol, like a C program's.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use mpi::environment::Universe;
use mpi::ffi;
use mpi::traits::Communicator as _;

use crate::counter::{self, Moment};
use crate::failure::Failure;

/// Maximum size of a host's name exchanged between ranks.
const HOST_BYTES: usize = 192;
/// How long a waiting rank sleeps between two tests.
const REST: Duration = Duration::from_micros(300);

/// This process's rank, −1 before MPI_Init.
static RANK: AtomicI32 = AtomicI32::new(-1);

/// Whether this process prints messages for all: it is rank 0, according to the launcher before
/// MPI_Init.
pub fn prints_for_all() -> bool {
    match RANK.load(Relaxed) {
        rank @ 0.. => rank == 0,
        _ => ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
            .is_none_or(|rank| rank == "0"),
    }
}

/// All ranks, from MPI_Init on. Calls MPI_Finalize when dropped.
pub struct World {
    /// This process's rank.
    pub rank: i32,
    /// Number of ranks.
    pub size: i32,
    /// For each rank, the index of its host in [`World::host_names`].
    pub hosts: Vec<usize>,
    /// The hosts in the order of their lowest ranks.
    pub host_names: Vec<String>,
    start: Moment,
    _universe: Universe,
}

impl World {
    /// Starts MPI and determines where the ranks run.
    pub fn start() -> Result<Self, Failure> {
        let universe = mpi::initialize().ok_or(Failure::Init)?;
        let world = universe.world();
        let (rank, size) = (world.rank(), world.size());
        RANK.store(rank, Relaxed);
        let mut started = Self {
            rank,
            size,
            hosts: Vec::new(),
            host_names: Vec::new(),
            start: Moment::now(),
            _universe: universe,
        };
        let mut identities: Vec<String> = Vec::new();
        for identity in started.share_text(&host_identity()) {
            let at = identities.iter().position(|known| *known == identity).unwrap_or_else(|| {
                identities.push(identity);
                identities.len() - 1
            });
            started.hosts.push(at);
        }
        let name = |identity: &String| identity.split('\n').next().unwrap_or_default().to_owned();
        started.host_names = identities.iter().map(name).collect();
        Ok(started)
    }

    /// Duration of a counter tick in seconds, measured since the start.
    pub fn seconds_per_tick(&self) -> f64 {
        self.start.ns_per_tick() * 1e-9
    }

    /// Counter ticks now.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        counter::read()
    }

    /// Number of ranks on the same host as `rank`, including itself.
    pub fn ranks_on_host_of(&self, rank: i32) -> usize {
        let host = self.hosts[rank as usize];
        self.hosts.iter().filter(|other| **other == host).count()
    }

    /// MPI_Barrier.
    pub fn barrier(&self) {
        // SAFETY: guaranteed here: MPI is initialised until `self` is dropped; all ranks come here.
        unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
    }

    /// A barrier in which waiting ranks sleep, leaving core and memory to those that measure.
    pub fn rest(&self) {
        let mut done = 0;
        // SAFETY: guaranteed here: request and flag outlive the calls; the request is tested to its end.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Ibarrier(ffi::RSMPI_COMM_WORLD, &raw mut request);
            loop {
                ffi::MPI_Test(&raw mut request, &raw mut done, ffi::RSMPI_STATUS_IGNORE);
                if done != 0 {
                    break;
                }
                std::thread::sleep(REST);
            }
        }
    }

    /// MPI_Send of bytes.
    #[inline(always)]
    pub fn send(&self, data: &[u8], to: i32, tag: i32) {
        // SAFETY: guaranteed here: the buffer outlives the blocking call; MPI is initialised.
        unsafe {
            let (from, count) = (data.as_ptr().cast(), data.len() as i32);
            ffi::MPI_Send(from, count, ffi::RSMPI_UINT8_T, to, tag, ffi::RSMPI_COMM_WORLD);
        }
    }

    /// MPI_Recv of bytes.
    #[inline(always)]
    pub fn receive(&self, data: &mut [u8], from: i32, tag: i32) {
        // SAFETY: guaranteed here: the buffer outlives the blocking call; MPI is initialised.
        unsafe {
            let (to, count) = (data.as_mut_ptr().cast(), data.len() as i32);
            let (world, ignore) = (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_STATUS_IGNORE);
            ffi::MPI_Recv(to, count, ffi::RSMPI_UINT8_T, from, tag, world, ignore);
        }
    }

    /// MPI_Isend of bytes.
    ///
    /// # Safety
    /// The buffer stays where it is and unchanged until the request is complete.
    #[inline(always)]
    pub unsafe fn start_send(&self, data: *const u8, bytes: usize, to: i32, tag: i32) -> Request {
        // SAFETY: the caller leaves the buffer alone until the request, which is returned, is complete.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (kind, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Isend(data.cast(), bytes as i32, kind, to, tag, world, &raw mut request);
            Request(request)
        }
    }

    /// MPI_Irecv of bytes.
    ///
    /// # Safety
    /// The buffer stays where it is, and nobody else touches it, until the request is complete.
    #[inline(always)]
    pub unsafe fn start_receive(
        &self,
        data: *mut u8,
        bytes: usize,
        from: i32,
        tag: i32,
    ) -> Request {
        // SAFETY: the caller leaves the buffer alone until the request, which is returned, is complete.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (kind, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            ffi::MPI_Irecv(data.cast(), bytes as i32, kind, from, tag, world, &raw mut request);
            Request(request)
        }
    }

    /// One MPI_Iprobe for an unused tag: the library makes progress, and nothing is received.
    pub fn poke(&self) {
        let mut flag = 0;
        // SAFETY: guaranteed here: the flag outlives the call; the status is ignored.
        unsafe {
            let (any, world) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_COMM_WORLD);
            let ignore = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Iprobe(any, UNUSED_TAG, world, &raw mut flag, ignore);
        }
    }

    /// Whether a message with this tag has arrived from that rank.
    pub fn has_come(&self, from: i32, tag: i32) -> bool {
        let mut flag = 0;
        // SAFETY: guaranteed here: the flag outlives the call; the status is ignored.
        unsafe {
            let (world, ignore) = (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_STATUS_IGNORE);
            ffi::MPI_Iprobe(from, tag, world, &raw mut flag, ignore);
        }
        flag != 0
    }

    /// The largest of all ranks' values, on all ranks.
    pub fn largest(&self, own: f64) -> f64 {
        self.share(own).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// All ranks' values, on all ranks.
    pub fn share(&self, own: f64) -> Vec<f64> {
        let mut all = vec![0.0; self.size as usize];
        // SAFETY: guaranteed here: room for one double a rank; all ranks come here.
        unsafe {
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            let double = ffi::RSMPI_DOUBLE;
            ffi::MPI_Allgather(from, 1, double, to, 1, double, ffi::RSMPI_COMM_WORLD);
        }
        all
    }

    /// All ranks' texts, on all ranks; texts longer than [`HOST_BYTES`] are truncated.
    pub fn share_text(&self, own: &str) -> Vec<String> {
        let mut mine = [0_u8; HOST_BYTES];
        let bytes = own.len().min(HOST_BYTES);
        mine[..bytes].copy_from_slice(&own.as_bytes()[..bytes]);
        let mut all = vec![0_u8; HOST_BYTES * self.size as usize];
        // SAFETY: guaranteed here: room for HOST_BYTES a rank; all ranks come here.
        unsafe {
            let (from, to, count) =
                (mine.as_ptr().cast(), all.as_mut_ptr().cast(), HOST_BYTES as i32);
            let kind = ffi::RSMPI_UINT8_T;
            ffi::MPI_Allgather(from, count, kind, to, count, kind, ffi::RSMPI_COMM_WORLD);
        }
        let text = |piece: &[u8]| {
            let end = piece.iter().position(|byte| *byte == 0).unwrap_or(piece.len());
            String::from_utf8_lossy(&piece[..end]).into_owned()
        };
        all.chunks(HOST_BYTES).map(text).collect()
    }

    /// Fails on every rank if it fails on any, with the message of the lowest failing rank.
    pub fn agree(&self, own: Result<(), Failure>) -> Result<(), Failure> {
        let text = own.as_ref().err().map(Failure::to_string).unwrap_or_default();
        let texts = self.share_text(&text);
        match texts.iter().position(|text| !text.is_empty()) {
            None => Ok(()),
            Some(rank) => {
                own?;
                Err(Failure::Machine(format!("rank {rank}: {}", texts[rank])))
            }
        }
    }

    /// Fails with wrong usage if there are fewer ranks than `least`.
    pub fn need(&self, least: i32, kernel: &str) -> Result<(), Failure> {
        if self.size >= least {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{kernel} needs at least {least} ranks but was started with {}: mpirun -n {least} kernels {kernel}",
            self.size
        )))
    }
}

/// A tag that no message has.
const UNUSED_TAG: i32 = 32_000;

/// An operation under way.
#[derive(Debug)]
#[must_use = "an operation that is never waited for may never complete"]
pub struct Request(ffi::MPI_Request);

impl Request {
    /// Waits for its completion.
    #[inline(always)]
    pub fn wait(mut self) {
        // SAFETY: guaranteed here: the request came from MPI and is consumed here.
        unsafe { ffi::MPI_Wait(&raw mut self.0, ffi::RSMPI_STATUS_IGNORE) };
    }

    /// Whether it is complete. May be called again.
    #[inline(always)]
    pub fn is_complete(&mut self) -> bool {
        let mut done = 0;
        // SAFETY: guaranteed here: the request came from MPI, or is MPI_REQUEST_NULL after its completion.
        unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut done, ffi::RSMPI_STATUS_IGNORE) };
        done != 0
    }
}

/// Waits for all requests with one MPI_Waitall.
pub fn wait_all(requests: Vec<Request>) {
    let mut raw: Vec<ffi::MPI_Request> = requests.into_iter().map(|request| request.0).collect();
    // SAFETY: guaranteed here: the requests came from MPI and are consumed here.
    unsafe {
        ffi::MPI_Waitall(raw.len() as i32, raw.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE);
    }
}

/// Operations on borrowed buffers. Dropping it waits for them.
pub struct Pending<'buffers, 'world> {
    world: &'world World,
    requests: Vec<Request>,
    buffers: PhantomData<&'buffers mut [u8]>,
}

impl<'buffers, 'world> Pending<'buffers, 'world> {
    /// No operations yet, with room for `capacity`.
    pub fn with_capacity(world: &'world World, capacity: usize) -> Self {
        Self { world, requests: Vec::with_capacity(capacity), buffers: PhantomData }
    }

    /// MPI_Isend.
    #[inline(always)]
    pub fn send(&mut self, data: &'buffers [u8], to: i32, tag: i32) {
        // SAFETY: guaranteed here: the buffer is borrowed until `self` is gone, and that waits.
        self.requests.push(unsafe { self.world.start_send(data.as_ptr(), data.len(), to, tag) });
    }

    /// MPI_Irecv.
    #[inline(always)]
    pub fn receive(&mut self, data: &'buffers mut [u8], from: i32, tag: i32) {
        let (at, bytes) = (data.as_mut_ptr(), data.len());
        // SAFETY: guaranteed here: the buffer is borrowed until `self` is gone, and that waits.
        self.requests.push(unsafe { self.world.start_receive(at, bytes, from, tag) });
    }

    /// Waits for all operations.
    pub fn wait(self) {}
}

impl Drop for Pending<'_, '_> {
    fn drop(&mut self) {
        wait_all(std::mem::take(&mut self.requests));
    }
}

/// Name and boot id of this host. Two hosts differ in at least one of them.
fn host_identity() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut name = [0_u8; 65];
    // SAFETY: guaranteed here: room for 64 bytes and an ending zero.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), 64) } != 0;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(64);
    let name =
        if failed { "unknown".into() } else { String::from_utf8_lossy(&name[..end]).into_owned() };
    format!("{name}\n{}", read("/proc/sys/kernel/random/boot_id"))
}

/// The bytes of a slice of numbers.
pub fn bytes_of<T: Number>(values: &[T]) -> &[u8] {
    // SAFETY: guaranteed here: numbers have no padding, and the length is their size in bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of a slice of numbers, for writing.
pub fn bytes_of_mut<T: Number>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: guaranteed here: every bit pattern is a number, and the length is their size in bytes.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Types without padding for which every bit pattern is a valid value.
pub trait Number: Copy {}
impl Number for f64 {}
impl Number for u64 {}

/// Name and version of the MPI library: "Open MPI v4.1.4", "MPICH 4.0.2".
pub fn library_name() -> String {
    let text = mpi::environment::library_version().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    name.split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| !["", "Version:"].contains(word))
        .collect::<Vec<_>>()
        .join(" ")
}
