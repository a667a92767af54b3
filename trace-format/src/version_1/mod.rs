//! Reads what only files of format version 1 have: slots of 32 bytes, without the return address of
//! a call, and a packed form of whole files.

pub(crate) mod packed;

use crate::encoded::Words;
use crate::layout::{CONTINUATION, CONTINUES_SITE, FUNCTION_MASK, SITE_BEHIND_BINDING};
use crate::plain::{Plain, read_plain};

/// Size of a slot of version 1 in bytes.
pub(crate) const NARROW_SLOT_BYTES: usize = 32;
/// Number of the version.
pub(crate) const VERSION: u16 = 1;

/// A slot of version 1. Its fields are those of `Slot`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NarrowSlot {
    pub begin: u64,
    pub word: u64,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u32,
    pub request: u32,
}

// SAFETY: repr(C), integers only; the size checked below shows that there is no padding.
unsafe impl Plain for NarrowSlot {}

const _: () = assert!(size_of::<NarrowSlot>() == NARROW_SLOT_BYTES);

/// Appends the slots in today's form, with the call sites from their continuations. Bytes at the
/// end that do not form a whole slot are ignored.
pub(crate) fn widen(narrow: &[u8], slots: &mut Vec<Words>) {
    slots.reserve(narrow.len() / NARROW_SLOT_BYTES);
    let mut event = slots.len();
    for bytes in narrow.chunks_exact(NARROW_SLOT_BYTES) {
        let Some([begin, word, low, high]) = read_plain::<[u64; 4]>(bytes) else { return };
        slots.push([begin, word, low, high, 0]);
        if (word >> 32) as u16 & FUNCTION_MASK != CONTINUATION {
            event = slots.len() - 1;
        } else if word as u32 == CONTINUES_SITE
            && let Some([.., site]) = slots.get_mut(event)
        {
            let behind_binding = if low as u32 == 0 { 0 } else { SITE_BEHIND_BINDING };
            *site = begin | behind_binding;
        }
    }
}
