//! Collective instances.

use super::*;

/// (function, number, ranks, missing, mismatched) of the instances, sorted by number.
fn shapes(found: &Found) -> Vec<(String, u64, Vec<u32>, u32, bool)> {
    let shapes = found.instances.iter().map(|instance| {
        let mut ranks: Vec<u32> = instance.members.iter().map(|member| member.rank).collect();
        ranks.sort_unstable();
        let function = instance.function.trim_start_matches("MPI_").to_owned();
        (function, instance.number, ranks, instance.missing, instance.mismatched)
    });
    let mut shapes: Vec<_> = shapes.collect();
    shapes.sort();
    shapes
}

fn shape(
    function: &str,
    number: u64,
    ranks: &[u32],
    missing: u32,
) -> (String, u64, Vec<u32>, u32, bool) {
    (function.into(), number, ranks.to_vec(), missing, false)
}

#[test]
fn calls_are_combined_by_their_order_on_the_communicator() {
    let [mut a, mut b] = world();
    for (rank, shift) in [(&mut a, 0), (&mut b, 3)] {
        rank.call_with("MPI_Barrier", at(10 + shift), at(20), on_world(0, 0, 0));
        rank.call_with("MPI_Bcast", at(30 + shift), at(40), on_world(0, 8, 8));
        rank.call_with("MPI_Iallreduce", at(50 + shift), at(55), on_world(0, 8, 8).request(3));
        rank.call_with("MPI_Barrier", at(60 + shift), at(70), on_world(0, 0, 0));
        rank.call_with("MPI_Wait", at(80 + shift), at(90), completed(3, 0, 0, 0));
    }
    let (found, summary) = match_ranks(&[a, b]);
    assert_eq!(
        shapes(&found),
        [
            shape("Allreduce", 2, &[0, 1], 0),
            shape("Barrier", 0, &[0, 1], 0),
            shape("Barrier", 3, &[0, 1], 0),
            shape("Bcast", 1, &[0, 1], 0)
        ]
    );
    assert_eq!((summary.complete_instances, summary.incomplete_instances), (4, 0));
    let reduce = found.instances.iter().find(|i| i.function == "MPI_Allreduce").unwrap();
    let first = reduce.members.iter().find(|member| member.rank == 0).unwrap();
    let ns = |seconds: Option<f64>| (seconds.unwrap() * 1e9).round() as u64 + 1_000_000 - T;
    assert_eq!((ns(Some(first.begin_s)), ns(first.end_s), ns(first.complete_s)), (50, 55, 90));
    assert_eq!((first.sent_bytes, first.received_bytes), (8, 8));
}

#[test]
fn persistent_operations_are_distinguished_by_their_initialisation() {
    let [mut a, mut b] = world();
    let handle = |request| Attributes::default().request(request);
    for (rank, order) in [(&mut a, [4, 5]), (&mut b, [5, 4])] {
        rank.call_with("MPI_Bcast_init", at(1), at(2), on_world(0, 0, 8).request(4));
        rank.call_with("MPI_Barrier_init", at(3), at(4), on_world(0, 0, 0).request(5));
        for round in [0, 100] {
            rank.call_with("MPI_Start", at(10 + round), at(11 + round), handle(order[0]));
            rank.call_with("MPI_Start", at(12 + round), at(13 + round), handle(order[1]));
            let both = [completed(4, 0, 0, 0), completed(5, 0, 0, 0)];
            rank.several("MPI_Waitall", at(20 + round), at(30 + round), &both);
        }
    }
    let (found, summary) = match_ranks(&[a, b]);
    let expected = ["Barrier", "Bcast"].map(|f| [shape(f, 0, &[0, 1], 0), shape(f, 1, &[0, 1], 0)]);
    assert_eq!(shapes(&found), expected.concat());
    assert_eq!((summary.mismatched_instances, summary.unknown_requests), (0, 0));
}

#[test]
fn dead_rank_is_missing_from_later_instances() {
    let [mut a, mut b, mut c] = world();
    for rank in [&mut a, &mut b, &mut c] {
        rank.call_with("MPI_Barrier", at(10), at(20), on_world(0, 0, 0));
    }
    b.killed();
    a.call_with("MPI_Barrier", at(30), at(40), on_world(0, 0, 0));
    c.open_call_with("MPI_Barrier", at(30), on_world(0, 0, 0)).killed();
    let (found, summary) = match_ranks(&[a, b, c]);
    let expected = [shape("Barrier", 0, &[0, 1, 2], 0), shape("Barrier", 1, &[0, 2], 1)];
    assert_eq!(shapes(&found), expected);
    assert_eq!((summary.complete_instances, summary.incomplete_instances), (1, 1));
}

#[test]
fn ranks_without_a_file_are_missing_from_the_start() {
    let [mut a, _, mut c] = world();
    for rank in [&mut a, &mut c] {
        rank.call_with("MPI_Barrier", at(10), at(20), on_world(0, 0, 0));
        rank.call_with("MPI_Ibarrier", at(30), at(40), on_world(0, 0, 0).request(3));
    }
    let (found, _) = match_ranks(&[a, c]);
    let expected = [shape("Barrier", 0, &[0, 2], 1), shape("Barrier", 1, &[0, 2], 1)];
    assert_eq!(shapes(&found), expected);
    let unseen = found.instances.iter().flat_map(|instance| &instance.members);
    assert_eq!(unseen.filter(|member| member.complete_s.is_none()).count(), 2);
}

#[test]
fn different_operations_in_one_instance_are_reported() {
    let [mut a, mut b] = world();
    a.call_with("MPI_Reduce", at(10), at(20), on_world(0, 0, 8));
    b.call_with("MPI_Allreduce", at(10), at(20), on_world(0, 0, 8));
    b.call_with("MPI_Barrier", at(30), at(40), Attributes::default().communicator(77));
    let (found, summary) = match_ranks(&[a, b]);
    assert!(found.instances[0].mismatched);
    assert_eq!((summary.mismatched_instances, summary.unknown_collectives), (1, 1));
}

#[test]
fn communicators_count_separately_and_both_groups_of_an_intercommunicator_together() {
    let [mut a, mut b] = world();
    a.intercommunicator(3, 60, 0, (&[(0, 0, 1)], 1), (&[(1, 0, 1)], 1));
    b.intercommunicator(3, 60, 0, (&[(1, 0, 1)], 1), (&[(0, 0, 1)], 1));
    for rank in [&mut a, &mut b] {
        rank.call_with("MPI_Barrier", at(10), at(11), Attributes::default().communicator(3));
        rank.call_with(
            "MPI_Barrier",
            at(12),
            at(13),
            Attributes::default().communicator(COMMUNICATOR_SELF),
        );
        rank.call_with("MPI_Barrier", at(14), at(15), on_world(0, 0, 0));
    }
    let (found, _) = match_ranks(&[a, b]);
    let mut expected = vec![shape("Barrier", 0, &[0, 1], 0); 2];
    expected.extend([shape("Barrier", 0, &[0], 0), shape("Barrier", 0, &[1], 0)]);
    expected.sort();
    assert_eq!(shapes(&found), expected);
}
