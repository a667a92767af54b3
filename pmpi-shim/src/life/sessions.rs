//! Programs that use MPI sessions without MPI_Init.
//!
//! A session gives no communicator, and MPI promises no call in which all ranks meet. So each rank
//! makes its file alone, in the directory that all of them compute. They talk to each other only if the
//! program makes a communicator of all (`comparing`).
//!
//! Recording ends when the last session is finalized: a complete file, to which another session adds.
//! If the program calls MPI_Init, too, its calls on MPI_COMM_WORLD are recorded from there on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use trace_format::header::{ClockAnchor, Definition};

use crate::handles::communicators;
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::host::presence;
use crate::host::warn::warn;
use crate::life::beginning::{begin_events, begin_or_refuse, describe, first_event, open_file};
use crate::life::process::{Place, Process};
use crate::life::run_directory::{RunDirectory, make_rank_file_alone};
use crate::mpi::abi;
use crate::mpi::library::{Entry, MpiLibrary, ask, rank_from_launcher};
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::stage;
use crate::store::totals;
use crate::store::trace_file::{self, define};
use crate::store::usage;
use crate::store::window;

/// Whether the first call that initialised MPI was MPI_Session_init.
static BEGAN: AtomicBool = AtomicBool::new(false);
/// Whether the program has called MPI_Init since.
static IN_WORLD: AtomicBool = AtomicBool::new(false);
static OPEN: Lock<Open> = Lock::new(Open { sessions: Vec::new(), group: None, place: None });

/// The program's open sessions.
struct Open {
    sessions: Vec<usize>,
    /// The group of all processes, and the session that it was made from.
    group: Option<(usize, usize)>,
    /// This process's rank in that group, and its size.
    place: Option<(u32, u32)>,
}

/// Whether recording begins or began with a session. A forked child has no part in it.
pub fn began() -> bool {
    (state::is_starting_with_session() || BEGAN.load(SeqCst)) && !state::is_child()
}

/// Whether, besides, the program has not called MPI_Init.
pub fn are_alone() -> bool {
    began() && !IN_WORLD.load(SeqCst)
}

/// Notes that recording begins with a session, before it is opened.
pub fn begin() {
    BEGAN.store(true, SeqCst);
}

/// Notes that the first session could not be opened.
pub fn give_up() {
    let _own = OwnWork::begin();
    presence::retract();
    BEGAN.store(false, SeqCst);
}

/// The loaded MPI. Wrappers know its handles from here on.
pub fn library() -> &'static MpiLibrary {
    static LIBRARY: OnceLock<MpiLibrary> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = MpiLibrary::detect();
        abi::set(library.family, library.request_null(), library.datatype_null());
        library
    })
}

/// Before a session is finalized, frees what was made from it. Returns whether it is the last one.
pub fn closing(session: usize) -> bool {
    let _own = OwnWork::begin();
    let mut open = OPEN.lock();
    let Some(at) = open.sessions.iter().position(|other| *other == session) else { return false };
    open.sessions.swap_remove(at);
    if open.group.is_some_and(|(from, _)| from == session) {
        free_group(&mut open);
        // Whoever finalizes that session must come here first.
        if let Some(other) = open.sessions.first().copied() {
            make_group(&mut open, other);
        }
    }
    open.sessions.is_empty()
}

/// Makes the group of all processes.
fn make_group(open: &mut Open, session: usize) -> Option<()> {
    let mut group = 0usize;
    // SAFETY: the arguments of MPI_Group_from_session_pset, which is local. Every session has this set.
    let made = unsafe {
        Entry::of(c"PMPI_Group_from_session_pset")?.call([
            session,
            c"mpi://WORLD".as_ptr() as usize,
            &raw mut group as usize,
        ])
    };
    if !made {
        return None;
    }
    open.group = Some((session, group));
    let group = abi::handle(group);
    if are_alone() {
        communicators::set_world_group(group);
    }
    let number = |name| u32::try_from(ask(name, group)?).ok();
    open.place = Some((number(c"PMPI_Group_rank")?, number(c"PMPI_Group_size")?));
    Some(())
}

