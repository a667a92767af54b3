//! Lifetimes of requests, communicators and ranks.

use super::*;

#[test]
fn persistent_requests_send_and_receive_at_each_start() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Send_init", at(1), at(2), on_world(1, 3, 64).request(5));
    b.call_with("MPI_Recv_init", at(1), at(2), on_world(-1, 3, 99).request(6));
    // Waiting for an inactive request returns at once with an empty status.
    b.call_with("MPI_Wait", at(3), at(4), completed(6, -1, -1, 0));
    for round in [0, 100] {
        a.call_with("MPI_Start", at(10 + round), at(11 + round), Attributes::default().request(5));
        a.call_with("MPI_Wait", at(20 + round), at(21 + round), completed(5, 7, 7, 7));
        b.several(
            "MPI_Startall",
            at(12 + round),
            at(13 + round),
            &[Attributes::default().request(6)],
        );
        b.several("MPI_Waitall", at(30 + round), at(31 + round), &[completed(6, 0, 3, 64)]);
    }
    a.call_with("MPI_Request_free", at(300), at(301), Attributes::default().request(5));
    b.call_with("MPI_Request_free", at(300), at(301), Attributes::default().request(6));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 12), (0, 110, 1, 112)]);
    assert_eq!((found.alone(), summary.unknown_requests), (vec![], 0));
}

#[test]
fn partitioned_operations_pair_by_their_initialisation() {
    let [mut a, mut b] = world();
    for (request, bytes) in [(5, 64), (6, 128)] {
        a.call_with(
            "MPI_Psend_init",
            at(request),
            at(request),
            on_world(1, 3, bytes).request(request as u32),
        );
        b.call_with(
            "MPI_Precv_init",
            at(request),
            at(request),
            on_world(0, 3, bytes).request(request as u32),
        );
    }
    // They are started in different orders, but the order of initialisation decides.
    let requests = |list: [u32; 2]| list.map(|request| Attributes::default().request(request));
    a.several("MPI_Startall", at(10), at(11), &requests([5, 6]));
    b.several("MPI_Startall", at(12), at(13), &requests([6, 5]));
    a.call_with("MPI_Send", at(14), at(15), on_world(1, 3, 1));
    b.call_with("MPI_Recv", at(16), at(17), on_world(0, 3, 1));
    b.several("MPI_Waitall", at(20), at(21), &[completed(5, 0, 3, 64), completed(6, 0, 3, 128)]);
    a.several("MPI_Waitall", at(20), at(21), &[completed(5, 0, 0, 0), completed(6, 0, 0, 0)]);
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 12), (0, 10, 1, 12), (0, 14, 1, 16)]);
    assert_eq!((summary.size_mismatches, found.alone()), (0, vec![]));
}

#[test]
fn cancelled_sends_and_receives_take_no_part() {
    let [mut a, mut b] = world();
    let cancelled = |request| Attributes {
        communicator: COMPLETED | CANCELLED,
        request,
        ..Attributes::default()
    };
    let handle = |request| Attributes::default().request(request);
    a.call_with("MPI_Isend", at(10), at(11), on_world(1, 5, 1).request(4));
    a.call_with("MPI_Cancel", at(12), at(13), handle(4));
    a.call_with("MPI_Isend", at(14), at(15), on_world(1, 5, 2).request(6));
    a.call_with("MPI_Wait", at(90), at(91), cancelled(4));
    // The status of a send is ignored unless MPI_Cancel was called.
    a.call_with("MPI_Wait", at(92), at(93), cancelled(6));
    b.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 99).request(7));
    b.call_with("MPI_Irecv", at(3), at(4), on_world(-1, 5, 99).request(8));
    b.call_with("MPI_Cancel", at(5), at(5), handle(7));
    b.call_with("MPI_Cancel", at(6), at(6), handle(8));
    b.several("MPI_Waitall", at(7), at(8), &[cancelled(7), cancelled(8)]);
    b.call_with("MPI_Recv", at(20), at(30), on_world(0, 5, 2));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 14, 1, 20)]);
    assert_eq!(
        found.alone(),
        [
            (Side::Send, Cancelled, 0, 10),
            (Side::Receive, Cancelled, 1, 1),
            (Side::Receive, Cancelled, 1, 3)
        ]
    );
    assert_eq!(summary.size_mismatches, 0);
}

