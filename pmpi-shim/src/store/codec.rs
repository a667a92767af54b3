//! A window's slots in few bytes.

use std::alloc::{Layout, alloc_zeroed};

use trace_format::encoded::{Encoder, Words};
use trace_format::layout::{ChunkHeader, SLOT_BYTES};

/// Fewer slots are not worth the tables: a thread made some calls and ended.
const FEWEST_SLOTS: usize = 64;

/// An encoder that has not been on the stack, of which threads may have little; `None` without memory.
fn zeroed() -> Option<Box<Encoder>> {
    // SAFETY: the layout has a size. An encoder is valid when all its bytes are zero, and a box owns memory of the
    // global allocator with its layout.
    unsafe {
        let memory = alloc_zeroed(Layout::new::<Encoder>()).cast::<Encoder>();
        (!memory.is_null()).then(|| Box::from_raw(memory))
    }
}

/// Tables and memory that encoding needs, from a thread's first full window on.
#[derive(Default)]
pub struct Codec {
    encoder: Option<Box<Encoder>>,
    out: Vec<u8>,
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codec").field("out_bytes", &self.out.len()).finish_non_exhaustive()
    }
}

impl Codec {
    /// Encodes the slots of a window; `None` where that does not pay.
    pub fn encode(&mut self, window: &ChunkHeader, slots: &[u8]) -> Option<&[u8]> {
        let first: *const Words = slots.as_ptr().cast();
        let count = slots.len() / SLOT_BYTES;
        // In a mapping, behind a header of 64 bytes, they are aligned.
        if count < FEWEST_SLOTS || !first.is_aligned() {
            return None;
        }
        // SAFETY: inside the slice, aligned as was just seen; any bytes are valid words.
        let slots = unsafe { std::slice::from_raw_parts(first, count) };
        if self.encoder.is_none() {
            self.encoder = zeroed();
        }
        let encoder = self.encoder.as_mut()?;
        // What does not become half as long is not encoded.
        let most = size_of_val(slots) / 2;
        if self.out.len() < most {
            self.out.try_reserve_exact(most - self.out.len()).ok()?;
            self.out.resize(most, 0);
        }
        let used = encoder.encode(window.opened_ticks, slots, self.out.get_mut(..most)?)?;
        self.out.get(..used)
    }
}
