//! Parallel regions of OpenMP runtimes that tell tools what they do: LLVM's (`libomp`) and Intel's (`libiomp5`), by the
//! interface of the OpenMP API 5.0, chapter 4 (OMPT).
//!
//! The thread that begins a region does so for its [`Team`], and the runtime hands the region's number to the threads
//! that take part. Each writes its time to its slot there whenever it comes to a barrier: the last one is that at the
//! end of the region, from which only the thread that began it returns in time. That one writes the record, as
//! `openmp` does.
//!
//! A thread that the runtime tells of a region it does not know, of one inside another, or of something that began
//! elsewhere, is left alone. If there is another tool, it has the runtime for itself.

use std::env;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::panic::catch_unwind;
use std::ptr::null_mut;

use crate::host::loader::next_in_load_order;
use crate::host::own_work::OwnWork;
use crate::host::{counter, settings};
use crate::state;
use crate::state::thread_block::{TeamShare, ThreadBlock, thread_block};
use crate::store::teams::{self, Share, Slot, Team, Waits};

use super::team::{IS_TOLD, is_recorded, record};

/// `ompt_data_t`: a word of the runtime's that belongs to the tool.
type Data = *mut u64;
type Initialise = unsafe extern "C" fn(Lookup, c_int, Data) -> c_int;
type Finalise = unsafe extern "C" fn(Data);
type Lookup = unsafe extern "C" fn(*const c_char) -> *const c_void;
type SetCallback = unsafe extern "C" fn(c_uint, *const c_void) -> c_int;
type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *mut StartToolResult;

/// `ompt_start_tool_result_t`.
#[repr(C)]
pub struct StartToolResult {
    initialise: Initialise,
    finalise: Finalise,
    tool_data: u64,
}

/// Values of `ompt_callbacks_t`.
mod callback {
    pub const PARALLEL_BEGIN: u32 = 3;
    pub const PARALLEL_END: u32 = 4;
    pub const TASK_CREATE: u32 = 5;
    pub const IMPLICIT_TASK: u32 = 7;
    pub const SYNC_REGION_WAIT: u32 = 16;
    pub const MUTEX_ACQUIRE: u32 = 26;
    pub const MUTEX_ACQUIRED: u32 = 27;
}

/// Values of `ompt_scope_endpoint_t`.
const BEGINS: c_int = 1;
const ENDS: c_int = 2;
/// A flag of `ompt_parallel_flag_t`: threads, not teams of them.
const OF_THREADS: u32 = 0x8000_0000;
/// Flags of `ompt_task_flag_t`.
const INITIAL_TASK: c_int = 1;
const EXPLICIT_TASK: c_int = 4;
/// Values of `ompt_sync_region_t`.
const TASKWAIT: c_int = 5;
const TASKGROUP: c_int = 6;
const END_OF_REGION: c_int = 9;

/// An OpenMP runtime asks for a tool when it starts (OpenMP API 5.0, section 4.2.1).
///
/// # Safety
/// The version is a C string.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut StartToolResult {
    let next = catch_unwind(|| {
        let _own = OwnWork::begin();
        next_in_load_order(c"ompt_start_tool")
    });
    let other = match next {
        // SAFETY: the function of that name, another tool's or the runtime's own, which looks for more.
        Ok(Some(next)) => unsafe {
            transmute::<*const c_void, StartTool>(next)(omp_version, runtime_version)
        },
        _ => null_mut(),
    };
    let is_wanted = catch_unwind(|| {
        let _own = OwnWork::begin();
        let has_other = !other.is_null()
            || env::var_os("OMP_TOOL_LIBRARIES").is_some_and(|libraries| !libraries.is_empty());
        if has_other {
            state::found_other_openmp_tool();
        }
        !has_other && settings::read().0.openmp
    });
    match is_wanted {
        Ok(true) => {
            static RESULT: SharedResult =
                SharedResult(StartToolResult { initialise, finalise, tool_data: 0 });
            (&raw const RESULT.0).cast_mut()
        }
        _ => other,
    }
}

