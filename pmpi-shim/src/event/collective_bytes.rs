//! Bytes that a collective call sends and receives, counted in this rank's buffers.
//!
//! They follow from the communicator's size and rank and from the plan of the procedure.
//! MPI_IN_PLACE and intercommunicators are treated as the standard defines them. These are the
//! bytes that the rank contributes and obtains; how many bytes cross the network is known only to
//! the MPI library.

use crate::handles::datatypes::{self, Sizes};
use crate::mpi::abi;
use crate::mpi::plan::{NONE, Per, Plan, Shape, Side};
use crate::state::thread_block::CommunicatorFacts;
use crate::state::thread_block::ThreadBlock;

/// A count argument.
#[inline(always)]
pub fn count(plan: &Plan, word: usize) -> u64 {
    if plan.large { (word as i64).max(0) as u64 } else { (word as u32 as i32).max(0) as u64 }
}

/// Element of an array of counts. 0 if there is no array.
///
/// # Safety
/// The program passed null or an array with more than `index` counts.
unsafe fn count_at(plan: &Plan, array: usize, index: usize) -> u64 {
    if array == 0 {
        return 0;
    }
    // SAFETY: the program's array has more than `index` counts of the plan's width.
    unsafe {
        if plan.large {
            (*(array as *const i64).add(index)).max(0) as u64
        } else {
            (*(array as *const i32).add(index)).max(0) as u64
        }
    }
}

/// Element of an array of handles. 0 if there is no array.
///
/// # Safety
/// The program passed null or an array with more than `index` handles.
unsafe fn handle_at(array: usize, index: usize) -> usize {
    let element = if array == 0 { 0 } else { array + index * abi::handle_stride() };
    // SAFETY: null, or an element of the program's array.
    unsafe { abi::handle_at(element) }
}

/// The context of a call: its thread, its communicator, and how datatype sizes may be found.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The calling thread's block.
    pub block: &'a ThreadBlock,
    /// The communicator.
    pub facts: &'a CommunicatorFacts,
    /// How the size of a datatype may be found.
    pub sizes: Sizes,
}

/// Bytes of one side: the whole buffer, or one rank's part of an array of counts.
unsafe fn side_bytes(
    context: CallContext,
    plan: &Plan,
    arguments: &[usize],
    side: &Side,
    only: Option<usize>,
) -> Option<u64> {
    if side.datatype == NONE || side.count == NONE {
        return Some(0);
    }
    let facts = context.facts;
    let neighbours = matches!(side.per, Per::InNeighbour | Per::OutNeighbour);
    let takes_part = |index: usize| {
        // A neighbour beyond the edge of a non-periodic Cartesian topology is MPI_PROC_NULL.
        !neighbours || facts.missing_neighbours == 0 || facts.missing_neighbours >> index & 1 == 0
    };
    let peers = match side.per {
        Per::Buffer => 1,
        // Blocks of an intercommunicator are scattered within the local group.
        Per::Rank if plan.shape == Shape::ReduceScatter => facts.size,
        Per::Rank => facts.peers,
        Per::InNeighbour => facts.in_neighbours,
        Per::OutNeighbour => facts.out_neighbours,
    }
    .max(0) as usize;
    let (counts, types) = (arguments[side.count as usize], arguments[side.datatype as usize]);
    // SAFETY: the arguments are the program's. Significant arrays have an element for each peer.
    unsafe {
        let part = |index: usize| {
            let elements =
                if side.counts { count_at(plan, counts, index) } else { count(plan, counts) };
            if elements == 0 {
                // Nothing is moved, and the datatype may be null.
                return Some(0);
            }
            let handle = if side.datatypes { handle_at(types, index) } else { abi::handle(types) };
            Some(elements.wrapping_mul(datatypes::size(context.block, handle, context.sizes)?))
        };
        match only {
            _ if !side.counts => {
                let parts = (0..peers).filter(|index| takes_part(*index)).count() as u64;
                Some(part(0)?.wrapping_mul(if only.is_some() { 1 } else { parts }))
            }
            Some(index) if index < peers => part(index),
            Some(_) => Some(0),
            None => (0..peers).filter(|index| takes_part(*index)).map(part).sum(),
        }
    }
}

/// Whether this rank is the root, and whether it takes part in the rooted operation (an
/// intercommunicator's MPI_PROC_NULL does not).
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

/// Whether every rank contributes and obtains the one buffer described by count and datatype,
/// whatever the communicator and the buffers. Then [`sent_and_received`] is twice the size of that buffer, and
/// neither has to be examined.
pub const fn is_symmetric(plan: &Plan) -> bool {
    matches!(plan.shape, Shape::Collective)
        && matches!((&plan.send.per, &plan.receive.per), (Per::Buffer, Per::Buffer))
        && plan.send.datatype != NONE
        && plan.send.datatype == plan.receive.datatype
        && plan.send.count == plan.receive.count
        && !(plan.rooted || plan.first_receives_nothing)
        && !(plan.send.counts || plan.send.datatypes)
}

/// Bytes sent and received by this rank. `None` if a datatype's size is not known yet.
///
/// # Safety
/// The arguments are the program's own, and the caches were refreshed in this call.
#[inline(never)]
pub unsafe fn sent_and_received(
    context: CallContext,
    plan: &Plan,
    arguments: &[usize],
) -> Option<(u64, u64)> {
    let facts = context.facts;
    let (is_root, takes_part) = root_role(plan, arguments, facts);
    if !takes_part {
        return Some((0, 0));
    }
    let shared = plan.send.count == plan.receive.count;
    // If both buffers share count and datatype, MPI_IN_PLACE does not change the bytes.
    let in_place = |side: &Side| {
        !shared && side.buffer != NONE && abi::is_in_place(arguments[side.buffer as usize])
    };
    let mine = facts.rank.max(0) as usize;
    // SAFETY: the program's own buffers. A side whose buffer is MPI_IN_PLACE, or that is
    // significant on another rank only, is not read.
    unsafe {
        let bytes = |side: &Side, only| side_bytes(context, plan, arguments, side, only);
        match plan.shape {
            Shape::Broadcast => {
                let all = bytes(&plan.send, None)?;
                return Some(if is_root { (all, 0) } else { (0, all) });
            }
            Shape::ReduceScatter => {
                return Some((bytes(&plan.receive, None)?, bytes(&plan.receive, Some(mine))?));
            }
            _ => {}
        }
        // The root of an intercommunicator's collective performs only the side that is significant
        // at roots.
        let takes = |side: &Side| {
            if side.root_only { is_root } else { !(facts.inter && is_root) }
        };
        let received = match (takes(&plan.receive), in_place(&plan.receive)) {
            (false, _) => 0,
            _ if plan.first_receives_nothing && facts.rank == 0 => 0,
            (true, false) => bytes(&plan.receive, None)?,
            // The rank's own part stays in the send buffer.
            (true, true) => bytes(&plan.send, Some(mine))?,
        };
        let sent = match (takes(&plan.send), in_place(&plan.send)) {
            (false, _) => 0,
            (true, false) => bytes(&plan.send, None)?,
            // The rank's own part is already in the receive buffer.
            (true, true) if plan.send.per == Per::Buffer => bytes(&plan.receive, Some(mine))?,
            (true, true) => received,
        };
        Some((sent, received))
    }
}
