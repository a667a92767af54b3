//! Notes when and how the processes of a run's ranks end, on this host.
//!
//! The launcher collects them, not this process; but whoever holds a process file descriptor (Linux 5.3) learns of the
//! end at once, and from Linux 6.15 on the exit code, too. Before that it can be read from `/proc` until the launcher
//! has collected the process, which may be too late. The ranks do not notice any of it.

use std::collections::BTreeSet;
use std::fs;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use trace_format::reader::RankFile;

use crate::trace::closed_files::{Closed, ClosedFiles};
use crate::trace::ended_ranks::EndedRank;
use crate::trace::run_json::Instant;
use crate::trace::{ProcessState, RankFacts, rank_files};

/// Time between two looks for new ranks, while some may come: the first, and the longest.
const LOOK: Duration = Duration::from_millis(50);
const RARELY: Duration = Duration::from_secs(1);
/// How long a process that has ended may take to be collected once the launcher has ended.
const COLLECTED: Duration = Duration::from_millis(50);

/// Of larger jobs nearly all ranks are on other hosts, and looking for those of this one would cost the file system more
/// than it tells.
const MOST_RANKS: usize = 1024;

/// The process of a rank.
struct RankProcess {
    path: PathBuf,
    pid: u32,
    fd: OwnedFd,
    ended: Option<EndedRank>,
    /// When it let go of its file, if it ended then.
    closed: Option<Closed>,
    /// Whether nothing more can be learnt of it.
    is_collected: bool,
    rank: u32,
}

/// Notes the ends of the ranks of a run until `stop` is closed at its other end.
pub fn watch_ends(run: &Path, stop: &UnixStream) -> Vec<EndedRank> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut processes: Vec<RankProcess> = Vec::new();
    let mut files = ClosedFiles::new();
    let (mut look, mut expected) = (LOOK, usize::MAX);
    loop {
        let patience = (known.len() < expected).then_some(look);
        let is_over = wait_for_ends(&mut processes, (files.readable(), Some(stop)), patience);
        if is_over {
            wait_for_ends(&mut processes, (-1, None), Some(COLLECTED));
            wait_for_ends(&mut processes, (-1, None), Some(Duration::ZERO));
            note_closed(&mut processes, &mut files);
            return ends(processes);
        }
        note_closed(&mut processes, &mut files);
        if known.len() < expected {
            look = (look * 3 / 2).min(RARELY);
            for path in rank_files(run).unwrap_or_default() {
                if known.contains(&path) {
                    continue;
                }
                // Its process may be writing the header.
                let Ok(file) = RankFile::open(&path) else { continue };
                expected = file.fixed.world_size as usize;
                if expected > MOST_RANKS {
                    expected = 0;
                    break;
                }
                files.add(&path);
                processes.extend(RankProcess::of(&file));
                known.insert(path);
            }
        }
    }
}

impl RankProcess {
    /// The process that writes a file, if it runs on this host.
    fn of(file: &RankFile) -> Option<Self> {
        let pid = Pid::from_raw(file.fixed.pid.cast_signed())?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // From here on the number cannot be that of another process.
        ProcessState::detect(file).runs().then(|| Self {
            path: file.path.clone(),
            pid: file.fixed.pid,
            fd,
            ended: None,
            closed: None,
            is_collected: false,
            rank: file.fixed.rank,
        })
    }

    /// Notes that it has ended; `is_collected`: its parent knows.
    fn note(&mut self, at: &Instant, is_collected: bool) {
        let rank = self.rank;
        let ended = self.ended.get_or_insert_with(|| {
            self.closed.take_if(|closed| closed.goes_on());
            let (after, code, signal, finalized) = Default::default();
            let mut ended = EndedRank { rank, at: at.clone(), after, code, signal, finalized };
            if let Some(status) = status_of_zombie(self.pid) {
                ended.set_status(status);
            }
            ended
        });
        if is_collected {
            self.is_collected = true;
            if let Some(status) = status_of_collected(&self.fd) {
                ended.set_status(status);
            }
        }
    }
}