#[test]
fn late_cancel_has_no_effect() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Isend", at(10), at(11), on_world(1, 5, 1).request(4));
    a.call_with("MPI_Cancel", at(12), at(13), Attributes::default().request(4));
    a.call_with("MPI_Wait", at(90), at(91), completed(4, 0, 0, 0));
    b.call_with("MPI_Recv", at(20), at(30), on_world(0, 5, 1));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 10, 1, 20)]);
    assert_eq!(found.alone(), []);
}

#[test]
fn freed_send_is_sent_and_freed_receive_still_takes_its_message() {
    let [mut a, mut b] = world();
    let handle = |request| Attributes::default().request(request);
    a.call_with("MPI_Isend", at(10), at(11), on_world(1, 5, 1).request(4));
    a.call_with("MPI_Request_free", at(12), at(13), handle(4));
    // The handle is reused.
    a.call_with("MPI_Isend", at(14), at(15), on_world(1, 5, 2).request(4));
    a.call_with("MPI_Wait", at(16), at(17), completed(4, 0, 0, 0));
    b.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 99).request(7));
    b.call_with("MPI_Request_free", at(3), at(4), handle(7));
    b.call_with("MPI_Recv", at(20), at(30), on_world(0, 5, 2));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 14, 1, 20)]);
    assert_eq!(found.alone(), [(Side::Send, Freed, 0, 10), (Side::Receive, Freed, 1, 1)]);
}

#[test]
fn receive_cancelled_and_freed_takes_only_what_was_sent_before() {
    let handle = |request| Attributes::default().request(request);
    // Ten messages follow; one of the size 1 may have been sent before the cancellation.
    for sent_before in [false, true] {
        let [mut a, mut b] = world();
        if sent_before {
            a.call_with("MPI_Send", at(2), at(3), on_world(1, 5, 1));
        }
        b.call_with("MPI_Irecv", at(1), at(2), on_world(0, 5, 99).request(7));
        b.call_with("MPI_Cancel", at(5), at(6), handle(7));
        b.call_with("MPI_Request_free", at(7), at(8), handle(7));
        for size in 2..12 {
            let begin = 100 * u64::from(size);
            a.call_with("MPI_Send", at(begin), at(begin + 10), on_world(1, 5, size));
            b.call_with("MPI_Recv", at(begin + 1), at(begin + 20), on_world(0, 5, size));
        }
        let (found, summary) = match_ranks(&[a, b]);
        assert_eq!((summary.matched, summary.size_mismatches), (10, 0));
        let alone = match sent_before {
            false => vec![(Side::Receive, Cancelled, 1, 1)],
            true => vec![(Side::Send, Freed, 0, 2), (Side::Receive, Freed, 1, 1)],
        };
        assert_eq!(found.alone(), alone);
    }
}

#[test]
fn send_cancelled_and_freed_was_sent_unless_another_size_was_received() {
    let handle = |request| Attributes::default().request(request);
    for sent in [false, true] {
        let [mut a, mut b] = world();
        a.call_with("MPI_Isend", at(1), at(2), on_world(1, 5, 1).request(7));
        a.call_with("MPI_Cancel", at(5), at(6), handle(7));
        a.call_with("MPI_Request_free", at(7), at(8), handle(7));
        if sent {
            b.call_with("MPI_Recv", at(50), at(60), on_world(0, 5, 1));
        }
        for size in 2..12 {
            let begin = 100 * u64::from(size);
            a.call_with("MPI_Send", at(begin), at(begin + 10), on_world(1, 5, size));
            b.call_with("MPI_Recv", at(begin + 1), at(begin + 20), on_world(0, 5, size));
        }
        let (found, summary) = match_ranks(&[a, b]);
        assert_eq!((summary.matched, summary.size_mismatches), (10 + u64::from(sent), 0));
        let alone = if sent { vec![] } else { vec![(Side::Send, Cancelled, 0, 1)] };
        assert_eq!(found.alone(), alone);
    }
}

