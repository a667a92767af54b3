//! Decodes slots that were packed as columns, bit for bit.
//!
//! Each slot is given by its difference from the last slot of the same make: events with the same
//! function and flags, or continuations of the same kind. The begin of an event is given relative
//! to the end of the event before. The differences of each field are stored together, their lowest
//! bytes first, then the next, as many as the largest difference needs. For regular programs most
//! of these bytes are zero, and zstd compresses the rest.
//!
//! | bytes | content |
//!
//! | bytes | content |
//! |---|---|
//! | 4 | slots n |
//! | 2 | makes k, at most 65535 |
//! | 7 | bytes of the widest difference of each field: begin, duration, communicator, peer, tag, bytes, request |
//! | 1 | size of a make's number: 1 up to 256 makes, else 2 |
//! | 6·k | each make: bits 32–47 of its words, and its kind of continuation (0 for events) |
//! | n × that size | make of each slot: all low bytes, then all high bytes |
//! | n × width, a field | its differences, zigzag, one plane of bytes after the other |

use crate::encoded::unzigzag;
use crate::layout::{CONTINUATION, FUNCTION_MASK};
use crate::plain::bytes_of;
use crate::version_1::{NARROW_SLOT_BYTES, NarrowSlot};

const FIELDS: usize = 7;
const HEAD_BYTES: usize = 4 + 2 + FIELDS + 1;
const MAKE_BYTES: usize = 6;

/// The common properties of slots of one make.
#[derive(Debug, Clone, Copy)]
struct Make {
    function_and_flags: u16,
    kind: u32,
}

impl Make {
    fn is_continuation(self) -> bool {
        self.function_and_flags & FUNCTION_MASK == CONTINUATION
    }
}

/// The reference for differences. It is updated with every slot, in the same way by packer and
/// unpacker.
#[derive(Debug, Default)]
struct Before {
    /// End of the last event.
    end: u64,
    /// The last slot of each make.
    last: Vec<NarrowSlot>,
}

impl Before {
    fn new(makes: usize) -> Self {
        Self { end: 0, last: vec![NarrowSlot::default(); makes] }
    }

    /// The reference for a begin.
    fn begin(&self, make: usize, continuation: bool) -> u64 {
        if continuation { self.last[make].begin } else { self.end }
    }

    fn passes(&mut self, make: usize, continuation: bool, slot: NarrowSlot) {
        if !continuation {
            self.end = slot.begin.wrapping_add(slot.word & 0xffff_ffff);
        }
        self.last[make] = slot;
    }
}

/// The slots in `columns` as bytes. `None` if a packer cannot have made the columns.
pub(super) fn from_columns(columns: &[u8]) -> Option<Vec<u8>> {
    let head = columns.get(..HEAD_BYTES)?;
    let count = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let make_count = usize::from(u16::from_le_bytes(head[4..6].try_into().ok()?));
    let widths: [usize; FIELDS] = std::array::from_fn(|field| usize::from(head[6 + field]));
    let make_width = usize::from(head[6 + FIELDS]);
    let planes = make_width.checked_add(widths.iter().sum())?;
    let makes_end = HEAD_BYTES + make_count * MAKE_BYTES;
    let sound = widths.iter().all(|width| *width <= 8)
        && (1..=2).contains(&make_width)
        && columns.len() == makes_end.checked_add(count.checked_mul(planes)?)?;
    if !sound {
        return None;
    }
    let make_of = |bytes: &[u8]| {
        let function_and_flags = u16::from_le_bytes([bytes[0], bytes[1]]);
        Make {
            function_and_flags,
            kind: u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]),
        }
    };
    let makes: Vec<Make> =
        columns[HEAD_BYTES..makes_end].chunks_exact(MAKE_BYTES).map(make_of).collect();
    let mut at = makes_end;
    let mut column = |width: usize| {
        let mut values = vec![0u64; count];
        for plane in 0..width {
            let bytes = &columns[at..at + count];
            at += count;
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value |= u64::from(*byte) << (8 * plane);
            }
        }
        values
    };
    let numbers = column(make_width);
    let fields = widths.map(&mut column);
    let mut before = Before::new(makes.len());
    let mut out = Vec::with_capacity(count * NARROW_SLOT_BYTES);
    for index in 0..count {
        let number = numbers[index] as usize;
        let make = *makes.get(number)?;
        let continuation = make.is_continuation();
        let last = before.last[number];
        let value = |field: usize| fields[field][index];
        let near = |field: usize, before: i32| before.wrapping_add(unzigzag(value(field)) as i32);
        let begin = before.begin(number, continuation);
        let duration = if continuation { make.kind } else { value(1) as u32 };
        let communicator = ((last.word >> 48) as i32).wrapping_add(unzigzag(value(2)) as i32);
        let slot = NarrowSlot {
            begin: begin.wrapping_add(unzigzag(value(0)) as u64),
            word: u64::from(duration)
                | u64::from(make.function_and_flags) << 32
                | u64::from(communicator as u16) << 48,
            peer: near(3, last.peer),
            tag: near(4, last.tag),
            bytes: near(5, last.bytes as i32) as u32,
            request: near(6, last.request as i32) as u32,
        };
        out.extend(bytes_of(&slot));
        before.passes(number, continuation, slot);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = from_columns(&bytes);
        }
    }
}
