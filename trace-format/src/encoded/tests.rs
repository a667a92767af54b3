//! Tests that any slots are encoded without loss, and that no bytes can harm the decoder.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Damage, Decoder, Encoder, Words};
use crate::layout::*;

/// More bytes than any slot takes in a stream.
const BOUND_BYTES_A_SLOT: usize = 96;

fn event(begin: u64, duration: u32, function: u16, peer: u32, request: u32) -> Words {
    let word = slot_word(duration, FIRST_FUNCTION + function, 1);
    let object = u64::from(peer) | 7 << 32;
    [begin, word, object, 4096 | u64::from(request) << 32, 0x40_1000 + u64::from(function)]
}

fn continuation(kind: u32, begin: u64, object: u64, amount: u64) -> Words {
    [begin, slot_word(kind, CONTINUATION, COMPLETED), object, amount, 0]
}

/// A loop with an exchange, a wait for it, a collective call and a run of polls.
fn program(steps: u64, step_ticks: u64) -> Vec<Words> {
    let mut slots = Vec::new();
    for step in 0..steps {
        let at = step_ticks * (1000 + 5000 * step + step * step % 97);
        let handles = [0x100 + (step as u32 % 3), 0x9000 + step as u32];
        slots.push(event(at, (step_ticks * (10 + step % 7)) as u32, 1, 3, handles[0]));
        slots.push(event(at + 40 * step_ticks, 52, 2, 5, handles[1]));
        slots.push(event(at + 600 * step_ticks, (step_ticks * 90) as u32, 3, 0, 0));
        for handle in handles {
            slots.push(continuation(CONTINUES_REQUEST, 4096, 3, u64::from(handle) << 32));
        }
        slots.push(event(at + 900 * step_ticks, DURATION_ESCAPE, 4, 0, 0));
        slots.push(continuation(CONTINUES_DURATION, step_ticks * (40 + step % 11), 0, 0));
        slots.push(event(at + 2000 * step_ticks, DURATION_ESCAPE, 5, 0, 0));
        let (polls, total) = (1 + step % 4, step_ticks * (70 + step % 5));
        let rest = if polls == 1 { 0 } else { step_ticks * 9 };
        slots.push(continuation(CONTINUES_POLLS, total - rest, polls, total));
    }
    slots
}

/// Encodes the slots whatever the resulting size.
fn encoded(opened: u64, slots: &[Words]) -> Vec<u8> {
    let mut out = vec![0; 64 + BOUND_BYTES_A_SLOT * slots.len()];
    let mut encoder = Box::new(Encoder::new());
    let used = encoder
        .encode_while(opened, slots, &mut out, |_| true)
        .expect("the buffer is large enough");
    assert!(used <= 16 + BOUND_BYTES_A_SLOT * slots.len());
    out.truncate(used);
    out
}

fn decoded(opened: u64, bytes: &[u8], most: usize) -> (Vec<Words>, Result<(), Damage>) {
    let mut slots = Vec::new();
    let mut decoder = Box::new(Decoder::new());
    let result = decoder.decode(opened, bytes, most, &mut slots);
    (slots, result)
}

#[track_caller]
fn assert_lossless(opened: u64, slots: &[Words]) {
    let bytes = encoded(opened, slots);
    assert_eq!(decoded(opened, &bytes, slots.len()), (slots.to_vec(), Ok(())));
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        0u64..300,
        any::<u32>().prop_map(u64::from),
        any::<u64>()
    ]
}

fn any_word() -> impl Strategy<Value = u64> {
    let function = prop_oneof![Just(CONTINUATION), 0u16..24, any::<u16>()];
    let low = prop_oneof![0u32..9, Just(DURATION_ESCAPE), any::<u32>()];
    (low, function, 0u16..3).prop_map(|(low, function, high)| slot_word(low, function, high))
}

