//! Stacks of threads, for whoever asks for them by the signal: a watcher, when the ranks do not move.
//!
//! The signal's handler answers, inside MPI, too, where the thread may be stuck. One thread answers at a
//! time, on one stack. The area in the rank's file names the signal only while this handler has it.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use trace_format::layout::CHUNK_HEADER_BYTES;
use trace_format::stacks::*;

use crate::host::counter;
use crate::host::forks::wait_until;
use crate::host::handler_stack;
use crate::host::own_stack;
use crate::host::python_stack::Functions;
use crate::host::sampled_stack::{self, Interrupted, Reading, Rules};
use crate::store::chunk_headers::stacks_header;
use crate::store::due;
use crate::store::interpreted;
use crate::store::mapping::Window;
use crate::store::trace_file;

/// What answers, once it was made; never freed.
static ANSWERER: AtomicPtr<Answerer> = AtomicPtr::new(null_mut());
/// Whether it may answer.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// The thread that answers; 0: none.
static HOLDER: AtomicU32 = AtomicU32::new(0);

struct Answerer {
    /// The area in the rank's file.
    area: *mut u8,
    stack_end: *mut u8,
    reading: Reading,
    of_handler: UnsafeCell<(Rules, Functions)>,
}

// SAFETY: only the thread in `HOLDER` uses `of_handler` and stores answers; all else is constant or atomic.
unsafe impl Sync for Answerer {}

impl Answerer {
    fn make() -> Result<&'static Self, String> {
        let memory = trace_file::window(STACKS_BYTES)?;
        if memory.offset.is_none() {
            return Err("the file system does not support shared mappings".to_owned());
        }
        let memory = Window::open(memory, stacks_header(STACKS_BYTES)).memory;
        let answerer = Self {
            area: memory.mapping,
            stack_end: handler_stack::make()?,
            reading: Reading::default(),
            of_handler: UnsafeCell::default(),
        };
        let answerer: &'static Self = Box::leak(Box::new(answerer));
        ANSWERER.store((&raw const *answerer).cast_mut(), Release);
        Ok(answerer)
    }

    fn head(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= size_of::<StackHead>());
        // SAFETY: an aligned part of the head, which lies in a mapping that is never removed.
        unsafe { AtomicU32::from_ptr(self.area.add(CHUNK_HEADER_BYTES + offset).cast()) }
    }

    fn signal(&self) -> &AtomicU32 {
        self.head(offset_of!(StackHead, signal))
    }

    /// Stores the stack of the calling thread, interrupted with this context.
    unsafe fn store(&self, context: *const libc::ucontext_t) {
        let ticks = counter::now();
        // SAFETY: the kernel's context; `of_handler` is the calling thread's.
        let (from, own) =
            unsafe { (Interrupted::from_context(context), &mut *self.of_handler.get()) };
        let (rules, functions) = own;
        let (here, only) = (from.stack as usize, [from.address]);
        let stack = own_stack::find();
        let modules = self.reading.begin().filter(|_| stack.contains(&here));
        match modules.map(|modules| modules.functions(from, &stack, rules, functions)) {
            Some(found) if !found.addresses().is_empty() => {
                self.put(ticks, found.addresses(), found.is_complete);
            }
            _ => self.put(ticks, &only, false),
        }
        self.reading.end();
        if sampled_stack::is_stale() | !interpreted::define_new(false) {
            due::at_next_call();
        }
    }

    fn put(&self, ticks: u64, addresses: &[u64], is_complete: bool) {
        let count = self.head(offset_of!(StackHead, count));
        let number = count.load(Relaxed).wrapping_add(1).max(1);
        let index = number as usize % ANSWERS;
        let kept = addresses.len().min(MAX_STACK);
        // SAFETY: an answer lies in the area; only the thread in `HOLDER` stores there. A reader of a part finds
        // its two numbers different: they are changed first and last.
        unsafe {
            let answer: *mut StackAnswer = self.area.add(ANSWERS_AT).cast();
            let answer = answer.add(index);
            let begin = AtomicU32::from_ptr(&raw mut (*answer).number);
            begin.store(0, SeqCst);
            (&raw mut (*answer).number_again).write_volatile(0);
            (&raw mut (*answer).thread_os_id).write_volatile(HOLDER.load(Relaxed));
            (&raw mut (*answer).ticks).write_volatile(ticks);
            (&raw mut (*answer).functions).write_volatile(kept as u32);
            let whole = is_complete && kept == addresses.len();
            (&raw mut (*answer).is_complete).write_volatile(u32::from(whole));
            let to: *mut u64 = (&raw mut (*answer).addresses).cast();
            to.copy_from_nonoverlapping(addresses.as_ptr(), kept);
            (&raw mut (*answer).number_again).write_volatile(u64::from(number));
            begin.store(number, Release);
        }
        count.store(number, Release);
    }
}

