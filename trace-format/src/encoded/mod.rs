//! Encodes the slots of a full window in one to three bytes per call.
//!
//! The slots of a window become a self-contained stream of bits that decodes to exactly the same
//! bits, whatever the slots hold. `docs/reference/encoded-chunks.md` specifies every bit; this is the idea.
//!
//! Programs repeat the same calls. A *call*, an event with its continuations, is split into its
//! *content* (function, communicator, peer, tag, bytes, call site …) and what differs each time:
//! the gap since the last call, the duration, the request, the numbers of a run of polls. The first
//! call with a content in a window is a *template*, identified by the index of its slots and not
//! copied.
//!
//! 1. The template that last followed the previous call's template is expected, which takes one
//!    bit. Otherwise the template's number is written. A new content is written as its differences
//!    from a template of the same shape.
//! 2. Times are divided by the step of the counter (that of some processors moves by 26) if they
//!    are multiples of it, or written out. An exponent is coded relative to the template's last one in
//!    one to five bits; the bits below the highest follow. The codes of a call precede all of these
//!    bits, so a decoder finds the begin of the next call by examining thirteen bits.
//! 3. A request is expected to be as far back among the requests as last time, or to grow as last
//!    time. One bit says that this holds for all requests of a call.
//!
//! [`Encoder`] writes calls of the most frequent kind (expected, and fitting in one word) in a loop
//! of their own, and [`Decoder`] reads them in one. Both have one function for all other calls. The
//! tables (`templates`) change in the same way on both sides.
//!
//! The encoder runs inside other people's programs: no allocation, no lock, no panic, no `unsafe`.
//! The decoder trusts nothing. The caller decides how chunk header, stream and checksum are
//! arranged in a file.

mod bits;
mod decode;
mod encode;
mod numbers;
mod requests;
pub mod samples;
mod slot;
mod templates;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;
pub use numbers::{unzigzag, zigzag};

/// A slot as five words: begin; word; peer (low half) and tag; bytes (low half) and request; site.
pub type Words = [u64; 5];

/// Bytes of a stream's header: number of slots and step of the counter, a `u32` each.
pub const STREAM_HEADER_BYTES: usize = 8;

/// Why a stream could not be decoded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The header is incomplete, or its step is 0.
    #[error("the header of encoded slots is damaged")]
    Header,
    /// The header promises more slots than allowed.
    #[error("more encoded slots than its chunk can hold")]
    TooManySlots,
    /// The bytes end before the last slot.
    #[error("encoded slots are cut off")]
    CutOff,
    /// A call refers to one that does not exist.
    #[error("an encoded call refers to one that does not exist")]
    Template,
    /// A number has an invalid prefix.
    #[error("an encoded number is damaged")]
    Count,
    /// A call's slots are not an event and its continuations.
    #[error("an encoded call is damaged")]
    Call,
}

/// Number of slots according to a stream's header. `None` if the stream is too short.
pub fn slots_of(stream: &[u8]) -> Option<usize> {
    let slots = stream.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    usize::try_from(slots).ok()
}