/// Slots that partly repeat, so that templates are reused.
fn any_slots() -> impl Strategy<Value = Vec<Words>> {
    let slot = (any_number(), any_word(), any_number(), any_number(), any_number())
        .prop_map(|(begin, word, object, amount, site)| [begin, word, object, amount, site]);
    let some = vec(slot, 1..24);
    (some, vec((any::<u16>(), any_number(), any::<bool>()), 0..300)).prop_map(|(slots, picks)| {
        let pick = |(index, begin, stays): (u16, u64, bool)| {
            let mut slot = slots[usize::from(index) % slots.len()];
            slot[0] = if stays { slot[0] } else { begin };
            slot
        };
        picks.into_iter().map(pick).collect()
    })
}

proptest! {
    #[test]
    fn keeps_any_slots(opened in any_number(), slots in any_slots()) {
        assert_lossless(opened, &slots);
    }

    #[test]
    fn keeps_random_slots(opened: u64, slots in vec(any::<Words>(), 0..200)) {
        assert_lossless(opened, &slots);
    }

    #[test]
    fn keeps_mutated_programs(
        step in 1u64..60,
        changes in vec((0usize..540, 0usize..5, any_number()), 0..40),
    ) {
        let mut slots = program(60, step);
        for (slot, word, value) in changes {
            slots[slot][word] = value;
        }
        assert_lossless(0, &slots);
    }

    #[test]
    fn encodes_windows_independently(windows in vec(any_slots(), 2..5)) {
        let mut encoder = Box::new(Encoder::new());
        let mut decoder = Box::new(Decoder::new());
        for slots in windows {
            let mut out = vec![0; 64 + BOUND_BYTES_A_SLOT * slots.len()];
            let used = encoder.encode_while(7, &slots, &mut out, |_| true).expect("the buffer is large enough");
            prop_assert_eq!(&out[..used], &encoded(7, &slots)[..]);
            let mut kept = Vec::new();
            prop_assert_eq!(decoder.decode(7, &out[..used], slots.len(), &mut kept), Ok(()));
            prop_assert_eq!(kept, slots);
        }
    }

    #[test]
    fn survives_flipped_bits(flips in vec((any::<u16>(), 0u32..8), 1..4), most in 0usize..700) {
        let slots = program(60, 26);
        let mut bytes = encoded(0, &slots);
        for (at, bit) in flips {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        let (kept, result) = decoded(0, &bytes, most);
        prop_assert!(kept.len() <= most);
        prop_assert!(result.is_err() || kept.len() == bytes[0] as usize | (bytes[1] as usize) << 8);
    }

    #[test]
    fn survives_random_bytes(bytes in vec(any::<u8>(), 0..400), most in 0usize..5000) {
        let (kept, _) = decoded(0, &bytes, most);
        prop_assert!(kept.len() <= most);
        // A valid header, so that the rest is examined.
        let header = [0x80, 0x0c, 0, 0, 26, 0, 0, 0];
        let (kept, _) = decoded(0, &[&header, &bytes[..]].concat(), most);
        prop_assert!(kept.len() <= most);
    }
}

#[test]
fn yields_whole_calls_before_the_cut() {
    let slots = program(40, 26);
    let bytes = encoded(0, &slots);
    let mut longest = 0;
    for length in 0..bytes.len() {
        let (kept, result) = decoded(0, &bytes[..length], slots.len());
        assert!(result.is_err() && slots.starts_with(&kept), "{length} bytes");
        assert!(kept.len() >= longest, "{length} bytes yield less than {} do", length - 1);
        longest = kept.len();
    }
    assert!(longest > slots.len() - 10);
}

#[test]
fn keeps_parallel_regions_in_few_bytes() {
    let mut slots = Vec::new();
    for step in 0..500 {
        slots.push([26 * 9000 * step, slot_word(0, TOOL, 4), 13 | 3 << 32, 0, 0x40_2000]);
        let [span, inside] = [26 * (900 + step % 13), 26 * (3000 + step % 17)];
        let mut team = continuation(CONTINUES_TEAM, span, inside, inside - 26 * (step % 7));
        team[4] = 26 * (1000 + step % 5);
        slots.push(team);
        slots.push(continuation(CONTINUES_TEAM_WAITS, 26 * (step % 7), 0, 0));
    }
    assert_lossless(0, &slots);
    let bytes = encoded(0, &slots).len();
    assert!(bytes < 20 * 500, "{bytes}");
}

#[test]
fn decoder_appends_and_can_be_reused() {
    let (one, other) = (program(40, 26), program(30, 2));
    let mut decoder = Box::new(Decoder::new());
    let mut slots = Vec::new();
    for window in [&one, &other, &one] {
        let bytes = encoded(5, window);
        assert_eq!(decoder.decode(5, &bytes, window.len(), &mut slots), Ok(()));
    }
    assert_eq!(slots, [&one[..], &other, &one].concat());
}

#[test]
fn encoder_carries_nothing_over_to_next_window() {
    let (one, other) = (program(400, 26), program(30, 2));
    let mut encoder = Box::new(Encoder::new());
    let mut out = vec![0; size_of_val(&one[..]) + 8];
    assert!(encoder.encode(0, &one, &mut out).is_some());
    let used = encoder.encode(0, &other, &mut out).expect("encoding pays");
    assert_eq!(out[..used], encoded(0, &other));
}

#[test]
fn refuses_more_slots_than_allowed() {
    let slots = program(10, 26);
    let bytes = encoded(0, &slots);
    assert_eq!(decoded(0, &bytes, slots.len() - 1), (vec![], Err(Damage::TooManySlots)));
    let few = [&[0xff; 4][..], &[1, 0, 0, 0], &[0x55; 16]].concat();
    let (kept, result) = decoded(0, &few, usize::MAX);
    assert!(kept.capacity() < 10_000 && result.is_err());
}

#[test]
fn names_damaged_headers() {
    assert_eq!(decoded(0, &[1, 0, 0], 10), (vec![], Err(Damage::Header)));
    assert_eq!(decoded(0, &[1, 0, 0, 0, 0, 0, 0, 0, 7], 10), (vec![], Err(Damage::Header)));
}

#[test]
fn first_call_like_another_is_damage() {
    for choice in [0b0u8, 0b01, 0b011] {
        let bytes = [1, 0, 0, 0, 1, 0, 0, 0, choice, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decoded(0, &bytes, 10), (vec![], Err(Damage::Template)), "{choice:b}");
    }
}

#[test]
fn all_zero_bytes_are_a_valid_encoder() {
    let encoder = Box::new(Encoder::new());
    let bytes: *const u8 = (&raw const *encoder).cast();
    // SAFETY: the encoder lives until the end of this function and has no padding (asserted beside it).
    let bytes = unsafe { std::slice::from_raw_parts(bytes, size_of::<Encoder>()) };
    assert!(bytes.iter().all(|byte| *byte == 0));
    assert!((64 << 10..96 << 10).contains(&size_of::<Encoder>()));
}

#[test]
fn encoding_pays_for_programs_but_not_for_noise() {
    let slots = program(600, 26);
    let mut encoder = Box::new(Encoder::new());
    let mut out = vec![0; size_of_val(&slots[..]) + 8];
    let used = encoder.encode(0, &slots, &mut out).expect("a loop repeats");
    assert!(used < 2 * slots.len(), "{used} bytes for {} slots", slots.len());
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 33
    };
    let noise: Vec<Words> = (0..5000).map(|_| std::array::from_fn(|_| random())).collect();
    assert_eq!(encoder.encode(0, &noise, &mut out), None);
    let sizes: Vec<Words> =
        (0..5000).map(|n| event(n * 900, 30, 1, random() as u32 % 64, 0)).collect();
    assert!(encoder.encode(0, &sizes, &mut out).is_some(), "64 peers are few enough");
    let sizes: Vec<Words> = (0..5000).map(|n| event(n * 900, 30, 1, random() as u32, 0)).collect();
    assert_eq!(encoder.encode(0, &sizes, &mut out), None, "no call is like another");
}

