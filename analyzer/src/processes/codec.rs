//! Values as bytes, for processes of one program: both sides have the same types. Small numbers take
//! few bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard()
}

/// A value as bytes.
///
/// # Panics
/// If the type cannot be encoded, which is an error of the program.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    match bincode::serde::encode_to_vec(value, configuration()) {
        Ok(bytes) => bytes,
        Err(error) => panic!("a value cannot be sent to another process: {error}"),
    }
}

/// The value that [`encode`] made these bytes of.
///
/// # Panics
/// If they are not such a value: the other process runs another version of the program.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    match bincode::serde::decode_from_slice(bytes, configuration()) {
        Ok((value, used)) if used == bytes.len() => value,
        Ok(_) => panic!("another process sent a value of another length: is its program another?"),
        Err(error) => panic!("another process sent a value that cannot be read: {error}"),
    }
}
