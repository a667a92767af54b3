//! The wrappers that cannot be generated from the table: those that begin and end recording, those
//! that return floating point, and the variadic one.

use std::ffi::{c_double, c_int, c_void};
use std::mem::transmute;

use trace_format::layout::{Continuation, DURATION_ESCAPE, slot_word};

use crate::event::path::{forwarded, recorded_plain};
use crate::host::counter;
use crate::life::{self, ending, sessions};
use crate::mpi::invoke::Invoke;
use crate::mpi::plan::numbers::{FINALIZE, INIT, INIT_THREAD, PCONTROL};
use crate::mpi::real_entry::RealEntry;
use crate::state;
use crate::state::thread_block::{entry_stub, thread_block};
use crate::store::outermost::{Spacer, enter, is_inside, leave, within};
use crate::store::slots::{append, open, publish};
use crate::store::window::{self, take_slot};

/// Calls MPI_Init or MPI_Init_thread and begins recording if it succeeded.
///
/// # Safety
/// As for [`recorded_plain`].
unsafe fn initialise<A: Invoke>(entry: &'static RealEntry, function: u16, arguments: A) -> usize {
    let block = thread_block();
    // SAFETY: the block is the thread's own; the arguments are passed on unchanged.
    unsafe {
        let here = block.entered_stack.get();
        if is_inside(block, here) {
            return arguments.invoke(entry.get());
        }
        let Some(early_anchor) = life::claim_start(true) else {
            if sessions::are_alone() {
                return initialise_after_session(entry, function, arguments);
            }
            return recorded_plain(entry, function, arguments);
        };
        enter(block, here);
        let _spacer = Spacer::new();
        let begin = counter::read(block);
        let result = arguments.invoke(entry.get());
        let end = counter::read(block);
        if result as i32 == 0 {
            life::start(block, function, begin, end, early_anchor);
        } else {
            state::give_back_start();
        }
        leave(block);
        result
    }
}

/// Calls MPI_Init or MPI_Init_thread in a program that opened a session before.
///
/// # Safety
/// As for [`recorded_plain`].
#[cold]
#[inline(never)]
unsafe fn initialise_after_session<A: Invoke>(
    entry: &'static RealEntry,
    function: u16,
    arguments: A,
) -> usize {
    let block = thread_block();
    // SAFETY: the block is the thread's own; the arguments are passed on unchanged.
    unsafe {
        let entered = block.entered_stack.get();
        let result = if state::is_between_sessions() {
            enter(block, entered);
            let begin = counter::read(block);
            let result = arguments.invoke(entry.get());
            if result as i32 == 0 {
                sessions::resume(block, (function, begin, counter::read(block)));
            }
            leave(block);
            result
        } else {
            recorded_plain(entry, function, arguments)
        };
        if result as i32 == 0 {
            within(block, sessions::enter_world);
        }
        result
    }
}

/// Calls MPI_Finalize between the two parts of ending the recording.
///
/// # Safety
/// As for [`recorded_plain`].
unsafe fn finalise(entry: &'static RealEntry) -> usize {
    let block = thread_block();
    // SAFETY: the stub has stored where the call was entered, which has no arguments. The steps are
    // those of `recorded_plain`.
    unsafe {
        let here = block.entered_stack.get();
        if is_inside(block, here) || !state::has_trace() {
            return forwarded(entry, []);
        }
        enter(block, here);
        let _spacer = Spacer::new();
        window::resume(block);
        let slot = take_slot(block);
        let begin = counter::read(block);
        open(slot, begin, FINALIZE, 0);
        // The tool's own event is written before this one is closed. Reserve the slot for this
        // event's duration, which is rarely short, now.
        let more = append(block, Continuation::Duration { ticks: 0, error: 0 });
        ending::before_finalize(block, begin);
        let result = [].invoke(entry.get());
        (&raw mut (*more).begin).write_volatile(counter::read(block).wrapping_sub(begin));
        publish(slot, slot_word(DURATION_ESCAPE, FINALIZE, 0));
        ending::after_finalize(block, false);
        leave(block);
        result
    }
}

macro_rules! initialisers {
    ($($symbol:ident $inner:ident $name:literal $function:ident ($($argument:ident),*);)*) => {$(
        entry_stub!($symbol, $inner);

        unsafe extern "C-unwind" fn $inner($($argument: usize),*) -> usize {
            static REAL: RealEntry = RealEntry::new($name);
            // SAFETY: the words are passed on unchanged to the entry of this name.
            unsafe { initialise(&REAL, $function, [$($argument),*]) }
        }
    )*};
}

