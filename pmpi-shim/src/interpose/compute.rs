//! Interposed linear algebra and Fourier transforms, whose time counts as computation, and their
//! work.
//!
//! The entries are generated from `trace-format/compute/functions.txt` (`build_compute.rs`).
//! `--compute blas` records the larger functions (BLAS 3 and trsv, LAPACK, FFTW), `--flops` all of
//! them, if they are called outside MPI calls and other interposed compute functions. Any other
//! call is only forwarded. Whatever a library does inside such a call, including a driver's own
//! BLAS calls on its thread, belongs to the outermost call.

use std::ffi::{c_char, c_double, c_int, c_void};
use std::mem::transmute;

use trace_format::layout::Slot;

use crate::host::counter;
use crate::interpose::plans::{self, Form, Lengths};
use crate::interpose::work::*;
use crate::mpi::invoke::Invoke;
use crate::mpi::plan::numbers::{LAST_PROCEDURE, WORK};
use crate::mpi::real_entry::RealEntry;
use crate::state::thread_block::{ThreadBlock, entry_stub, thread_block};
use crate::state::{self, ALL, LARGER};
use crate::store::outermost::{Spacer, enter, is_inside, is_inside_transform, leave, within};
use crate::store::slots::{close, open};
use crate::store::window::{make_room, take_slot};

const _: () = assert!(WORK > LAST_PROCEDURE);

/// Work of a call: floating-point operations and the bytes of its operands.
#[derive(Debug, Clone, Copy)]
struct Work {
    flops: f64,
    bytes: u64,
}

impl Work {
    const NONE: Self = Self { flops: 0.0, bytes: 0 };

    fn new(operations: Operations, complex: bool, bytes: f64) -> Self {
        Self { flops: operations.flops(complex), bytes: bytes as u64 }
    }
}

/// Whether a call of this kind, entered at `here`, is to be recorded now.
#[inline(always)]
fn records(block: &ThreadBlock, here: usize, from: u8) -> bool {
    state::chose_compute(from)
        && state::is_recording()
        && !is_inside(block, here)
        && !is_inside_transform(block, here)
}

/// Writes a call's work to its slot.
///
/// # Safety
/// `slot` is the calling thread's, not published yet.
#[inline(always)]
unsafe fn write_work(slot: *mut Slot, work: Work) {
    // SAFETY: the thread's own slot, empty until it is published.
    unsafe {
        (*slot).set_payload([work.flops.to_bits(), work.bytes]);
    }
}

/// Forwards a call, and records it with its work if it is the outermost compute call. `from` is the
/// least choice ([`state::chose_compute`]) that records it.
///
/// # Safety
/// `invoke` calls the function of the entry's name with the arguments that the program passed.
#[inline(always)]
unsafe fn computed<R>(
    entry: &'static RealEntry,
    (function, from): (u16, u8),
    work: impl FnOnce() -> Work,
    invoke: impl FnOnce(*const c_void) -> R,
) -> R {
    let block = thread_block();
    // SAFETY: the thread's own block; its stub has stored the address of the return address.
    unsafe {
        let here = block.entered_stack.get();
        let caller = *(here as *const usize);
        if !records(block, here, from) {
            return invoke(entry.get_for(caller));
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let work = work();
        let real = entry.get_for(caller);
        let slot = take_slot(block);
        let begin = counter::read(block);
        write_work(slot, work);
        open(slot, begin, function, 0);
        let result = invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, function, 0);
        leave(block);
        result
    }
}

