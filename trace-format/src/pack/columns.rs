//! Slots as columns: 32-byte slots come in, bytes that compress well go out, and back, bit for bit.
//!
//! Each slot is told as its difference from the last slot of the same make: for events those with the
//! same function and flags, for continuations those of the same kind. Begins of events are told from the
//! end of the event before. The differences of each field stand together, their lowest bytes first, then
//! the next, as many as the largest needs; what is left of regular programs is mostly zeros, and zstd
//! makes the rest small.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | slots n |
//! | 2 | makes k, at most 65535 |
//! | 7 | bytes of the widest difference of each field: begin, duration, communicator, peer, tag, bytes, request |
//! | 1 | bytes of a make's number: 1 up to 256 makes, else 2 |
//! | 6·k | each make: bits 32–47 of its words, and its kind of continuation (0 for events) |
//! | n × that | make of each slot: all low bytes, then all high bytes |
//! | n × width, a field | its differences, zigzag, a plane of bytes after the other |

use std::collections::HashMap;

use crate::layout::{CONTINUATION, FUNCTION_MASK, SLOT_BYTES, Slot};
use crate::plain::{bytes_of, read_plain};

const FIELDS: usize = 7;
const HEAD_BYTES: usize = 4 + 2 + FIELDS + 1;
const MAKE_BYTES: usize = 6;

/// What slots of one make have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Make {
    function_and_flags: u16,
    kind: u32,
}

impl Make {
    fn of(slot: &Slot) -> Self {
        let function_and_flags = slot.function_and_flags();
        let continues = function_and_flags & FUNCTION_MASK == CONTINUATION;
        Self { function_and_flags, kind: if continues { slot.duration() } else { 0 } }
    }

    fn is_continuation(self) -> bool {
        self.function_and_flags & FUNCTION_MASK == CONTINUATION
    }
}

/// What differences are taken from; moves on with every slot, the same way in both directions.
#[derive(Debug, Default)]
struct Before {
    /// End of the last event.
    end: u64,
    /// The last slot of each make.
    last: Vec<Slot>,
}

impl Before {
    fn new(makes: usize) -> Self {
        Self { end: 0, last: vec![Slot::default(); makes] }
    }

    /// Begin that a slot is told from.
    fn begin(&self, make: usize, continuation: bool) -> u64 {
        if continuation { self.last[make].begin } else { self.end }
    }

    fn passes(&mut self, make: usize, continuation: bool, slot: Slot) {
        if !continuation {
            self.end = slot.begin.wrapping_add(u64::from(slot.duration()));
        }
        self.last[make] = slot;
    }
}

fn zigzag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

fn unzigzag(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}

fn difference(value: i32, before: i32) -> u64 {
    zigzag(i64::from(value.wrapping_sub(before)))
}

/// Slots (whole ones, `bytes` is a multiple of 32 long) as columns; `None` where there are more makes than
/// can be numbered.
pub(super) fn to_columns(bytes: &[u8]) -> Option<Vec<u8>> {
    let slots: Vec<Slot> = bytes.chunks_exact(SLOT_BYTES).filter_map(read_plain).collect();
    let mut numbers: HashMap<Make, u16> = HashMap::new();
    let mut makes = Vec::new();
    let mut of_slot = Vec::with_capacity(slots.len());
    for slot in &slots {
        let make = Make::of(slot);
        let number = match numbers.get(&make) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(makes.len()).ok().filter(|number| *number < u16::MAX)?;
                makes.push(make);
                numbers.insert(make, number);
                number
            }
        };
        of_slot.push(number);
    }
    let mut columns: [Vec<u64>; FIELDS] = std::array::from_fn(|_| Vec::with_capacity(slots.len()));
    let mut before = Before::new(makes.len());
    for (slot, make) in slots.iter().zip(&of_slot) {
        let make = usize::from(*make);
        let continuation = makes[make].is_continuation();
        let last = before.last[make];
        let begin = slot.begin.wrapping_sub(before.begin(make, continuation)) as i64;
        // Kinds of continuations are in their make; durations are told as they are.
        let duration = if continuation { 0 } else { u64::from(slot.duration()) };
        let communicator = i32::from(slot.communicator()) - i32::from(last.communicator());
        let fields = [
            zigzag(begin),
            duration,
            zigzag(i64::from(communicator)),
            difference(slot.peer, last.peer),
            difference(slot.tag, last.tag),
            difference(slot.bytes as i32, last.bytes as i32),
            difference(slot.request as i32, last.request as i32),
        ];
        columns.iter_mut().zip(fields).for_each(|(column, value)| column.push(value));
        before.passes(make, continuation, *slot);
    }
    let widest = |column: &Vec<u64>| {
        let all = column.iter().fold(0, |all, value| all | value);
        (64 - all.leading_zeros()).div_ceil(8) as usize
    };
    let widths = columns.each_ref().map(widest);
    let make_width = if makes.len() <= 256 { 1 } else { 2 };
    let planes = make_width + widths.iter().sum::<usize>();
    let mut out = Vec::with_capacity(HEAD_BYTES + makes.len() * MAKE_BYTES + slots.len() * planes);
    out.extend((slots.len() as u32).to_le_bytes());
    out.extend((makes.len() as u16).to_le_bytes());
    out.extend(widths.map(|width| width as u8));
    out.push(make_width as u8);
    for make in &makes {
        out.extend(make.function_and_flags.to_le_bytes());
        out.extend(make.kind.to_le_bytes());
    }
    for plane in 0..make_width {
        out.extend(of_slot.iter().map(|number| (number >> (8 * plane)) as u8));
    }
    for (column, width) in columns.iter().zip(widths) {
        for plane in 0..width {
            out.extend(column.iter().map(|value| (value >> (8 * plane)) as u8));
        }
    }
    Some(out)
}

/// The bytes of the slots that [`to_columns`] was given; `None` when `columns` are not what it makes.
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
    let mut out = Vec::with_capacity(count * SLOT_BYTES);
    for index in 0..count {
        let number = numbers[index] as usize;
        let make = *makes.get(number)?;
        let continuation = make.is_continuation();
        let last = before.last[number];
        let value = |field: usize| fields[field][index];
        let near = |field: usize, before: i32| before.wrapping_add(unzigzag(value(field)) as i32);
        let begin = before.begin(number, continuation);
        let duration = if continuation { make.kind } else { value(1) as u32 };
        let communicator = i32::from(last.communicator()).wrapping_add(unzigzag(value(2)) as i32);
        let slot = Slot {
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
    use crate::layout::slot_word;
    use proptest::prelude::*;

    #[test]
    fn a_regular_program_leaves_mostly_zeros() {
        let slots = (0..1000u64).map(|index| Slot {
            begin: 5_000_000_000 + index * 40_000,
            word: slot_word(900, 100 + (index % 3) as u16, 1),
            peer: 3,
            tag: 7,
            bytes: 8192,
            request: 0x63,
        });
        let bytes: Vec<u8> = slots.flat_map(|slot| bytes_of(&slot).to_vec()).collect();
        let columns = to_columns(&bytes).unwrap();
        let zeros = columns.iter().filter(|byte| **byte == 0).count();
        assert!(zeros * 2 > columns.len(), "{zeros} of {}", columns.len());
        assert_eq!(from_columns(&columns).unwrap(), bytes);
    }

    proptest! {
        #[test]
        fn any_slots_come_back(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
            let whole = &bytes[..bytes.len() / SLOT_BYTES * SLOT_BYTES];
            let columns = to_columns(whole).unwrap();
            prop_assert_eq!(from_columns(&columns).unwrap(), whole);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = from_columns(&bytes);
        }
    }
}
