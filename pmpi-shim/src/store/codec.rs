//! Encodes the slots of a window in few bytes.

use std::alloc::{Layout, alloc_zeroed};

use trace_format::encoded::{Decoder, Encoder, Words};
use trace_format::encoding::checksum;
use trace_format::layout::{CHUNK_ENCODED, ChunkHeader, SLOT_BYTES};

/// Minimum number of slots worth encoding. A window with fewer belongs to a thread that made some
/// calls and ended.
const MIN_SLOTS: usize = 64;

/// Tables of which all bytes may be zero.
///
/// # Safety
/// A value with all bytes zero is valid, and has a size.
pub unsafe trait Zeroed {}

// SAFETY: tables of numbers, empty at first.
unsafe impl Zeroed for Encoder {}
// SAFETY: tables of numbers, empty at first.
unsafe impl Zeroed for Decoder {}

/// Tables allocated without passing through the stack, of which threads may have little. `None`
/// without memory.
pub fn zeroed<T: Zeroed>() -> Option<Box<T>> {
    // SAFETY: the layout has a size, and zeros are a value, as the trait promises. A box owns memory from the
    // global allocator with its layout.
    unsafe {
        let memory = alloc_zeroed(Layout::new::<T>()).cast::<T>();
        (!memory.is_null()).then(|| Box::from_raw(memory))
    }
}

/// Tables and memory for encoding, kept from a thread's first full window on.
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
    /// What a window becomes: a chunk of encoded slots, or of its plain ones if that does not pay.
    pub fn chunk<'s>(
        &'s mut self,
        window: &ChunkHeader,
        slots: &'s [u8],
    ) -> (ChunkHeader, &'s [u8]) {
        match self.encode(window, slots) {
            Some(body) => {
                let (body_bytes, body_crc) = (body.len() as u32, checksum(body));
                (ChunkHeader { kind: CHUNK_ENCODED, body_bytes, body_crc, ..*window }, body)
            }
            None => (*window, slots),
        }
    }

    /// Encodes the slots of a window. `None` if that does not pay.
    fn encode(&mut self, window: &ChunkHeader, slots: &[u8]) -> Option<&[u8]> {
        let first: *const Words = slots.as_ptr().cast();
        let count = slots.len() / SLOT_BYTES;
        // The slots lie in a mapping, behind a header of 64 bytes, so they are aligned.
        if count < MIN_SLOTS || !first.is_aligned() {
            return None;
        }
        // SAFETY: inside the slice, and aligned as just checked; any bytes are valid words.
        let slots = unsafe { std::slice::from_raw_parts(first, count) };
        if self.encoder.is_none() {
            self.encoder = zeroed();
        }
        let encoder = self.encoder.as_mut()?;
        // Encoding pays if it at least halves the size.
        let most = size_of_val(slots) / 2;
        if self.out.len() < most {
            self.out.try_reserve_exact(most - self.out.len()).ok()?;
            self.out.resize(most, 0);
        }
        let used = encoder.encode(window.opened_ticks, slots, self.out.get_mut(..most)?)?;
        self.out.get(..used)
    }
}

#[cfg(test)]
mod tests {
    use trace_format::layout::{Slot, bytes_of_all};

    use super::*;
    use crate::store::chunk_headers::event_header;

    #[test]
    fn encodes_windows_in_few_bytes_that_decode_to_their_slots() {
        let slot = |at: u64| Slot { begin: 1000 + at * 50, word: 20 | 16 << 32, ..Slot::default() };
        let slots: Vec<Slot> = (0..2 * MIN_SLOTS as u64).map(slot).collect();
        let (mut codec, window) = (Codec::default(), event_header((0, 1), 0, 1000, 8192, 0));
        assert_eq!(codec.encode(&window, bytes_of_all(&slots[..MIN_SLOTS - 1])), None);
        for used in [slots.len(), MIN_SLOTS] {
            let encoded = codec.encode(&window, bytes_of_all(&slots[..used])).expect("it pays");
            let (mut decoder, mut decoded) = (Box::new(Decoder::new()), Vec::new());
            assert_eq!(decoder.decode(1000, encoded, used, &mut decoded), Ok(()));
            assert_eq!(bytes_of_all(&decoded), bytes_of_all(&slots[..used]));
        }
    }
}
