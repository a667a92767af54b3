//! Finds out which ranks load the recorder, as far as possible without messages.
//!
//! [`Presence`] follows from what the launcher tells each process and from marks that the others
//! left before they entered MPI_Init. MPI_Init returns nowhere before every rank has entered it, so
//! a mark that is missing afterwards will not appear. (In case a library's MPI_Init waits for
//! nobody, the recorder waits up to [`PATIENCE`] for the number of local ranks that the launcher
//! states.)
//!
//! On a host, the mark is a socket with an abstract name: it is not a file, and it disappears with
//! its process. Between hosts it is a promise of the launcher ([`is_every_rank`]) or a file beside
//! the run directory.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::host::descriptors::move_up;
use crate::host::lock::Lock;
use crate::host::settings::is_every_rank;

/// Time that local ranks get after MPI_Init to leave their mark.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// An older file was left behind by a dead process.
const OLDEST_FILE: Duration = Duration::from_secs(3600);
const SOCKET_PREFIX: &str = "gammachi-";

/// What a process knows about the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// Ranks of this host that load the recorder, ascending, including this one.
    pub local: Vec<u32>,
    /// Whether rank 0 loads the recorder, on whatever host.
    pub rank_zero: bool,
    /// Whether all ranks of the job are on this host, according to the launcher.
    pub one_host: bool,
}

/// The marks left by this process.
struct Marks {
    rank: u32,
    /// Held until the ranks have met.
    _socket: UnixDatagram,
    file: Option<PathBuf>,
}

static MARKS: Lock<Option<Marks>> = Lock::new(None);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u32> {
    variable(name)?.parse().ok()
}

/// Rank in MPI_COMM_WORLD according to the launcher, before MPI_Init.
fn launchers_rank() -> Option<u32> {
    ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"].into_iter().find_map(number)
}

/// Number of ranks of the job according to the launcher.
fn launchers_size() -> Option<u32> {
    ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"].into_iter().find_map(number)
}

/// Number of ranks of the job on this host according to the launcher.
fn launchers_local_size() -> Option<u32> {
    number("OMPI_COMM_WORLD_LOCAL_SIZE").or_else(|| number("MPI_LOCALNRANKS")).or_else(|| {
        let node = number("SLURM_NODEID")? as usize;
        tasks_of_node(&variable("SLURM_STEP_TASKS_PER_NODE")?, node)
    })
}

fn is_one_host() -> bool {
    launchers_size().is_some() && launchers_size() == launchers_local_size()
}

/// Tasks on a node from Slurm's list, such as `4(x2),3`.
fn tasks_of_node(list: &str, node: usize) -> Option<u32> {
    let mut first = 0;
    for part in list.split(',') {
        let (tasks, times) = match part.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1usize),
        };
        first += times;
        if node < first {
            return tasks.trim().parse().ok();
        }
    }
    None
}

