//! Programs that use MPI sessions without MPI_Init.
//!
//! A session gives no communicator, so the ranks cannot talk to each other when recording begins. Each
//! makes its file alone, in the directory that all of them compute. They meet when the program makes a
//! communicator of all processes in the order of their ranks: there they compare clocks, and move
//! their files if they computed different directories. If it never makes one, each rank keeps its own
//! clock.
//!
//! Recording ends when the last session is finalized: a complete file, to which another session adds.
//! A program that calls MPI_Init, too, is recorded like any other from there on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::header::{ClockAnchor, Definition, Phase};
use trace_format::markers::ToolReason;

use crate::clock::exchange;
use crate::clock::schedule;
use crate::handles::communicators;
use crate::host::counter;
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::host::presence;
use crate::host::run_id::RunId;
use crate::host::settings;
use crate::host::warn::warn;
use crate::life::beginning::{
    begin_events, begin_or_refuse, describe, first_event, meet, open_file,
};
use crate::life::ending;
use crate::life::identity;
use crate::life::process::{Place, Process};
use crate::life::run_directory::{RunDirectory, make_rank_file_alone, move_rank_file};
use crate::mpi::abi;
use crate::mpi::agreement::Participants;
use crate::mpi::library::{Entry, Job, ask, rank_from_launcher};
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::stage;
use crate::store::totals;
use crate::store::trace_file::{self, define};
use crate::store::usage;
use crate::store::window;

/// Whether recording began with a session and the program has not called MPI_Init.
static ALONE: AtomicBool = AtomicBool::new(false);
/// Whether the ranks have met since the first of the open sessions.
static HAVE_MET: AtomicBool = AtomicBool::new(false);
static RANK: Lock<Option<Rank>> = Lock::new(None);
static OPEN: Lock<Open> = Lock::new(Open { sessions: Vec::new(), group: None });

/// This rank and its file.
struct Rank {
    process: Process,
    rank: u32,
    size: u32,
    directory: PathBuf,
    run_id: RunId,
    has_compared_clocks: bool,
}

/// The program's open sessions.
struct Open {
    sessions: Vec<usize>,
    /// The group of all processes, and the session that it was made from.
    group: Option<(usize, usize)>,
}

/// Whether recording began with a session and the program has not called MPI_Init.
pub fn are_alone() -> bool {
    ALONE.load(Relaxed)
}

/// Notes an open session, unless recording began with MPI_Init.
pub fn opened(session: usize) {
    if are_alone() {
        OPEN.lock().sessions.push(session);
    }
}

/// Whether a session is the only one that is open.
pub fn is_last(session: usize) -> bool {
    are_alone() && OPEN.lock().sessions == [session]
}

/// Before a session is finalized, frees what was made from it.
pub fn closing(session: usize) {
    let _own = OwnWork::begin();
    let mut open = OPEN.lock();
    let Some(at) = open.sessions.iter().position(|other| *other == session) else { return };
    open.sessions.swap_remove(at);
    if open.group.is_some_and(|(from, _)| from == session) {
        let other = open.sessions.first().copied();
        drop(open);
        free_group();
        if let Some(other) = other {
            make_group(other);
        }
    }
}

/// Makes the group of all processes. Gives this process's rank in it and its size.
fn make_group(session: usize) -> Option<(u32, u32)> {
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
    OPEN.lock().group = Some((session, group));
    let group = abi::handle(group);
    communicators::set_world_group(group);
    let number = |name| u32::try_from(ask(name, group)?).ok();
    Some((number(c"PMPI_Group_rank")?, number(c"PMPI_Group_size")?))
}

fn free_group() {
    communicators::set_world_group(0);
    let group = OPEN.lock().group.take();
    if let (Some((_, mut group)), Some(free)) = (group, Entry::of(c"PMPI_Group_free")) {
        // SAFETY: the arguments of MPI_Group_free; the group is the recorder's own.
        unsafe { free.call([&raw mut group as usize]) };
    }
}

/// Leaves this process's marks again, before MPI is initialised once more.
pub fn announce() {
    let _own = OwnWork::begin();
    let _ = catch_unwind(|| presence::announce(settings::out().as_deref()));
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
        let session = session();
        let everyone = make_group(session).or_else(rank_from_launcher);
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
            communicators::set_world_group(abi::handle(OPEN.lock().group.map_or(0, |g| g.1)));
            let described = opened.and_then(|()| describe(place.describes));
            begin_events(block, &process.settings, described, call)?;
        }
        ALONE.store(true, Relaxed);
        opened(session);
        let has_compared_clocks = false;
        *RANK.lock() = Some(Rank { process, rank, size, directory, run_id, has_compared_clocks });
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

/// Notes another session and, if recording has just resumed, its group of all processes.
pub fn reopened(session: usize) {
    let _own = OwnWork::begin();
    opened(session);
    if OPEN.lock().group.is_none() {
        make_group(session);
    }
}