fn answerer() -> Option<&'static Answerer> {
    // SAFETY: it is never freed.
    unsafe { ANSWERER.load(Acquire).as_ref() }
}

/// Lets threads answer whoever sends this signal, whose handler is installed.
pub fn open(signal: c_int) -> Result<(), String> {
    let answerer = answerer().map_or_else(Answerer::make, Ok)?;
    IS_OPEN.store(true, SeqCst);
    answerer.head(offset_of!(StackHead, process)).store(std::process::id(), Relaxed);
    answerer.signal().store(signal as u32, Release);
    Ok(())
}

/// Whether threads answer.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Relaxed)
}

/// Whether there is an area in the rank's file.
pub fn has_area() -> bool {
    answerer().is_some()
}

/// The list of modules that a thread reads which answers.
pub fn reading() -> Option<&'static Reading> {
    answerer().map(|answerer| &answerer.reading)
}

/// Has nobody ask any more. A thread that answers has finished then. Returns whether some might have asked before.
pub fn close() -> bool {
    let was_open = IS_OPEN.swap(false, SeqCst);
    if let Some(answerer) = answerer().filter(|_| was_open) {
        answerer.signal().store(0, SeqCst);
        wait_until(|| HOLDER.load(SeqCst) == 0);
    }
    was_open
}

/// In a forked process, which shares the area with its parent and is never asked.
pub fn leave_to_parent() {
    IS_OPEN.store(false, SeqCst);
    HOLDER.store(0, SeqCst);
}

/// Whether a signal asks for the thread's stack.
///
/// # Safety
/// The record is the kernel's.
pub unsafe fn is_asked(info: *const libc::siginfo_t) -> bool {
    const QUEUED: c_int = -1;
    // SAFETY: a queued signal's record has a value.
    unsafe { (*info).si_code == QUEUED && (*info).si_value().sival_ptr as u64 == ASKED }
}

/// Begins an answer of the calling thread. Returns the end of the stack to answer on; null if it is in use, or
/// nobody may ask.
pub fn begin(thread: u32) -> *mut u8 {
    if HOLDER.compare_exchange(0, thread, SeqCst, SeqCst).is_err() {
        return null_mut();
    }
    match answerer().filter(|_| IS_OPEN.load(SeqCst)) {
        Some(answerer) => answerer.stack_end,
        None => {
            HOLDER.store(0, SeqCst);
            null_mut()
        }
    }
}

/// Stores the answer that was begun. Called on its stack.
///
/// # Safety
/// The context is the one that the kernel passed to the handler.
pub unsafe fn store(context: *const libc::ucontext_t) {
    let Some(answerer) = answerer() else { return };
    // SAFETY: the caller vouches for the context; errno is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let answer = || answerer.store(context);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(answer));
        *libc::__errno_location() = errno;
    }
}

/// Ends an answer of the calling thread, if it has begun one, once the thread has left its stack.
pub fn end(thread: impl Fn() -> u32) {
    let holder = HOLDER.load(Relaxed);
    if holder != 0 && holder == thread() {
        HOLDER.store(0, SeqCst);
    }
}
