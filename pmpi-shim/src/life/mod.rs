//! The recorder's life: its start after MPI_Init and its end at MPI_Finalize.
//!
//! | module | what it is for |
//! |---|---|
//! | this one | beginning and ending the recording |
//! | `run_directory` | where the run's files go |
//! | `identity` | the header of the rank's file |
//!
//! A process that never calls MPI_Init stays in the first state and touches nothing. Once recording
//! stops, it never restarts; the program continues.

pub mod identity;
pub mod run_directory;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use trace_format::header::{ClockAnchor, CounterReading, Definition, Phase};
use trace_format::layout::*;

use crate::clock::exchange::{self, Exchanger};
use crate::clock::schedule;
use crate::event::call_paths::{self, PATHS_LEVEL};
use crate::event::ignored_statuses;
use crate::handles::communicators;
use crate::host::counter;
use crate::host::forks;
use crate::host::loader;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::host::perf_counters;
use crate::host::presence;
use crate::host::run_id::RunId;
use crate::host::settings::{self, Settings};
use crate::host::warn::warn;
use crate::life::run_directory::{RunDirectory, agree_on_directory, create_rank_file};
use crate::mpi::abi;
use crate::mpi::agreement::{self, Participants, number_list};
use crate::mpi::library::MpiLibrary;
use crate::mpi::weak_references;
use crate::state;
use crate::state::thread_block::{ThreadBlock, thread_block};
use crate::store::keeping;
use crate::store::regions;
use crate::store::site_table::look_at_modules;
use crate::store::slots::close;
use crate::store::stage;
use crate::store::thread_records;
use crate::store::totals;
use crate::store::trace_file::{self, CreateError, define};
use crate::store::usage;
use crate::store::window;

/// Claims the start for the first call of MPI_Init. Returns a reading of the counter and the
/// system's clocks from before that call.
pub fn claim_start() -> Option<ClockAnchor> {
    if !state::claim_start() {
        return None;
    }
    let _own = OwnWork::begin();
    catch_unwind(|| {
        presence::announce(settings::out().as_deref());
        counter::choose(settings::test_clock());
        // SAFETY: the calling thread's own block.
        unsafe { (*thread_block()).counter_slow = u32::from(counter::is_slow()) };
        counter::anchor()
    })
    .ok()
}

extern "C" fn after_fork_in_child() {
    // The child's copy of the thread's block refers to the parent's trace.
    state::end_in_child();
    forks::after_fork_in_child();
    // SAFETY: the calling thread is the only one of the child.
    unsafe { window::leave_to_parent(thread_block()) };
}

/// Begins recording. Called once, after MPI_Init returned successfully.
///
/// # Safety
/// `block` is the calling thread's; MPI is initialised and the program has not called it since.
pub unsafe fn start(
    block: *mut ThreadBlock,
    function: u16,
    begin: u64,
    end: u64,
    early_anchor: ClockAnchor,
) {
    let _own = OwnWork::begin_long();
    // SAFETY: the caller's promise.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        try_start(block, function, begin, end, early_anchor)
    }));
    let refusal = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(refusal)) => refusal,
        Err(_) => Some("an internal error".to_owned()),
    };
    state::refuse(exchange::own().is_some());
    if let Some(reason) = refusal {
        warn(&format!("nothing is recorded; the program continues: {reason}"));
    }
}

