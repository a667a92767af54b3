//! Messages on the screen, in the document and in the dump.

use std::fmt::Write;

use crate::analysis::Analysis;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::{Metrics, Selection};
use crate::present::dump::Dump;
use crate::present::shown::Report;
use crate::synthetic_messages::{Attributes, completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{MatchFinding, MatchSink, match_run};
use crate::trace::Run;

use super::{json, screen};

const US: u64 = 1000;

fn at(us: u64) -> u64 {
    1_000_000 + us * US
}

/// Two ranks that exchange messages, poll, and meet on a communicator of their own; one send is unmatched.
fn pair() -> Vec<SyntheticRank> {
    let mut ranks: Vec<_> = (0..2).map(|rank| SyntheticRank::level_1(rank, 2, at(9000))).collect();
    for (rank, number) in ranks.iter_mut().zip(0..) {
        let other = 1 - number as i32;
        let making = Attributes { bytes: 3, ..on_world(0, 0, 0) };
        rank.call_with("MPI_Comm_split", at(100), at(190), making);
        rank.communicator(3, at(195), (50, 0), 1 - number, 2, &[(1, -1, 2)]);
        rank.call_with("MPI_Irecv", at(200), at(210), on_world(-1, -1, 4096).request(0xa1));
        rank.call_with("MPI_Sendrecv", at(220), at(300), on_world(other, 7, 80))
            .receiving(other, 7, 80);
        rank.polls("MPI_Iprobe", at(310), at(900), 5000, 200 * US);
        rank.call_with(
            "MPI_Send",
            at(1000 + u64::from(number)),
            at(1100),
            on_world(other, 8, 2048),
        );
        let done = [completed(0xa1, other, 8, 2048), Attributes::default()];
        rank.several("MPI_Waitall", at(1200), at(1300), &done);
        let root = Attributes { tag: 64, bytes: 64, ..on_world(1, 0, 0) };
        rank.call_with("MPI_Bcast", at(2000), at(2100), root.communicator(3));
    }
    ranks[1].call_with("MPI_Isend", at(3000), at(3010), on_world(0, 9, 1).request(0xa2));
    ranks[1].call_with("MPI_Wait", at(3020), at(3030), completed(0xa2, 0, 0, 0));
    for rank in &mut ranks {
        rank.finalize(at(9000), at(9100));
    }
    ranks
}

struct Lines<'a> {
    dump: &'a Dump<'a>,
    text: String,
    json: String,
}

impl Lines<'_> {
    fn add(&mut self, text: &str, value: &impl serde::Serialize) {
        writeln!(self.text, "{text}").unwrap();
        writeln!(self.json, "{}", serde_json::to_string(value).unwrap()).unwrap();
    }
}

impl MatchSink for Lines<'_> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => {
                let line = self.dump.message(message);
                self.add(&line.text(), &line);
            }
            MatchFinding::Unmatched(unmatched) => {
                let line = self.dump.unmatched(unmatched);
                self.add(&line.text(), &line);
            }
            _ => {}
        }
    }
}

/// Events and messages of a directory, as text and as JSON lines.
fn dumped(path: &std::path::Path) -> [String; 4] {
    let run = Run::open(path).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let dump = Dump::new(&run, &timeline, &communicators);
    let mut lines = Lines { dump: &dump, text: String::new(), json: String::new() };
    let analysis = Analysis::new(&run, &timeline);
    for (rank, thread, event) in analysis.in_order(0..run.ranks.len(), |_, _| true) {
        let line = dump.event(rank, thread, &event);
        lines.add(&line.text(), &line);
    }
    let events = (std::mem::take(&mut lines.text), std::mem::take(&mut lines.json));
    match_run(&run, &timeline, &communicators, &mut lines);
    [events.0, events.1, lines.text, lines.json]
}

fn report_texts(path: &std::path::Path) -> [String; 2] {
    let run = Run::open(path).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    [screen(&report, false), json(&report).unwrap()]
}