fn free_group(open: &mut Open) {
    if are_alone() {
        communicators::set_world_group(0);
    }
    if let (Some((_, mut group)), Some(free)) = (open.group.take(), Entry::of(c"PMPI_Group_free")) {
        // SAFETY: the arguments of MPI_Group_free; the group is the recorder's own.
        unsafe { free.call([&raw mut group as usize]) };
    }
}

/// Begins recording. Called once, after MPI_Session_init returned successfully. `call` is its function,
/// begin and end.
///
/// # Safety
/// `block` is the calling thread's; `session` is open.
pub unsafe fn start(
    block: *mut ThreadBlock,
    call: (u16, u64, u64),
    early_anchor: ClockAnchor,
    session: impl FnOnce() -> usize,
) {
    begin_or_refuse(|| {
        let process = Process::look();
        let everyone = note(session).or_else(rank_from_launcher);
        let (rank, size) = everyone.ok_or_else(|| {
            Some("neither MPI nor its launcher tells the rank of this process".to_owned())
        })?;
        process.warn_of_settings(rank);
        let (directory, run_id) = match make_rank_file_alone(&process.settings, (rank, size)) {
            RunDirectory::Chosen(directory, run_id) => (directory, run_id),
            RunDirectory::Refused(reason) => return Err(Some(reason)),
        };
        let place = Place { rank, size, directory: &directory, run_id, describes: rank == 0 };
        // SAFETY: the caller's promise.
        unsafe {
            let opened = open_file(block, &process, &place, early_anchor, call.1);
            let group = OPEN.lock().group.map_or(0, |(_, group)| group);
            communicators::set_world_group(abi::handle(group));
            let described = opened.and_then(|()| describe(place.describes));
            begin_events(block, &process.settings, described, call)?;
        }
        Ok(())
    });
}

/// Resumes recording after a call that initialised MPI once more: its function, begin and end.
///
/// # Safety
/// `block` is the calling thread's.
pub unsafe fn resume(block: *mut ThreadBlock, call: (u16, u64, u64)) {
    let _own = OwnWork::begin_long();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if stage::is_used() {
            return Err("the trace has left its staging directory".to_owned());
        }
        trace_file::resume();
        define(&Definition::RankBegin { ticks: call.2 })?;
        totals::resume_elapsed();
        // SAFETY: the caller's promise.
        unsafe {
            window::reopen(block, call.1)?;
            first_event(block, call);
        }
        usage::resume();
        state::resume();
        Ok(())
    }));
    if let Err(reason) = outcome.unwrap_or_else(|_| Err("an internal error".to_owned())) {
        state::end();
        // SAFETY: the caller's promise.
        unsafe { window::scratch(block) };
        warn(&format!("recording does not resume; the program continues: {reason}"));
    }
}

/// Notes an open session, and makes the group of all processes from it if there is none. Gives this
/// process's rank in that group, and its size.
pub fn note(session: impl FnOnce() -> usize) -> Option<(u32, u32)> {
    let _own = OwnWork::begin();
    library();
    let session = session();
    let mut open = OPEN.lock();
    open.sessions.push(session);
    if open.group.is_none() {
        make_group(&mut open, session);
    }
    open.place
}

/// This process's rank, and the number of all processes, if a new communicator has all of them in the order
/// of their ranks.
pub fn rank_in_all(communicator: usize) -> Option<(u32, u32)> {
    let _own = OwnWork::begin();
    if communicator == 0 || library().comm_null() == Some(communicator) {
        return None;
    }
    let open = OPEN.lock();
    let ((_, all), (rank, size)) = (open.group?, open.place?);
    let is_all = ask(c"PMPI_Comm_size", communicator)? == size as i32
        && communicators::has_ranks_of(communicator, abi::handle(all), size)?;
    is_all.then_some((rank, size))
}

/// Goes on as if recording had begun with MPI_Init, which has just returned.
pub fn enter_world() {
    let _own = OwnWork::begin_long();
    IN_WORLD.store(true, SeqCst);
    let _ = catch_unwind(communicators::register_predefined);
}