/// Like [`start`]. The error is the message that this rank should print, if any.
unsafe fn try_start(
    block: *mut ThreadBlock,
    function: u16,
    begin: u64,
    end: u64,
    early_anchor: ClockAnchor,
) -> Result<(), Option<String>> {
    // MPI_Init has loaded plug-ins. At the first call this would count as the program's time.
    weak_references::repair();
    let (settings, complaints) = settings::read();
    let library = MpiLibrary::detect();
    // Wrappers need these constants to read handles even if nothing is recorded.
    abi::set(library.family, library.request_null(), library.datatype_null());
    ignored_statuses::set(&library);
    let (rank, size) = library.rank_and_size().ok_or_else(|| {
        Some("this MPI library is unknown and its launcher does not tell the rank".to_owned())
    })?;
    if rank == 0 {
        for complaint in &complaints {
            warn(complaint);
        }
    }
    let (host, boot_id) = (machine::host(), machine::boot_id());
    let number = machine::host_number(&host, &boot_id);
    let participants = agreement::agree(&library, (rank, size), number, settings.out.as_deref());
    let exchanger = Exchanger::new(
        &library,
        (rank, size),
        number,
        &participants,
        settings.clock.rounds,
        (settings.clock.exchange_deadline_s(), settings.clock.finalize_deadline_s()),
    );
    if let (Participants::Some(members), true, true) =
        (&participants, rank == participants.root(), exchanger.is_some())
    {
        warn(&format!(
            "as far as this host can see, only {} of {size} ranks ({}) load the recorder; \
             the others are not recorded",
            members.len(),
            number_list(members.iter().map(|member| member.0))
        ));
    }
    // The exchanger exists from here on, whatever happens, because the other ranks exchange clocks
    // with this one.
    let mut exchanger_slot = exchange::own();
    *exchanger_slot = exchanger;
    let chosen =
        agree_on_directory(&settings, &library, rank, &participants, exchanger_slot.as_ref());
    if participants == Participants::Everyone {
        // All ranks have met in a collective call, so nobody looks for marks any more.
        presence::withdraw();
    }
    let (directory, run_id) = match chosen {
        RunDirectory::Chosen(directory, run_id) => (directory, run_id),
        RunDirectory::Refused(reason) => {
            // No rank records, so none waits for another.
            *exchanger_slot = None;
            return Err((rank == participants.root()).then_some(reason));
        }
    };
    let level = if abi::is_known() { settings.level } else { 0 };
    if u32::from(level) >= PATHS_LEVEL {
        call_paths::prepare(settings.paths_from_us * 1e-6);
    }
    let is_root = rank == participants.root();
    let opened = begin_file(&settings, &directory, (rank, &run_id), is_root, || {
        identity::write(&settings, &library, (rank, size, level), run_id, (host, boot_id))?;
        define(&Definition::Keeping(settings.keeping.clone()))?;
        define(&Definition::ClockAnchor(early_anchor))?;
        trace_file::limit(settings.keeping.max_bytes);
        keeping::choose(settings.keeping.clone());
        communicators::begin(&library);
        if u32::from(level) >= window::SITES_LEVEL {
            look_at_modules();
        }
        window::watch_threads();
        window::set_level(level);
        // SAFETY: the calling thread's block; opened at the call's begin, so that the call's event fits in.
        unsafe { window::open(block, begin, 0) }
    });
    let measured = exchanger_slot.as_ref().and_then(|e| e.measure_at_init());
    if let Some(exchanger) = exchanger_slot.as_ref() {
        schedule::begin(exchanger, settings.clock.every_s);
    }
    drop(exchanger_slot);
    let described = opened.and_then(|()| {
        if let Some(measured) = &measured {
            schedule::write_to_trace(measured);
        }
        if let Some(system_clock) = counter::system_clock() {
            define(&Definition::SystemClock(system_clock))?;
        }
        let model = machine::processor();
        if !model.is_empty() {
            define(&Definition::Processor { model })?;
        }
        if is_root {
            define(&Definition::Environment(machine::environment()))?;
        }
        for usage in machine::thread_usages(&thread_records::os_ids(), Phase::Init) {
            define(&Definition::ThreadUsage(usage))?;
        }
        if let Some(life) = machine::process_life() {
            define(&Definition::ProcessLife(life))?;
        }
        define(&Definition::ProcessUsage(machine::process_usage(Phase::Init)))?;
        usage::begin()?;
        define(&Definition::ClockAnchor(counter::anchor()))
    });
    if let Err(reason) = described {
        // SAFETY: the calling thread's block.
        unsafe { window::scratch(block) };
        return Err(Some(reason));
    }
    loader::expect_forks();
    // SAFETY: the handlers take no arguments.
    unsafe {
        libc::pthread_atfork(
            Some(forks::before_fork),
            Some(forks::after_fork_in_parent),
            Some(after_fork_in_child),
        )
    };
    state::choose_compute(settings.compute.as_str(), settings.flops);
    regions::choose(settings.compute.as_str());
    for counter in perf_counters::open(&settings.counters) {
        let _ = define(&Definition::Counter(counter));
    }
    // SAFETY: the calling thread's block, whose window was opened above.
    unsafe {
        let slot = window::take_slot(block);
        (&raw mut (*slot).begin).write_volatile(begin);
        close(block, slot, end.wrapping_sub(begin), function, 0);
        window::tool_event(block, ToolReason::Start, end);
    }
    state::record();
    let ticks = counter::now();
    totals::begin_elapsed(ticks);
    define(&Definition::RankBegin { ticks }).map_err(Some)?;
    write_counters(perf_counters::read(), Phase::Init, ticks);
    Ok(())
}