#[test]
fn status_of_a_request_tells_that_it_was_cancelled() {
    let [mut a, mut b] = world();
    let handle = |request| Attributes::default().request(request);
    let cancelled = |request| {
        let mut status = completed(request, 0, 0, 0);
        status.communicator |= CANCELLED;
        status
    };
    // All messages have one size.
    a.call_with("MPI_Isend", at(1), at(2), on_world(1, 5, 8).request(7));
    a.call_with("MPI_Cancel", at(5), at(6), handle(7));
    a.call_with("MPI_Request_get_status", at(7), at(8), cancelled(7));
    a.call_with("MPI_Request_free", at(9), at(10), handle(7));
    a.call_with("MPI_Send", at(100), at(110), on_world(1, 5, 8));
    b.call_with("MPI_Irecv", at(50), at(51), on_world(0, 5, 8).request(9));
    b.call_with("MPI_Cancel", at(120), at(121), handle(9));
    b.call_with("MPI_Request_get_status", at(122), at(123), cancelled(9));
    b.call_with("MPI_Recv", at(130), at(140), on_world(0, 5, 8));
    b.call_with("MPI_Wait", at(150), at(151), cancelled(9));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(0, 100, 1, 130)]);
    assert_eq!(found.alone(), [(Side::Send, Cancelled, 0, 1), (Side::Receive, Cancelled, 1, 50)]);
    assert_eq!(summary.unknown_requests, 0);
}

#[test]
fn receive_of_no_process_is_not_a_message() {
    let [a, mut b] = world();
    let proc_null = crate::timeline::mpi_constants::MpiConstants::of_family("openmpi");
    let proc_null = proc_null.unwrap().proc_null;
    // MPI_MESSAGE_NO_PROC, and a handle whose probe was not recorded.
    b.call_with("MPI_Imrecv", at(1), at(2), Attributes::default().request(9)).message_handle(77);
    b.call_with("MPI_Wait", at(3), at(4), completed(9, proc_null, -1, 0));
    b.call_with("MPI_Imrecv", at(5), at(6), Attributes::default().request(9)).message_handle(78);
    b.call_with("MPI_Wait", at(7), at(8), completed(9, 0, 3, 4));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.alone(), [(Side::Receive, UnknownHandle, 1, 5)]);
}

#[test]
fn one_handle_may_refer_to_several_sends() {
    let [mut a, mut b] = world();
    for number in 0..3 {
        a.call_with("MPI_Isend", at(10 + number), at(10 + number), on_world(1, 5, 8).request(4));
        b.call_with("MPI_Recv", at(20 + 2 * number), at(21 + 2 * number), on_world(0, 5, 8));
    }
    a.several("MPI_Waitall", at(90), at(91), &[completed(4, 0, 0, 0); 3]);
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.messages.len(), 3);
    assert_eq!(summary.unknown_requests, 0);
}

#[test]
fn unknown_requests_are_counted_and_other_kinds_are_known() {
    let [mut a] = world();
    let handle = |request| Attributes::default().request(request);
    a.call_with("MPI_Wait", at(1), at(2), completed(99, 0, 0, 0));
    a.call_with("MPI_File_iread", at(3), at(4), handle(5));
    a.call_with("MPI_Wait", at(5), at(6), completed(5, 0, 0, 0));
    a.several("MPI_Waitall", at(7), at(8), &[completed(0, 0, 0, 0), completed(98, 0, 0, 0)]);
    a.call_with("MPI_Mrecv", at(9), at(10), on_world(0, 0, 1).request(3));
    let (found, summary) = match_ranks(&[a]);
    assert_eq!(summary.unknown_requests, 2);
    assert_eq!(found.alone(), [(Side::Receive, UnknownHandle, 0, 9)]);
}

#[test]
fn ids_of_freed_communicators_are_reused() {
    let [mut a, mut b] = world();
    for (rank, number) in [(&mut a, 0), (&mut b, 1)] {
        let other = 1 - number as i32;
        rank.communicator(3, at(0), (50, 0), number, 2, &[(0, 1, 2)]);
        rank.communicator(3, at(100), (50, 1), number, 2, &[(0, 1, 2)]);
        let arguments = on_world(other, 5, 8).communicator(3);
        rank.call_with("MPI_Isend", at(10), at(11), arguments.request(4));
        rank.call_with("MPI_Recv", at(12), at(13), arguments);
        rank.call_with("MPI_Wait", at(14), at(15), completed(4, 0, 0, 0));
        rank.call_with("MPI_Isend", at(110), at(111), arguments.request(4));
        rank.call_with("MPI_Recv", at(112), at(113), arguments);
        rank.call_with("MPI_Wait", at(114), at(115), completed(4, 0, 0, 0));
    }
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.messages.len(), 4);
    let mut communicators: Vec<u32> = found.messages.iter().map(|m| m.communicator).collect();
    communicators.sort_unstable();
    communicators.dedup();
    assert_eq!(communicators.len(), 2);
}