fn hash(parts: &[impl AsRef<str>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in parts.iter().flat_map(|part| part.as_ref().bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// A key that all ranks of a job share on all hosts, if the launcher provides a name for the job.
fn job_key() -> u64 {
    let names = ["PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"].map(variable);
    let names = names.map(Option::unwrap_or_default);
    hash(&names)
}

/// A key that all ranks of a job on this host share. MPICH's launcher has no name for a job, but
/// its proxy, one per host, holds the other end of the socket in `PMI_FD`. From Hydra 5 on, the
/// jobs that a job spawns share its proxy: whether a job was spawned, and its size, tell most of
/// them apart. Jobs spawned at the same time with the same size have one key, and nothing before
/// MPI_Init tells them apart; each has marks of its own, so that each finds all its ranks.
fn local_key() -> u64 {
    let proxy = number("PMI_FD").and_then(peer).unwrap_or(0);
    let spawned = number("PMI_SPAWNED").unwrap_or(0);
    let size = launchers_size().unwrap_or(0);
    hash(&[job_key(), proxy as u64, spawned.into(), size.into()].map(|n| n.to_string()))
}

/// A key that all ranks of a job share and, where they are on one host, other jobs most likely do not.
pub fn shared_key() -> u64 {
    match is_one_host() {
        true => local_key(),
        false => hash(&[job_key(), launchers_size().unwrap_or(0).into()].map(|n| n.to_string())),
    }
}

/// Process that made a socket's other end.
fn peer(descriptor: u32) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the result fits `peer`; a bad descriptor or one that is no socket is an error.
    let known = unsafe {
        libc::getsockopt(
            i32::try_from(descriptor).ok()?,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut bytes,
        )
    } == 0;
    known.then_some(peer.pid)
}

/// Beginning of the names of a job's sockets.
fn socket_prefix(key: u64) -> String {
    format!("{SOCKET_PREFIX}{key:016x}-")
}

/// Name of a process's socket. It holds the process, because jobs with the same key have the same
/// ranks.
fn socket_name(key: u64, rank: u32, process: u32) -> String {
    format!("{}{rank}-{process}", socket_prefix(key))
}

/// Leaves this process's marks. Called before MPI is initialised.
pub fn announce(out: Option<&Path>) {
    let Some(rank) = launchers_rank() else { return };
    if launchers_size() == Some(1) {
        return;
    }
    let name = socket_name(local_key(), rank, std::process::id());
    let socket = SocketAddr::from_abstract_name(name).and_then(|a| UnixDatagram::bind_addr(&a));
    let Ok(socket) = socket else { return };
    let socket = out_of_the_way(socket);
    let file = (rank == 0 && !is_one_host() && !is_every_rank())
        .then(|| starting_file(out))
        .flatten()
        .filter(|file| {
            let _ = fs::remove_file(file);
            fs::File::create_new(file).is_ok()
        });
    let marks = Marks { rank, _socket: socket, file };
    *MARKS.lock() = Some(marks);
}

/// Moves a socket to a descriptor that the program's next `open` would not have got.
fn out_of_the_way(socket: UnixDatagram) -> UnixDatagram {
    use std::os::fd::{FromRawFd, IntoRawFd};
    let high = move_up(socket.into_raw_fd());
    // SAFETY: `move_up` returns a descriptor that is ours alone.
    let socket = unsafe { UnixDatagram::from_raw_fd(high) };
    debug_assert!(socket.as_raw_fd() >= 0);
    socket
}

/// The file that rank 0 leaves for other hosts that see the same directory.
fn starting_file(out: Option<&Path>) -> Option<PathBuf> {
    let key = job_key() as u32;
    let directory = match out {
        Some(out) => {
            let out = std::path::absolute(out).ok()?;
            let name = out.file_name()?.to_string_lossy().into_owned();
            return Some(out.with_file_name(format!(".{name}.starting-{key:08x}")));
        }
        None => std::env::current_dir().ok()?,
    };
    Some(directory.join(format!(".gammachi.starting-{key:08x}")))
}

/// Removes the marks, once the ranks have met and no longer look for them.
pub fn withdraw() {
    let marks = MARKS.lock().take();
    if let Some(file) = marks.and_then(|marks| marks.file) {
        let _ = fs::remove_file(file);
    }
}

/// Determines which ranks are present. Called once all have left their marks.
pub fn look(rank: u32, size: u32, out: Option<&Path>) -> Presence {
    let marked = {
        let marks = MARKS.lock();
        marks.as_ref().is_some_and(|marks| marks.rank == rank)
    };
    if !marked {
        // The others cannot know of this rank, so none waits for it.
        return Presence { local: vec![rank], rank_zero: rank == 0, one_host: is_one_host() };
    }
    let expected = launchers_local_size().unwrap_or(0);
    let prefix = format!("@{}", socket_prefix(local_key()));
    let start = Instant::now();
    let local = loop {
        let local = local_ranks(&prefix, rank, size);
        if local.len() as u32 >= expected || start.elapsed() > PATIENCE {
            break local;
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    let one_host = is_one_host();
    let rank_zero = local.first() == Some(&0)
        || !one_host && (is_every_rank() || starting_file(out).is_some_and(|file| is_fresh(&file)));
    Presence { local, rank_zero, one_host }
}

fn is_fresh(file: &Path) -> bool {
    let modified = fs::metadata(file).and_then(|metadata| metadata.modified());
    // If this clock is behind the file server's, the age is negative.
    modified.is_ok_and(|at| at.elapsed().map_or(true, |age| age < OLDEST_FILE))
}

fn local_ranks(prefix: &str, rank: u32, size: u32) -> Vec<u32> {
    // Names made by other users need not be UTF-8.
    let sockets = fs::read("/proc/net/unix").unwrap_or_default();
    let sockets = String::from_utf8_lossy(&sockets);
    let ranks = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(prefix)?.split_once('-'))
        .filter_map(|(rank, _process)| rank.parse().ok())
        .filter(|found| *found < size);
    let mut ranks: Vec<u32> = ranks.chain([rank]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tasks_of_node_from_slurm_list() {
        assert_eq!(tasks_of_node("4", 0), Some(4));
        assert_eq!(tasks_of_node("4(x2),3", 1), Some(4));
        assert_eq!(tasks_of_node("4(x2),3", 2), Some(3));
        assert_eq!(tasks_of_node("4(x2),3", 3), None);
        assert_eq!(tasks_of_node("many", 0), None);
    }

    #[test]
    fn finds_local_ranks_of_this_job_only() {
        let key = 0x1234_5678 ^ u64::from(std::process::id());
        let bind = |name: String| {
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
        };
        // Two jobs with the same key have a rank 3.
        let _held: Vec<UnixDatagram> = [(3, 100), (1, 101), (99, 102), (3, 103)]
            .map(|(rank, process)| bind(socket_name(key, rank, process)))
            .into_iter()
            .chain([bind(socket_name(key ^ 1, 2, 104))])
            .collect();
        let prefix = format!("@{}", socket_prefix(key));
        assert_eq!(local_ranks(&prefix, 5, 8), [1, 3, 5]);
    }

    #[test]
    fn puts_file_for_other_hosts_beside_run_directory() {
        let file = starting_file(Some(Path::new("/runs/one"))).unwrap();
        assert_eq!(file.parent(), Some(Path::new("/runs")));
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(".one.starting-"), "{name}");
        let here = std::env::current_dir().unwrap();
        assert_eq!(starting_file(None).unwrap().parent(), Some(here.as_path()));
    }

    #[test]
    fn ignores_file_of_dead_process() {
        let name = format!("gammachi-starting-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        assert!(!is_fresh(&path), "the file does not exist");
        let file = fs::File::create(&path).unwrap();
        let now = std::time::SystemTime::now();
        for (at, fresh) in [
            (now, true),
            // The file server's clock runs ahead.
            (now + OLDEST_FILE, true),
            (now - OLDEST_FILE - Duration::from_secs(60), false),
        ] {
            file.set_modified(at).unwrap();
            assert_eq!(is_fresh(&path), fresh);
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn rank_without_mark_is_alone() {
        let presence = look(3, 8, None);
        assert_eq!((&presence.local[..], presence.rank_zero), (&[3][..], false));
    }

    #[test]
    fn keys_of_different_names_differ() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(socket_name(1, 2, 3), socket_name(2, 1, 3));
    }
}