initialisers! {
    MPI_Init mpi_init c"MPI_Init" INIT (argc, argv);
    PMPI_Init pmpi_init c"PMPI_Init" INIT (argc, argv);
    MPI_Init_thread mpi_init_thread c"MPI_Init_thread" INIT_THREAD (argc, argv, required, provided);
    PMPI_Init_thread pmpi_init_thread c"PMPI_Init_thread" INIT_THREAD (argc, argv, required, provided);
}

entry_stub!(MPI_Finalize, mpi_finalize);
entry_stub!(PMPI_Finalize, pmpi_finalize);

unsafe extern "C-unwind" fn mpi_finalize() -> usize {
    static REAL: RealEntry = RealEntry::new(c"MPI_Finalize");
    // SAFETY: the entry of this name takes no arguments.
    unsafe { finalise(&REAL) }
}

unsafe extern "C-unwind" fn pmpi_finalize() -> usize {
    static REAL: RealEntry = RealEntry::new(c"PMPI_Finalize");
    // SAFETY: the entry of this name takes no arguments.
    unsafe { finalise(&REAL) }
}

/// The arguments after MPI_Pcontrol's level that fit in registers and a few stack words.
struct PcontrolArguments {
    level: c_int,
    words: [usize; 5],
    doubles: [c_double; 8],
}

impl Invoke for PcontrolArguments {
    #[inline(always)]
    unsafe fn invoke(self, entry: *const c_void) -> usize {
        let Self { level, words: [a, b, c, d, e], doubles: [s, t, u, v, w, x, y, z] } = self;
        type Pcontrol = unsafe extern "C-unwind" fn(c_int, ...) -> c_int;
        // SAFETY: the entry is MPI_Pcontrol. Integers and doubles use separate registers, so each
        // argument is where the program put it.
        unsafe {
            transmute::<*const c_void, Pcontrol>(entry)(
                level, a, b, c, d, e, s, t, u, v, w, x, y, z,
            ) as usize
        }
    }
}

macro_rules! pcontrols {
    ($($symbol:ident $inner:ident $name:literal;)*) => {$(
        entry_stub!($symbol, $inner);

        // Stable Rust cannot define variadic functions, so a fixed signature takes what registers may hold.
        #[allow(clippy::too_many_arguments)] // As many as registers carry.
        unsafe extern "C-unwind" fn $inner(
            level: c_int,
            a: usize, b: usize, c: usize, d: usize, e: usize,
            s: c_double, t: c_double, u: c_double, v: c_double,
            w: c_double, x: c_double, y: c_double, z: c_double,
        ) -> usize {
            static REAL: RealEntry = RealEntry::new($name);
            let arguments = PcontrolArguments {
                level,
                words: [a, b, c, d, e],
                doubles: [s, t, u, v, w, x, y, z],
            };
            let block = thread_block();
            // SAFETY: the block is the thread's own; the arguments are passed on unchanged. Inside
            // another call, whose slot is open, the window stays as it is.
            unsafe {
                let here = block.entered_stack.get();
                if is_inside(block, here) {
                    return arguments.invoke(REAL.get());
                }
                if level != 0 {
                    within(block, || window::resume(block));
                    block.entered_stack.set(here);
                }
                let result = recorded_plain(&REAL, PCONTROL, arguments);
                if level == 0 {
                    within(block, || window::pause(block));
                }
                result
            }
        }
    )*};
}

pcontrols! {
    MPI_Pcontrol mpi_pcontrol c"MPI_Pcontrol";
    PMPI_Pcontrol pmpi_pcontrol c"PMPI_Pcontrol";
}

macro_rules! clocks {
    ($($symbol:ident $name:literal;)*) => {$(
        /// Forwards the MPI procedure of this name, which returns seconds.
        ///
        /// # Safety
        /// The caller vouches that MPI is in a state in which the procedure may be called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol() -> c_double {
            static REAL: RealEntry = RealEntry::new($name);
            type Clock = unsafe extern "C-unwind" fn() -> c_double;
            // SAFETY: the entry of this name takes nothing and returns a double.
            unsafe { transmute::<*const c_void, Clock>(REAL.get())() }
        }
    )*};
}

clocks! {
    MPI_Wtime c"MPI_Wtime";
    PMPI_Wtime c"PMPI_Wtime";
    MPI_Wtick c"MPI_Wtick";
    PMPI_Wtick c"PMPI_Wtick";
}
