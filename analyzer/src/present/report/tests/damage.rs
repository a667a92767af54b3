//! Whatever the files contain, the result is a report or an error, never a panic.

use super::*;
use crate::metrics::Bound;
use crate::test_cases::cases;
use proptest::prelude::*;
use trace_format::header::ClockExchange;
use trace_format::layout::{HEADER_BYTES, Slot, slot_word};

fn selections() -> [Selection; 3] {
    let window = Selection::Window {
        from: Bound::Occurrence { function: "MPI_Send".into(), number: 1 },
        to: Bound::Seconds(8.0),
    };
    [Selection::Whole, Selection::Region("solve".into()), window]
}

/// Whether there is a report of the given selection. An error must have a text.
fn has_report(path: &std::path::Path, selection: &Selection) -> bool {
    match texts(path, selection) {
        Ok([screen, json]) => {
            assert!(screen.contains("TRUST") && json.contains("\"trust\""));
            true
        }
        Err(error) => {
            assert!(!error.is_empty());
            false
        }
    }
}

/// Bits of the bytes in use: the non-zero ones of header, definitions and events.
fn used_bits(file: &[u8]) -> Vec<usize> {
    let used = (0..file.len()).filter(|byte| file[*byte] != 0);
    used.flat_map(|byte| (0..8).map(move |bit| 8 * byte + bit)).collect()
}

#[test]
fn encoded_and_plain_slots_give_the_same_report() {
    let report = |directory: &RunDirectory, selection: &Selection| {
        let name = directory.path().file_name().unwrap().to_string_lossy().into_owned();
        texts(directory.path(), selection).unwrap().map(|text| text.replace(&name, "RUN"))
    };
    let [plain, encoded] =
        [RunDirectory::with_ranks(&solver()), RunDirectory::of_encoded(&solver())];
    let lengths = [&plain, &encoded].map(|run| std::fs::metadata(run.file(0)).unwrap().len());
    assert!(lengths[1] < lengths[0], "{lengths:?}");
    for selection in selections() {
        assert_eq!(report(&encoded, &selection), report(&plain, &selection));
    }
}

#[test]
fn reports_damaged_encoded_chunk() {
    let directory = RunDirectory::of_encoded(&solver());
    let mut file = std::fs::read(directory.file(0)).unwrap();
    let last = file.iter().rposition(|byte| *byte != 0).unwrap();
    file[last] ^= 1;
    std::fs::write(directory.file(0), file).unwrap();
    let [_, json] = texts(directory.path(), &Selection::Whole).unwrap();
    assert!(json.contains("a chunk of events is damaged (checksum)"), "{json}");
}

#[test]
fn any_flipped_bit() {
    flip_each_bit(&RunDirectory::with_ranks(&solver()));
}

#[test]
fn any_flipped_bit_in_encoded_slots() {
    flip_each_bit(&RunDirectory::of_encoded(&solver()));
}

fn flip_each_bit(directory: &RunDirectory) {
    let file = std::fs::read(directory.file(1)).unwrap();
    let granule = HEADER_BYTES as usize;
    // All bits of definitions and events, every 197th of the header, mostly function names.
    let mut bits = used_bits(&file);
    bits.retain(|bit| *bit >= 8 * granule || *bit % 197 == 0);
    let count = cases(bits.len() as u32) as usize;
    let apart = bits.len() / count;
    // Each bit of a byte in turn.
    let bits = (0..count).map(|at| bits[at * apart + at % apart]);
    let mut reported = 0;
    for (bit, selection) in bits.zip(selections().iter().cycle()) {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(directory.file(1), damaged).unwrap();
        reported += usize::from(has_report(directory.path(), selection));
    }
    assert!(reported > count / 10, "{reported} of {count}");
}

#[test]
fn file_cut_at_any_length() {
    let directory = RunDirectory::with_ranks(&solver());
    let file = std::fs::read(directory.file(0)).unwrap();
    for length in (0..file.len()).step_by(499) {
        std::fs::write(directory.file(0), &file[..length]).unwrap();
        // Rank 1's file is undamaged, so there is always a report.
        assert!(has_report(directory.path(), &Selection::Whole), "cut to {length} bytes");
    }
}

