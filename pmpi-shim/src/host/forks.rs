//! Forks of the process, and the loader's locks.
//!
//! A lock of the loader that another thread holds when a process forks is never released in the child. So no thread of
//! the recorder is inside the loader while the process forks, and in the child the recorder stays out of it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::host::signals::HeldOff;
use crate::state::thread_block::thread_block;

/// Number of the recorder's threads inside the loader.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that are forking.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// How often, and with which pause, one waits for the other. A constructor may fork while its thread holds a lock of the
/// loader that a thread of the recorder waits for, so nobody waits for ever.
const LOOKS: u32 = 2000;
const PAUSE_NS: libc::c_long = 50_000;

/// Sleeps by the system call, because the C library's function is a cancellation point.
fn pause() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
    // SAFETY: the kernel reads the time; it need not say what was left of it.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, null_mut::<libc::timespec>()) };
}

pub fn wait_until(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..LOOKS {
        if is_so() {
            return true;
        }
        pause();
    }
    false
}

/// This thread's stay inside the loader.
struct Stay;

impl Stay {
    fn begin() -> Self {
        let block = thread_block();
        block.in_loader.set(block.in_loader.get() + 1);
        if block.in_loader.get() > 1 {
            return Self;
        }
        loop {
            INSIDE.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 {
                break;
            }
            INSIDE.fetch_sub(1, SeqCst);
            if !wait_until(|| FORKING.load(SeqCst) == 0) {
                INSIDE.fetch_add(1, SeqCst);
                break;
            }
        }
        Self
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let block = thread_block();
        block.in_loader.set(block.in_loader.get() - 1);
        if block.in_loader.get() == 0 {
            INSIDE.fetch_sub(1, SeqCst);
        }
    }
}

/// Runs work that takes locks of the loader. Signals are held off, and no fork happens meanwhile.
pub fn in_loader<R>(work: impl FnOnce() -> R) -> R {
    let _signals = HeldOff::begin();
    let _stay = Stay::begin();
    work()
}

/// Before a fork, in the thread that forks: waits until the recorder's threads have left the loader.
pub extern "C" fn before_fork() {
    // A signal handler of this thread that asks the loader must not wait for the fork.
    let block = thread_block();
    block.in_loader.set(block.in_loader.get() + 1);
    FORKING.fetch_add(1, SeqCst);
    wait_until(|| INSIDE.load(SeqCst) == 0);
}

/// After a fork, in the thread that forked.
pub extern "C" fn after_fork_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
    let block = thread_block();
    block.in_loader.set(block.in_loader.get() - 1);
}

/// After a fork, in the child's only thread.
pub fn after_fork_in_child() {
    INSIDE.store(0, SeqCst);
    FORKING.store(0, SeqCst);
    thread_block().in_loader.set(0);
}
