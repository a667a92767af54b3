//! Asks ranks that do not move for their stacks, by the signal that their recorder answers.
//!
//! Nobody is sent a signal who would notice: the thread's own status has to say that the handler is installed and the
//! signal is not blocked, no debugger may be attached, and outside MPI a thread that sleeps is asked only in system calls
//! that go on after a signal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use trace_format::stacks::{ANSWERS, ASKED};

use super::rank::{LiveRank, RankState};
use super::run::LiveRun;
use super::seconds::Place;
use crate::trace::snapshot::Unanswered;

/// How long an answer may take, and the time between two looks for it.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);
/// Most threads of a rank that are asked, one after the other, since one answers at a time.
const MAX_THREADS: usize = 4;

/// A thread that is asked.
struct Question {
    process: u32,
    thread: u32,
    signal: u32,
    /// Counter before it was asked.
    asked: u64,
    /// Whether it is outside MPI, in the program's own system calls.
    is_outside: bool,
}

impl LiveRun {
    /// Asks the threads of all ranks for their stacks, which are in the ranks' files then. Returns who has none, and why.
    /// Takes a second if a rank does not answer.
    pub fn ask_for_stacks(&mut self) -> BTreeMap<u32, Unanswered> {
        let mut unanswered = BTreeMap::new();
        for number in 0..MAX_THREADS.min(ANSWERS) {
            let mut open = Vec::new();
            for rank in self.ranks_mut() {
                match rank.ask(number) {
                    Ok(Some(question)) => open.push((rank.rank, question)),
                    Ok(None) => {}
                    Err(why) => _ = unanswered.entry(rank.rank).or_insert(why),
                }
            }
            let end = Instant::now() + PATIENCE;
            while !open.is_empty() && Instant::now() < end {
                std::thread::sleep(LOOK);
                open.retain(|(rank, question)| {
                    let of = self.ranks().find(|of| of.rank == *rank);
                    of.is_some_and(|of| !of.has_answered(question))
                });
            }
            let silent = open.into_iter().map(|(rank, _)| (rank, Unanswered::Silent));
            silent.for_each(|(rank, why)| _ = unanswered.entry(rank).or_insert(why));
        }
        unanswered
    }
}

impl LiveRank {
    /// Asks one of its threads, given by its place among those that call MPI. `None`: there is no such thread, or the
    /// process keeps no stacks, or cannot answer.
    fn ask(&mut self, number: usize) -> Result<Option<Question>, Unanswered> {
        if !matches!(self.state, RankState::Computing | RankState::InMpi) {
            return Ok(None);
        }
        let Some(thread) = self.threads().get(number).copied() else { return Ok(None) };
        if number == 0 && self.find_stacks().is_err() {
            return Ok(None);
        }
        let Ok(Some(answers)) = self.windows().answers() else { return Ok(None) };
        let process = self.file().fixed.pid;
        if answers.signal == 0 || answers.process != process {
            return Err(Unanswered::Taken);
        }
        let (signal, asked) = (answers.signal, self.now());
        let is_outside = !matches!(self.place, Some(Place::InMpi { .. }));
        let question = Question { process, thread, signal, asked, is_outside };
        // It may end meanwhile.
        Ok((question.may_be_asked()? && question.send().is_ok()).then_some(question))
    }

    fn has_answered(&self, question: &Question) -> bool {
        let Ok(Some(answers)) = self.windows().answers() else { return false };
        let mut stacks = answers.stacks.iter();
        stacks.any(|of| of.os_id == question.thread && of.ticks >= question.asked)
    }
}

