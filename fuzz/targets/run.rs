//! A run of two ranks with any definitions and events, through all stages: open, timeline, metrics,
//! report as text and JSON.
#![no_main]

use images::stages::run_of_data;
use images::{chunk_header, push_chunk};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::CHUNK_EVENTS;

fuzz_target!(|data: &[u8]| {
    run_of_data(data, |image, pieces| {
        for thread in 0..2 {
            let slots = pieces.counted();
            if thread == 0 || !slots.is_empty() {
                push_chunk(image, chunk_header(CHUNK_EVENTS, thread, 0, slots.len()), slots);
            }
        }
    });
});