/// What runtimes are given; they only pass on the address of the data, which nobody uses.
struct SharedResult(StartToolResult);

// SAFETY: nothing writes to it.
unsafe impl Sync for SharedResult {}

unsafe extern "C" fn initialise(lookup: Lookup, _device: c_int, _data: Data) -> c_int {
    // SAFETY: the runtime's own functions, with the types that the standard gives them.
    unsafe {
        let set = lookup(c"ompt_set_callback".as_ptr());
        if set.is_null() {
            return 0;
        }
        let set = transmute::<*const c_void, SetCallback>(set);
        let callbacks: [(u32, *const ()); 7] = [
            (callback::PARALLEL_BEGIN, parallel_begin as *const ()),
            (callback::PARALLEL_END, parallel_end as *const ()),
            (callback::TASK_CREATE, task_create as *const ()),
            (callback::IMPLICIT_TASK, implicit_task as *const ()),
            (callback::SYNC_REGION_WAIT, sync_region_wait as *const ()),
            (callback::MUTEX_ACQUIRE, mutex_acquire as *const ()),
            (callback::MUTEX_ACQUIRED, mutex_acquired as *const ()),
        ];
        for (number, function) in callbacks {
            set(number, function.cast());
        }
    }
    1
}

unsafe extern "C" fn finalise(_data: Data) {}

/// What the runtime keeps for the tool with a region; 0 if there is nothing.
///
/// # Safety
/// The address is null or that of such a word, which the runtime does not touch meanwhile.
unsafe fn number_at(data: Data) -> u64 {
    // SAFETY: as the caller says.
    unsafe { data.as_ref() }.copied().unwrap_or(0)
}

unsafe extern "C" fn parallel_begin(
    _task: Data,
    _frame: *const c_void,
    region: Data,
    _threads: c_uint,
    flags: c_int,
    site: *const c_void,
) {
    let block = thread_block();
    let here = 0usize;
    let is_of_threads = flags as u32 & OF_THREADS != 0;
    if region.is_null() || !is_of_threads || !is_recorded(block, (&raw const here).addr()) {
        return;
    }
    let Some(team) = teams::own_team(block) else { return state::miss_team() };
    let number = team.begin(block, site.addr(), counter::anywhere());
    // SAFETY: the word that the runtime keeps for the tool; it hands it to the threads of the team.
    unsafe { region.write(number) };
}

unsafe extern "C" fn parallel_end(region: Data, _task: Data, _flags: c_int, _site: *const c_void) {
    let end = counter::anywhere();
    // SAFETY: as the runtime passed it.
    let number = unsafe { number_at(region) };
    let Some(team) = Team::of(number) else { return };
    let block = thread_block();
    if block.team_share.region.get() == number {
        leave(block);
    }
    record(block, team, number, end);
}

unsafe extern "C" fn implicit_task(
    scope: c_int,
    region: Data,
    task: Data,
    threads: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let block = thread_block();
    if flags & INITIAL_TASK != 0 {
        return;
    }
    if scope == ENDS {
        let share = &block.team_share;
        if share.region.get() != 0 && share.task.get() == task.addr() {
            // Without a barrier at the end, the thread was alone.
            if share.depth.get() == 0 {
                work_until(share, counter::anywhere());
                tell_team(block);
            }
            leave(block);
        }
        return;
    }
    // SAFETY: as the runtime passed it.
    let number = unsafe { number_at(region) };
    let Some(team) = Team::in_region(number).filter(|_| scope == BEGINS) else { return };
    if index == 0 {
        team.has_threads(threads);
    }
    if let Some(slot) = team.slot(index) {
        slot.begin(number);
    }
    block.region.set(IS_TOLD);
    block.region_waits.set([0; 3]);
    let TeamShare { region, task: of, since, work, index: place, depth, waits_for_lock } =
        &block.team_share;
    region.set(number);
    of.set(task.addr());
    work.set(0);
    place.set(index);
    depth.set(0);
    waits_for_lock.set(false);
    since.set(counter::anywhere());
}

