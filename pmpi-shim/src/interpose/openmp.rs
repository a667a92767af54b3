//! Parallel regions of OpenMP programs compiled by GCC, whose runtime (libgomp) has no tools interface.
//!
//! The function into which the compiler outlined a region is wrapped, so that every thread of the team measures its
//! share. The thread that began the region writes one record when all have joined. Threads that wait inside, at a
//! barrier or for a lock, add that to their share. A region inside another counts as work of the thread that began it.
//! Regions of threads that never call MPI are not recorded.
//!
//! Another runtime may have these entries, too (LLVM's does); what it says to tools (`ompt`) is not listened to then.
//!
//! What a thread does at a barrier is known only if no tasks run there, so a region that makes tasks has one sum for
//! both.
//!
//! `omp_set_nest_lock` is not interposed: libgomp has two versions with different locks.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::host::counter;
use crate::host::loader::{find_in_object, next_in_load_order, object_of};
use crate::host::own_work::OwnWork;
use crate::mpi::invoke::Invoke;
use crate::mpi::real_entry::RealEntry;
use crate::state;
use crate::state::thread_block::{entry_stub, thread_block};
use crate::store::teams::{self, Share, Team, Waits};

use super::team::{IN_REGION, MADE_TASKS, STARTS, WAITS, is_recorded, record};

type Outlined = unsafe extern "C-unwind" fn(*mut c_void);
/// `omp_get_thread_num` or `omp_get_num_threads`.
type Ask = unsafe extern "C" fn() -> c_int;

/// The region that the slots of these teams belong to: all threads write theirs in each region.
const REGION: u64 = 0;

/// The outlined function of a region that is recorded, on every thread of the team.
unsafe extern "C-unwind" fn take_part(team: *mut c_void) {
    let block = thread_block();
    // SAFETY: the thread that began the region passed its team, one of a static table.
    let team: &'static Team = unsafe { &*team.cast_const().cast() };
    let [outlined, data, thread_number, thread_count] = team.told();
    // SAFETY: the program's outlined function, and the runtime's functions of these types, which may be called anywhere.
    let (outlined, numbers) = unsafe {
        let known = (thread_number != 0 && thread_count != 0).then(|| {
            (transmute::<usize, Ask>(thread_number), transmute::<usize, Ask>(thread_count))
        });
        (transmute::<usize, Outlined>(outlined), known)
    };
    let slot = match numbers {
        Some((number, count)) => {
            // SAFETY: as above.
            let number = unsafe { number() } as u32;
            if number == 0 {
                // SAFETY: as above.
                team.has_threads(unsafe { count() } as u32);
            }
            team.slot(number)
        }
        None => team.next_slot(),
    };
    if let Some(slot) = slot {
        slot.begin(REGION);
    }
    let before = (block.region.replace(IN_REGION), block.region_waits.take());
    let begin = counter::anywhere();
    // SAFETY: the function and its data as the program passed them.
    unsafe { outlined(data as *mut c_void) };
    let inside = counter::anywhere().wrapping_sub(begin);
    let region = block.region.replace(before.0);
    let waits = block.region_waits.replace(before.1);
    if let Some(slot) = slot {
        slot.set(Share { work: inside.saturating_sub(waits.iter().sum()), waits });
        if region & MADE_TASKS != 0 {
            slot.has_tasks();
        }
    }
}

/// An interposed name.
struct Entry {
    real: RealEntry,
    numbers: Numbers,
}

/// `omp_get_thread_num` and `omp_get_num_threads` of the runtime in which an entry's function is, once found.
struct Numbers {
    function: AtomicPtr<c_void>,
    number: AtomicPtr<c_void>,
    count: AtomicPtr<c_void>,
}

impl Numbers {
    const fn new() -> Self {
        Self {
            function: AtomicPtr::new(null_mut()),
            number: AtomicPtr::new(null_mut()),
            count: AtomicPtr::new(null_mut()),
        }
    }

