//! How long it takes to encode a full window, which the measured program waits for, and to decode it.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use trace_format::encoded::{Decoder, Encoder, Words};
use trace_format::layout::{FIRST_FUNCTION, SLOT_BYTES, slot_word};

/// Slots of a window of usual size.
const SLOTS: u64 = 3270;

fn main() {
    divan::main();
}

/// A loop of four calls with noise in their times, as most programs record.
fn window() -> Vec<Words> {
    let slot = |n: u64| {
        let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let word = slot_word(200 + noise as u32, FIRST_FUNCTION + (n % 4) as u16, 1);
        [26 * (1000 + 40 * n + noise), word, n % 4, 4096, 0x40_1000 + n % 4]
    };
    (0..SLOTS).map(slot).collect()
}

#[divan::bench]
fn encode(bencher: Bencher<'_, '_>) {
    let (slots, mut encoder) = (window(), Box::new(Encoder::new()));
    let mut out = vec![0; slots.len() * SLOT_BYTES / 2];
    bencher
        .counter(ItemsCount::new(SLOTS))
        .bench_local(|| encoder.encode(0, black_box(&slots), &mut out).expect("a loop repeats"));
}

#[divan::bench]
fn decode(bencher: Bencher<'_, '_>) {
    let (mut encoder, mut out) =
        (Box::new(Encoder::new()), vec![0; SLOTS as usize * SLOT_BYTES / 2]);
    let used = encoder.encode(0, &window(), &mut out).expect("a loop repeats");
    let (mut decoder, mut decoded) = (Box::new(Decoder::new()), Vec::new());
    bencher.counter(ItemsCount::new(SLOTS)).bench_local(|| {
        decoded.clear();
        decoder.decode(0, black_box(&out[..used]), SLOTS as usize, &mut decoded)
    });
}
