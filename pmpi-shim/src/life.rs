//! The recorder's life: one state, its start after MPI_Init and its end at MPI_Finalize.
//!
//! A process that never calls MPI_Init stays in the first state and touches nothing. What stops
//! recording stops it for good; the program goes on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use trace_format::functions;
use trace_format::header::{ClockAnchor, Definition, FileHeader, Phase};
use trace_format::layout::*;
use trace_format::settings::OUT;

use crate::abi;
use crate::agreement::{self, Company, number_list};
use crate::clock_exchange::Exchanger;
use crate::clock_schedule;
use crate::communicators;
use crate::compute;
use crate::counter;
use crate::counters;
use crate::ignored_statuses;
use crate::keeping;
use crate::machine;
use crate::modules;
use crate::mpi_library::MpiLibrary;
use crate::path::close;
use crate::presence;
use crate::real_entry::OwnWork;
use crate::region;
use crate::run_id::{self, RUN_ID_BYTES, RunId};
use crate::say::say;
use crate::settings::{self, Settings};
use crate::stage;
use crate::thread_block::{ThreadBlock, thread_block};
use crate::totals;
use crate::trace_file::{self, CreateError, define};
use crate::weak_references;
use crate::window;

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const RECORDING: u8 = 2;
/// Recording could not begin or go on: events are only counted, but the rank still takes part in what ranks do
/// together at MPI_Finalize.
const STOPPED: u8 = 3;
/// MPI_Finalize was entered, or no rank records: nothing is recorded or counted.
const OVER: u8 = 4;

static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);
/// Events that found no space after recording stopped.
static LOST_EVENTS: AtomicU64 = AtomicU64::new(0);
static EXCHANGER: Mutex<Option<Exchanger>> = Mutex::new(None);

/// Longest path that rank 0 hands to the others.
const MOST_PATH_BYTES: usize = 4096;
/// Directories tried when the wanted one holds a run already.
const MOST_DIRECTORIES: u32 = 1000;

/// Whether events go to the trace.
pub fn is_recording() -> bool {
    STATE.load(Relaxed) == RECORDING
}

/// Whether MPI_Finalize has something to complete.
pub fn has_trace() -> bool {
    matches!(STATE.load(Relaxed), RECORDING | STOPPED)
}

/// Counts an event that goes nowhere, where that is a loss.
pub fn count_lost_event() {
    if STATE.load(Relaxed) == STOPPED {
        LOST_EVENTS.fetch_add(1, Relaxed);
    }
}

/// Does something with this rank's exchanger; `None` where there is none, or no more.
pub fn with_exchanger<R>(work: impl FnOnce(&mut Exchanger) -> R) -> Option<R> {
    EXCHANGER.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
}

/// Claims the start for the first call of MPI_Init; gives the counter beside the system's clocks as
/// it stood before that call.
pub fn claim_start() -> Option<ClockAnchor> {
    STATE.compare_exchange(UNSTARTED, STARTING, Relaxed, Relaxed).ok()?;
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

/// MPI_Init failed: there is nothing to record, and a later call may succeed.
pub fn give_back_start() {
    let _ = STATE.compare_exchange(STARTING, UNSTARTED, Relaxed, Relaxed);
}

/// Ends recording for good and says why in one line.
pub fn stop(ticks: u64, reason: &str) {
    if STATE.compare_exchange(RECORDING, STOPPED, Relaxed, Relaxed).is_err() {
        return;
    }
    say(&format!("recording stopped, the program goes on: {reason}"));
    // The chunk of definitions may still have room where the file could not grow.
    let _ = define(&Definition::Stopped { ticks, reason: reason.to_owned() });
}

extern "C" fn after_fork_in_child() {
    // The child's copy of the thread's block points into the parent's trace.
    STATE.store(OVER, Relaxed);
    // SAFETY: the only thread of the child is the calling one.
    unsafe { window::leave_to_parent(thread_block()) };
}

/// A run's place and id, decided by one rank for all.
enum Place {
    Directory(PathBuf, RunId),
    Refused(String),
}

/// Begins recording; called once, after MPI_Init returned successfully.
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
    let _own = OwnWork::begin();
    // SAFETY: the caller's promise.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        try_start(block, function, begin, end, early_anchor)
    }));
    let refusal = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(refusal)) => refusal,
        Err(_) => Some("an internal error".to_owned()),
    };
    let exchanges = EXCHANGER.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    STATE.store(if exchanges { STOPPED } else { OVER }, Relaxed);
    if let Some(reason) = refusal {
        say(&format!("nothing is recorded, the program goes on: {reason}"));
    }
}