/// Waits until a process ends, is collected or lets go of its file, or `stop` is closed. Returns whether that is so.
fn wait_for_ends(
    processes: &mut [RankProcess],
    (files, stop): (RawFd, Option<&UnixStream>),
    patience: Option<Duration>,
) -> bool {
    let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
    let of_process = |of: &RankProcess| match (&of.ended, of.is_collected) {
        (None, _) => entry(of.fd.as_raw_fd(), libc::POLLIN),
        // Told even if nothing is asked for.
        (Some(_), false) => entry(of.fd.as_raw_fd(), 0),
        (Some(_), true) => entry(-1, 0),
    };
    let mut entries: Vec<libc::pollfd> = processes.iter().map(of_process).collect();
    entries.push(entry(files, libc::POLLIN));
    entries.push(entry(stop.map_or(-1, UnixStream::as_raw_fd), libc::POLLIN));
    let count = entries.len() as libc::nfds_t;
    let patience = patience.map_or(-1, |time| time.as_millis() as libc::c_int);
    // SAFETY: the pointer is that of `count` initialised entries, which outlive the call.
    unsafe { libc::poll(entries.as_mut_ptr(), count, patience) };
    let at = Instant::now();
    for (of, entry) in processes.iter_mut().zip(&entries) {
        if entry.revents & (libc::POLLIN | libc::POLLHUP) != 0 {
            of.note(&at, entry.revents & libc::POLLHUP != 0);
        }
    }
    entries.last().is_some_and(|stop| stop.revents != 0)
}

/// Notes which processes have let go of their files.
fn note_closed(processes: &mut [RankProcess], files: &mut ClosedFiles) {
    for (path, closed) in files.take().0 {
        if let Some(of) = processes.iter_mut().find(|of| of.path == path) {
            of.closed = of.closed.or(Some(closed));
        }
    }
}

/// What `wait` would say of a process that has ended, if its parent has not collected it yet.
fn status_of_zombie(pid: u32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_zombie = fields.next() == Some("Z");
    // Zero is also what somebody is told who may not know.
    fields.last()?.parse().ok().filter(|status| is_zombie && *status != 0)
}

/// `struct pidfd_info` of <linux/pidfd.h>, in its first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: libc::Ioctl =
    (3 << 30 | size_of::<PidfdInfo>() << 16 | 0xFF << 8 | 11) as libc::Ioctl;

/// What `wait` said of a process that its parent has collected; `None` if the kernel does not tell.
fn status_of_collected(process: &OwnedFd) -> Option<i32> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most as many bytes as the request's number says, which is the size of `info`.
    let result = unsafe { libc::ioctl(process.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// The ends that were no good ones, in their order.
fn ends(processes: Vec<RankProcess>) -> Vec<EndedRank> {
    let ends = processes.into_iter().filter_map(|process| {
        let mut ended = process.ended?;
        ended.after = process.closed.map(|closed| closed.order);
        let file = RankFile::open(&process.path);
        ended.finalized =
            file.is_ok_and(|file| RankFacts::from_definitions(&file.definitions).finalized());
        let failed = ended.code.is_some_and(|code| code != 0) || ended.signal.is_some();
        (!ended.finalized || failed).then_some(ended)
    });
    let mut ends: Vec<EndedRank> = ends.collect();
    ends.sort_by_key(|of| (of.at.unix_ns, of.after, of.rank));
    ends
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn exit_status_is_read_before_the_parent_collects_it() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = child.id();
        let fd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let path = PathBuf::new();
        let mut process = [RankProcess {
            path,
            pid,
            fd,
            ended: None,
            closed: None,
            is_collected: false,
            rank: 7,
        }];
        wait_for_ends(&mut process, (-1, None), None);
        let ended = process[0].ended.clone().unwrap();
        assert_eq!((ended.rank, ended.code, ended.signal), (7, Some(3), None));
        child.wait().unwrap();
        wait_for_ends(&mut process, (-1, None), Some(Duration::ZERO));
        assert_eq!(process[0].ended.as_ref().unwrap().code, Some(3));
    }
}
