//! What a collective call sends and receives, in bytes of this rank's buffers.
//!
//! By the communicator's size and rank and the plan of the procedure; MPI_IN_PLACE and
//! intercommunicators as the standard has them. What moves over the network is the library's secret:
//! these are the bytes that the rank puts in and gets out.

use crate::abi;
use crate::communicators::{CommunicatorFacts, datatype_size};
use crate::plan::{NONE, Per, Plan, Shape, Side};
use crate::thread_block::ThreadBlock;

/// A count argument.
#[inline(always)]
pub fn count(plan: &Plan, word: usize) -> u64 {
    if plan.large { (word as i64).max(0) as u64 } else { (word as u32 as i32).max(0) as u64 }
}

/// Element of an array of counts.
///
/// # Safety
/// The program passed an array with that many counts.
unsafe fn count_at(plan: &Plan, array: usize, index: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        if plan.large {
            (*(array as *const i64).add(index)).max(0) as u64
        } else {
            (*(array as *const i32).add(index)).max(0) as u64
        }
    }
}

/// Element of an array of handles.
///
/// # Safety
/// The program passed an array with that many handles.
unsafe fn handle_at(array: usize, index: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { abi::handle_at(array + index * abi::handle_stride()) }
}

/// Bytes of one side: all of it, or one rank's part of an array of counts.
unsafe fn side_bytes(
    block: *mut ThreadBlock,
    plan: &Plan,
    arguments: &[usize],
    side: &Side,
    facts: &CommunicatorFacts,
    only: Option<usize>,
) -> u64 {
    if side.datatype == NONE || side.count == NONE {
        return 0;
    }
    let peers = match side.per {
        Per::Buffer => 1,
        Per::Rank => facts.peers,
        Per::InNeighbour => facts.in_neighbours,
        Per::OutNeighbour => facts.out_neighbours,
    }
    .max(0) as usize;
    let (counts, types) = (arguments[side.count as usize], arguments[side.datatype as usize]);
    // SAFETY: the arguments are the program's; arrays have an element for each peer.
    unsafe {
        let size = |index: usize| {
            let handle = if side.datatypes { handle_at(types, index) } else { abi::handle(types) };
            datatype_size(block, handle)
        };
        if !side.counts {
            let parts = if only.is_some() { 1 } else { peers as u64 };
            return count(plan, counts).wrapping_mul(size(0)).wrapping_mul(parts);
        }
        let part = |index: usize| count_at(plan, counts, index).wrapping_mul(size(index));
        match only {
            Some(index) if index < peers => part(index),
            Some(_) => 0,
            None => (0..peers).map(part).sum(),
        }
    }
}

/// Whether this rank is the root, or takes no part in what is rooted (an intercommunicator's
/// MPI_PROC_NULL).
fn root_role(plan: &Plan, arguments: &[usize], facts: &CommunicatorFacts) -> (bool, bool) {
    if !plan.rooted {
        return (false, true);
    }
    let root = arguments[plan.peer as usize] as i32;
    if facts.inter {
        (root == abi::mpi_root(), root != abi::proc_null())
    } else {
        (root == facts.rank, true)
    }
}

/// Bytes sent and received by this rank.
///
/// # Safety
/// `block` is the calling thread's, refreshed; the arguments are the program's own.
#[inline(never)]
pub unsafe fn of(
    block: *mut ThreadBlock,
    plan: &Plan,
    arguments: &[usize],
    facts: &CommunicatorFacts,
) -> (u64, u64) {
    let (is_root, takes_part) = root_role(plan, arguments, facts);
    if !takes_part {
        return (0, 0);
    }
    let in_place = |side: &Side| {
        side.buffer != NONE && abi::is_in_place(arguments[side.buffer as usize])
    };
    let mine = facts.rank.max(0) as usize;
    // SAFETY: the caller's promise.
    unsafe {
        let bytes =
            |side: &Side, only: Option<usize>| side_bytes(block, plan, arguments, side, facts, only);
        match plan.shape {
            Shape::Broadcast => {
                let all = bytes(&plan.send, None);
                return if is_root { (all, 0) } else { (0, all) };
            }
            Shape::ReduceScatter => {
                return (bytes(&plan.receive, None), bytes(&plan.receive, Some(mine)));
            }
            _ => {}
        }
        let significant = |side: &Side| !side.root_only || is_root;
        // Towards the root of an intercommunicator, the root itself only receives, and so on.
        let sends = significant(&plan.send) && !(facts.inter && is_root && !plan.send.root_only);
        let receives =
            significant(&plan.receive) && !(facts.inter && is_root && !plan.receive.root_only);
        let mut sent = if sends { bytes(&plan.send, None) } else { 0 };
        let mut received = if receives { bytes(&plan.receive, None) } else { 0 };
        let shared = plan.send.count == plan.receive.count;
        if in_place(&plan.send) && !shared {
            // The rank's own part stands in the receive buffer already.
            sent = match plan.send.per {
                Per::Buffer => bytes(&plan.receive, Some(mine)),
                _ => received,
            };
        }
        if in_place(&plan.receive) && !shared {
            received = bytes(&plan.send, Some(mine));
        }
        (sent, received)
    }
}
