//! Determines which call of a thread is its outermost. Only that call is an event, and nothing else
//! may write a slot while it is open.
//!
//! A call is open from [`enter`] to [`leave`]. Calls inside it are entered below it on the stack,
//! and the word at the address where it was entered, its return address, is unchanged while its
//! frame lives. A call left by longjmp or an exception is recognised when another call is entered
//! at or above it, or when that word has changed (every later call of the same caller writes one);
//! then the open call is marked as abandoned. The stack may be gone by then (fibres, stacks of
//! signal handlers), so the word is read only if it is known to be mapped.
//!
//! Simpler ways fail: a counter of depth never comes down after a longjmp, comparing addresses alone
//! mistakes a call from a deeper function for one inside, and longjmp over a frame with destructors
//! is undefined, so there can be no guard that is dropped.
//!
//! A signal handler may call MPI at any instruction. Everything that writes slots or takes the
//! recorder's locks is therefore inside an open call: MPI and compute calls through their wrappers,
//! the recorder's own work through [`within`]. The handler's call is then forwarded without being
//! recorded.

use std::mem::MaybeUninit;
use std::ops::Range;

use trace_format::layout::{CHUNK_HEADER_BYTES, FUNCTION_ABANDONED, slot_word};

use crate::host::own_stack;
use crate::host::own_work::OwnWork;
use crate::mpi::plan::numbers::MAX_ARGUMENTS;
use crate::state::thread_block::ThreadBlock;
use crate::store::slots::{publish, take_back};

/// Maximum number of bytes that a caller pushes before a call (six arguments are in registers, one
/// word aligns). Two calls of one caller are entered no further apart than this. A call inside
/// another is always further away, because every wrapper has a larger frame ([`Spacer`]).
const STACK_ARGUMENT_BYTES: usize = (MAX_ARGUMENTS - 6 + 1) * size_of::<usize>();

/// Keeps a wrapper's frame larger than [`STACK_ARGUMENT_BYTES`].
pub struct Spacer(MaybeUninit<[usize; STACK_ARGUMENT_BYTES / size_of::<usize>() + 2]>);

impl Spacer {
    #[inline(always)]
    pub fn new() -> Self {
        let spacer = Self(MaybeUninit::uninit());
        // SAFETY: the assembly is empty; it only forces the compiler to keep the bytes in the frame.
        unsafe {
            std::arch::asm!("/* {0} */", in(reg) spacer.0.as_ptr(), options(nostack, preserves_flags));
        }
        spacer
    }
}

/// Opens an outermost call that was entered at `here`.
///
/// # Safety
/// `here` is the address at which a wrapper of this thread was entered that has not returned, or
/// the address of a word in a living frame.
#[inline(always)]
pub unsafe fn enter(block: &ThreadBlock, here: usize) {
    // SAFETY: the word lies in a living frame. A signal handler between the two stores still finds
    // no call open.
    unsafe {
        let word = (here as *const usize).read_volatile();
        block.outer_return.as_ptr().write_volatile(word);
        block.outer_stack.as_ptr().write_volatile(here);
    }
}

/// Closes the outermost call.
#[inline(always)]
pub fn leave(block: &ThreadBlock) {
    // SAFETY: a field of the thread's own block.
    unsafe { block.outer_stack.as_ptr().write_volatile(0) };
}

/// Runs the recorder's own work, which writes slots or takes locks, as an open call.
pub fn within<R>(block: &ThreadBlock, work: impl FnOnce() -> R) -> R {
    let mut marker = 0usize;
    let here = (&raw mut marker).expose_provenance();
    // SAFETY: the word lives in this frame until the work is done. A call
    // that was open before (a thread may end inside a call) is open again afterwards.
    unsafe {
        (&raw mut marker).write_volatile(!here);
        let before = (block.outer_stack.get(), block.outer_return.get());
        leave(block);
        enter(block, here);
        let result = work();
        leave(block);
        block.outer_return.as_ptr().write_volatile(before.1);
        block.outer_stack.as_ptr().write_volatile(before.0);
        result
    }
}

/// Whether the thread is already inside an outermost call, for a call entered at `here`. An open
/// call that was left by longjmp or an exception is marked as abandoned.
#[inline(always)]
pub fn is_inside(block: &ThreadBlock, here: usize) -> bool {
    block.outer_stack.get() != 0 && is_inside_open(block, here)
}

#[cold]
#[inline(never)]
fn is_inside_open(block: &ThreadBlock, here: usize) -> bool {
    let open = (block.outer_stack.get(), block.outer_return.get());
    let inside = encloses(block, open, here);
    if !inside {
        mark_abandoned(block);
    }
    inside
}

