//! Matching in shares. Every test checks that shares find the same as matching all at once.

use super::*;

/// In how many shares a run is matched if three are asked for.
fn shares_of(ranks: &[SyntheticRank]) -> Option<usize> {
    let directory = RunDirectory::new();
    ranks.iter().for_each(|rank| directory.write(rank));
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    match_in_shares(&run, &timeline, &communicators, &ProcessShare::whole(&run, 3), Found::default)
        .map(|shares| shares.len())
}

/// A ring: each rank sends to the next one, without and with a request.
fn ring<const P: usize>() -> [SyntheticRank; P] {
    let mut ranks = world::<P>();
    for (rank, events) in ranks.iter_mut().enumerate() {
        let (next, previous) = ((rank + 1) % P, (rank + P - 1) % P);
        let (next, previous) = (next as i32, previous as i32);
        for round in 0..20u64 {
            let at = |ticks| at(100 * round + ticks);
            events.call_with("MPI_Irecv", at(1), at(2), on_world(-1, 5, 8).request(7));
            events.call_with("MPI_Isend", at(3), at(4), on_world(next, 5, 8).request(6));
            events.call_with("MPI_Wait", at(5), at(50), completed(7, previous, 5, 8));
            events.call_with("MPI_Wait", at(51), at(52), completed(6, 0, 0, 0));
            events.call_with("MPI_Send", at(60), at(61), on_world(next, 6, 4));
            events.call_with("MPI_Recv", at(62), at(70), on_world(previous, 6, 4));
            events.call_with("MPI_Allreduce", at(80), at(90), on_world(0, 0, 8));
        }
    }
    ranks
}

#[test]
fn ordinary_run_is_matched_in_shares() {
    let ranks = ring::<7>();
    let (found, summary) = match_ranks(&ranks);
    assert_eq!((found.messages.len(), summary.complete_instances), (7 * 40, 20));
    let finished = ranks.map(|mut rank| {
        rank.finalize(END, END + 10);
        rank
    });
    assert_eq!(shares_of(&finished), Some(3));
}

#[test]
fn cancelled_sends_persistent_operations_and_missing_ranks_are_matched_in_shares() {
    let finished = |ranks: [SyntheticRank; 3]| {
        ranks.map(|mut rank| {
            rank.finalize(END, END + 10);
            rank
        })
    };
    let handle = Attributes::default().request(6);
    let mut cancels = ring::<3>();
    // The first is cancelled; the second is received although MPI_Cancel was called on it.
    for (i, cancelled) in [(0u64, true), (1, false)] {
        let at = |ticks| at(9000 + 100 * i + ticks);
        cancels[1].call_with("MPI_Isend", at(1), at(2), on_world(2, 9, 1).request(6));
        cancels[1].call_with("MPI_Cancel", at(3), at(4), handle);
        let mut done = completed(6, 0, 0, 0);
        done.communicator |= if cancelled { CANCELLED } else { 0 };
        cancels[1].call_with("MPI_Wait", at(5), at(6), done);
    }
    cancels[2].call_with("MPI_Recv", at(8000), at(9200), on_world(1, 9, 1));
    let (found, summary) = match_ranks(&cancels);
    assert_eq!((summary.matched, found.alone()), (121, vec![(Side::Send, Cancelled, 1, 9001)]));
    assert!(shares_of(&finished(cancels)).is_some_and(|shares| shares > 1));

    let mut persistent = ring::<3>();
    persistent[2].call_with("MPI_Send_init", at(9001), at(9002), on_world(0, 9, 1).request(6));
    persistent[2].call_with("MPI_Start", at(9003), at(9004), handle);
    persistent[2].call_with("MPI_Wait", at(9005), at(9006), completed(6, 0, 0, 0));
    persistent[0].call_with("MPI_Recv", at(9001), at(9010), on_world(2, 9, 1));
    assert_eq!(match_ranks(&persistent).1.matched, 121);
    assert!(shares_of(&finished(persistent)).is_some_and(|shares| shares > 1));

    let [first, second, _] = finished(ring::<3>());
    assert_eq!(shares_of(&[first, second]), Some(2));
}

#[test]
fn shares_finish_whatever_the_counters_are() {
    // Years apart; neighbouring numbers are equal in floating point.
    let mut ranks = world::<3>();
    for (rank, events) in ranks.iter_mut().enumerate() {
        let (next, previous) = ((rank as i32 + 1) % 3, (rank as i32 + 2) % 3);
        for begin in [1 << 40, 1 << 61, (1 << 61) + 1, (1 << 62) + 7, (1 << 62) + 8] {
            events.call_with("MPI_Isend", begin, begin, on_world(next, 5, 8).request(6));
            events.call_with("MPI_Recv", begin, begin + 1, on_world(previous, 5, 8));
            events.call_with("MPI_Wait", begin + 1, begin + 1, completed(6, 0, 0, 0));
        }
        events.finalize(1 << 63, (1 << 63) + 10);
    }
    assert_eq!(shares_of(&ranks), Some(3));
    let directory = RunDirectory::with_ranks(&ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let shares = match_in_shares(
        &run,
        &timeline,
        &communicators,
        &ProcessShare::whole(&run, 2),
        Found::default,
    )
    .unwrap();
    assert_eq!(shares.iter().map(|(summary, _)| summary.matched).sum::<u64>(), 15);
}

#[test]
fn rank_with_more_events_than_a_turn_does_not_hold_up_others() {
    // Rank 0 sends far more at once than fits into a round; rank 1 receives only at the end.
    const MESSAGES: u64 = 3 * (1 << 16);
    let mut ranks = world::<2>();
    for i in 0..MESSAGES {
        ranks[0].call_with("MPI_Send", at(2 * i), at(2 * i + 1), on_world(1, 6, 4));
        ranks[1].call_with(
            "MPI_Recv",
            at(50_000_000 + 2 * i),
            at(50_000_001 + 2 * i),
            on_world(0, 6, 4),
        );
    }
    let (found, summary) = match_ranks(&ranks);
    assert_eq!((found.messages.len() as u64, summary.matched), (MESSAGES, MESSAGES));
}

/// Asks for the calls that completed sends.
#[derive(Debug, Default)]
struct Completions(Vec<Message>);

impl MatchSink for Completions {
    fn wants(&self) -> MatchInterest {
        MatchInterest { completions: true, ..MatchInterest::default() }
    }

    fn take(&mut self, finding: &MatchFinding) {
        let MatchFinding::Message(message) = finding else { return };
        self.0.push(*message);
    }
}

#[test]
fn shares_know_what_completed_every_send() {
    let ranks = ring::<7>().map(|mut rank| {
        rank.finalize(END, END + 10);
        rank
    });
    let directory = RunDirectory::with_ranks(&ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    for max_shares in [1, 3] {
        let shares = match_in_shares(
            &run,
            &timeline,
            &communicators,
            &ProcessShare::whole(&run, max_shares),
            Completions::default,
        )
        .unwrap();
        let messages: Vec<Message> = shares.into_iter().flat_map(|(_, found)| found.0).collect();
        assert_eq!(messages.len(), 7 * 40);
        // A send with a request is completed by the call after the one that completes the receive.
        for message in messages {
            let completed = message.send.completed.and_then(|call| call.end_ticks());
            let after = if message.tag == 5 { 52 - 3 } else { 61 - 60 };
            assert_eq!(completed, Some(message.send.begin_ticks + after), "{message:?}");
        }
    }
}
