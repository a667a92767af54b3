//! The recorder's life: its start after MPI_Init or the first MPI_Session_init, and its end at
//! MPI_Finalize or when the last session is finalized.
//!
//! | module | what it is for |
//! |---|---|
//! | this one | beginning to record with MPI_Init |
//! | `sessions` | beginning, resuming and ending with sessions, in programs without MPI_Init |
//! | `beginning`, `ending` | the steps of both |
//! | `process` | what a rank knows of itself |
//! | `run_directory` | where the run's files go |
//! | `identity` | the header of the rank's file |
//!
//! A process that initialises no MPI stays in the first state and touches nothing. Once recording
//! stops, it never restarts; the program continues.

pub mod beginning;
pub mod ending;
pub mod identity;
pub mod process;
pub mod run_directory;
pub mod sessions;

use std::panic::catch_unwind;

use trace_format::header::ClockAnchor;

use crate::clock::exchange;
use crate::clock::schedule;
use crate::handles::communicators;
use crate::host::counter;
use crate::host::own_work::OwnWork;
use crate::host::presence;
use crate::host::settings;
use crate::life::beginning::{begin_events, begin_or_refuse, describe, make_file, meet, open_file};
use crate::life::process::{Place, Process};
use crate::life::run_directory::RunDirectory;
use crate::mpi::library::Job;
use crate::state;
use crate::state::thread_block::{ThreadBlock, thread_block};

/// Claims the start for the first call that initialises MPI. Returns a reading of the counter and the
/// system's clocks from before that call. Leaves this process's marks if it will meet the other ranks.
pub fn claim_start(meets: bool) -> Option<ClockAnchor> {
    if !state::claim_start() {
        return None;
    }
    let _own = OwnWork::begin();
    catch_unwind(|| {
        if meets {
            presence::announce(settings::out().as_deref());
        }
        counter::choose(settings::test_clock());
        thread_block().counter_slow.set(u32::from(counter::is_slow()));
        counter::anchor()
    })
    .ok()
}

/// Begins recording. Called once, after MPI_Init returned successfully.
/// MPI is initialised and the program has not called it since.
pub fn start(block: &ThreadBlock, function: u16, begin: u64, end: u64, early_anchor: ClockAnchor) {
    begin_or_refuse(|| try_start(block, function, begin, end, early_anchor));
}

/// Like [`start`]. The error is the message that this rank should print, if any.
fn try_start(
    block: &ThreadBlock,
    function: u16,
    begin: u64,
    end: u64,
    early_anchor: ClockAnchor,
) -> Result<(), Option<String>> {
    let process = Process::look();
    let library = &process.library;
    let (rank, size) = library.rank_and_size().ok_or_else(|| {
        Some("this MPI library is unknown and its launcher does not tell the rank".to_owned())
    })?;
    let job = Job { library, communicator: library.comm_world(), rank, size };
    process.warn_of_settings(rank);
    // The exchanger exists from here on, whatever happens, because the other ranks exchange clocks
    // with this one.
    let mut exchanger = exchange::own();
    let (participants, chosen) = meet(&process, &job, &mut exchanger);
    let is_root = rank == participants.root();
    let (directory, run_id) = match chosen {
        RunDirectory::Chosen(directory, run_id) => (directory, run_id),
        RunDirectory::Refused(reason) => {
            // No rank records, so none waits for another.
            *exchanger = None;
            return Err(is_root.then_some(reason));
        }
    };
    let rank_of = Place { rank, size, directory: &directory, run_id, describes: is_root };
    let made = match is_root {
        true => Ok(()),
        false => make_file(&process.settings, &rank_of),
    };
    let opened = made.and_then(|()| open_file(block, &process, &rank_of, early_anchor, begin));
    if opened.is_ok() {
        communicators::register_predefined();
    }
    let measured = exchanger.as_ref().and_then(|e| e.measure_at_init());
    if let Some(exchanger) = exchanger.as_ref() {
        schedule::begin(exchanger, process.settings.clock.every_s);
    }
    drop(exchanger);
    let described = opened.and_then(|()| {
        if let Some(measured) = &measured {
            schedule::write_to_trace(measured);
        }
        describe(&process.settings, is_root)
    });
    begin_events(block, &process.settings, described, (function, begin, end))
}
