//! Encodes headers and definitions as bytes. No other module knows how.
//!
//! bincode 2 with fixed-width little-endian integers: a `u32` is 4 bytes, a `String` is its length
//! as `u64` and its UTF-8 bytes, a `Vec` its length as `u64` and its items, an `Option` one byte
//! (0 or 1) and the value, an enum its variant's number as `u32` and the variant's fields. In a
//! definition chunk each record is framed: payload length `u32`, CRC-32 of the payload `u32`,
//! payload, zeros up to the next multiple of 8.

use serde::{Serialize, de::DeserializeOwned};

/// Bytes before a record's payload: length and checksum.
pub const FRAME_BYTES: usize = 8;
/// Longest payload that a reader accepts; also bounds what decoding may allocate.
pub const MAX_PAYLOAD_BYTES: usize = 4 << 20;

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<MAX_PAYLOAD_BYTES>()
}

/// Encodes a value. `None` if it is longer than [`MAX_PAYLOAD_BYTES`].
pub fn encode<T: Serialize>(value: &T) -> Option<Vec<u8>> {
    bincode::serde::encode_to_vec(value, configuration()).ok()
}

/// The same without allocating: encodes into `bytes` and returns how many it took.
pub fn encode_into<T: Serialize>(value: &T, bytes: &mut [u8]) -> Option<usize> {
    bincode::serde::encode_into_slice(value, bytes, configuration()).ok()
}

/// Decodes a value from exactly these bytes. The error describes what is wrong.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, configuration())
        .map_err(|error| error.to_string())?;
    if used != bytes.len() {
        return Err(format!("{} bytes are left over", bytes.len() - used));
    }
    Ok(value)
}

/// CRC-32 (IEEE) of bytes.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Size of a payload of this length with its frame and padding.
pub fn framed_bytes(payload_bytes: usize) -> usize {
    (FRAME_BYTES + payload_bytes).next_multiple_of(8)
}
