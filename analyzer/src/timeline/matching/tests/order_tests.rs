//! MPI's rule on the order of messages.

use super::*;

#[test]
fn blocking_messages_pair_in_order_per_tag() {
    let [mut a, mut b] = world();
    // Tag 5 is sent first and received last.
    a.call_with("MPI_Send", at(10), at(20), on_world(1, 5, 100));
    a.call_with("MPI_Ssend", at(30), at(40), on_world(1, 6, 200));
    a.call_with("MPI_Bsend", at(50), at(60), on_world(1, 5, 300));
    b.call_with("MPI_Recv", at(15), at(45), on_world(0, 6, 200));
    b.call_with("MPI_Recv", at(50), at(70), on_world(0, 5, 100));
    b.call_with("MPI_Recv", at(80), at(90), on_world(0, 5, 300));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 50), (0, 30, 1, 15), (0, 50, 1, 80)]);
    assert_eq!((summary.size_mismatches, summary.unknown_requests), (0, 0));
    let message = found.messages.iter().find(|message| message.tag == 6).unwrap();
    assert_eq!(message.bytes, 200);
    let ns = |seconds: f64| (seconds * 1e9).round() as u64 + 1_000_000 - T;
    assert_eq!(ns(message.send.begin_s), 30);
    assert_eq!(ns(message.send.end_s.unwrap()), 40);
    assert_eq!(ns(message.receive.begin_s), 15);
    assert_eq!(ns(message.receive.end_s.unwrap()), 45);
}

#[test]
fn wildcard_keeps_its_position_until_its_status_is_known() {
    let [mut a, mut b, mut c] = world();
    a.call_with("MPI_Send", at(10), at(20), on_world(2, 5, 1));
    a.call_with("MPI_Send", at(30), at(40), on_world(2, 5, 2));
    b.call_with("MPI_Send", at(10), at(20), on_world(2, 9, 3));
    // The wildcard is posted first and completed last: it took the first message of rank 0.
    c.irecv_any(at(1), 11);
    c.call_with("MPI_Irecv", at(3), at(4), on_world(0, 5, 99).request(12));
    c.irecv_any(at(5), 13);
    c.several("MPI_Waitsome", at(50), at(60), &[completed(12, 0, 5, 2), completed(13, 1, 9, 3)]);
    c.call_with("MPI_Waitany", at(70), at(80), completed(11, 0, 5, 1));
    let (found, summary) = match_ranks(&[a, b, c]);
    assert_eq!(found.pairs(), [(0, 10, 2, 1), (0, 30, 2, 3), (1, 10, 2, 5)]);
    assert_eq!(summary.size_mismatches, 0);
    assert_eq!(found.messages.iter().filter(|message| message.wildcard).count(), 2);
}

#[test]
fn matched_probe_counts_as_the_posting_of_its_receive() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Send", at(10), at(20), on_world(1, 5, 1));
    a.call_with("MPI_Send", at(21), at(30), on_world(1, 5, 2));
    a.call_with("MPI_Send", at(31), at(40), on_world(1, 5, 3));
    b.call_with("MPI_Mprobe", at(41), at(42), on_world(0, 5, 1).request(77));
    b.call_with("MPI_Improbe", at(43), at(44), on_world(0, 5, 2).request(78));
    b.call_with("MPI_Recv", at(45), at(46), on_world(0, 5, 3));
    b.call_with("MPI_Imrecv", at(50), at(51), Attributes::default().request(9)).message_handle(77);
    b.call_with(
        "MPI_Mrecv",
        at(52),
        at(53),
        Attributes { communicator: 0, ..on_world(0, 5, 2) }.request(78),
    );
    b.call_with("MPI_Wait", at(60), at(70), completed(9, 0, 5, 1));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 50), (0, 21, 1, 52), (0, 31, 1, 45)]);
    assert_eq!(summary.size_mismatches, 0);
}

#[test]
fn sendrecv_is_one_send_and_one_receive_and_proc_null_is_ignored() {
    let [mut a, mut b] = world();
    for (rank, other) in [(&mut a, 1), (&mut b, 0)] {
        rank.call_with("MPI_Sendrecv", at(10), at(20), on_world(other, 1, 8))
            .receiving(other, 1, 8);
        rank.call_with("MPI_Sendrecv", at(30), at(40), on_world(-2, 1, 8)).receiving(-2, -1, 0);
        rank.call_with("MPI_Send", at(50), at(60), on_world(-2, 1, 8));
        rank.call_with("MPI_Recv", at(70), at(80), on_world(-2, -1, 0));
        rank.call_with("MPI_Isendrecv", at(90), at(91), on_world(other, 2, 0).request(5));
        rank.receiving(other, 2, 100);
        rank.call_with("MPI_Wait", at(92), at(99), completed(5, other, 2, 0));
    }
    let (found, summary) = match_ranks(&[a, b]);
    let pairs = [(0, 10, 1, 10), (0, 90, 1, 90), (1, 10, 0, 10), (1, 90, 0, 90)];
    assert_eq!(found.pairs(), pairs);
    assert_eq!((found.alone(), summary.size_mismatches), (vec![], 0));
}