/// As [`start`]; the error is what this rank should say, if anything.
unsafe fn try_start(
    block: *mut ThreadBlock,
    function: u16,
    begin: u64,
    end: u64,
    early_anchor: ClockAnchor,
) -> Result<(), Option<String>> {
    // MPI_Init has loaded plug-ins; at the first call it would be the program's time.
    weak_references::repair();
    let (settings, complaints) = settings::read();
    let library = MpiLibrary::detect();
    // Wrappers read handles by these also where nothing is recorded.
    abi::set(library.family, library.request_null(), library.datatype_null());
    ignored_statuses::set(&library);
    let (rank, size) = library.rank_and_size().ok_or_else(|| {
        Some("this MPI library is unknown and its launcher does not tell the rank".to_owned())
    })?;
    if rank == 0 {
        for complaint in &complaints {
            say(complaint);
        }
    }
    let (host, boot_id) = (machine::host(), machine::boot_id());
    let number = machine::host_number(&host, &boot_id);
    let company = agreement::agree(&library, (rank, size), number, settings.out.as_deref());
    let exchanger = Exchanger::new(
        &library,
        (rank, size),
        number,
        &company,
        settings.clock.rounds,
        (settings.clock.exchange_deadline_s(), settings.clock.finalize_deadline_s()),
    );
    if let (Company::Some(members), true, true) =
        (&company, rank == company.root(), exchanger.is_some())
    {
        say(&format!(
            "the recorder is loaded by {} of {size} ranks ({}) as far as this host can see; they are \
             recorded, the others are not",
            members.len(),
            number_list(members.iter().map(|member| member.0))
        ));
    }
    // Kept from here on, whatever happens: the other ranks exchange clocks with this one.
    let mut kept = EXCHANGER.lock().unwrap_or_else(PoisonError::into_inner);
    *kept = exchanger;
    let place = agree_on_place(&settings, &library, rank, &company, kept.as_ref());
    if company == Company::Everyone {
        // All have met in a collective call: nobody looks for marks any more.
        presence::withdraw();
    }
    let (directory, run_id) = match place {
        Place::Directory(directory, run_id) => (directory, run_id),
        Place::Refused(reason) => {
            // No rank records, so none waits for another.
            *kept = None;
            return Err((rank == company.root()).then_some(reason));
        }
    };
    let level = if abi::is_known() { settings.level } else { 0 };
    let is_root = rank == company.root();
    let opened = begin_file(&settings, &directory, (rank, &run_id), is_root, || {
        write_identity(&settings, &library, (rank, size, level), run_id, (host, boot_id))?;
        define(&Definition::Keeping(settings.keeping.clone()))?;
        define(&Definition::ClockAnchor(early_anchor))?;
        trace_file::limit(settings.keeping.max_bytes);
        keeping::choose(settings.keeping.clone());
        communicators::begin(&library);
        if u32::from(level) >= window::SITES_LEVEL {
            modules::look();
        }
        window::watch_threads();
        window::set_level(level);
        // SAFETY: the calling thread's block; opened at the call's begin, so that its event fits in.
        unsafe { window::open(block, begin, 0) }
    });
    let measured = kept.as_ref().and_then(|e| e.measure_at_init());
    if let Some(exchanger) = kept.as_ref() {
        clock_schedule::begin(exchanger, settings.clock.every_s);
    }
    drop(kept);
    let described = opened.and_then(|()| {
        if let Some(measured) = &measured {
            clock_schedule::write_down(measured);
        }
        if let Some(system_clock) = counter::system_clock() {
            define(&Definition::SystemClock(system_clock))?;
        }
        if is_root {
            define(&Definition::Environment(machine::environment()))?;
        }
        for usage in machine::thread_usages(Phase::Init) {
            define(&Definition::ThreadUsage(usage))?;
        }
        if let Some(life) = machine::process_life() {
            define(&Definition::ProcessLife(life))?;
        }
        define(&Definition::ProcessUsage(machine::process_usage(Phase::Init)))?;
        define(&Definition::ClockAnchor(counter::anchor()))
    });
    if let Err(reason) = described {
        // SAFETY: the calling thread's block.
        unsafe { window::scratch(block) };
        return Err(Some(reason));
    }
    // SAFETY: a handler without arguments.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    compute::set_mode(settings.compute.as_str(), settings.flops);
    region::choose(settings.compute.as_str());
    counters::open(&settings.counters);
    // SAFETY: the calling thread's block, whose window was opened above.
    unsafe {
        let slot = crate::path::take_slot(block);
        (&raw mut (*slot).begin).write_volatile(begin);
        close(block, slot, end.wrapping_sub(begin), function, 0);
        window::tool_event(block, ToolReason::Start, end);
    }
    STATE.store(RECORDING, Relaxed);
    let ticks = counter::now();
    totals::stretch_begins(ticks);
    define(&Definition::RankBegin { ticks }).map_err(Some)?;
    counters::write_down(Phase::Init, ticks);
    Ok(())
}