#[test]
fn cut_that_loses_events_is_reported_and_counts_no_computing() {
    let directory = RunDirectory::with_ranks(&solver());
    let file = std::fs::read(directory.file(0)).unwrap();
    // All event chunks are gone, but the definitions say that the rank finalized.
    let length = file[HEADER_BYTES as usize + 16..][..8].try_into().unwrap();
    let definitions = u64::from_le_bytes(length) as usize;
    std::fs::write(directory.file(0), &file[..HEADER_BYTES as usize + definitions]).unwrap();
    let [_, json] = texts(directory.path(), &Selection::Whole).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ranks"][0]["ending"], "damaged");
    assert_eq!(json["ranks"][0]["compute_s"], 0.0);
    assert!(json["diagnoses"][0]["what"].as_str().unwrap().contains("events are missing"));
}

fn slot() -> impl Strategy<Value = Slot> {
    let function = prop_oneof![0u16..20, 16u16..700, any::<u16>()];
    let duration = prop_oneof![0u32..1000, 0u32..7, Just(u32::MAX), any::<u32>()];
    let begin = prop_oneof![0u64..10_000, at(0)..at(9000), any::<u64>()];
    (begin, duration, function, any::<(i32, i32, u32, u32)>()).prop_map(
        |(begin, duration, function, (peer, tag, bytes, request))| {
            let word = slot_word(duration, function, 0);
            Slot { begin, word, peer, detail: tag, bytes, request, site: 0 }
        },
    )
}

fn ticks() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10_000, at(0)..at(9000), Just(0), Just(u64::MAX), any::<u64>()]
}

fn definition() -> impl Strategy<Value = Definition> {
    let exchange = (any::<bool>(), 0u32..4, any::<bool>(), ticks(), ticks(), ticks());
    prop_oneof![
        ticks().prop_map(|ticks| Definition::RankBegin { ticks }),
        ticks().prop_map(|ticks| Definition::RankEnd { ticks }),
        ticks().prop_map(|ticks| Definition::Stopped { ticks, reason: "full".into() }),
        any::<u64>().prop_map(|lost_events| Definition::Finalized { lost_events }),
        any::<u32>().prop_map(|id| Definition::Region { id, name: "solve".into() }),
        any::<[u64; 4]>().prop_map(|[ticks, width_ticks, monotonic_raw_ns, realtime_ns]| {
            Definition::ClockAnchor(trace_format::header::ClockAnchor {
                ticks,
                width_ticks,
                monotonic_raw_ns,
                realtime_ns,
            })
        }),
        exchange.prop_map(|(last, parent, same_host, child, of_parent, bound)| {
            Definition::ClockExchange(ClockExchange {
                phase: if last { Phase::Finalize } else { Phase::Init },
                parent,
                same_host,
                rounds: 1,
                kept: 1,
                child_ticks: child,
                parent_ticks: of_parent,
                bound_ticks: bound,
                min_round_trip_ticks: 1,
                median_round_trip_ticks: 1,
            })
        }),
    ]
}

fn rank() -> impl Strategy<Value = (Vec<Definition>, Vec<Vec<Slot>>, bool, usize)> {
    (
        prop::collection::vec(definition(), 0..12),
        prop::collection::vec(prop::collection::vec(slot(), 1..12), 0..4),
        any::<bool>(),
        0..3usize,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(600)))]
    #[test]
    fn valid_files_with_absurd_content(
        ranks in prop::collection::vec(rank(), 1..4), sorted in any::<bool>(),
    ) {
        let directory = RunDirectory::new();
        for ((definitions, mut threads, invariant, mode), number) in ranks.into_iter().zip(0..) {
            if sorted {
                threads.iter_mut().for_each(|slots| slots.sort_by_key(|slot| slot.begin));
            }
            let mut rank = SyntheticRank::new(number, 4);
            rank.header.counter_invariant = invariant;
            rank.header.compute = ["outside", "blas", "regions"][mode].into();
            (rank.definitions, rank.threads) = (definitions, threads);
            directory.write(&rank);
        }
        for selection in selections() {
            has_report(directory.path(), &selection);
        }
    }
}