/// Makes the rank's file (the rank that decided has already made its own) and writes its first
/// records.
fn begin_file(
    settings: &Settings,
    directory: &Path,
    (rank, run_id): (u32, &RunId),
    is_made: bool,
    fill: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    if !is_made {
        create_rank_file(settings, directory, (rank, run_id), false).map_err(|refused| {
            match refused {
                CreateError::Exists => {
                    format!("{} already holds a trace of this rank", directory.display())
                }
                CreateError::Failed(reason) => reason,
            }
        })?;
    }
    fill()
}

/// Writes a reading of the performance counters, if there are any.
fn write_counters(values: Vec<(u32, u64, u32)>, phase: Phase, ticks: u64) {
    if !values.is_empty() {
        let _ = define(&Definition::CounterReading(CounterReading { phase, ticks, values }));
    }
}

/// Does what must be done before MPI is finalized. `begin` is when the program entered
/// MPI_Finalize.
///
/// # Safety
/// `block` is the calling thread's; its slot for MPI_Finalize is open.
pub unsafe fn before_finalize(block: *mut ThreadBlock, begin: u64) {
    let _own = OwnWork::begin_long();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let counted = perf_counters::read();
        let work_begin = counter::now();
        presence::withdraw();
        schedule::end();
        let exchanger = exchange::own().take();
        totals::end_elapsed(begin);
        let _ = define(&Definition::RankEnd { ticks: begin });
        write_counters(counted, Phase::Finalize, begin);
        for usage in machine::thread_usages(&thread_records::os_ids(), Phase::Finalize) {
            let _ = define(&Definition::ThreadUsage(usage));
        }
        let process = machine::process_usage(Phase::Finalize);
        let _ = define(&Definition::ProcessUsage(process));
        usage::end();
        if let Some(measured) = exchanger.and_then(Exchanger::measure_at_finalize) {
            schedule::write_to_trace(&measured);
        }
        let _ = define(&Definition::ClockAnchor(counter::anchor()));
        // SAFETY: the caller's promise.
        unsafe { window::tool_event(block, ToolReason::Finish, work_begin) };
    }));
}

/// Completes the file after MPI_Finalize returned.
///
/// # Safety
/// `block` is the calling thread's; its event of MPI_Finalize is complete.
pub unsafe fn after_finalize(block: *mut ThreadBlock) {
    let _own = OwnWork::begin_long();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let lost_events = state::lost_events();
        state::end();
        // SAFETY: the caller's promise; after this the thread has no window.
        if let Err(reason) = unsafe { window::finish(block, lost_events) } {
            warn(&format!("this rank's trace is incomplete: {reason}"));
        }
        stage::move_to_run_directory();
    }));
}
