//! Converts plain values to their bytes and back.

/// Views a plain header or slot as its bytes.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` promises that every byte of T is initialised; the slice borrows `value`.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// Views plain values as their bytes.
pub fn bytes_of_all<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: as in `bytes_of`.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Reads a plain header or slot from bytes. `None` if there are too few.
pub fn read_plain<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, any bit pattern is a valid T (`Plain`), and the read does
    // not need alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A `repr(C)` type without padding for which any bit pattern is valid.
///
/// # Safety
/// The implementer must guarantee both.
pub unsafe trait Plain: Copy {}

// SAFETY: integers without padding between them.
unsafe impl<const N: usize> Plain for [u64; N] {}
