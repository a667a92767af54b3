use crate::trace::run_json::Instant;

use super::*;

/// A quantity of 11 repetitions with a relative uncertainty of 1 %.
fn measured(median: f64) -> Measured {
    Measured {
        median,
        low: median * 0.99,
        high: median * 1.01,
        min: median * 0.98,
        p25: median * 0.985,
        p75: median * 1.015,
        max: median * 1.02,
        repetitions: 11,
        outliers: 0,
        outliers_listed: Vec::new(),
    }
}

fn conditions() -> Conditions {
    Conditions {
        hosts: vec![Host {
            name: "n1".into(),
            ranks: vec![0, 1],
            processors: 2,
            affinity: vec!["0".into(), "1".into()],
            pinned: true,
            processor: "Model".into(),
            stated_hz: Some(2.4e9),
            governor: None,
            virtual_machine: true,
            load_1min: Some(0.1),
        }],
        off_cpu_share: Some(0.0),
        involuntary_switches: 3.0,
        typical_spread: Some(0.02),
        noisy: false,
        reasons: Vec::new(),
    }
}

/// A small machine: 1 µs + 1 ns per byte up to 4096 bytes, 3 µs + 0.5 ns per byte above; 40
/// Gflop/s.
pub(crate) fn machine() -> Machine {
    let time = |bytes: u64| match bytes <= 4096 {
        true => 1e-6 + 1e-9 * bytes as f64,
        false => 3e-6 + 0.5e-9 * bytes as f64,
    };
    let size = |bytes: u64| SizeTimes {
        bytes,
        half_rtt_s: measured(time(bytes)),
        gap_s: measured(0.8 * time(bytes)),
        send_overhead_s: measured(0.2 * time(bytes)),
        receive_overhead_s: measured(0.3 * time(bytes)),
        latency_s: measured(0.5 * time(bytes)),
        one_way_bytes_per_s: measured(bytes as f64 / (0.8 * time(bytes))),
        both_ways_bytes_per_s: measured(1.5 * bytes as f64 / (0.8 * time(bytes))),
    };
    let piece = |from_bytes, to_bytes, fixed_s: f64, per_byte_s: f64| Piece {
        from_bytes,
        to_bytes,
        fixed_s,
        fixed_interval_s: (fixed_s * 0.99, fixed_s * 1.01),
        per_byte_s,
        per_byte_interval_s: (per_byte_s * 0.99, per_byte_s * 1.01),
        worst_misfit: 0.01,
    };
    let pieces = |factor: f64| {
        vec![
            piece(8, 4096, 1e-6 * factor, 1e-9 * factor),
            piece(4097, 1 << 20, 3e-6 * factor, 0.5e-9 * factor),
        ]
    };
    let held = |messages, bytes, at_least| BufferedSends { messages, bytes, at_least };
    let ceiling = |name: &str, unit: &str, rank: f64| Ceiling {
        name: name.into(),
        unit: unit.into(),
        alone: Some(measured(rank)),
        per_rank: measured(rank),
        per_host: measured(2.0 * rank),
        job: measured(2.0 * rank),
    };
    Machine {
        format: FORMAT.into(),
        format_version: FORMAT_VERSION,
        gammachi_version: "0.1.0".into(),
        measured: Instant::from_unix_ns(0),
        launcher: vec!["mpirun".into(), "-n".into(), "2".into()],
        quick: false,
        network: Network {
            mpi: "Open MPI v4.1.4".into(),
            ranks: 2,
            counter: "tsc".into(),
            counter_hz: 2.4e9,
            repetitions: 11,
            warmup_rounds: 2,
            classes: vec![PairClass {
                class: "same-host".into(),
                ranks: [0, 1],
                hosts: ["n1".into(), "n1".into()],
                eager_limit: EagerLimit { bytes: 4096, at_least: false },
                sizes: [8, 64, 1024, 4096, 4097, 65536, 1 << 20].into_iter().map(size).collect(),
                fits: Fits {
                    half_rtt: pieces(1.0),
                    gap: pieces(0.8),
                    send_overhead: pieces(0.2),
                    receive_overhead: pieces(0.3),
                },
                switches: vec![Switch {
                    after_bytes: 4096,
                    before_bytes: 4097,
                    kind: "eager-to-rendezvous".into(),
                    seen_in: vec!["completion".into()],
                }],
                latency: Latency {
                    bytes: 8,
                    latency_s: Some(0.5e-6),
                    interval_s: (0.49e-6, 0.51e-6),
                    half_rtt_s: 1e-6,
                    reason: None,
                },
                queues: vec![QueueSize {
                    bytes: 64,
                    receiver_outside_mpi: held(40, 2560, false),
                    receiver_in_mpi: held(4096, 262_144, true),
                }],
                flows: Vec::new(),
            }],
            conditions: conditions(),
        },
        ceilings: Ceilings {
            mpi: "Open MPI v4.1.4".into(),
            ranks: 2,
            repetitions: 11,
            warmup_rounds: 1,
            instructions: "avx2+fma".into(),
            instructions_note: None,
            blas: BlasUsed {
                library: Some("/usr/lib/libopenblas.so.0".into()),
                configuration: None,
                threads: Some(1),
                n: 1000,
                note: None,
            },
            triad: TriadUsed {
                array_bytes: 1 << 26,
                largest_cache_bytes: Some(1 << 25),
                counted_bytes_per_element: 24.0,
                moved_bytes_per_element: 32.0,
                stores: "ordinary".into(),
            },
            message_bytes: 1 << 20,
            communication_class: Some("same-host".into()),
            ceilings: vec![
                ceiling("fma", "flop/s", 20e9),
                ceiling("dgemm", "flop/s", 18e9),
                ceiling("triad", "B/s", 8e9),
                ceiling("communication", "B/s", 4e9),
            ],
            conditions: conditions(),
        },
        clock: None,
    }
}