impl Question {
    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/task/{}/{name}", self.process, self.thread)).ok()
    }

    /// `Ok(false)`: the thread has ended.
    fn may_be_asked(&self) -> Result<bool, Unanswered> {
        let Some(status) = self.read("status") else { return Ok(false) };
        let status = Status::parse(&status, self.signal);
        if status.is_traced {
            return Err(Unanswered::Traced);
        }
        if !status.has_handler {
            return Err(Unanswered::Taken);
        }
        if status.is_blocked {
            return Err(Unanswered::Blocked);
        }
        let sleeps = status.state != 'R' && self.is_outside;
        let is_socket = |descriptor: u64| {
            let link = fs::read_link(format!("/proc/{}/fd/{descriptor}", self.process));
            link.is_ok_and(|of| of.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
        };
        let goes_on = |call: String| goes_on_after_signal(&call, is_socket);
        if sleeps && !self.read("syscall").is_some_and(goes_on) {
            return Err(Unanswered::Sleeping);
        }
        Ok(true)
    }

    /// Sends the signal.
    fn send(&self) -> io::Result<()> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the record is zeroed, larger than what is stored, and outlives the call; where the kernel has the value
        // of a queued signal is fixed by its interface.
        let sent = unsafe {
            let at = info.as_mut_ptr();
            (*at).si_signo = self.signal as libc::c_int;
            (*at).si_code = libc::SI_QUEUE;
            at.cast::<u32>().byte_add(16).write(std::process::id());
            at.cast::<u32>().byte_add(20).write(libc::getuid());
            at.cast::<u64>().byte_add(24).write(ASKED);
            libc::syscall(
                libc::SYS_rt_tgsigqueueinfo,
                self.process as libc::pid_t,
                self.thread as libc::pid_t,
                self.signal as libc::c_int,
                at,
            )
        };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// What `/proc/PID/task/TID/status` says of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status {
    state: char,
    is_traced: bool,
    has_handler: bool,
    is_blocked: bool,
}

impl Status {
    fn parse(status: &str, signal: u32) -> Self {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map_or("", str::trim)
        };
        let has = |name| {
            let set = u64::from_str_radix(field(name), 16).unwrap_or(0);
            (1..=64).contains(&signal) && set >> (signal - 1) & 1 == 1
        };
        Self {
            state: field("State").chars().next().unwrap_or('?'),
            is_traced: !matches!(field("TracerPid"), "0"),
            has_handler: has("SigCgt"),
            is_blocked: has("SigBlk"),
        }
    }
}

/// Whether the system call in `/proc/PID/task/TID/syscall` is restarted after a signal whose handler has SA_RESTART.
/// `is_socket` says it of a descriptor: sockets may have a time limit, with which nothing is restarted (signal(7)).
fn goes_on_after_signal(text: &str, is_socket: impl Fn(u64) -> bool) -> bool {
    /// They wait without a time limit of their own.
    const RESTARTED: [libc::c_long; 7] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_flock,
    ];
    let mut words = text.split_whitespace();
    match words.next().map(str::parse::<libc::c_long>) {
        // A futex with a time limit ends early.
        Some(Ok(libc::SYS_futex)) => words.nth(3) == Some("0x0"),
        Some(Ok(libc::SYS_wait4)) => true,
        Some(Ok(number)) if RESTARTED.contains(&number) => {
            let descriptor = words.next().and_then(|word| word.strip_prefix("0x"));
            let descriptor = descriptor.and_then(|word| u64::from_str_radix(word, 16).ok());
            descriptor.is_some_and(|descriptor| !is_socket(descriptor))
        }
        Some(Ok(_)) => false,
        // `running`: it has woken up.
        _ => text.trim() == "running",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_only_where_the_handler_is_and_nobody_notices() {
        let status =
            |fields: &str| Status::parse(&format!("Name:\ta\nState:\tS (sleeping)\n{fields}"), 16);
        let installed =
            status("TracerPid:\t0\nSigBlk:\t0000000000000000\nSigCgt:\t0000000000008000\n");
        let expected =
            Status { state: 'S', is_traced: false, has_handler: true, is_blocked: false };
        assert_eq!(installed, expected);
        let other = status("TracerPid:\t7\nSigBlk:\t0000000000008000\nSigCgt:\t0000000000004000\n");
        assert_eq!(
            other,
            Status { is_traced: true, has_handler: false, is_blocked: true, ..expected }
        );
        assert!(!Status::parse("", 16).has_handler);
    }

    #[test]
    fn sleeping_calls_that_a_signal_ends_are_left_alone() {
        let call = |number: libc::c_long, fourth: &str| {
            let text = format!("{number} 0x1f 0x2 0x3 {fourth} 0x0 0x0 0x7ffe 0x7f00\n");
            goes_on_after_signal(&text, |_| false)
        };
        assert!(call(libc::SYS_read, "0x4") && call(libc::SYS_futex, "0x0"));
        let of_socket = format!("{} 0x1f 0x2 0x3 0x4 0x0 0x0 0x7ffe 0x7f00\n", libc::SYS_read);
        assert!(!goes_on_after_signal(&of_socket, |descriptor| descriptor == 31));
        assert!(!call(libc::SYS_futex, "0x7ffe00") && !call(libc::SYS_clock_nanosleep, "0x0"));
        assert!(!call(libc::SYS_ppoll, "0x0"));
        assert!(goes_on_after_signal("running\n", |_| false));
        assert!(!goes_on_after_signal("", |_| false));
    }
}
