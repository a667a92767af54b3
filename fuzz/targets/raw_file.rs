//! A whole rank file, byte by byte: nothing is made right. (Zeros up to the next 64 KiB are put in.)
#![no_main]

use images::{Pieces, read_all};
use libfuzzer_sys::fuzz_target;

/// What the header area and chunks that are mapped are multiples of.
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
