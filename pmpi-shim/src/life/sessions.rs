//! Programs that use MPI sessions without MPI_Init.
//!
//! A session gives no communicator, and MPI promises no call in which all ranks meet. So each rank
//! makes its file alone, in the directory that all of them compute, keeps its own clock, and never
//! talks to the others: what it sent could meet what the program sends.
//!
//! Recording ends when the last session is finalized: a complete file, to which another session adds.
//! If the program calls MPI_Init, too, its calls on MPI_COMM_WORLD are recorded from there on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::header::{ClockAnchor, Definition};

use crate::handles::communicators;
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::host::warn::warn;
use crate::life::beginning::{begin_events, begin_or_refuse, describe, first_event, open_file};
use crate::life::process::{Place, Process};
use crate::life::run_directory::{RunDirectory, make_rank_file_alone};
use crate::mpi::abi;
use crate::mpi::library::{Entry, ask, rank_from_launcher};
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::sampling;
use crate::store::stage;
use crate::store::totals;
use crate::store::trace_file::{self, define};
use crate::store::usage;
use crate::store::window;

/// Whether recording began with a session and the program has not called MPI_Init.
static ALONE: AtomicBool = AtomicBool::new(false);
static OPEN: Lock<Open> = Lock::new(Open { sessions: Vec::new(), group: None });

/// The program's open sessions.
struct Open {
    sessions: Vec<usize>,
    /// The group of all processes, and the session that it was made from.
    group: Option<(usize, usize)>,
}

/// Whether recording begins or began with a session and the program has not called MPI_Init. A forked
/// child has no part in it.
pub fn are_alone() -> bool {
    ALONE.load(Relaxed) && !state::is_child()
}

/// Notes that recording begins with a session, before it is opened.
pub fn begin() {
    ALONE.store(true, Relaxed);
}

/// Notes that the first session could not be opened.
pub fn give_up() {
    ALONE.store(false, Relaxed);
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

/// Makes the group of all processes. Gives this process's rank in it and its size.
fn make_group(open: &mut Open, session: usize) -> Option<(u32, u32)> {
    let mut group = 0usize;
    // SAFETY: the arguments of MPI_Group_from_session_pset, which is local. Every session has this set.
    let made = unsafe {
        Entry::find(c"PMPI_Group_from_session_pset")?.call([
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
    communicators::set_world_group(group);
    let number = |name| u32::try_from(ask(name, group)?).ok();
    Some((number(c"PMPI_Group_rank")?, number(c"PMPI_Group_size")?))
}

fn free_group(open: &mut Open) {
    communicators::set_world_group(0);
    if let (Some((_, mut group)), Some(free)) = (open.group.take(), Entry::find(c"PMPI_Group_free"))
    {
        // SAFETY: the arguments of MPI_Group_free; the group is the recorder's own.
        unsafe { free.call([&raw mut group as usize]) };
    }
}

/// Begins recording. Called once, after MPI_Session_init returned successfully. `call` is its function,
/// begin and end.
pub fn start(
    block: &ThreadBlock,
    call: (u16, u64, u64),
    early_anchor: ClockAnchor,
    session: impl FnOnce() -> usize,
) {
    begin_or_refuse(|| {
        let process = Process::look();
        let session = session();
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
        let opened = open_file(block, &process, &place, early_anchor, call.1);
        let group = OPEN.lock().group.map_or(0, |(_, group)| group);
        communicators::set_world_group(abi::handle(group));
        let described = opened.and_then(|()| describe(&process.settings, place.describes));
        begin_events(block, &process.settings, described, call)?;
        Ok(())
    });
}

/// Resumes recording after a call that initialised MPI once more: its function, begin and end.
pub fn resume(block: &ThreadBlock, call: (u16, u64, u64)) {
    let _own = OwnWork::begin_long();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if stage::is_used() {
            return Err("the trace has left its staging directory".to_owned());
        }
        trace_file::resume();
        define(&Definition::RankBegin { ticks: call.2 })?;
        totals::resume_elapsed();
        window::reopen(block, call.1)?;
        first_event(block, call);
        usage::resume();
        sampling::resume();
        state::resume();
        Ok(())
    }));
    if let Err(reason) = outcome.unwrap_or_else(|_| Err("an internal error".to_owned())) {
        state::end();
        window::scratch(block);
        warn(&format!("recording does not resume; the program continues: {reason}"));
    }
}

/// Notes an open session, and makes the group of all processes from it if there is none. Gives this
/// process's rank in a group that it made, and its size.
pub fn note(session: usize) -> Option<(u32, u32)> {
    let _own = OwnWork::begin();
    let mut open = OPEN.lock();
    open.sessions.push(session);
    match open.group {
        None => make_group(&mut open, session),
        Some(_) => None,
    }
}

/// Goes on as if recording had begun with MPI_Init, which has just returned.
pub fn enter_world() {
    let _own = OwnWork::begin_long();
    ALONE.store(false, Relaxed);
    let _ = catch_unwind(|| {
        free_group(&mut OPEN.lock());
        communicators::register_predefined();
    });
}
