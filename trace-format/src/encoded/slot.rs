//! Splits a slot into what is the same each time a call is made and what is not.

use super::Words;
use crate::layout::{
    CONTINUATION, CONTINUES_DURATION, CONTINUES_FILE_CALLS, CONTINUES_MESSAGE, CONTINUES_POLLS,
    CONTINUES_REQUEST, CONTINUES_TEAM, CONTINUES_TEAM_WAITS, DURATION_ESCAPE,
};

const HIGH: u64 = !0 << 32;

/// The values of a slot that are written separately from its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apart {
    /// None.
    Nothing,
    /// The request, which is not zero.
    Request,
    /// The duration, in `begin`.
    Duration,
    /// Ticks inside, number and total duration of a run of polls.
    Polls,
    /// All of it: four numbers.
    Four,
}

/// Whether a slot continues the event before it.
#[inline(always)]
pub(super) fn is_continuation(slot: &Words) -> bool {
    (slot[1] >> 32) as u16 == CONTINUATION
}

/// Whether an event's duration is stored outside its slot.
#[inline(always)]
pub(super) fn is_escaped(event: &Words) -> bool {
    event[1] as u32 == DURATION_ESCAPE
}

/// The request, or 0.
#[inline(always)]
pub(super) fn request(slot: &Words) -> u32 {
    (slot[3] >> 32) as u32
}

/// Stores a request.
#[inline(always)]
pub(super) fn set_request(slot: &mut Words, request: u32) {
    slot[3] = slot[3] & !HIGH | u64::from(request) << 32;
}

/// The values of a continuation that are written separately. The same for its content.
#[inline(always)]
pub(super) fn apart(continuation: &Words) -> Apart {
    match continuation[1] as u32 {
        CONTINUES_REQUEST | CONTINUES_MESSAGE if request(continuation) != 0 => Apart::Request,
        CONTINUES_DURATION => Apart::Duration,
        CONTINUES_POLLS => Apart::Polls,
        CONTINUES_TEAM | CONTINUES_TEAM_WAITS | CONTINUES_FILE_CALLS => Apart::Four,
        _ => Apart::Nothing,
    }
}

/// An event's content: without its begin, its duration (all ones stay) and the value of its request
/// (1 stands for any).
#[inline(always)]
fn event_content(slot: &Words) -> Words {
    let [_, word, object, amount, site] = *slot;
    let duration = if is_escaped(slot) { word & !HIGH } else { 0 };
    let request = u64::from(request(slot) != 0) << 32;
    [0, word & HIGH | duration, object, amount & !HIGH | request, site]
}

/// A continuation's content: without the values named by [`apart`] (1 stands for any request).
#[inline(always)]
fn continuation_content(slot: &Words) -> Words {
    let [begin, word, object, amount, site] = *slot;
    match apart(slot) {
        Apart::Nothing => *slot,
        Apart::Request => [begin, word, object, amount & !HIGH | 1 << 32, site],
        Apart::Duration => [0, word, object, amount, site],
        Apart::Polls => [0, word, 0, 0, site],
        Apart::Four => [0, word, 0, 0, 0],
    }
}

/// The part of a slot that must be equal for one slot to be copied from another.
#[inline(always)]
pub(super) fn content(slot: &Words) -> Words {
    if is_continuation(slot) { continuation_content(slot) } else { event_content(slot) }
}

/// Whether a slot has the same content as a continuation.
#[inline(always)]
pub(super) fn same_continuation(one: &Words, other: &Words) -> bool {
    let [begin, word, object, amount, site] = [
        one[0] ^ other[0],
        one[1] ^ other[1],
        one[2] ^ other[2],
        one[3] ^ other[3],
        one[4] ^ other[4],
    ];
    let differences = match one[1] as u32 {
        CONTINUES_REQUEST | CONTINUES_MESSAGE => {
            let is_other = (request(one) != 0) != (request(other) != 0);
            begin | object | amount & !HIGH | u64::from(is_other)
        }
        CONTINUES_DURATION => object | amount,
        CONTINUES_POLLS => 0,
        CONTINUES_TEAM | CONTINUES_TEAM_WAITS | CONTINUES_FILE_CALLS => return word == 0,
        _ => begin | object | amount,
    };
    differences | word | site == 0
}

/// The words of a slot with [`Apart::Four`] that are numbers of their own.
pub(super) const FOUR_WORDS: [usize; 4] = [0, 2, 3, 4];

/// Number of fields of a content.
pub(super) const FIELDS: usize = 8;

/// Bits of a field's exponent in the stream.
pub(super) const EXPONENT_BITS: [u32; FIELDS] = [6, 5, 5, 5, 5, 5, 5, 6];

/// The fields of a content: begin; low and high halves of word, peer and tag, bytes and request;
/// site.
#[inline(always)]
pub(super) fn fields(content: &Words) -> [u64; FIELDS] {
    let [begin, word, object, amount, site] = *content;
    let low = |value: u64| value & !HIGH;
    [begin, low(word), word >> 32, low(object), object >> 32, low(amount), amount >> 32, site]
}

/// Undoes [`fields`].
pub(super) fn from_fields(fields: [u64; FIELDS]) -> Words {
    let [begin, word, flags, peer, tag, bytes, request, site] = fields;
    [begin, word | flags << 32, peer | tag << 32, bytes | request << 32, site]
}
