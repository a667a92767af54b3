//! Stacks that were asked for by a signal: the layout of the area that a process answers in.
//!
//! A process records with `--flight` keeps an area in its rank's file. Whoever may send it signals asks one of its
//! threads by [`StackHead::signal`] with the value [`ASKED`] (`rt_tgsigqueueinfo`). The thread's handler stores its
//! stack, also inside MPI, in the next answer of the area.

use crate::layout::CHUNK_HEADER_BYTES;
use crate::plain::Plain;

/// Value that the signal carries.
pub const ASKED: u64 = u64::from_le_bytes(*b"GMCSTACK");
/// Number of answers that the area keeps; they are filled in turn.
pub const ANSWERS: usize = 16;
/// Maximum number of functions of an answer; the innermost are kept.
pub const MAX_STACK: usize = 124;
/// Offset of the first answer in the chunk.
pub const ANSWERS_AT: usize = CHUNK_HEADER_BYTES + size_of::<StackHead>();
/// Size of the area's chunk in bytes.
pub const STACKS_BYTES: usize = ANSWERS_AT + ANSWERS * size_of::<StackAnswer>();

/// The head of the area.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackHead {
    /// The signal to send; 0: the process must not be asked.
    pub signal: u32,
    /// Process that answers.
    pub process: u32,
    /// Number of answers so far; the next one takes this place, modulo [`ANSWERS`].
    pub count: u32,
    /// Zero.
    pub reserved: [u32; 13],
}

/// A stack.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackAnswer {
    /// Number of the answer, from 1; 0: it is being written.
    pub number: u32,
    /// Operating system's id of the thread.
    pub thread_os_id: u32,
    /// Counter at that moment.
    pub ticks: u64,
    /// Number of functions.
    pub functions: u32,
    /// Not 0 if the last of them is the thread's first.
    pub is_complete: u32,
    /// Address of the instruction, then return addresses in the callers, innermost first; interpreted ones as in
    /// [`crate::samples`].
    pub addresses: [u64; MAX_STACK],
    /// The number again. An answer counts if it has the same at begin and end.
    pub number_again: u64,
}

impl StackAnswer {
    /// The addresses of a whole answer; `None` if it is not one, or was changed while it was copied.
    pub fn whole(&self) -> Option<&[u64]> {
        let is_whole = self.number != 0 && u64::from(self.number) == self.number_again;
        self.addresses.get(..self.functions as usize).filter(|_| is_whole)
    }
}

// SAFETY: integers without padding.
unsafe impl Plain for StackHead {}
// SAFETY: as above.
unsafe impl Plain for StackAnswer {}

const _: () = assert!(size_of::<StackHead>() == 64 && size_of::<StackAnswer>() == 1024);
