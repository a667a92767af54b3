//! Groups of ranks that a program passes to MPI_Win_start and MPI_Win_post.
//!
//! A group is written to the trace once, with a number. What the path needs is cached per thread by
//! handle. Freeing any group empties these caches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use trace_format::header::Definition;
use trace_format::markers::ToolReason;

use crate::handles::cache::index_of;
use crate::handles::communicators;
use crate::host::counter;
use crate::host::lock::Lock;
use crate::host::own_work::OwnWork;
use crate::mpi::abi;
use crate::state;
use crate::state::thread_block::{CACHED_GROUPS, ThreadBlock};
use crate::store::trace_file::define;
use crate::store::window;

/// Most groups that are written to the trace. Calls on further ones have number 0.
const MAX_GROUPS: usize = 4096;

/// World ranks in order, as runs of (first, stride, count).
type Runs = Vec<(i64, i64, u32)>;

static NUMBERS: Lock<Option<HashMap<Runs, u32>>> = Lock::new(None);

/// Number of groups that the program has freed.
static FREED: AtomicU32 = AtomicU32::new(0);

/// Empties all caches, because a group is freed.
pub fn forget() {
    FREED.fetch_add(1, Relaxed);
}

/// Makes the group of an outermost call known, before the call takes its slot. Asking for its
/// members and writing them down counts as the tool's time.
/// The call is open and has no slot yet.
#[inline(always)]
pub fn prepare(block: &ThreadBlock, argument: usize) {
    let handle = abi::handle(argument);
    let (known, freed, _) = block.groups[index_of(handle, CACHED_GROUPS)].get();
    if known != handle || freed != FREED.load(Relaxed) {
        look_up(block, handle);
    }
}

/// The number of a group that [`prepare`] has made known; 0 if there is none.
#[inline(always)]
pub fn number(block: &ThreadBlock, argument: usize) -> u32 {
    let handle = abi::handle(argument);
    let (known, _, number) = block.groups[index_of(handle, CACHED_GROUPS)].get();
    if known == handle { number } else { 0 }
}

#[cold]
#[inline(never)]
fn look_up(block: &ThreadBlock, handle: usize) {
    if !state::is_recording() || block.paused_at.get() != 0 {
        return;
    }
    // A new window is opened before the time is read, because only then is the level known.
    window::make_room(block, 1);
    if block.level.get() == 0 {
        return;
    }
    let begin = counter::read(block);
    let freed = FREED.load(Relaxed);
    let number = number_of(handle).unwrap_or(0);
    block.groups[index_of(handle, CACHED_GROUPS)].set((handle, freed, number));
    window::tool_event(block, ToolReason::Definitions, begin);
}

/// The number of a group's members. New ones are written to the trace. `None` if there are too many
/// groups or no space.
fn number_of(handle: usize) -> Option<u32> {
    let _own = OwnWork::begin();
    let members = communicators::members_of_group(handle)?;
    let mut numbers = NUMBERS.lock();
    let numbers = numbers.get_or_insert_default();
    if let Some(&number) = numbers.get(&members) {
        return Some(number);
    }
    if numbers.len() >= MAX_GROUPS {
        return None;
    }
    let number = numbers.len() as u32 + 1;
    define(&Definition::Group { number, members: members.clone() }).ok()?;
    numbers.insert(members, number);
    Some(number)
}