/// Forwards the execution of a plan and records it. The execution may communicate: then its calls
/// are events, and its work is an event without length behind them.
///
/// # Safety
/// As for [`computed`]; the first argument is the plan or its address.
#[inline(always)]
unsafe fn transformed(
    entry: &'static RealEntry,
    (function, by_reference): (u16, bool),
    arguments: [usize; 5],
) -> usize {
    let block = thread_block();
    // SAFETY: the stub has stored where the call was entered; its arguments go to the function that
    // they were meant for.
    unsafe {
        let here = block.entered_stack.get();
        let caller = *(here as *const usize);
        let real = entry.get_for(caller);
        if !records(block, here, LARGER) {
            return arguments.invoke(real);
        }
        let _spacer = Spacer::new();
        let plan = plans::plan_at(arguments[0], by_reference);
        let work = Work { flops: plans::flops_of(plan), bytes: 0 };
        // A window opened for the event itself would be opened after the event's begin.
        within(block, || make_room(block, 1));
        block.transform_return.set(caller);
        block.transform_stack.set(here);
        let before = (block.cursor.get(), block.window.get());
        let begin = counter::read(block);
        let result = arguments.invoke(real);
        let end = counter::read(block);
        block.transform_stack.set(0);
        enter(block, here);
        let alone = before == (block.cursor.get(), block.window.get());
        let slot = take_slot(block);
        let (begin, duration) = if alone {
            (begin, end.wrapping_sub(begin))
        } else {
            // Behind its last call, and after the time spent opening a window.
            (counter::read(block), 0)
        };
        write_work(slot, work);
        (&raw mut (*slot).begin).write_volatile(begin);
        close(block, slot, duration, function, 0);
        leave(block);
        result
    }
}

/// Forwards the making of a plan and stores the plan's operations.
///
/// # Safety
/// The arguments are those that the program passed to the function of the entry's name.
unsafe fn planned(
    entry: &'static RealEntry,
    form: Form,
    arguments: [usize; plans::MAX_ARGUMENTS],
) -> usize {
    let block = thread_block();
    // SAFETY: the stub has stored where the call was entered; its arguments are those of a planner
    // of this form.
    unsafe {
        let caller = *(block.entered_stack.get() as *const usize);
        let result = arguments.invoke(entry.get_for(caller));
        if state::chose_compute(LARGER) {
            let plan = if form.by_reference { plans::plan_at(arguments[0], true) } else { result };
            if plan != 0 {
                plans::remember(plan, plans::flops(form, &arguments));
            }
        }
        result
    }
}

entry_stub!(
    gammachi_recorder_work,
    declared,
    "Records work that the program declares. Called by `gammachi.h` if the recorder is present."
);

unsafe extern "C-unwind" fn declared(flops: c_double, bytes: c_double) {
    let block = thread_block();
    // SAFETY: the thread's own block, whose stub has stored where the call was entered. Inside an
    // MPI or compute call the slot of that call is open, so no other may follow it.
    unsafe {
        let here = block.entered_stack.get();
        if !state::is_recording() || is_inside(block, here) || is_inside_transform(block, here) {
            return;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let slot = take_slot(block);
        let begin = counter::read(block);
        write_work(slot, Work { flops, bytes: bytes as u64 });
        (&raw mut (*slot).begin).write_volatile(begin);
        close(block, slot, 0, WORK, 0);
        leave(block);
    }
}

/// A size as a number.
#[inline(always)]
fn size(n: c_int) -> f64 {
    f64::from(n.max(0))
}

/// The size that a Fortran argument points to.
///
/// # Safety
/// The program passed a pointer to an integer.
#[inline(always)]
unsafe fn size_at(pointer: usize) -> f64 {
    // SAFETY: the program's integer; of one with 64 bits this is the low half.
    size(unsafe { *(pointer as *const c_int) })
}

/// Whether a work space length asks for the best length (LAPACK: −1).
///
/// # Safety
/// The program passed a pointer to an integer.
#[inline(always)]
unsafe fn is_query(pointer: usize) -> bool {
    // SAFETY: the program's integer.
    unsafe { *(pointer as *const c_int) == -1 }
}

/// The letter that a Fortran option points to.
///
/// # Safety
/// The program passed a pointer to a character.
#[inline(always)]
unsafe fn letter_at(pointer: usize) -> u8 {
    // SAFETY: the program's character.
    (unsafe { *(pointer as *const c_char) } as u8).to_ascii_uppercase()
}

/// The letter of a CBLAS enumeration value. Only the side is distinguished.
#[inline(always)]
fn letter(value: usize) -> u8 {
    if value as c_int == 141 { b'L' } else { b'R' }
}

include!(concat!(env!("OUT_DIR"), "/compute_entries.rs"));