#[test]
fn rejects_small_buffers_and_needs_eight_spare_bytes() {
    let slots = program(50, 26);
    let mut encoder = Box::new(Encoder::new());
    let mut out = vec![0; size_of_val(&slots[..]) + 8];
    let used = encoder.encode(0, &slots, &mut out).expect("encoding pays");
    for length in [0, 7, 8, 16, used / 2, used - 1] {
        assert_eq!(encoder.encode(0, &slots, &mut out[..length]), None, "{length} bytes");
    }
    assert_eq!(encoder.encode(0, &slots, &mut out[..used + 8]), Some(used));
    assert_eq!(
        encoder.encode(0, &[], &mut out),
        None,
        "an encoding cannot be smaller than no slots"
    );
}

#[test]
fn keeps_more_continuations_than_a_call_has() {
    let mut slots = vec![continuation(CONTINUES_REQUEST, 1, 2, 3 << 32)];
    for n in 0..5u64 {
        slots.push(event(1000 * n, 50, 1, 2, 0));
        slots.extend((0..200).map(|k| continuation(CONTINUES_REQUEST, 8, 1, (k + 200 * n) << 32)));
    }
    assert_lossless(0, &slots);
}

#[test]
fn keeps_calls_after_more_templates_than_are_remembered() {
    let calls = (0..9000u64).map(|n| event(100 * n, 30, 1, (n % 3000) as u32, 0));
    let slots: Vec<Words> =
        calls.flat_map(|call| [call, event(call[0] + 40, 9, 2, 1, 0)]).collect();
    assert_lossless(0, &slots);
}

