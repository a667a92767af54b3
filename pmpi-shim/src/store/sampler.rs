//! The signal handler that samples a thread, or stores its stack for whoever asks for it.
//!
//! It runs at any instruction of the program, on a stack of its own: frame and handler would not fit
//! on the alternate stack that Rust and others give their threads. It neither locks nor allocates,
//! keeps `errno`, and returns at once if the thread is inside an MPI call or the recorder's own work.

use std::arch::naked_asm;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use trace_format::samples::{NO_PATH, PATH_INCOMPLETE};

use crate::host::counter;
use crate::host::handler_stack;
use crate::host::own_stack;
use crate::host::python_stack::Functions;
use crate::host::sample_timer::{Timer, cpu_ns};
use crate::host::sampled_stack::{self, Interrupted, Reading, Rules};
use crate::state::thread_block::{ThreadBlock, thread_block};
use crate::store::due;
use crate::store::interpreted;
use crate::store::outermost;
use crate::store::sample_area::SampleArea;
use crate::store::stack_answers;

/// Maximum number of threads that are sampled at a time.
pub const MAX_SAMPLERS: usize = 256;

/// Whether handlers take samples.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// All samplers ever made. They are never freed, because a late signal may find them.
static SAMPLERS: [AtomicPtr<Sampler>; MAX_SAMPLERS] =
    [const { AtomicPtr::new(null_mut()) }; MAX_SAMPLERS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What samples a thread, or has sampled one that ended.
pub struct Sampler {
    /// Operating system's id of the thread; 0: none.
    pub thread: AtomicU32,
    /// Used only by whoever starts and ends sampling, one at a time.
    pub timer: Cell<Option<Timer>>,
    pub area: SampleArea,
    pub reading: Reading,
    /// CPU time of the thread when sampling of it began.
    pub cpu_ns_before: AtomicU64,
    /// Whether the handler is at work.
    is_at_work: AtomicBool,
    /// The end of its stack.
    stack_end: *mut u8,
    of_handler: UnsafeCell<OfHandler>,
}

/// What only the handler uses.
struct OfHandler {
    /// The stack that the thread was started with, once it was needed.
    stack: Option<Range<usize>>,
    rules: Rules,
    functions: Functions,
}

// SAFETY: `of_handler` belongs to the handler of the sampled thread, which nothing interrupts;
// `timer` to whoever holds the lock of the list of sampled threads. All else is atomic or constant.
unsafe impl Sync for Sampler {}

impl Sampler {
    /// Makes a sampler, or gives the reason why there can be none.
    pub fn make() -> Result<&'static Self, String> {
        let number = COUNT.load(Relaxed);
        if number >= MAX_SAMPLERS {
            return Err(format!("more than {MAX_SAMPLERS} threads"));
        }
        let area = SampleArea::new(number as u32)?;
        let sampler = Self {
            thread: AtomicU32::new(0),
            timer: Cell::new(None),
            area,
            reading: Reading::default(),
            cpu_ns_before: AtomicU64::new(0),
            is_at_work: AtomicBool::new(false),
            stack_end: handler_stack::make()?,
            of_handler: UnsafeCell::new(OfHandler {
                stack: None,
                rules: Rules::default(),
                functions: Functions::default(),
            }),
        };
        let sampler: &'static Self = Box::leak(Box::new(sampler));
        SAMPLERS[number].store((&raw const *sampler).cast_mut(), Release);
        COUNT.store(number + 1, Release);
        Ok(sampler)
    }

    /// Gives the sampler to a thread that is not being interrupted yet.
    pub fn assign(&self, thread: u32) {
        self.cpu_ns_before.store(cpu_ns(thread), Relaxed);
        // SAFETY: no thread has the sampler, so no handler uses this.
        unsafe { (*self.of_handler.get()).stack = None };
        self.thread.store(thread, Release);
    }

    /// Reads the thread's CPU time.
    pub fn read_cpu(&self) {
        let now = cpu_ns(self.thread.load(Relaxed));
        if now > 0 {
            let since = now.saturating_sub(self.cpu_ns_before.load(Relaxed));
            self.area.cpu_ns().store(since, Relaxed);
        }
    }

    /// Whether its handler is at work.
    pub fn is_at_work(&self) -> bool {
        self.is_at_work.load(SeqCst)
    }

    /// Takes a sample of the calling thread, interrupted with this context, for so many periods.
    unsafe fn take(&self, block: &ThreadBlock, context: *const libc::ucontext_t, periods: u64) {
        self.area.delivered().fetch_add(periods, Relaxed);
        self.read_cpu();
        // SAFETY: the kernel's context; `of_handler` is this handler's alone.
        let (interrupted, own) =
            unsafe { (Interrupted::from_context(context), &mut *self.of_handler.get()) };
        let stack = own.stack.get_or_insert_with(own_stack::find).clone();
        let (here, mut address) = (interrupted.stack as usize, interrupted.address);
        if outermost::is_open_at(block, here, &stack) {
            self.area.in_mpi().fetch_add(periods, Relaxed);
            return;
        }
        let ticks = counter::now();
        let mut path = NO_PATH | PATH_INCOMPLETE;
        if stack.contains(&here)
            && let Some(modules) = self.reading.begin()
        {
            let OfHandler { rules, functions, .. } = own;
            let functions = modules.functions(interrupted, &stack, rules, functions);
            if let [innermost, callers @ ..] = functions.addresses() {
                let (node, is_whole) = self.area.node_of(callers);
                address = *innermost;
                path = match functions.is_complete && is_whole {
                    true => node,
                    false if callers.is_empty() => NO_PATH | PATH_INCOMPLETE,
                    false => node | PATH_INCOMPLETE,
                };
            }
        }
        self.reading.end();
        let mut needs_others = sampled_stack::is_stale() | !interpreted::define_new(false);
        for _ in 0..periods {
            needs_others |= self.area.store(ticks, path, address);
        }
        if needs_others {
            due::at_next_call();
        }
    }
}

