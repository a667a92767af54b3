//! Definitions of the interpreted functions that stacks have.
//!
//! Each is written as soon as it is met, so that a rank that is killed leaves the names of its samples.

use trace_format::encoding::encode_into;
use trace_format::samples::{PYTHON, interpreted};

use crate::host::python_code::Codes;
use crate::store::trace_file::define_encoded;

/// Number of the definition's kind.
const CODE: u32 = 28;
/// A definition with the longest name and file.
const MAX_BYTES: usize = 4 << 10;

/// Writes functions that were met since. Returns whether all are in the file now. Unless it may wait, it
/// neither waits nor allocates.
pub fn define_new(may_wait: bool) -> bool {
    let Some(codes) = Codes::known() else { return true };
    while let Some((number, name, file)) = codes.first_undefined() {
        let mut bytes = [0; MAX_BYTES];
        if !encoded(number, name, file, &mut bytes).is_some_and(|of| define_encoded(of, may_wait)) {
            return false;
        }
        codes.set_defined(number);
    }
    true
}

/// The definition as [`Definition::Code`](trace_format::header::Definition::Code) is encoded.
fn encoded<'b>(
    number: u32,
    name: &str,
    file: &str,
    bytes: &'b mut [u8; MAX_BYTES],
) -> Option<&'b [u8]> {
    let (begin, end) = (interpreted(number, 0), interpreted(number + 1, 0));
    // The prefix and the name are one text.
    let name_bytes = (PYTHON.len() + name.len()) as u64;
    let mut length = encode_into(&(CODE, file, name_bytes), bytes)?;
    for text in [PYTHON, name] {
        bytes.get_mut(length..length + text.len())?.copy_from_slice(text.as_bytes());
        length += text.len();
    }
    length += encode_into(&(begin, begin, end, 0u64), bytes.get_mut(length..)?)?;
    bytes.get(..length)
}

#[cfg(test)]
mod tests {
    use trace_format::encoding::decode;
    use trace_format::header::{Definition, Module};

    use super::*;

    #[test]
    fn definition_is_as_the_reader_expects() {
        let mut bytes = [0; MAX_BYTES];
        let found = decode(encoded(3, "Größe", "/a.py", &mut bytes).unwrap());
        let (begin, end) = (interpreted(3, 0), interpreted(4, 0));
        let (path, identity) = ("/a.py".to_owned(), "python Größe".to_owned());
        let expected = Module { path, identity, base: begin, begin, end, ticks: 0 };
        assert_eq!(found, Ok(Definition::Code(expected)));
        assert!(encoded(3, &"x".repeat(5000), "", &mut bytes).is_none());
    }
}
