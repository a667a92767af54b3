//! Samples threads from their first instruction, whether or not they call MPI.
//!
//! `pthread_create` is interposed for this purpose only. While nothing is sampled, it is forwarded. The
//! new thread leaves no frame of the recorder's on its stack.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::host::loader::Behind;
use crate::host::own_work::OwnWork;
use crate::state::thread_block::thread_block;
use crate::store::outermost::within;
use crate::store::sampler::Sampler;
use crate::store::sampling;
use crate::store::window;

/// What a thread is to do, in registers when a function returns it.
#[repr(C)]
struct Start {
    function: *const c_void,
    argument: *mut c_void,
}

/// A thread that is being made.
struct NewThread {
    start: Start,
    sampler: &'static Sampler,
}

type Create = unsafe extern "C-unwind" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    *const c_void,
    *mut c_void,
) -> c_int;

/// Interposes `pthread_create`.
///
/// # Safety
/// The caller vouches for the arguments.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    function: *const c_void,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the C library's function of this name has this type.
    static REAL: Behind<Create> = unsafe { Behind::new(c"pthread_create") };
    let Some(real) = REAL.get() else { return libc::EAGAIN };
    let mut sampler = None;
    if sampling::is_active() {
        within(thread_block(), || sampler = catch_unwind(sampling::prepare_thread).ok().flatten());
    }
    // SAFETY: the caller vouches for the arguments. The new thread takes what is made for it, unless
    // there is none.
    unsafe {
        let Some(sampler) = sampler else { return real(thread, attributes, function, argument) };
        let start = Start { function, argument };
        let new = Box::into_raw(Box::new(NewThread { start, sampler }));
        let result = real(thread, attributes, enter as *const c_void, new.cast());
        if result != 0 {
            drop(Box::from_raw(new));
            within(thread_block(), || sampling::discard(sampler));
        }
        result
    }
}

/// Begins to sample the calling thread, which has just been made.
unsafe extern "C" fn begin(new: *mut NewThread) -> Start {
    // SAFETY: made for this thread by `pthread_create`, and used nowhere else.
    let NewThread { start, sampler } = *unsafe { Box::from_raw(new) };
    let _own = OwnWork::begin();
    let block = thread_block();
    within(block, || {
        let begin = AssertUnwindSafe(|| {
            window::tell_when_ended(block);
            sampling::begin_new_thread(sampler);
        });
        let _ = catch_unwind(begin);
    });
    start
}

/// The first function of a sampled thread: begins, then becomes the program's function.
///
/// # Safety
/// Called by the C library with a [`NewThread`].
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "sub rsp, 8",
        "call {begin}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        begin = sym begin,
    );
    // Not yet run on AArch64.
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, -16]!",
        "bl {begin}",
        "ldp x29, x30, [sp], 16",
        "mov x2, x0",
        "mov x0, x1",
        "br x2",
        begin = sym begin,
    );
}