fn read(text: &str) -> Result<Machine, MachineError> {
    Machine::from_text(text, Path::new("m.json"))
}

#[test]
fn written_machines_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(MACHINE_JSON);
    machine().write(&path).unwrap();
    // The reader may round the last digit of a double. From then on, writing and reading change
    // nothing.
    let read = Machine::read(&path).unwrap();
    read.write(&path).unwrap();
    assert!(
        Machine::read(&path).unwrap() == read
            && difference::changes(&machine(), &read).0.is_empty()
    );
    assert_eq!(read.hosts(), machine().hosts());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn reports_other_versions_other_documents_and_damage() {
    let text = serde_json::to_string(&machine()).unwrap();
    let message = |text: &str| read(text).unwrap_err().to_string();
    let other = text.replace("\"format_version\":1", "\"format_version\":9");
    assert!(message(&other).contains("version 9"), "{}", message(&other));
    assert!(message("{\"kernel\":\"network\"}").contains("format"), "another document");
    assert!(message(&text[..text.len() / 2]).contains("line 1"), "{}", message(&text[..99]));
    assert!(
        message(&text.replace("\"half_rtt_s\":{\"median\"", "\"half_rtt_s\":{\"middle\""))
            .contains("median")
    );
    assert!(message(&text.replace("\"bytes\":64,\"half", "\"bytes\":4,\"half")).contains("ascend"));
}

#[test]
fn interpolation_does_not_cross_the_protocol_switch() {
    let machine = machine();
    let class = machine.network.class("same-host").unwrap();
    let near =
        |value: f64, truth: f64| assert!((value / truth - 1.0).abs() < 1e-9, "{value} {truth}");
    near(class.message_s(2000), 3e-6);
    near(class.message_s(4096), 1e-6 + 4.096e-6);
    near(class.message_s(5000), 3e-6 + 2.5e-6);
    near(class.message_s(1), 1.008e-6);
    near(class.message_s(4 << 20), 3e-6 + 0.5e-9 * (4 << 20) as f64);
    assert!(machine.network.class("other-host").is_none());
}

#[test]
fn reports_only_changes_beyond_noise() {
    let before = machine();
    let mut now = machine();
    assert!(difference::changes(&before, &now).0.is_empty());
    // 4 % with intervals of ±1 % lies outside the intervals, but below the minimum change.
    now.network.classes[0].sizes[2].half_rtt_s = measured(2.024e-6 * 1.04);
    now.network.classes[0].sizes[3].half_rtt_s = measured(5.096e-6 * 1.5);
    now.network.classes[0].sizes[4].half_rtt_s = measured(5.0485e-6 * 0.5);
    now.network.classes[0].eager_limit.bytes = 8192;
    now.ceilings.ceilings[1].per_host = measured(30e9);
    let (changes, compared) = difference::changes(&before, &now);
    let named: Vec<(&str, Option<u64>, (usize, usize))> =
        changes.iter().map(|change| (change.what.as_str(), change.bytes, change.sizes)).collect();
    assert_eq!(
        named,
        [
            ("network same-host half_rtt_s", Some(4097), (2, 7)),
            ("network same-host eager_limit, bytes", None, (1, 1)),
            ("ceilings dgemm per_host", None, (1, 1)),
        ]
    );
    assert_eq!(compared, 6 * 7 + 1 + 8);
    assert!((changes[0].relative() + 0.5).abs() < 1e-9);
}

#[test]
fn recognises_another_machine() {
    let one = machine();
    let mut other = machine();
    assert!(one.differs_from(&other).is_empty());
    other.network.conditions.hosts[0].name = "n2".into();
    assert!(one.differs_from(&other).is_empty(), "another node of the same kind");
    other.network.conditions.hosts[0].processors = 64;
    other.network.mpi = "MPICH 4.0.2".into();
    assert_eq!(one.differs_from(&other).len(), 2);
    assert!(one.doubts_for(&["n1".into()], "Open MPI v4.1.4, package: Debian").is_empty());
    let mut of_mpich = one.clone();
    of_mpich.network.mpi = "MPICH 4.0.2".into();
    let text = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr 7";
    assert!(of_mpich.doubts_for(&["n1".into()], text).is_empty());
    assert_eq!(one.doubts_for(&["n7".into()], "MPICH 4.0.2").len(), 2);
}
