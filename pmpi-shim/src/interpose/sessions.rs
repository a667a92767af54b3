//! The wrappers that begin, resume and end recording with MPI sessions.

use crate::event::path::recorded_plain;
use crate::host::counter;
use crate::life::{self, ending, sessions};
use crate::mpi::abi;
use crate::mpi::invoke::Invoke;
use crate::mpi::plan::numbers::{SESSION_FINALIZE, SESSION_INIT};
use crate::mpi::real_entry::RealEntry;
use crate::state;
use crate::state::thread_block::{entry_stub, thread_block};
use crate::store::outermost::{Spacer, enter, is_inside, leave, within};
use crate::store::slots::{close, open};
use crate::store::window::{self, take_slot};

/// Calls MPI_Session_init. Begins or resumes recording if it succeeded.
///
/// # Safety
/// As for [`recorded_plain`].
unsafe fn open_session(entry: &'static RealEntry, arguments: [usize; 3]) -> usize {
    let block = thread_block();
    // SAFETY: the block is the thread's own; the arguments are passed on unchanged, and the last one
    // points to the session once the call has succeeded.
    unsafe {
        let here = block.entered_stack.get();
        if is_inside(block, here) {
            return arguments.invoke(entry.get());
        }
        let early_anchor = life::claim_start(false);
        if early_anchor.is_some() {
            sessions::begin();
        }
        let resumes = early_anchor.is_none() && state::is_between_sessions();
        if early_anchor.is_none() && !resumes {
            let result = recorded_plain(entry, SESSION_INIT, arguments);
            if result as i32 == 0 && sessions::are_alone() {
                within(block, || sessions::note(abi::handle_at(arguments[2])));
            }
            return result;
        }
        enter(block, here);
        let _spacer = Spacer::new();
        let begin = counter::read(block);
        let result = arguments.invoke(entry.get());
        let call = (SESSION_INIT, begin, counter::read(block));
        match early_anchor {
            _ if result as i32 != 0 && resumes => {}
            _ if result as i32 != 0 => {
                sessions::give_up();
                state::give_back_start();
            }
            // The width of handles is known once recording begins.
            Some(anchor) => {
                sessions::start(block, call, anchor, || abi::handle_at(arguments[2]));
            }
            None => {
                sessions::resume(block, call);
                sessions::note(abi::handle_at(arguments[2]));
            }
        }
        leave(block);
        result
    }
}

/// Calls MPI_Session_finalize. Ends recording if the session is the last one.
///
/// # Safety
/// As for [`recorded_plain`].
unsafe fn close_session(entry: &'static RealEntry, session: usize) -> usize {
    let block = thread_block();
    // SAFETY: the block is the thread's own; the argument is passed on unchanged and points to the
    // session.
    unsafe {
        if is_inside(block, block.entered_stack.get()) || !sessions::are_alone() {
            return recorded_plain(entry, SESSION_FINALIZE, [session]);
        }
        // What the recorder calls may enter wrappers.
        let entered = block.entered_stack.get();
        let handle = abi::handle_at(session);
        let mut is_last = false;
        within(block, || is_last = sessions::closing(handle));
        block.entered_stack.set(entered);
        match is_last && state::has_trace() {
            true => close_last_session(entry, session, entered),
            false => recorded_plain(entry, SESSION_FINALIZE, [session]),
        }
    }
}

/// Calls MPI_Session_finalize for the last session between the two parts of ending the recording. The
/// recorder's work comes before the event, because another session may resume.
///
/// # Safety
/// As for [`recorded_plain`]; the call was entered at `entered`.
unsafe fn close_last_session(entry: &'static RealEntry, session: usize, entered: usize) -> usize {
    let block = thread_block();
    // SAFETY: the call was entered at `entered`, and its argument goes to the function that it was
    // meant for. The steps are those of `recorded_plain`.
    unsafe {
        enter(block, entered);
        let _spacer = Spacer::new();
        window::resume(block);
        ending::before_finalize(block, counter::read(block));
        let slot = take_slot(block);
        let begin = counter::read(block);
        open(slot, begin, SESSION_FINALIZE, 0);
        let result = [session].invoke(entry.get());
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, SESSION_FINALIZE, 0);
        ending::after_finalize(block, true);
        leave(block);
        result
    }
}

macro_rules! sessions {
    ($($symbol:ident $inner:ident $name:literal $does:ident ($($argument:ident),*) $all:expr;)*) => {$(
        entry_stub!($symbol, $inner);

        unsafe extern "C-unwind" fn $inner($($argument: usize),*) -> usize {
            static REAL: RealEntry = RealEntry::new($name);
            // SAFETY: the words are passed on unchanged to the entry of this name.
            unsafe { $does(&REAL, $all) }
        }
    )*};
}

sessions! {
    MPI_Session_init mpi_session_init c"MPI_Session_init"
        open_session (info, errhandler, session) [info, errhandler, session];
    PMPI_Session_init pmpi_session_init c"PMPI_Session_init"
        open_session (info, errhandler, session) [info, errhandler, session];
    MPI_Session_finalize mpi_session_finalize c"MPI_Session_finalize"
        close_session (session) session;
    PMPI_Session_finalize pmpi_session_finalize c"PMPI_Session_finalize"
        close_session (session) session;
}
