//! The steps by which recording begins.

use std::panic::{AssertUnwindSafe, catch_unwind};

use trace_format::header::{ClockAnchor, CounterReading, Definition, Phase};
use trace_format::layout::*;

use crate::clock::exchange::{self, Exchanger};
use crate::event::call_paths::{self, PATHS_LEVEL};
use crate::handles::communicators;
use crate::host::counter;
use crate::host::forks;
use crate::host::loader;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::host::perf_counters;
use crate::host::presence;
use crate::host::settings::Settings;
use crate::host::warn::warn;
use crate::life::identity;
use crate::life::process::{Place, Process};
use crate::life::run_directory::{RunDirectory, agree_on_directory, create_rank_file};
use crate::mpi::agreement::{self, Participants, number_list};
use crate::mpi::library::Job;
use crate::state;
use crate::state::thread_block::{ThreadBlock, thread_block};
use crate::store::directories::CreateError;
use crate::store::file_recording;
use crate::store::keeping;
use crate::store::known_files;
use crate::store::regions;
use crate::store::sampling;
use crate::store::site_table::look_at_modules;
use crate::store::slots::close;
use crate::store::thread_records;
use crate::store::totals;
use crate::store::trace_file::{self, define};
use crate::store::usage;
use crate::store::window;

/// Begins recording, or says why nothing is recorded.
pub fn begin_or_refuse(begin: impl FnOnce() -> Result<(), Option<String>>) {
    let _own = OwnWork::begin_long();
    let outcome = catch_unwind(AssertUnwindSafe(begin));
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

extern "C" fn after_fork_in_child() {
    // The child's copy of the thread's block refers to the parent's trace.
    state::end_in_child();
    forks::after_fork_in_child();
    window::leave_to_parent(thread_block());
    sampling::leave_to_parent(thread_block());
}

/// Finds out who records together, makes this rank's exchanger, and agrees on the run's directory.
pub fn meet(
    process: &Process,
    job: &Job,
    exchanger: &mut Option<Exchanger>,
) -> (Participants, RunDirectory) {
    let Process { settings, host_number, .. } = process;
    let participants = agreement::agree(job, *host_number, settings.out.as_deref());
    *exchanger = Exchanger::new(
        job,
        *host_number,
        &participants,
        settings.clock.rounds,
        (settings.clock.exchange_deadline_s(), settings.clock.finalize_deadline_s()),
    );
    if let (Participants::Some(members), true, true) =
        (&participants, job.rank == participants.root(), exchanger.is_some())
    {
        warn(&format!(
            "as far as this host can see, only {} of {} ranks ({}) load the recorder; \
             the others are not recorded",
            members.len(),
            job.size,
            number_list(members.iter().map(|member| member.0))
        ));
    }
    let chosen = agree_on_directory(settings, job, &participants, exchanger.as_ref());
    if participants == Participants::Everyone {
        // All ranks have met in a collective call, so nobody looks for marks any more.
        presence::withdraw();
    }
    (participants, chosen)
}

/// Writes the first records of the rank's file, and opens the calling thread's first window.
pub fn open_file(
    block: &ThreadBlock,
    process: &Process,
    place: &Place,
    early_anchor: ClockAnchor,
    begin: u64,
) -> Result<(), String> {
    let (settings, level) = (&process.settings, process.level());
    if u32::from(level) >= PATHS_LEVEL {
        call_paths::prepare(settings.paths_from_us * 1e-6);
    }
    identity::write(process, place)?;
    define(&Definition::Keeping(settings.keeping.clone()))?;
    define(&Definition::ClockAnchor(early_anchor))?;
    trace_file::limit(settings.keeping.max_bytes);
    keeping::choose(settings.keeping.clone(), settings.last_s);
    communicators::begin(&process.library);
    if u32::from(level) >= window::SITES_LEVEL {
        look_at_modules();
    }
    window::watch_threads();
    window::set_level(level);
    // Opened at the call's begin, so that the call's event fits in.
    window::open(block, begin, 0)
}

/// Writes what is known of process and host when recording begins. One rank speaks for all.
pub fn describe(settings: &Settings, for_all: bool) -> Result<(), String> {
    if let Some(system_clock) = counter::system_clock() {
        define(&Definition::SystemClock(system_clock))?;
    }
    let model = machine::processor();
    if !model.is_empty() {
        define(&Definition::Processor { model })?;
    }
    if for_all {
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
    if let Some(rate_hz) = settings.sample_hz {
        begin_samples(rate_hz, for_all)?;
    }
    if settings.flight.is_some() {
        // Without stacks a snapshot has the rest.
        let _ = sampling::answer_with_stacks();
    }
    define(&Definition::ClockAnchor(counter::anchor()))
}

fn begin_samples(rate_hz: u32, for_all: bool) -> Result<(), String> {
    let sampling = sampling::begin(rate_hz);
    if for_all && !sampling.unavailable.is_empty() {
        warn(&format!("nothing is sampled; the program continues: {}", sampling.unavailable));
    }
    define(&Definition::Sampling(sampling))
}

/// Begins to record events, with that of the call that initialised MPI: its function, begin and end.
/// The thread's window was opened unless `described` is an error.
pub fn begin_events(
    block: &ThreadBlock,
    settings: &Settings,
    described: Result<(), String>,
    call: (u16, u64, u64),
) -> Result<(), Option<String>> {
    if let Err(reason) = described {
        window::scratch(block);
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
    state::choose_openmp(settings.openmp);
    if settings.openmp {
        write_openmp();
    }
    if settings.io || file_recording::is_attached() {
        known_files::choose_names(settings.file_names);
        let _ = file_recording::write(Phase::Init);
    }
    regions::choose(settings.compute.as_str());
    for counter in perf_counters::open(&settings.counters) {
        let _ = define(&Definition::Counter(counter));
    }
    first_event(block, call);
    state::record();
    let ticks = counter::now();
    totals::begin_elapsed(ticks);
    define(&Definition::RankBegin { ticks }).map_err(Some)?;
    write_counters(perf_counters::read(), Phase::Init, ticks);
    Ok(())
}

/// Writes that parallel regions are recorded, and which runtimes there are now.
pub fn write_openmp() {
    let mut runtimes = loader::loaded_openmp();
    if state::has_other_openmp_tool() {
        let is_told = |file: &&mut String| !file.starts_with("libgomp");
        runtimes
            .iter_mut()
            .filter(is_told)
            .for_each(|file| file.push_str(", observed by another tool"));
    }
    let _ = define(&Definition::OpenMp { runtimes });
}

/// Writes the event of the call that initialised MPI, and one of the recorder's work since it ended.
/// The thread's window was opened when the call began.
pub fn first_event(block: &ThreadBlock, (function, begin, end): (u16, u64, u64)) {
    // SAFETY: a slot that was taken is the thread's own.
    unsafe {
        let slot = window::take_slot(block);
        (&raw mut (*slot).begin).write_volatile(begin);
        close(block, slot, end.wrapping_sub(begin), function, 0);
        window::tool_event(block, ToolReason::Start, end);
    }
}

/// Makes the rank's file.
pub fn make_file(settings: &Settings, place: &Place) -> Result<(), String> {
    let made = create_rank_file(settings, place.directory, (place.rank, &place.run_id), false);
    made.map_err(|refused| match refused {
        CreateError::Exists => {
            format!("{} already holds a trace of this rank", place.directory.display())
        }
        CreateError::Failed(reason) => reason,
    })
}

/// Writes a reading of the performance counters, if there are any.
pub fn write_counters(values: Vec<(u32, u64, u32)>, phase: Phase, ticks: u64) {
    if !values.is_empty() {
        let _ = define(&Definition::CounterReading(CounterReading { phase, ticks, values }));
    }
}
