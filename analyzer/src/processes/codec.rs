//! Values as bytes, for processes of one program: both sides have the same types. In [`encode`] small
//! numbers take few bytes; [`encode_records`] is for many equal records, and faster.

use bincode::enc::EncoderImpl;
use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard()
}

fn configuration_of_records() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding()
}

/// Bytes that grow as they are written.
#[derive(Default)]
struct Growing(Vec<u8>);

impl Writer for Growing {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A value as bytes, whose numbers have their full length.
///
/// # Panics
/// If the type cannot be encoded, which is an error of the program.
pub(crate) fn encode_records<T: Encode>(value: &T) -> Vec<u8> {
    let mut encoder = EncoderImpl::new(Growing::default(), configuration_of_records());
    match value.encode(&mut encoder) {
        Ok(()) => encoder.into_writer().0,
        Err(error) => panic!("a value cannot be sent to another process: {error}"),
    }
}

/// The value that [`encode_records`] made these bytes of.
///
/// # Panics
/// If they are not such a value: the other process runs another version of the program.
pub(crate) fn decode_records<T: Decode<()>>(bytes: &[u8]) -> T {
    whole(bincode::decode_from_slice(bytes, configuration_of_records()), bytes.len())
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
    whole(bincode::serde::decode_from_slice(bytes, configuration()), bytes.len())
}

/// The value, if it was made of all bytes.
fn whole<T>(decoded: Result<(T, usize), DecodeError>, length: usize) -> T {
    match decoded {
        Ok((value, used)) if used == length => value,
        Ok(_) => panic!("another process sent a value of another length: is its program another?"),
        Err(error) => panic!("another process sent a value that cannot be read: {error}"),
    }
}
