//! Compares clocks in programs that began with a session, on the first communicator of all processes on
//! which all can.
//!
//! Inside the wrapper of the call that made the communicator, before the program has it: no message of the
//! program can be on it, and nothing has to be freed. Which communicator is the first one differs between
//! ranks whose threads make several, so all ranks vote on each ([`ballot`]), also those that do not record
//! and those that have compared their clocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Instant;

use trace_format::markers::ToolReason;

use crate::clock::exchange::Exchanger;
use crate::clock::schedule;
use crate::handles::communicators;
use crate::host::counter;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::host::presence::{self, Presence};
use crate::host::settings;
use crate::life::sessions;
use crate::mpi::ballot::{self, Vote};
use crate::mpi::error_handlers::with_errors_returned;
use crate::mpi::library::Job;
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::window;

/// This process's clock has not been compared.
const OPEN: u8 = 0;
/// A thread of this process votes for it.
const CLAIMED: u8 = 1;
/// It has been compared, as far as the other ranks answered.
const DONE: u8 = 2;

static STAGE: AtomicU8 = AtomicU8::new(OPEN);

/// Which ranks take part, fixed by the first communicator of all processes. `None`: this one does not.
static PRESENT: OnceLock<Option<Presence>> = OnceLock::new();

/// Compares clocks if a call has just made a communicator of all processes and all vote for it.
///
/// # Safety
/// `block` is the calling thread's, inside an outermost call that has no open slot.
pub unsafe fn on_new_communicator(block: *mut ThreadBlock, communicator: usize) {
    let _own = OwnWork::begin_long();
    // SAFETY: the caller's promise.
    let begin = unsafe { counter::read(block) };
    let took_part = catch_unwind(AssertUnwindSafe(|| take_part(communicator).is_some()));
    // SAFETY: the caller's promise.
    unsafe {
        if took_part.unwrap_or(true) && state::is_recording() && (*block).paused_at == 0 {
            window::tool_event(block, ToolReason::Clock, begin);
        }
    }
}

fn take_part(communicator: usize) -> Option<()> {
    let made = Instant::now();
    let library = sessions::library();
    let (rank, size) = sessions::rank_in_all(communicator)?;
    if size == 1 {
        return None;
    }
    let present = present(rank, size)?;
    let job = Job { library, communicator: Some(communicator), rank, size };
    with_errors_returned(communicator, library.errors_return()?, || {
        vote_and_compare(&job, present, made);
    })
}

fn present(rank: u32, size: u32) -> Option<&'static Presence> {
    if PRESENT.get().is_none() {
        // The first of several threads decides. None of them waits for another.
        let seen = presence::look_for_sessions(rank, size, settings::out().as_deref());
        let _ = PRESENT.set(seen);
    }
    PRESENT.get()?.as_ref()
}

fn vote_and_compare(job: &Job, present: &Presence, made: Instant) {
    let claimed =
        state::is_recording() && STAGE.compare_exchange(OPEN, CLAIMED, Relaxed, Relaxed).is_ok();
    let host = machine::host_number(&machine::host(), &machine::boot_id());
    let hosts = ballot::vote(job, present, Vote { host, willing: claimed }, made);
    if claimed {
        STAGE.store(if hosts.is_some() { DONE } else { OPEN }, Relaxed);
    }
    let Some(hosts) = hosts else { return };
    // Every rank has looked for rank 0's file.
    presence::withdraw();
    let clock = settings::read().0.clock;
    let deadlines = (clock.exchange_deadline_s(), clock.finalize_deadline_s());
    let exchanger = Exchanger::between_hosts(job, &hosts, clock.rounds, deadlines);
    if let Some(measured) = exchanger.and_then(|exchanger| exchanger.measure_at_init()) {
        schedule::write_to_trace(&measured);
    }
    if let Some(communicator) = job.communicator {
        communicators::classify_peers(communicator, job.size);
    }
}