#[test]
fn screen_shows_traffic_and_communicators() {
    let directory = RunDirectory::with_ranks(&pair());
    let [screen, _] = report_texts(directory.path());
    let part: Vec<&str> = screen.lines().skip_while(|line| !line.starts_with("MESSAGES")).collect();
    insta::assert_snapshot!(part.join("\n"), @r"
    MESSAGES    4 matched, 4.256 kB | unmatched 1 (no partner: 1 send) | 2 received by wildcard |
                most common size 2 KiB to 4 KiB (50 %)
                from\to              0              1
                      0              -  2.128 kB in 2
                      1  2.128 kB in 2              -
    COMMS       communicator         size  ranks  messages     bytes  collectives  bytes sent
                MPI_COMM_WORLD          2  0,1           4  4.256 kB            0         0 B
                (by MPI_Comm_split)     2  1,0           0       0 B            1       128 B
                1 more, not used
    ");
    let polls = "polls that found nothing are kept as";
    assert!(screen.contains(polls), "{screen}");
}

#[test]
fn world_alone_needs_no_table_of_communicators() {
    let ranks = (0..2).map(|number: u32| {
        let mut rank = SyntheticRank::level_1(number, 2, at(9000));
        let other = 1 - number as i32;
        rank.call_with("MPI_Sendrecv", at(220), at(300), on_world(other, 7, 80))
            .receiving(other, 7, 80);
        rank.finalize(at(9000), at(9100));
        rank
    });
    let directory = RunDirectory::with_ranks(&ranks.collect::<Vec<_>>());
    let [screen, _] = report_texts(directory.path());
    assert!(screen.contains("\nMESSAGES    2 matched"), "{screen}");
    assert!(!screen.contains("COMMS"), "{screen}");
}

#[test]
fn document_shows_traffic_and_communicators() {
    let directory = RunDirectory::with_ranks(&pair());
    let [_, text] = report_texts(directory.path());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "matched": 4, "unmatched": 1, "bytes": 4256, "wildcard_receives": 2, "early": 0, "early_beyond_bound": 0, "early_unaligned": 0,
        "early_ambiguous": 0, "size_mismatches": 0, "truncated": 0, "unknown_requests": 0,
        "unmatched_reasons": [{"reason": "no partner", "sends": 1, "receives": 0}],
    });
    assert_eq!(json["messages"], expected);
    let expected = serde_json::json!({"count": [[0, 2], [2, 0]], "bytes": [[0, 2128], [2128, 0]]});
    assert_eq!(json["matrix"], expected);
    assert_eq!(json["polls"]["merged_calls"], 10_000);
    assert_eq!(json["polls"]["records"], 2);
    assert_eq!(json["ranks"][0]["polls"]["merged_calls"], 5000);
    let expected = serde_json::json!({
        "name": null, "made_by": "MPI_Comm_split", "instances": 1, "size": 2,
        "members": [[1, -1, 2]], "remote_size": null, "remote_members": null, "messages": 0,
        "bytes": 0, "collectives": 1, "collective_calls": 2, "collective_bytes": 128,
    });
    assert_eq!(json["communicators"][2], expected);
    assert_eq!(json["sizes"][0]["from_bytes"], 64);
}

#[test]
fn many_ranks_are_shown_by_pair_and_very_many_by_host() {
    for (size, expected) in
        [(20u32, "   0   1         1     100 B\n"), (70, "n0         n1         1  1.900 kB\n")]
    {
        let ranks: Vec<_> = (0..size)
            .map(|number| {
                let mut rank = SyntheticRank::level_1(number, size, at(9000));
                rank.header.host = format!("n{}", number / 35);
                if number == 0 {
                    rank.call_with("MPI_Send", at(10), at(11), on_world(1, 1, 100));
                    rank.call_with(
                        "MPI_Send",
                        at(12),
                        at(13),
                        on_world(69.min(size as i32 - 1), 1, 1900),
                    );
                } else if number == 1 {
                    rank.call_with("MPI_Recv", at(20), at(21), on_world(0, 1, 100));
                } else if number == 69.min(size - 1) {
                    rank.call_with("MPI_Recv", at(20), at(21), on_world(0, 1, 1900));
                }
                rank.finalize(at(9000), at(9100));
                rank
            })
            .collect();
        let directory = RunDirectory::with_ranks(&ranks);
        let [screen, _] = report_texts(directory.path());
        assert!(screen.contains(expected), "{screen}");
    }
}