#[test]
fn ranks_of_a_communicator_are_translated_to_world_ranks() {
    let [mut a, mut b, mut c] = world();
    // Its members are world ranks 2, 1, 0 in this order.
    for (rank, number) in [(&mut a, 2), (&mut b, 1), (&mut c, 0)] {
        rank.communicator(3, at(0), (50, 0), number, 3, &[(2, -1, 3)]);
    }
    c.call_with("MPI_Send", at(10), at(11), on_world(2, 5, 8).communicator(3));
    a.call_with("MPI_Recv", at(12), at(13), on_world(0, 5, 8).communicator(3));
    b.call_with("MPI_Send", at(10), at(11), on_world(3, 5, 8).communicator(3));
    b.call_with("MPI_Send", at(20), at(21), on_world(0, 5, 8).communicator(9));
    let ranks = [a, b, c];
    let (found, _) = match_ranks(&ranks);
    assert_eq!(found.pairs(), [(2, 10, 0, 12)]);
    let alone = [(Side::Send, UnknownCommunicator, 1, 20), (Side::Send, InvalidPeer, 1, 10)];
    assert_eq!(found.alone(), alone);
}

#[test]
fn members_are_known_without_the_file_of_their_rank_0() {
    let [_, mut b, mut c] = world();
    for (rank, number) in [(&mut b, 1), (&mut c, 2)] {
        rank.communicator(3, at(0), (50, 0), number, 3, &[]);
    }
    b.call_with("MPI_Send", at(10), at(11), on_world(2, 5, 8));
    c.call_with("MPI_Recv", at(12), at(13), on_world(1, 5, 8));
    b.call_with("MPI_Send", at(20), at(21), on_world(2, 5, 8).communicator(3));
    c.call_with("MPI_Recv", at(22), at(23), on_world(1, 5, 8).communicator(3));
    c.call_with("MPI_Send", at(30), at(31), on_world(0, 5, 8).communicator(3));
    let (found, _) = match_ranks(&[b, c]);
    assert_eq!(found.pairs(), [(1, 10, 2, 12), (1, 20, 2, 22)]);
    assert_eq!(found.alone(), [(Side::Send, UnknownCommunicator, 2, 30)]);
}

#[test]
fn ranks_in_an_intercommunicator_refer_to_the_other_group() {
    let mut ranks: [SyntheticRank; 4] = world();
    let (left, right): (&[_], &[_]) = (&[(0, 2, 2)], &[(1, 2, 2)]);
    for (number, rank) in ranks.iter_mut().enumerate() {
        let (local, remote) = if number % 2 == 0 { (left, right) } else { (right, left) };
        rank.intercommunicator(3, 60, number as u32 / 2, (local, 2), (remote, 2));
    }
    // Rank 1 of the even group is world rank 2, rank 0 of the odd group world rank 1.
    ranks[2].call_with("MPI_Send", at(10), at(11), on_world(0, 5, 8).communicator(3));
    ranks[1].call_with("MPI_Recv", at(12), at(13), on_world(1, 5, 8).communicator(3));
    ranks[3].call_with("MPI_Send", at(20), at(21), on_world(0, 5, 8).communicator(3));
    ranks[0].call_with("MPI_Recv", at(22), at(23), on_world(1, 5, 8).communicator(3));
    let (found, _) = match_ranks(&ranks);
    assert_eq!(found.pairs(), [(2, 10, 1, 12), (3, 20, 0, 22)]);
}