/// All samplers.
pub fn all() -> impl Iterator<Item = &'static Sampler> + Clone {
    let made = COUNT.load(Acquire).min(MAX_SAMPLERS);
    // SAFETY: samplers are never freed.
    SAMPLERS[..made].iter().filter_map(|one| unsafe { one.load(Acquire).as_ref() })
}

/// The sampler of a thread.
pub fn of_thread(thread: u32) -> Option<&'static Sampler> {
    all().find(|sampler| sampler.thread.load(Acquire) == thread)
}

/// Lets handlers take samples, or has them return at once.
pub fn activate(active: bool) {
    IS_ACTIVE.store(active, SeqCst);
}

pub fn is_active() -> bool {
    IS_ACTIVE.load(Relaxed)
}

fn os_id() -> u32 {
    // SAFETY: the system call has no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The end of the stack that the handler of this thread runs on; null if there is nothing to do.
/// Called on the program's stack, of which it needs little.
unsafe extern "C" fn own_stack_end(_: c_int, info: *const libc::siginfo_t) -> *mut u8 {
    // SAFETY: the kernel's record.
    if unsafe { stack_answers::is_asked(info) } {
        return stack_answers::begin(os_id());
    }
    if !IS_ACTIVE.load(SeqCst) {
        return null_mut();
    }
    let (block, thread) = (thread_block(), os_id());
    let known: *const Sampler = block.sampler.get().cast();
    // SAFETY: samplers are never freed. (Threads that were made without the C library may share a
    // block, so the id decides.)
    if let Some(known) = unsafe { known.as_ref() }
        && known.thread.load(Acquire) == thread
    {
        return known.stack_end;
    }
    let Some(sampler) = of_thread(thread) else { return null_mut() };
    block.sampler.set((&raw const *sampler).cast_mut().cast());
    sampler.stack_end
}

/// Number of periods that a signal stands for; 0 if somebody else sent it.
///
/// # Safety
/// The record is the kernel's.
unsafe fn periods(info: *const libc::siginfo_t) -> u64 {
    /// From asm-generic/siginfo.h: input is possible, as perf_event says it; a timer expired.
    const POLL_IN: c_int = 1;
    const TIMER: c_int = -2;
    /// Where such a record says how often the timer expired again before this signal.
    const OVERRUN_AT: usize = 20;
    const MOST: c_int = 99;
    // SAFETY: the kernel's record, of 128 bytes.
    unsafe {
        match (*info).si_code {
            POLL_IN => 1,
            TIMER => {
                let again = info.byte_add(OVERRUN_AT).cast::<c_int>().read();
                1 + again.clamp(0, MOST) as u64
            }
            _ => 0,
        }
    }
}

/// The handler, on its own stack.
unsafe extern "C" fn interrupted(_: c_int, info: *const libc::siginfo_t, context: *const c_void) {
    // SAFETY: the kernel passes a valid record and the thread's context; `own_stack_end` has begun the answer.
    unsafe {
        if stack_answers::is_asked(info) {
            return stack_answers::store(context.cast());
        }
    }
    let block = thread_block();
    // SAFETY: `own_stack_end` has found the sampler, which is never freed; the kernel passes a valid
    // record and the thread's context; errno is the thread's own.
    unsafe {
        let sampler = &*block.sampler.get().cast::<Sampler>();
        let errno = *libc::__errno_location();
        sampler.is_at_work.store(true, SeqCst);
        let periods = periods(info);
        if periods > 0 && IS_ACTIVE.load(SeqCst) {
            let take = || sampler.take(block, context.cast(), periods);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(take));
        }
        sampler.is_at_work.store(false, SeqCst);
        *libc::__errno_location() = errno;
    }
}

/// The thread has left the handler's stack, which others may use then.
unsafe extern "C" fn own_stack_left() {
    stack_answers::end(os_id);
}

/// The entry of the handler: changes to its own stack.
///
/// # Safety
/// Called by the kernel.
#[unsafe(naked)]
pub unsafe extern "C" fn entry() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rdx",
        "call {own_stack_end}",
        "test rax, rax",
        "jz 2f",
        "mov rdi, qword ptr [rbp - 8]",
        "mov rsi, qword ptr [rbp - 16]",
        "mov rdx, qword ptr [rbp - 24]",
        "mov rsp, rax",
        "call {interrupted}",
        "mov rsp, rbp",
        "call {own_stack_left}",
        "2:",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
        own_stack_end = sym own_stack_end,
        interrupted = sym interrupted,
        own_stack_left = sym own_stack_left,
    );
    // Not yet run on AArch64.
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, -48]!",
        "mov x29, sp",
        "stp x0, x1, [sp, 16]",
        "str x2, [sp, 32]",
        "bl {own_stack_end}",
        "cbz x0, 2f",
        "mov x3, x0",
        "ldp x0, x1, [x29, 16]",
        "ldr x2, [x29, 32]",
        "mov sp, x3",
        "bl {interrupted}",
        "mov sp, x29",
        "bl {own_stack_left}",
        "2:",
        "mov sp, x29",
        "ldp x29, x30, [sp], 48",
        "ret",
        own_stack_end = sym own_stack_end,
        interrupted = sym interrupted,
        own_stack_left = sym own_stack_left,
    );
}