#[test]
fn dump_shows_arguments_of_each_call() {
    let directory = RunDirectory::with_ranks(&pair());
    let [events, _, messages, _] = dumped(directory.path());
    let of_rank_1: Vec<&str> =
        events.lines().filter(|line| line.split_whitespace().nth(2) == Some("1")).collect();
    insta::assert_snapshot!(of_rank_1.join("\n"), @r"
     -0.000000100    0.000000040      1  MPI_Init
      0.000100000    0.000090000      1  MPI_Comm_split         MPI_COMM_WORLD made Comm_split#2
      0.000200000    0.000010000      1  MPI_Irecv              MPI_COMM_WORLD peer ANY_SOURCE tag ANY_TAG bytes 4096 request a1
      0.000220000    0.000080000      1  MPI_Sendrecv           MPI_COMM_WORLD peer 0 tag 7 bytes 80 receive peer 0 tag 7 bytes 80
      0.000310000    0.000590000      1  MPI_Iprobe             unknown peer 0 tag 0 bytes 0 polls 5000 inside 0.000200000
      0.001001000    0.000099000      1  MPI_Send               MPI_COMM_WORLD peer 0 tag 8 bytes 2048
      0.001200000    0.000100000      1  MPI_Waitall            [a1 completed peer 0 tag 8 bytes 2048] [0 not completed]
      0.002000000    0.000100000      1  MPI_Bcast              Comm_split#2 peer 1 bytes 64 received 64
      0.003000000    0.000010000      1  MPI_Isend              MPI_COMM_WORLD peer 0 tag 9 bytes 1 request a2
      0.003020000    0.000010000      1  MPI_Wait               peer 0 tag 0 bytes 0 request a2 completed
      0.009000000    0.000100000      1  MPI_Finalize
    ");
    insta::assert_snapshot!(messages, @r"
    0.000220000     0.000300000      1      0        7           80  MPI_COMM_WORLD
    0.001001000     0.001300000      1      0        8         2048  MPI_COMM_WORLD (wildcard)
    0.000220000     0.000300000      0      1        7           80  MPI_COMM_WORLD
    0.001000000     0.001300000      0      1        8         2048  MPI_COMM_WORLD (wildcard)
    0.003000000 unmatched send of rank 1: no partner, partner 0
    ");
}

#[test]
fn json_lines_carry_the_same_as_the_dump() {
    let directory = RunDirectory::with_ranks(&pair());
    let [_, events, _, messages] = dumped(directory.path());
    let line = |text: &str, part: &str| {
        let line = text.lines().find(|line| line.contains(part)).unwrap();
        serde_json::from_str::<serde_json::Value>(line).unwrap()
    };
    assert_eq!(
        line(&events, "MPI_Waitall"),
        serde_json::json!({
            "begin_s": 0.0012, "duration_s": 0.0001, "rank": 0, "thread": 0,
            "function": "MPI_Waitall",
            "requests": [
                {"request": 0xa1, "completed": true, "peer": 1, "tag": 8, "bytes": 2048},
                {"request": 0, "completed": false},
            ],
        })
    );
    assert_eq!(line(&events, "MPI_Irecv")["peer"], "ANY_SOURCE");
    assert_eq!(line(&events, "MPI_Iprobe")["polls"]["count"], 5000);
    assert_eq!(
        line(&messages, "\"destination\":1,\"communicator\":\"MPI_COMM_WORLD\",\"tag\":8"),
        serde_json::json!({
            "source": 0, "destination": 1, "communicator": "MPI_COMM_WORLD", "tag": 8,
            "bytes": 2048, "send_begin_s": 0.001, "send_end_s": 0.0011, "send_thread": 0,
            "receive_begin_s": 0.0002, "receive_end_s": 0.0013, "receive_thread": 0,
            "wildcard": true,
        })
    );
    assert_eq!(line(&messages, "unmatched")["reason"], "no partner");
}

/// Events that no real program produces: whatever they contain, nothing may fail.
mod absurd {
    use super::*;
    use proptest::prelude::*;
    use trace_format::header::{Communicator, Definition};
    use trace_format::layout::*;

    const NAMES: [&str; 24] = [
        "MPI_Send",
        "MPI_Isend",
        "MPI_Send_init",
        "MPI_Psend_init",
        "MPI_Recv",
        "MPI_Irecv",
        "MPI_Recv_init",
        "MPI_Precv_init",
        "MPI_Sendrecv",
        "MPI_Isendrecv",
        "MPI_Mprobe",
        "MPI_Mrecv",
        "MPI_Imrecv",
        "MPI_Start",
        "MPI_Startall",
        "MPI_Wait",
        "MPI_Waitall",
        "MPI_Testsome",
        "MPI_Cancel",
        "MPI_Request_free",
        "MPI_Bcast",
        "MPI_Ibarrier",
        "MPI_Bcast_init",
        "MPI_Comm_idup",
    ];

    fn small() -> impl Strategy<Value = i32> {
        prop_oneof![8 => -5i32..4, 1 => any::<i32>()]
    }

    fn event() -> impl Strategy<Value = Vec<Slot>> {
        let more = (0u32..8, 0u16..4, small(), small(), 0u32..4);
        let call = (0usize..NAMES.len(), 0u16..5, small(), small(), any::<u32>(), 0u32..4);
        (call, prop::collection::vec(more, 0..3), 0u16..12).prop_map(|(call, more, flags)| {
            let (name, communicator, peer, tag, bytes, request) = call;
            let flag = match flags {
                0 => FUNCTION_OPEN,
                1 => FUNCTION_ABANDONED,
                _ => 0,
            };
            let function = crate::synthetic_trace::number_of(NAMES[name]) | flag;
            let bytes = bytes % 100;
            let word = slot_word(if flag == FUNCTION_OPEN { 0 } else { 5 }, function, communicator);
            let mut slots =
                vec![Slot { begin: 0, word, peer, detail: tag, bytes, request, site: 0 }];
            slots.extend(more.into_iter().map(|(kind, completed, peer, tag, request)| {
                let kind = if kind == 0 { CONTINUES_MESSAGE } else { CONTINUES_REQUEST };
                let kind = if flags == 11 { CONTINUES_RECEIVE } else { kind };
                let word = slot_word(kind, CONTINUATION, completed);
                Slot { begin: 7, word, peer, detail: tag, bytes: 0, request, site: 0 }
            }));
            slots
        })
    }

    fn runs() -> impl Strategy<Value = Vec<(i64, i64, u32)>> {
        let number = || prop_oneof![4 => -1i64..4, 1 => any::<i64>()];
        let count = prop_oneof![4 => 0u32..4, 1 => any::<u32>()];
        prop::collection::vec((number(), number(), count), 0..3)
    }

    fn communicator() -> impl Strategy<Value = Definition> {
        let size = || prop_oneof![4 => 0u32..5, 1 => any::<u32>()];
        let ids = (0u16..5, 0u64..2000, 0u64..3, 0u32..2);
        (ids, size(), size(), size(), any::<bool>(), runs(), runs()).prop_map(
            |((id, ticks, hash, instance), size, remote_size, rank, inter, members, remote)| {
                Definition::Communicator(Communicator {
                    id,
                    ticks,
                    hash,
                    instance,
                    size,
                    rank,
                    inter,
                    members,
                    remote_members: remote,
                    remote_size,
                    parent: 1,
                    made_by: id,
                })
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::test_cases::cases(400)))]
        #[test]
        fn events_and_communicators(
            ranks in prop::collection::vec(
                (
                    prop::collection::vec(prop::collection::vec(event(), 0..30), 1..3),
                    prop::collection::vec(communicator(), 0..5),
                    any::<bool>(),
                ),
                1..4,
            ),
        ) {
            let directory = RunDirectory::new();
            let mut sends = 0;
            for ((threads, definitions, predefined), number) in ranks.into_iter().zip(0u32..) {
                let mut rank = match predefined {
                    true => SyntheticRank::level_1(number, 3, at(9000)),
                    false => SyntheticRank::new(number, 3),
                };
                rank.fixed.level = 1;
                rank.definitions.extend(definitions);
                for (thread, events) in threads.into_iter().enumerate() {
                    for (place, slots) in events.into_iter().enumerate() {
                        for mut slot in slots {
                            if slot.function() != CONTINUATION {
                                slot.begin = at(10 + place as u64);
                                sends += 2;
                            }
                            rank.slot(thread, slot);
                        }
                    }
                }
                directory.write(&rank);
            }
            let first = dumped(directory.path());
            let messages = first[2].lines().filter(|line| !line.contains("unmatched")).count();
            // A Startall starts at most its continuations.
            prop_assert!(messages <= 2 * sends);
            prop_assert_eq!(first, dumped(directory.path()));
            report_texts(directory.path());
        }
    }
}