#[test]
fn status_of_isendrecv_is_ignored_under_mpich() {
    let [mut a, mut b] = world();
    for (rank, other) in [(&mut a, 1), (&mut b, 0)] {
        rank.header.mpi_family = "mpich".into();
        rank.call_with("MPI_Isendrecv", at(10), at(11), on_world(other, 2, 24).request(5));
        rank.receiving(other, 2, 100);
        rank.call_with("MPI_Wait", at(20), at(30), completed(5, 0, 0, 0));
    }
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 10), (1, 10, 0, 10)]);
    assert_eq!((found.alone(), summary.size_mismatches), (vec![], 0));
}

#[test]
fn messages_to_oneself_and_on_comm_self() {
    let [mut a] = world();
    a.call_with("MPI_Isend", at(10), at(11), on_world(0, 1, 8).request(1));
    a.call_with("MPI_Recv", at(12), at(13), on_world(0, 1, 8));
    a.call_with("MPI_Send", at(20), at(21), on_world(0, 1, 9).communicator(COMMUNICATOR_SELF));
    a.call_with("MPI_Recv", at(22), at(23), on_world(0, 1, 9).communicator(COMMUNICATOR_SELF));
    a.call_with("MPI_Wait", at(30), at(31), completed(1, 0, 0, 0));
    let (found, _) = match_ranks(&[a]);
    assert_eq!(found.pairs(), [(0, 10, 0, 12), (0, 20, 0, 22)]);
}

#[test]
fn mpich_has_different_constants() {
    let [mut a, mut b] = world();
    for rank in [&mut a, &mut b] {
        rank.header.mpi_family = "mpich".into();
    }
    a.call_with("MPI_Send", at(10), at(20), on_world(-1, 1, 8));
    a.call_with("MPI_Send", at(30), at(40), on_world(1, 1, 8));
    b.call_with("MPI_Irecv", at(1), at(2), on_world(-2, -1, 100).request(4));
    b.call_with("MPI_Wait", at(50), at(60), completed(4, 0, 1, 8));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 30, 1, 1)]);
    assert_eq!(found.alone(), []);
}

/// Random sends and receives of two senders and one receiver, completed in any order, compared with
/// a model of MPI's queues.
mod model {
    use super::*;
    use proptest::prelude::*;

    /// The message that each posted receive takes: the first one that fits.
    fn matches(sends: &[(u32, i32)], receives: &[(i32, i32)]) -> Vec<Option<usize>> {
        let mut taken = vec![false; sends.len()];
        let fits = |(source, tag): (u32, i32), (wanted, wanted_tag): (i32, i32)| {
            (wanted == -1 || wanted as u32 == source) && (wanted_tag == -1 || wanted_tag == tag)
        };
        let take = |receive: &(i32, i32)| {
            let found = (0..sends.len()).find(|i| !taken[*i] && fits(sends[*i], *receive))?;
            taken[found] = true;
            Some(found)
        };
        receives.iter().map(take).collect()
    }

    proptest! {
        #[test]
        fn order_of_completion_does_not_matter(
            sends in prop::collection::vec((0u32..2, 0i32..3), 1..12),
            receives in prop::collection::vec((-1i32..2, -1i32..3), 1..12),
            order in prop::collection::vec(any::<u32>(), 12),
        ) {
            let [mut a, mut b, mut c] = world();
            for (index, &(source, tag)) in sends.iter().enumerate() {
                let rank = if source == 0 { &mut a } else { &mut b };
                let begin = at(100 + 10 * index as u64);
                rank.call_with("MPI_Send", begin, begin + 5, on_world(2, tag, index as u32));
            }
            for (index, &(source, tag)) in receives.iter().enumerate() {
                let begin = at(1 + 4 * index as u64);
                let posted = on_world(source, tag, 1000).request(index as u32 + 1);
                c.call_with("MPI_Irecv", begin, begin + 1, posted);
            }
            let taken = matches(&sends, &receives);
            let mut completions: Vec<usize> =
                (0..receives.len()).filter(|index| taken[*index].is_some()).collect();
            completions.sort_by_key(|index| order[*index]);
            for (nth, &index) in completions.iter().enumerate() {
                let message = taken[index].unwrap();
                let (source, tag) = sends[message];
                let begin = at(1000 + 10 * nth as u64);
                let status = completed(index as u32 + 1, source as i32, tag, message as u32);
                c.call_with("MPI_Wait", begin, begin + 5, status);
            }
            let (found, summary) = match_ranks(&[a, b, c]);
            prop_assert_eq!(summary.size_mismatches, 0);
            let mut expected: Vec<_> = completions.iter().map(|&index| {
                let message = taken[index].unwrap();
                (sends[message].0, 100 + 10 * message as u64, 2, 1 + 4 * index as u64)
            }).collect();
            expected.sort_unstable();
            prop_assert_eq!(found.pairs(), expected);
            let alone = sends.len() + receives.len() - 2 * completions.len();
            prop_assert_eq!(found.unmatched.len(), alone);
        }
    }
}