/// The thread is no longer in a region.
fn leave(block: &ThreadBlock) {
    block.team_share.region.set(0);
    block.region.set(0);
}

/// The thread's slot in its team.
fn slot_of(share: &TeamShare) -> Option<&'static Slot> {
    Team::in_region(share.region.get())?.slot(share.index.get())
}

/// Tells the team what the thread has done.
fn tell_team(block: &ThreadBlock) {
    let share = &block.team_share;
    if let Some(slot) = slot_of(share) {
        slot.set(Share { work: share.work.get(), waits: block.region_waits.get() });
    }
}

/// Adds the work since the last event to the thread's time.
fn work_until(share: &TeamShare, now: u64) {
    share.work.set(share.work.get() + now.saturating_sub(share.since.get()));
    share.since.set(now);
}

/// The thread begins to wait.
fn wait_begins(block: &ThreadBlock, waits: Waits) {
    let share = &block.team_share;
    work_until(share, counter::anywhere());
    share.depth.set(1);
    share.waits_for_lock.set(waits == Waits::ForLock);
    if waits == Waits::AtBarrier {
        tell_team(block);
    }
}

/// The thread goes on in its region.
fn wait_ends(block: &ThreadBlock, waits: Waits) {
    let now = counter::anywhere();
    let share = &block.team_share;
    let mut sums = block.region_waits.get();
    sums[waits as usize] += now.saturating_sub(share.since.get());
    block.region_waits.set(sums);
    share.since.set(now);
    share.depth.set(0);
}

unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    scope: c_int,
    region: Data,
    _task: Data,
    _site: *const c_void,
) {
    let block = thread_block();
    let share = &block.team_share;
    if share.region.get() == 0 {
        return;
    }
    // SAFETY: as the runtime passed it.
    let number = unsafe { number_at(region) };
    let waits = match kind {
        TASKWAIT | TASKGROUP => Waits::ForTasks,
        _ => Waits::AtBarrier,
    };
    match (scope, share.depth.get()) {
        // Regions inside have barriers of their own.
        (BEGINS, 0) if number == share.region.get() => wait_begins(block, waits),
        (BEGINS, 0) | (ENDS, 0) => {}
        // Tasks that a thread runs while it waits may wait in turn.
        (BEGINS, depth) => share.depth.set(depth.saturating_add(1)),
        // The barrier at the end of the region, which has ended meanwhile.
        (ENDS, 1) if number != share.region.get() || kind == END_OF_REGION => leave(block),
        (ENDS, 1) => wait_ends(block, waits),
        (ENDS, depth) => share.depth.set(depth - 1),
        _ => {}
    }
}

/// Whether a thread may have to wait for a mutex of this kind (`ompt_mutex_t`): a lock, also a nested one, a critical
/// section, an atomic operation or an ordered section; tests do not wait.
fn may_wait(kind: c_int) -> bool {
    matches!(kind, 1 | 3 | 5..=7)
}

unsafe extern "C" fn mutex_acquire(
    kind: c_int,
    _hint: c_uint,
    _implementation: c_uint,
    _mutex: u64,
    _site: *const c_void,
) {
    let block = thread_block();
    let share = &block.team_share;
    if share.region.get() != 0 && share.depth.get() == 0 && may_wait(kind) {
        wait_begins(block, Waits::ForLock);
    }
}

unsafe extern "C" fn mutex_acquired(_kind: c_int, _mutex: u64, _site: *const c_void) {
    let block = thread_block();
    let share = &block.team_share;
    if share.region.get() != 0 && share.depth.get() == 1 && share.waits_for_lock.get() {
        wait_ends(block, Waits::ForLock);
    }
}

unsafe extern "C" fn task_create(
    _task: Data,
    _frame: *const c_void,
    _new: Data,
    flags: c_int,
    _has_dependences: c_int,
    _site: *const c_void,
) {
    if flags & EXPLICIT_TASK == 0 {
        return;
    }
    if let Some(slot) = slot_of(&thread_block().team_share) {
        slot.has_tasks();
    }
}