/// Ends recording before the last session is finalized, in the call that began at `begin`.
///
/// # Safety
/// As for [`ending::before_finalize`].
pub unsafe fn before_end(block: *mut ThreadBlock, session: usize, begin: u64) {
    // SAFETY: the caller's promise.
    unsafe { ending::before_finalize(block, begin) };
    closing(session);
    HAVE_MET.store(false, Relaxed);
}

/// Completes the file after the last session was finalized.
///
/// # Safety
/// As for [`ending::after_finalize`].
pub unsafe fn after_end(block: *mut ThreadBlock) {
    // SAFETY: the caller's promise.
    unsafe { ending::after_finalize(block, true) };
}

/// Has the ranks meet over a communicator that the program has just made, if it is the first of all
/// processes.
///
/// # Safety
/// `block` is the calling thread's, inside a call of the recorder's own.
pub unsafe fn communicator_made(block: *mut ThreadBlock, handle: usize) {
    if !are_alone() || HAVE_MET.load(Relaxed) || !state::has_trace() {
        return;
    }
    let _own = OwnWork::begin_long();
    let begin = counter::now();
    let met = catch_unwind(AssertUnwindSafe(|| {
        // One process has nobody to meet. (MPICH 4.0 crashes in MPI_Comm_create there.)
        let size = RANK.lock().as_ref().map(|rank| rank.size).filter(|size| *size > 1)?;
        if !communicators::has_everyone(handle, size) {
            return None;
        }
        HAVE_MET.store(true, Relaxed);
        let mut rank = RANK.lock().take()?;
        rank.meet_over(handle, true);
        *RANK.lock() = Some(rank);
        Some(())
    }));
    if let Ok(Some(())) = met {
        // SAFETY: the caller's promise.
        unsafe { window::tool_event(block, ToolReason::Clock, begin) };
    }
}

/// Goes on as if recording had begun with MPI_Init, which has just returned. The other ranks may begin
/// there: this one does with them what they do.
///
/// # Safety
/// `block` is the calling thread's, inside a call of the recorder's own.
pub unsafe fn enter_world(block: *mut ThreadBlock) {
    let _own = OwnWork::begin_long();
    let begin = counter::now();
    ALONE.store(false, Relaxed);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        free_group();
        communicators::register_predefined();
        if let Some(mut before) = exchange::own().take() {
            before.free_world();
        }
        let Some(mut rank) = RANK.lock().take() else { return };
        if let Some(world) = rank.process.library.comm_world() {
            rank.meet_over(world, false);
        }
    }));
    // SAFETY: the caller's promise.
    unsafe { window::tool_event(block, ToolReason::Start, begin) };
}

impl Rank {
    /// Meets the other ranks over a communicator of all, which the program may free if `is_freed`.
    fn meet_over(&mut self, communicator: usize, is_freed: bool) {
        let (rank, size) = (self.rank, self.size);
        let job =
            Job { library: &self.process.library, communicator: Some(communicator), rank, size };
        let present = Some((self.directory.as_path(), self.run_id));
        let mut exchanger = exchange::own();
        let (participants, chosen) = meet(&self.process, &job, &mut exchanger, present);
        let all = participants == Participants::Everyone;
        let stays =
            !is_freed || all && exchanger.as_mut().is_some_and(|exchanger| exchanger.keep_world());
        let phase = if self.has_compared_clocks { Phase::During } else { Phase::Init };
        let measured = exchanger.as_ref().and_then(|e| e.measure_at_meeting(phase));
        if !stays {
            *exchanger = None;
        } else if !is_freed && let Some(exchanger) = exchanger.as_ref() {
            schedule::begin(exchanger, self.process.settings.clock.every_s);
        }
        drop(exchanger);
        self.has_compared_clocks = true;
        if let Some(measured) = &measured {
            schedule::write_to_trace(measured);
        }
        if let RunDirectory::Chosen(directory, run_id) = chosen {
            self.settle(&directory, run_id, rank == participants.root());
        }
    }

    /// Moves the file to the directory on which the ranks agreed.
    fn settle(&mut self, directory: &Path, run_id: RunId, describes: bool) {
        if self.directory == directory && self.run_id == run_id {
            return;
        }
        let (rank, size) = (self.rank, self.size);
        let place = Place { rank, size, directory, run_id, describes };
        let moved = match self.directory == directory {
            true => Ok(()),
            false => move_rank_file(&self.directory, directory, rank),
        };
        match moved.and_then(|()| identity::write(&self.process, &place)) {
            Ok(()) => (self.directory, self.run_id) = (directory.to_owned(), run_id),
            Err(reason) => {
                warn(&format!("rank {rank} remains in {}: {reason}", self.directory.display()))
            }
        }
    }
}