/// Makes the rank's file (the one that decided has made its own already) and fills its beginning.
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
                    format!("{} holds a trace of this rank already", directory.display())
                }
                CreateError::Failed(reason) => reason,
            }
        })?;
    }
    fill()
}

/// One rank makes directory and its own file and tells the others; where MPI's constants are not
/// known, every rank takes the directory of the environment.
fn agree_on_place(
    settings: &Settings,
    library: &MpiLibrary,
    rank: u32,
    company: &Company,
    exchanger: Option<&Exchanger>,
) -> Place {
    let decides = rank == company.root();
    let Some(exchanger) = exchanger else {
        let Some(out) = settings.out.clone() else {
            return Place::Refused(format!(
                "{} must name the run directory under an MPI library that this version does not know",
                OUT.name
            ));
        };
        return match decides {
            true => make_place(settings, &out, rank, run_id::apart()),
            false => Place::Directory(out, run_id::apart()),
        };
    };
    // The run's id, then the path: all zeros where the rank that decides cannot record.
    let mut message = vec![0u8; RUN_ID_BYTES + MOST_PATH_BYTES];
    let mut place = Place::Refused(String::new());
    if decides {
        let out = settings.out.clone().unwrap_or_else(default_directory);
        let id = if *company == Company::Everyone { run_id::fresh() } else { run_id::apart() };
        place = make_place(settings, &out, rank, id);
        if let Place::Directory(directory, id) = &place {
            let bytes = directory.as_os_str().as_encoded_bytes();
            if bytes.len() < MOST_PATH_BYTES {
                message[..RUN_ID_BYTES].copy_from_slice(id);
                message[RUN_ID_BYTES..][..bytes.len()].copy_from_slice(bytes);
            } else {
                place = Place::Refused("the run directory's path is too long".to_owned());
            }
        }
    }
    let told = match company {
        Company::Everyone => exchanger.broadcast(&mut message),
        Company::Some(_) => agreement::hand_round(library, rank, company, &mut message),
    };
    if !told {
        return Place::Refused("MPI refused the recorder's own broadcast".to_owned());
    }
    if decides {
        return place;
    }
    let (id, path) = message.split_at(RUN_ID_BYTES);
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(MOST_PATH_BYTES);
    match &path[..length] {
        [] => Place::Refused(format!("rank {} cannot record", company.root())),
        path => Place::Directory(
            PathBuf::from(OsStr::from_bytes(path)),
            id.try_into().unwrap_or([0; RUN_ID_BYTES]),
        ),
    }
}

fn default_directory() -> PathBuf {
    let program = machine::program();
    let name = Path::new(&program).file_name().map_or("run".into(), |n| n.to_string_lossy());
    PathBuf::from(format!("{name}-{}.gammachi", machine::date_for_name()))
}