#[test]
fn finds_counter_step_despite_stray_time() {
    let mut slots = program(100, 26);
    let step = |slots: &[Words]| u32::from_le_bytes(encoded(0, slots)[4..8].try_into().unwrap());
    assert_eq!(step(&slots), 26);
    slots[9][0] += 1;
    assert_eq!(step(&slots), 26);
    assert_lossless(0, &slots);
    assert_eq!(step(&[]), 1);
    assert_eq!(step(&[event(u64::MAX, 0, 1, 0, 0), event(1, 0, 1, 0, 0)]), 2);
}

/// The format must not change without a new version of the trace format. Other decoders can check
/// themselves with these bytes; `docs/reference/encoded-chunks.md` names this test.
#[test]
fn format_is_unchanged() {
    let bytes = encoded(26, &program(3, 26));
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        text,
        "1b0000001a00000007f8a30800e1700300c125000278b3d1ef010200000ef047120043c30d000417\
         0108e0d2ff009000001768a30980e106002e0310c05303000622020061f0d400808188004018bcb9\
         bed816043cb0051105c0700300170208c020880800eea6b7f4c016441500c30d005c0a200083a188\
         00e095125c8fb0d08d1f10000000ff0190000078b1c194020921bd85ba153abcd8606a61849242"
    );
}

#[test]
fn reads_codes_longer_than_a_head() {
    // Times whose exponents change so much that both codes exceed the bits that a decoder examines
    // first.
    let slots = [
        [215, 73_014_491_522, 0, 0, 0],
        [47_755, 73_030_320_856, 0, 0, 0],
        [16_962_411, 73_014_444_042, 0, 0, 0],
        [16_962_421, 73_014_444_032, 0, 0, 0],
        [16_963_421, 73_014_444_032, 0, 0, 0],
    ];
    let (kept, result) = decoded(0, &encoded(0, &slots), slots.len());
    assert_eq!((&kept[..], result), (&slots[..], Ok(())));
}

proptest! {
    /// Few contents, so that calls are predicted, and times of any size.
    #[test]
    fn predicted_calls_with_any_times_come_back(
        calls in vec((0u64..3, 0u32..40, 0u32..32, any::<u32>()), 1..600),
    ) {
        let mut begin = 1 << 50;
        let slots: Vec<Words> = calls
            .iter()
            .map(|&(function, gap, duration, noise)| {
                begin += (1 << gap) + u64::from(noise) % (1 << gap);
                let longest = (u64::from(noise) | 1 << duration) % (1 << 31);
                let duration = longest >> (31 - duration);
                let slot = [begin, duration | (16 + function) << 32, 0, 0, 0x40_1000 + function];
                begin += duration;
                slot
            })
            .collect();
        let (kept, result) = decoded(1 << 50, &encoded(1 << 50, &slots), slots.len());
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(kept, slots);
    }
}