    /// Zeros if there are none, or if the entry has several functions (in libraries that were loaded for their users
    /// alone), of which this is not the first.
    #[inline(always)]
    fn get(&self, function: *const c_void) -> [usize; 2] {
        if self.function.load(Acquire).is_null() {
            self.find(function);
        }
        match self.function.load(Relaxed).cast_const() == function {
            true => [&self.number, &self.count].map(|of| of.load(Relaxed).expose_provenance()),
            false => [0; 2],
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, function: *const c_void) {
        let _own = OwnWork::begin();
        for (found, name) in
            [(&self.number, c"omp_get_thread_num"), (&self.count, c"omp_get_num_threads")]
        {
            let look = || {
                let own = || find_in_object(&CString::new(object_of(function)?).ok()?, name);
                next_in_load_order(name).or_else(own)
            };
            if let Ok(Some(address)) = std::panic::catch_unwind(look) {
                found.store(address.cast_mut(), Relaxed);
            }
        }
        self.function.store(function.cast_mut(), Release);
    }
}

/// Begins a parallel region with the program's arguments, of which the first two are the outlined function and its data.
///
/// # Safety
/// The arguments are those of the entry's function.
#[inline(always)]
unsafe fn parallel<const N: usize>(entry: &'static Entry, mut arguments: [usize; N]) -> usize
where
    [usize; N]: Invoke,
{
    let block = thread_block();
    let here = block.entered_stack.get();
    // SAFETY: the word at which the stub was entered is the return address.
    let caller = unsafe { *(here as *const usize) };
    let real = entry.real.get_for(caller);
    if !is_recorded(block, here) {
        // SAFETY: the caller vouches for the arguments.
        return unsafe { arguments.invoke(real) };
    }
    let Some(team) = teams::own_team(block) else {
        state::miss_team();
        // SAFETY: as above.
        return unsafe { arguments.invoke(real) };
    };
    let [number, count] = entry.numbers.get(real);
    team.tell([arguments[0], arguments[1], number, count]);
    arguments[0] = take_part as *const () as usize;
    arguments[1] = (&raw const *team).expose_provenance();
    block.region.set(STARTS);
    team.begin(block, caller, counter::anywhere());
    // SAFETY: as above; the wrapper calls the program's function with its data.
    let result = unsafe { arguments.invoke(real) };
    record(block, team, REGION, counter::anywhere());
    block.region.set(0);
    result
}

/// Forwards a call inside a region in which the thread may wait for others of its team.
///
/// # Safety
/// The arguments are those of the entry's function.
#[inline(always)]
unsafe fn waiting<const N: usize>(
    entry: &'static Entry,
    waits: Waits,
    arguments: [usize; N],
) -> usize
where
    [usize; N]: Invoke,
{
    let block = thread_block();
    // SAFETY: the word at which the stub was entered is the return address.
    let real = entry.real.get_for(unsafe { *(block.entered_stack.get() as *const usize) });
    // Tasks that a thread runs while it waits may wait in turn: only the outermost wait counts.
    if block.region.get() & (IN_REGION | WAITS) != IN_REGION {
        // SAFETY: the caller vouches for the arguments.
        return unsafe { arguments.invoke(real) };
    }
    block.region.set(block.region.get() | WAITS);
    let begin = counter::anywhere();
    // SAFETY: as above.
    let result = unsafe { arguments.invoke(real) };
    let ticks = counter::anywhere().wrapping_sub(begin);
    let mut sums = block.region_waits.get();
    sums[waits as usize] += ticks;
    block.region_waits.set(sums);
    block.region.set(block.region.get() & !WAITS);
    result
}

/// Forwards a call that makes tasks, which threads may run wherever they wait.
///
/// # Safety
/// The arguments are those of the entry's function.
#[inline(always)]
unsafe fn tasks<const N: usize>(entry: &'static Entry, arguments: [usize; N]) -> usize
where
    [usize; N]: Invoke,
{
    let block = thread_block();
    // SAFETY: the word at which the stub was entered is the return address.
    let real = entry.real.get_for(unsafe { *(block.entered_stack.get() as *const usize) });
    if block.region.get() & IN_REGION != 0 {
        block.region.set(block.region.get() | MADE_TASKS);
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { arguments.invoke(real) }
}

/// Defines entries that pass their arguments, machine words all, to `$through`.
macro_rules! openmp_entries {
    ($through:ident; $($symbol:ident($($argument:ident),*) as $inner:ident $(, $waits:expr)?;)*) => {$(
        entry_stub!($symbol, $inner);
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $inner($($argument: usize),*) -> usize {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zeros"),
            };
            static ENTRY: Entry = Entry { real: RealEntry::new(NAME), numbers: Numbers::new() };
            // SAFETY: the words are passed on to the function of this name.
            unsafe { $through(&ENTRY, $($waits,)? [$($argument),*]) }
        }
    )*};
}

openmp_entries! { parallel;
    GOMP_parallel(a, b, c, d) as parallel_plain;
    GOMP_parallel_reductions(a, b, c, d) as parallel_reductions;
    GOMP_parallel_sections(a, b, c, d, e) as parallel_sections;
    GOMP_parallel_loop_static(a, b, c, d, e, f, g, h) as parallel_static;
    GOMP_parallel_loop_dynamic(a, b, c, d, e, f, g, h) as parallel_dynamic;
    GOMP_parallel_loop_guided(a, b, c, d, e, f, g, h) as parallel_guided;
    GOMP_parallel_loop_runtime(a, b, c, d, e, f, g) as parallel_runtime;
    GOMP_parallel_loop_nonmonotonic_dynamic(a, b, c, d, e, f, g, h) as parallel_any_dynamic;
    GOMP_parallel_loop_nonmonotonic_guided(a, b, c, d, e, f, g, h) as parallel_any_guided;
    GOMP_parallel_loop_nonmonotonic_runtime(a, b, c, d, e, f, g) as parallel_any_runtime;
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(a, b, c, d, e, f, g) as parallel_maybe_runtime;
}

openmp_entries! { waiting;
    GOMP_barrier() as barrier, Waits::AtBarrier;
    GOMP_barrier_cancel() as barrier_cancel, Waits::AtBarrier;
    GOMP_loop_end() as loop_end, Waits::AtBarrier;
    GOMP_loop_end_cancel() as loop_end_cancel, Waits::AtBarrier;
    GOMP_sections_end() as sections_end, Waits::AtBarrier;
    GOMP_sections_end_cancel() as sections_end_cancel, Waits::AtBarrier;
    GOMP_single_copy_start() as single_copy_start, Waits::AtBarrier;
    GOMP_critical_start() as critical_start, Waits::ForLock;
    GOMP_critical_name_start(a) as critical_name_start, Waits::ForLock;
    GOMP_atomic_start() as atomic_start, Waits::ForLock;
    GOMP_ordered_start() as ordered_start, Waits::ForLock;
    omp_set_lock(a) as set_lock, Waits::ForLock;
    GOMP_taskwait() as taskwait, Waits::ForTasks;
    GOMP_taskgroup_end() as taskgroup_end, Waits::ForTasks;
}

openmp_entries! { tasks;
    GOMP_task(a, b, c, d, e, f, g, h, i, j) as task;
    GOMP_taskloop(a, b, c, d, e, f, g, h, i, j, k) as taskloop;
    GOMP_taskloop_ull(a, b, c, d, e, f, g, h, i, j, k) as taskloop_ull;
}