/// Whether the thread, interrupted at this stack address, is inside an open call. `stack` is the one
/// that it was started with. May be called in a signal handler.
pub fn is_open_at(block: &ThreadBlock, here: usize, stack: &Range<usize>) -> bool {
    let (entered, word) = (block.outer_stack.get(), block.outer_return.get());
    // A call that was left by longjmp stays open until the next one.
    let is_left = stack.contains(&entered) && stack.contains(&here) && here > entered;
    entered != 0 && !is_left && is_unchanged(block, entered, word)
}

/// Whether the thread is already executing a plan, for a compute call entered at `here`.
#[inline(always)]
pub fn is_inside_transform(block: &ThreadBlock, here: usize) -> bool {
    let open = (block.transform_stack.get(), block.transform_return.get());
    if open.0 == 0 {
        return false;
    }
    let inside = encloses(block, open, here);
    if !inside {
        block.transform_stack.set(0);
    }
    inside
}

/// Whether a call that was entered at `stack`, where `word` stood, encloses one entered at `here`.
#[inline(never)]
fn encloses(block: &ThreadBlock, (stack, word): (usize, usize), here: usize) -> bool {
    let well_below = here.saturating_add(STACK_ARGUMENT_BYTES) < stack;
    // Beside it: the caller of an abandoned call makes another one. Above it: a signal handler on
    // its own stack, or the open call was abandoned further down.
    if !well_below && here < stack {
        return false;
    }
    is_unchanged(block, stack, word) && (well_below || is_on_alternate_stack())
}

/// Whether the word at an address of one of this thread's stacks is unchanged.
#[inline(always)]
fn is_unchanged(block: &ThreadBlock, address: usize, word: usize) -> bool {
    // AArch64 keeps return addresses in a register, so there only the order of addresses decides.
    if cfg!(not(target_arch = "x86_64")) {
        return true;
    }
    // SAFETY: the thread's own stack is mapped as long as the thread lives; for other stacks the
    // kernel has just been asked. (If another thread unmaps the stack of this thread's open call
    // meanwhile, the program is at fault.)
    unsafe {
        (own_stack::range(block).contains(&address) || is_readable(address))
            && (address as *const usize).read_volatile() == word
    }
}

/// Whether the word at an address can be read.
#[cold]
#[inline(never)]
fn is_readable(address: usize) -> bool {
    const NO_SUCH_CHANGE: i32 = -1;
    const SIGNAL_SET_BYTES: usize = 8;
    let _own = OwnWork::begin();
    // SAFETY: the kernel reads the set before it rejects the change: EFAULT if the set cannot be
    // read, otherwise EINVAL. Nothing is changed. (Other ways to test this are forbidden in some
    // containers.)
    unsafe {
        let refused = libc::syscall(
            libc::SYS_rt_sigprocmask,
            NO_SUCH_CHANGE,
            address,
            std::ptr::null_mut::<u64>(),
            SIGNAL_SET_BYTES,
        );
        refused == -1 && *libc::__errno_location() == libc::EINVAL
    }
}

/// Whether the thread is running a signal handler on an alternate stack.
fn is_on_alternate_stack() -> bool {
    let _own = OwnWork::begin();
    // SAFETY: a zeroed stack_t may be written over.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut stack) == 0
            && stack.ss_flags & libc::SS_ONSTACK != 0
    }
}

/// Marks the open call as abandoned: longjmp or an exception left it.
#[cold]
#[inline(never)]
fn mark_abandoned(block: &ThreadBlock) {
    // SAFETY: no other event begins while a call is open. So its slot, if it has one, is the last
    // before the cursor that is not a continuation, and its window is still mapped.
    unsafe {
        leave(block);
        // A handler of a fault (SIGSEGV, SIGBUS) may have left the recorder's own work.
        block.held_off.set(0);
        let first = block.window.get() as usize + CHUNK_HEADER_BYTES;
        let last = block.window.get() as usize + block.window_bytes.get();
        let mut slot = block.cursor.get();
        if block.window.get().is_null() || !(first..=last).contains(&(slot as usize)) {
            return;
        }
        while slot as usize > first {
            slot = slot.sub(1);
            if !(*slot).is_continuation() {
                break;
            }
        }
        if (*slot).is_open() {
            let word =
                slot_word(0, (*slot).function() | FUNCTION_ABANDONED, (*slot).communicator());
            publish(slot, word);
        } else if (*slot).word == 0 {
            // A signal handler left the call before its event began: the slot is free again.
            take_back(block, slot);
        }
    }
}
