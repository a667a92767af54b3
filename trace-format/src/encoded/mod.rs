//! Slots of a full window in one to three bytes a call.
//!
//! In: the slots of a window. Out: a stream of bits that stands alone, and back, bit for bit, whatever
//! the slots hold. `docs/reference/encoded-chunks.md` states every bit; this is the idea.
//!
//! Programs make the same calls again. A *call*, an event with its continuations, is split into its
//! *content* (function, communicator, peer, tag, bytes, call site …) and what differs each time: gap since
//! the last call, duration, request, the numbers of a run of polls. The first call of each content
//! in a window is a *template*; nothing of it is copied, it is the index of its slots.
//!
//! 1. The template that followed the previous call's template last time is expected: one bit. Else its
//!    number is written. A new content is written as its differences from a template of the same shape.
//! 2. Times are divided by the step of the counter (that of some processors moves by 26), exactly, or
//!    written out. Beside the exponent that the template had last, an exponent takes one to five bits; the
//!    bits below follow. A call's codes come first and its bits below behind them, so that one look at
//!    thirteen bits tells a decoder where the next call begins.
//! 3. Requests are expected to be as far back among the requests as last time, or to grow as last time.
//!    One bit says that all of a call are.
//!
//! [`Encoder`] writes the calls of the most frequent kind (expected, one word of bits) in a loop of their
//! own, [`Decoder`] takes them in one; both have one function for all others. The
//! tables (`templates`) change in the same way on both sides.
//!
//! The encoder runs inside other people's programs: no allocation, no lock, no panic, no `unsafe`. The
//! decoder trusts nothing. The order of chunk header, stream and checksum in a file is the caller's.

mod bits;
mod decode;
mod encode;
mod numbers;
mod requests;
mod slot;
mod templates;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;

/// A slot as five words: begin; word; peer (low half) and tag; bytes (low half) and request; site.
pub type Words = [u64; 5];

/// Bytes of a stream's header: number of slots and step of the counter, a `u32` each.
pub const STREAM_HEADER_BYTES: usize = 8;

/// Why a stream could not be decoded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The header is not whole, or its step is 0.
    #[error("the header of encoded slots is damaged")]
    Header,
    /// The header promises more slots than allowed.
    #[error("more encoded slots than its chunk can hold")]
    TooManySlots,
    /// The bytes end before the last slot.
    #[error("encoded slots are cut off")]
    CutOff,
    /// A call is said to be like one that was not there.
    #[error("an encoded call refers to one that is not there")]
    Template,
    /// A number has a prefix that none has.
    #[error("an encoded number is damaged")]
    Count,
    /// A call's slots are not an event and its continuations.
    #[error("an encoded call is damaged")]
    Call,
}

/// How many slots a stream says to have; `None` where it is too short to say it.
pub fn slots_of(stream: &[u8]) -> Option<usize> {
    let slots = stream.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    usize::try_from(slots).ok()
}
