//! Several late ranks in a chain of messages: what each delay adds is known.

use proptest::prelude::*;

use super::*;

/// Ticks of a millisecond of these runs, and of what a call takes apart from waiting.
const MS: u64 = 100;
const CALL: u64 = 1;

/// Rank 0 sends to rank 1, that on to rank 2, and so on; then all meet in a barrier. Each rank is
/// late by its delay before it sends, the last before the barrier. `turns` times.
fn chain(delays_ms: &[u64], turns: u64) -> Vec<SyntheticRank> {
    let count = delays_ms.len();
    let mut ranks: Vec<SyntheticRank> =
        (0..count).map(|rank| SyntheticRank::level_1(rank as u32, count as u32, END)).collect();
    let mut met = at(0);
    for rank in &mut ranks {
        rank.call_with("MPI_Barrier", met, met + CALL, on_world(0, 0, 0));
    }
    met += CALL;
    for _ in 0..turns {
        let mut entered = Vec::new();
        let mut sent = 0;
        for (number, (rank, delay)) in ranks.iter_mut().zip(delays_ms).enumerate() {
            let mut now = met + CALL;
            if number > 0 {
                let done = now.max(sent) + CALL;
                rank.call_with("MPI_Recv", now, done, on_world(number as i32 - 1, 5, 8));
                now = done;
            }
            now += delay * MS;
            if number + 1 < count {
                rank.call_with("MPI_Bsend", now, now + CALL, on_world(number as i32 + 1, 5, 8));
                sent = now;
                now += 2 * CALL;
            }
            entered.push(now);
        }
        met = *entered.iter().max().unwrap() + CALL;
        for (rank, entered) in ranks.iter_mut().zip(entered) {
            rank.call_with("MPI_Barrier", entered, met, on_world(0, 0, 0));
        }
    }
    ranks
}

/// What each rank is charged, ms, and what nobody is.
fn charged(delays_ms: &[u64], turns: u64) -> (Vec<f64>, f64) {
    let mut found = (Vec::new(), 0.0);
    with_causes(&chain(delays_ms, turns), |causes| {
        let ms = |ticks: i64| ticks as f64 / MS as f64;
        let of = |rank: usize| {
            let of_rank = costs(causes).into_iter().filter(|(other, ..)| *other as usize == rank);
            ms(of_rank.map(|(.., direct, indirect)| direct + indirect).sum())
        };
        found = ((0..delays_ms.len()).map(of).collect(), ms(causes.charges.unattributed));
    });
    found
}

#[test]
fn each_of_two_late_ranks_is_charged_what_it_adds() {
    // All three others wait for each delay, in each of three turns.
    for second in [10, 50, 95, 100, 200] {
        let (of_ranks, unattributed) = charged(&[100, second, 0, 0], 3);
        let expected = [900.0, 9.0 * second as f64, 0.0, 0.0];
        for (found, expected) in of_ranks.iter().zip(expected) {
            assert!((found - expected).abs() < 1.0, "{second} ms: {of_ranks:?}");
        }
        assert!(unattributed < 1.0, "{second} ms: {unattributed} to nobody, {of_ranks:?}");
    }
}

#[test]
fn the_last_rank_to_enter_is_charged_its_own_delay() {
    // Rank 0 is late before rank 2 waits for it, and waits for rank 2 later.
    for (delays, waiting) in [([100, 50, 30], 2), ([100, 0, 100], 2), ([30, 20, 100], 2)] {
        let (of_ranks, unattributed) = charged(&delays, 3);
        for (found, delay) in of_ranks.iter().zip(delays) {
            let expected = (3 * waiting * delay) as f64;
            assert!((found - expected).abs() < 1.0, "{delays:?}: {of_ranks:?}, {unattributed}");
        }
        assert!(unattributed < 1.0, "{delays:?}: {unattributed} to nobody, {of_ranks:?}");
    }
}

proptest! {
    #[test]
    fn each_late_rank_of_a_chain_is_charged_what_it_adds(
        delays in proptest::collection::vec(0u64..100, 2..8),
        turns in 1u64..4,
    ) {
        let (of_ranks, unattributed) = charged(&delays, turns);
        let others = (turns * (delays.len() as u64 - 1)) as f64;
        for (found, delay) in of_ranks.iter().zip(&delays) {
            let expected = others * *delay as f64;
            assert!((found - expected).abs() <= others, "{delays:?}: {of_ranks:?}, {unattributed}");
        }
        assert!(unattributed <= others, "{delays:?}: {unattributed} to nobody");
    }
}