#[test]
fn processes_outside_the_world_are_not_partners() {
    let [mut a] = world();
    a.intercommunicator(3, 60, 0, (&[(0, 0, 1)], 1), (&[(-1, 0, 2)], 2));
    a.call_with("MPI_Send", at(10), at(11), on_world(1, 5, 8).communicator(3));
    a.call_with("MPI_Recv", at(12), at(13), on_world(0, 5, 8).communicator(3));
    let (found, _) = match_ranks(&[a]);
    let alone = [(Side::Send, OutsideWorld, 0, 10), (Side::Receive, OutsideWorld, 0, 12)];
    assert_eq!(found.alone(), alone);
}

#[test]
fn dead_rank_explains_messages_without_a_partner() {
    let [mut a, mut b, mut c] = world();
    // Rank 1 dies in a receive; rank 0 sends to it and waits for its answer.
    a.call_with("MPI_Send", at(10), at(20), on_world(1, 5, 8));
    a.call_with("MPI_Send", at(21), at(22), on_world(1, 6, 8));
    a.call_with("MPI_Irecv", at(30), at(31), on_world(1, 7, 8).request(3));
    a.open_call_with("MPI_Wait", at(40), Attributes::default().request(3));
    b.call_with("MPI_Recv", at(12), at(13), on_world(0, 5, 8));
    b.open_call_with("MPI_Recv", at(30), on_world(0, 9, 8)).killed();
    // Rank 2 died in its last send, whose message arrived.
    c.open_call_with("MPI_Send", at(50), on_world(0, 8, 8)).killed();
    let mut d = a.clone();
    d.threads[0].pop();
    d.call_with("MPI_Recv", at(50), at(60), on_world(2, 8, 8));
    let (found, _) = match_ranks(&[d, b, c]);
    assert_eq!(found.pairs(), [(0, 10, 1, 12), (2, 50, 0, 50)]);
    assert_eq!(found.messages.iter().filter(|m| m.send.end_s.is_none()).count(), 1);
    assert_eq!(
        found.alone(),
        [
            (Side::Send, PartnerUnfinished, 0, 21),
            (Side::Receive, Open, 0, 30),
            (Side::Receive, Open, 1, 30)
        ]
    );
}

#[test]
fn missing_files_and_files_of_level_0_have_different_reasons() {
    let [mut a, ..] = world::<3>();
    a.call_with("MPI_Send", at(10), at(11), on_world(1, 5, 8));
    a.call_with("MPI_Send", at(12), at(13), on_world(2, 5, 8));
    a.call_with("MPI_Recv", at(14), at(15), on_world(2, 5, 8));
    let mut plain = SyntheticRank::complete(1, 3, 1_000_000, END);
    plain.call(0, "MPI_Recv", at(10), at(11));
    let (found, _) = match_ranks(&[a, plain]);
    assert_eq!(
        found.alone(),
        [
            (Side::Send, FileMissing, 0, 12),
            (Side::Send, PartnerWithoutAttributes, 0, 10),
            (Side::Receive, FileMissing, 0, 14)
        ]
    );
}

#[test]
fn message_that_is_never_received_has_no_partner() {
    let [mut a, b] = world();
    a.call_with("MPI_Send", at(10), at(11), on_world(1, 5, 8));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!(found.alone(), [(Side::Send, NoPartner, 0, 10)]);
}

#[test]
fn thread_reuses_a_handle_while_another_is_still_waiting() {
    let [mut a, mut b] = world();
    b.call_with("MPI_Send", at(10), at(11), on_world(0, 5, 1));
    b.call_with("MPI_Send", at(12), at(13), on_world(0, 5, 2));
    a.call_with("MPI_Irecv", at(1), at(2), on_world(1, 5, 99).request(4));
    // Thread 0 waits from 20 to 40. Meanwhile handle 4 is free again and thread 1 gets it.
    a.call_with("MPI_Wait", at(20), at(40), completed(4, 1, 5, 1));
    a.thread_call_with(1, "MPI_Irecv", at(30), at(35), on_world(1, 5, 99).request(4));
    a.thread_call_with(1, "MPI_Wait", at(50), at(60), completed(4, 1, 5, 2));
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(found.pairs(), [(1, 10, 0, 1), (1, 12, 0, 30)]);
    assert_eq!(summary.size_mismatches, 0);
    assert_eq!(found.messages.iter().map(|m| m.receive.thread).max(), Some(1));
}
