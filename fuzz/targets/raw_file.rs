//! A whole rank file, byte by byte, without any corrections. (Zeros up to the next 64 KiB are
//! inserted.)
#![no_main]

use images::{Pieces, read_all};
use libfuzzer_sys::fuzz_target;

/// The header area and mapped chunks are multiples of this.
const GRANULE: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let cut = usize::from(pieces.byte()) * 8;
    let mut image = Vec::new();
    for _ in 0..4 {
        image.extend(pieces.counted());
        image.resize(image.len().next_multiple_of(GRANULE), 0);
    }
    image.truncate(image.len().saturating_sub(cut));
    read_all(&image);
});
