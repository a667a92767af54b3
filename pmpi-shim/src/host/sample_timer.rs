//! Interrupts a thread whenever it has computed for a period.
//!
//! The kernel's task clock (perf_event) counts the thread's CPU time and, at the end of each period
//! in user mode, sends the thread a signal. Where it may not be used, a timer on the thread's CPU
//! clock does the same, but only at the kernel's ticks. Neither interrupts a thread that waits, so
//! no system call of the program returns EINTR.

use std::ffi::{c_int, c_long, c_ulong};
use std::ptr::null_mut;

use trace_format::header::SamplingSource;

use crate::host::descriptors::move_up;
use crate::host::perf_counters::id_of;

/// A running timer of a thread.
#[derive(Debug)]
pub enum Timer {
    /// Descriptor of the event and the kernel's id of it.
    TaskClock(c_int, u64),
    Cpu(libc::timer_t),
}

/// A thread, and what it gets.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Operating system's id.
    pub thread: u32,
    pub signal: c_int,
    pub period_ns: u64,
}

// SAFETY: a timer's id is a number for the kernel, although its type is a pointer.
unsafe impl Send for Timer {}

impl Timer {
    /// Starts a timer for a thread of this process. The error is errno.
    pub fn start(source: SamplingSource, target: Target) -> Result<Self, c_int> {
        match source {
            SamplingSource::TaskClock => start_task_clock(target),
            SamplingSource::CpuTimer => start_cpu_timer(target),
        }
    }

    pub fn stop(self) {
        // SAFETY: plain numbers. The program may have closed the descriptor and got its number for
        // another file, so the kernel is asked first whether it is ours.
        unsafe {
            match self {
                Self::TaskClock(descriptor, id) if id_of(descriptor) == Some(id) => {
                    libc::syscall(libc::SYS_ioctl, descriptor, EVENT_DISABLE, 0);
                    libc::syscall(libc::SYS_close, descriptor);
                }
                Self::TaskClock(..) => {}
                Self::Cpu(timer) => _ = libc::timer_delete(timer),
            }
        }
    }
}

/// `PERF_EVENT_IOC_ENABLE` and `_DISABLE` of linux/perf_event.h.
const EVENT_ENABLE: c_long = 0x2400;
const EVENT_DISABLE: c_long = 0x2401;

fn last_error() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

fn start_task_clock(Target { thread, signal, period_ns }: Target) -> Result<Timer, c_int> {
    /// From linux/perf_event.h: a software event, the task clock; it begins disabled and counts
    /// neither kernel nor hypervisor; a signal for each overflow.
    const SOFTWARE: u64 = 1;
    const TASK_CLOCK: u64 = 1;
    const ATTRIBUTE_BYTES: u64 = 64;
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    const EACH_OVERFLOW: u64 = 1;
    const FD_CLOEXEC: c_ulong = 1 << 3;
    let attribute: [u64; ATTRIBUTE_BYTES as usize / 8] =
        [SOFTWARE | ATTRIBUTE_BYTES << 32, TASK_CLOCK, period_ns, 0, 0, FLAGS, EACH_OVERFLOW, 0];
    let (any_core, no_group): (c_int, c_int) = (-1, -1);
    // SAFETY: the attribute states its own size, and the kernel only reads it.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attribute.as_ptr(),
            thread as c_int,
            any_core,
            no_group,
            FD_CLOEXEC,
        )
    };
    if opened < 0 {
        return Err(last_error());
    }
    let descriptor = move_up(opened as c_int);
    let directed = [F_OWNER_TID, thread as c_int];
    // SAFETY: the descriptor is ours; the kernel reads the two numbers.
    let is_running = unsafe {
        let control = |command: c_int, value: usize| {
            libc::syscall(libc::SYS_fcntl, descriptor, command, value) == 0
        };
        control(F_SETSIG, signal as usize)
            && control(F_SETOWN_EX, directed.as_ptr() as usize)
            && control(libc::F_SETFL, (libc::O_RDWR | libc::O_NONBLOCK | libc::O_ASYNC) as usize)
            && libc::syscall(libc::SYS_ioctl, descriptor, EVENT_ENABLE, 0) == 0
    };
    match id_of(descriptor).filter(|_| is_running) {
        Some(id) => Ok(Timer::TaskClock(descriptor, id)),
        None => {
            let error = last_error();
            // SAFETY: the descriptor is ours.
            unsafe { libc::close(descriptor) };
            Err(error)
        }
    }
}

/// From asm-generic/fcntl.h.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

/// The kernel's clock of a thread's CPU time.
fn clock_of(thread: u32) -> libc::clockid_t {
    /// CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of linux/posix-timers_types.h.
    const OF_THREAD: i32 = 4;
    const SCHEDULER: i32 = 2;
    !(thread as i32) << 3 | OF_THREAD | SCHEDULER
}

fn start_cpu_timer(Target { thread, signal, period_ns }: Target) -> Result<Timer, c_int> {
    let mut timer: libc::timer_t = null_mut();
    let part = libc::timespec {
        tv_sec: (period_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (period_ns % 1_000_000_000) as c_long,
    };
    let interval = libc::itimerspec { it_interval: part, it_value: part };
    // SAFETY: a zeroed sigevent may be written over; all structures are this frame's.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread as c_int;
        if libc::timer_create(clock_of(thread), &mut event, &mut timer) != 0 {
            return Err(last_error());
        }
        if libc::timer_settime(timer, 0, &interval, null_mut()) != 0 {
            let error = last_error();
            libc::timer_delete(timer);
            return Err(error);
        }
    }
    Ok(Timer::Cpu(timer))
}

/// CPU time of a thread of this process so far in nanoseconds; 0 if it has ended. May be called in
/// a signal handler.
pub fn cpu_ns(thread: u32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write.
    let read = unsafe { libc::syscall(libc::SYS_clock_gettime, clock_of(thread), &raw mut time) };
    if read == 0 { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_a_thread_is_its_cpu_time() {
        // SAFETY: a system call without arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        let before = cpu_ns(thread);
        while cpu_ns(thread) < before + 1_000_000 {}
        assert!(before > 0);
        assert_eq!(cpu_ns(u32::MAX >> 4), 0, "there is no such thread");
    }
}
