//! Waits between the epochs of one-sided communication, and in neighbourhood collectives; `generated` has more.

use super::*;
use crate::synthetic_windows::{EXCLUSIVE, SHARED, for_group, for_target, on_window};

/// Window and group of the tests.
const W: u32 = 4;
const G: u32 = 1;

/// An origin that names rank 0 in its group, with a window.
fn origin(rank: &mut SyntheticRank) -> &mut SyntheticRank {
    rank.window(W).group(G, &[0])
}

#[test]
fn put_before_the_post_is_an_early_transfer() {
    let [mut target, mut a] = world();
    target.window(W).group(G, &[1]);
    target.call_with("MPI_Win_post", at(100), at(105), for_group(W, G));
    target.call_with("MPI_Win_wait", at(200), at(210), on_window(W));
    // A put under a lock, on the same window, is none.
    origin(&mut a).call_with("MPI_Put", at(1), at(3), for_target(W, 0, 8));
    a.call_with("MPI_Win_start", at(10), at(12), for_group(W, G));
    a.call_with("MPI_Put", at(20), at(106), for_target(W, 0, 8));
    a.call_with("MPI_Put", at(110), at(112), for_target(W, 0, 8));
    a.call_with("MPI_Win_complete", at(120), at(125), on_window(W));
    with_causes(&[target, a], |causes| {
        assert_eq!(waits(causes), [(State::EarlyTransfer, 1, Some(0), 20, 80)]);
    });
}

#[test]
fn early_wait_is_for_the_last_origin_to_complete() {
    let [mut target, mut a, mut b] = world();
    target.window(W).group(G, &[1, 2]).group(G + 1, &[2]);
    target.call_with("MPI_Win_post", at(1), at(5), for_group(W, G));
    target.call_with("MPI_Win_wait", at(20), at(110), on_window(W));
    // Rank 2 alone: its second epoch belongs to this one, though rank 1 has only one.
    target.call_with("MPI_Win_post", at(120), at(125), for_group(W, G + 1));
    target.polls("MPI_Win_test", at(130), at(170), 10, 20);
    target.call_with("MPI_Win_test", at(171), at(173), on_window(W));
    origin(&mut a).call_with("MPI_Win_start", at(10), at(12), for_group(W, G));
    a.call_with("MPI_Win_complete", at(40), at(45), on_window(W));
    origin(&mut b).call_with("MPI_Win_start", at(10), at(12), for_group(W, G));
    b.call_with("MPI_Win_complete", at(100), at(105), on_window(W));
    b.call_with("MPI_Win_start", at(130), at(132), for_group(W, G));
    b.call_with("MPI_Win_complete", at(170), at(172), on_window(W));
    with_causes(&[target, a, b], |causes| {
        let expected =
            [(State::EarlyWait, 0, Some(2), 20, 80), (State::EarlyWait, 0, Some(2), 130, 20)];
        assert_eq!(waits(causes), expected);
        assert_eq!(causes.unknown, []);
    });
}

#[test]
fn epochs_without_a_known_group_are_counted_as_unknown() {
    let [mut target, mut a] = world();
    target.window(W).call_with("MPI_Win_post", at(100), at(105), for_group(W, 0));
    target.call_with("MPI_Win_wait", at(110), at(120), on_window(W));
    origin(&mut a).call_with("MPI_Win_start", at(10), at(106), for_group(W, G));
    a.call_with("MPI_Win_complete", at(107), at(108), on_window(W));
    with_causes(&[target, a], |causes| {
        assert_eq!(waits(causes), []);
        assert_eq!(causes.unknown, [Unknown::OneSided(2)]);
    });
}

#[test]
fn lock_waits_for_a_conflicting_holder_to_unlock() {
    let [mut a, mut b, mut c, mut d] = world();
    for rank in [&mut a, &mut b, &mut c, &mut d] {
        rank.window(W);
    }
    a.call_with("MPI_Win_lock", at(10), at(12), for_target(W, 3, EXCLUSIVE));
    a.call_with("MPI_Win_unlock", at(100), at(103), for_target(W, 3, 0));
    b.call_with("MPI_Win_lock", at(20), at(104), for_target(W, 3, EXCLUSIVE));
    b.call_with("MPI_Win_unlock", at(140), at(144), for_target(W, 3, 0));
    // This library asks for the lock only when it unlocks.
    c.call_with("MPI_Win_lock", at(30), at(31), for_target(W, 3, SHARED));
    c.call_with("MPI_Win_unlock", at(110), at(146), for_target(W, 3, 0));
    // Another rank's memory.
    d.call_with("MPI_Win_lock", at(30), at(150), for_target(W, 2, EXCLUSIVE));
    d.call_with("MPI_Win_unlock", at(160), at(161), for_target(W, 2, 0));
    with_causes(&[a, b, c, d], |causes| {
        let expected = [(State::Lock, 1, Some(0), 20, 80), (State::Lock, 2, Some(1), 110, 30)];
        assert_eq!(waits(causes), expected);
        assert_eq!(causes.unknown, []);
    });
}

#[test]
fn shared_locks_do_not_conflict_but_all_are_locked_against_an_exclusive_one() {
    let [mut a, mut b, mut c] = world();
    for rank in [&mut a, &mut b, &mut c] {
        rank.window(W);
    }
    a.call_with("MPI_Win_lock", at(10), at(12), for_target(W, 2, SHARED));
    a.call_with("MPI_Win_unlock", at(100), at(103), for_target(W, 2, 0));
    b.call_with("MPI_Win_lock", at(20), at(104), for_target(W, 2, SHARED));
    b.call_with("MPI_Win_unlock", at(140), at(144), for_target(W, 2, 0));
    c.call_with("MPI_Win_lock_all", at(30), at(31), on_window(W));
    c.call_with("MPI_Win_flush", at(50), at(120), for_target(W, 2, 0));
    c.call_with("MPI_Win_unlock_all", at(190), at(195), on_window(W));
    a.call_with("MPI_Win_lock", at(150), at(192), for_target(W, 2, EXCLUSIVE));
    a.call_with("MPI_Win_unlock", at(200), at(203), for_target(W, 2, 0));
    with_causes(&[a, b, c], |causes| {
        assert_eq!(waits(causes), [(State::Lock, 0, Some(2), 150, 40)]);
    });
}

#[test]
fn holder_whose_unlock_returns_late_had_the_lock_first() {
    let [mut a, mut b, c] = world();
    a.window(W);
    b.window(W);
    // The target answers rank 0's unlock only after rank 1 has come and gone.
    a.call_with("MPI_Win_lock", at(10), at(12), for_target(W, 2, EXCLUSIVE));
    a.call_with("MPI_Win_unlock", at(100), at(160), for_target(W, 2, 0));
    b.call_with("MPI_Win_lock", at(20), at(104), for_target(W, 2, EXCLUSIVE));
    b.call_with("MPI_Win_unlock", at(110), at(120), for_target(W, 2, 0));
    with_causes(&[a, b, c], |causes| {
        assert_eq!(waits(causes), [(State::Lock, 1, Some(0), 20, 80)]);
    });
}

#[test]
fn neighbourhood_without_recorded_neighbours_is_counted_as_unknown() {
    let mut ranks = world::<2>();
    for (rank, enters) in ranks.iter_mut().zip([10, 90]) {
        rank.call_with("MPI_Neighbor_alltoall", at(enters), at(96), on_world(0, 8, 8));
    }
    with_causes(&ranks, |causes| {
        assert_eq!(waits(causes), []);
        assert_eq!(causes.unknown, [Unknown::Neighbourhoods(1)]);
    });
}
