//! The payload of the header area, with correct checksums.
#![no_main]

use images::{Pieces, header_area, read_all, sound_fixed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let mut fixed = sound_fixed(pieces.byte(), 0, 1);
    fixed.counter = pieces.byte();
    read_all(&header_area(fixed, pieces.0));
});