/// Makes the directory and the rank's file in it; `DIR-2`, `DIR-3` … where it holds a run already.
fn make_place(settings: &Settings, wanted: &Path, rank: u32, run_id: RunId) -> Place {
    let wanted = std::path::absolute(wanted).unwrap_or_else(|_| wanted.to_owned());
    for attempt in 1..=MOST_DIRECTORIES {
        let mut directory = wanted.clone();
        if attempt > 1 {
            directory.as_mut_os_string().push(format!("-{attempt}"));
            // One that is there is somebody else's, though it may be empty still.
            match trace_file::make_new_directory(&directory) {
                Ok(()) => {}
                Err(CreateError::Exists) => continue,
                Err(CreateError::Failed(reason)) => return Place::Refused(reason),
            }
        }
        match create_rank_file(settings, &directory, (rank, &run_id), true) {
            Ok(()) => return Place::Directory(directory, run_id),
            Err(CreateError::Exists) => {}
            Err(CreateError::Failed(reason)) => return Place::Refused(reason),
        }
    }
    Place::Refused(format!("{} and its successors hold runs already", wanted.display()))
}

/// The rank's file, in the staging directory where there is one that can be used; `chooses` where no rank
/// has said yet that the run directory is this run's.
fn create_rank_file(
    settings: &Settings,
    directory: &Path,
    (rank, run_id): (u32, &RunId),
    chooses: bool,
) -> Result<(), CreateError> {
    if let Some(place) = &settings.stage {
        match stage::create(place, directory, rank, run_id, chooses) {
            Err(CreateError::Failed(reason)) => {
                say(&format!("{}: not staged there: {reason}", place.display()));
            }
            made => return made,
        }
    }
    let path = directory.join(rank_file_path(0, rank));
    trace_file::make_directories(directory, &path).map_err(CreateError::Failed)?;
    trace_file::create(&path)
}

fn write_identity(
    settings: &Settings,
    library: &MpiLibrary,
    (rank, size, level): (u32, u32, u8),
    run_id: RunId,
    (host, boot_id): (String, String),
) -> Result<(), String> {
    let header = FileHeader {
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: machine::program(),
        build_id: machine::build_id(),
        arguments: machine::arguments(),
        directory: std::env::current_dir()
            .map(|d| d.to_string_lossy().into_owned())
            .unwrap_or_default(),
        host,
        boot_id,
        mpi_library: library.version_text.clone(),
        mpi_family: library.family.name().to_owned(),
        mpi_version: library.standard,
        thread_level: library.thread_level(),
        counter_invariant: counter::is_invariant(),
        compute: settings.compute.to_string(),
        parameters: settings.parameters.clone(),
        affinity: machine::affinity(),
        numa_node: machine::core_and_node().1,
        function_names: functions::names().join("\n"),
    };
    let fixed = FixedHeader {
        magic: MAGIC,
        version: FORMAT_VERSION,
        level,
        counter: counter::kind() as u8,
        rank,
        world_size: size,
        world: 0,
        pid: std::process::id(),
        payload_bytes: 0,
        payload_crc: 0,
        fixed_crc: 0,
        reserved: [0; 8],
        run_id,
    };
    trace_file::write_header(fixed, &header)
}

/// What must be done before MPI is finalized; `begin` is when the program entered MPI_Finalize.
///
/// # Safety
/// `block` is the calling thread's; its slot for MPI_Finalize is open.
pub unsafe fn before_finalize(block: *mut ThreadBlock, begin: u64) {
    let _own = OwnWork::begin();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let counted = counters::read();
        let work_begin = counter::now();
        presence::withdraw();
        clock_schedule::end();
        let exchanger = EXCHANGER.lock().unwrap_or_else(PoisonError::into_inner).take();
        totals::stretch_ends(begin);
        let _ = define(&Definition::RankEnd { ticks: begin });
        counters::write(counted, Phase::Finalize, begin);
        for usage in machine::thread_usages(Phase::Finalize) {
            let _ = define(&Definition::ThreadUsage(usage));
        }
        let process = machine::process_usage(Phase::Finalize);
        let _ = define(&Definition::ProcessUsage(process));
        if let Some(measured) = exchanger.and_then(Exchanger::measure_at_finalize) {
            clock_schedule::write_down(&measured);
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
    let _own = OwnWork::begin();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let lost_events = LOST_EVENTS.load(Relaxed);
        STATE.store(OVER, Relaxed);
        // SAFETY: the caller's promise; after this the thread has no window.
        if let Err(reason) = unsafe { window::finish(block, lost_events) } {
            say(&format!("this rank's trace is not whole: {reason}"));
        }
        stage::move_home();
    }));
}
