//! Counts, messages and bytes on the critical path.

use super::*;
use crate::causes::path_labels::{Group, OnPath, PathLabel, SizeClass};

/// The label of calls of a function, first or later ones.
fn of<'l>(labels: &'l [PathLabel], function: &str, first_use: bool) -> &'l PathLabel {
    let is_it = |label: &&PathLabel| {
        let calls = matches!(&label.context, Context::Transfer(site) if site.function == function);
        calls && label.first_use == first_use
    };
    labels.iter().find(is_it).unwrap_or_else(|| panic!("no {function} in {labels:#?}"))
}

/// Rank 0 computes and sends to rank 1, which waits for it; three times. Then both meet.
fn served() -> [SyntheticRank; 2] {
    let mut ranks = world::<2>();
    for turn in 0..3u64 {
        let begin = at(1_000 * turn);
        ranks[0].call_with("MPI_Send", begin + 900, begin + 910, on_world(1, 5, 1_024));
        ranks[1].call_with("MPI_Recv", begin + 100, begin + 920, on_world(0, 5, 1_024));
    }
    for rank in &mut ranks {
        rank.call_with("MPI_Barrier", at(3_100), at(3_110), on_world(0, 0, 0));
    }
    ranks
}

#[test]
fn a_path_is_summed_by_label() {
    with_analysis(&served(), |analysis| {
        let causes = Causes::new(analysis);
        let labels = causes.path_labels(analysis);
        let on_path: i64 = labels.iter().map(|label| label.on_path.ticks).sum();
        assert_eq!(on_path + causes.path.skew, causes.path.ticks(), "{labels:#?}");
        let world = Group { ranks: 2, stride: Some(1), per_host: 2 };
        let (first, later) = (of(&labels, "MPI_Recv", true), of(&labels, "MPI_Recv", false));
        assert_eq!((first.group, later.group), (Some(world), Some(world)));
        assert_eq!((first.on_ranks.count, later.on_ranks.count), (1, 2));
        assert_eq!((later.on_ranks.messages, later.on_ranks.bytes), (2, 2_048));
        let sizes = vec![SizeClass { from: 1_024, count: 2, bytes: 2_048 }];
        assert_eq!(later.on_ranks.sizes, sizes);
        // What rank 1 waited for rank 0 is rank 0's time.
        assert_eq!(later.on_ranks.ticks, 2 * 20);
        let sent = of(&labels, "MPI_Send", false);
        assert_eq!(sent.on_path, OnPath { count: 2, ticks: 20, messages: 2, bytes: 2_048 });
        assert_eq!(of(&labels, "MPI_Barrier", true).on_ranks.ticks_of_ranks.len(), 2);
    });
}

#[test]
fn a_completion_moves_what_was_begun() {
    let mut ranks = world::<2>();
    for turn in 0..2u64 {
        let begin = at(100 * turn);
        for (rank, own) in ranks.iter_mut().zip([0, 1]) {
            let sent = on_world(1 - own, 5, 64).request(8);
            rank.call_with("MPI_Isend", begin, begin + 2, sent);
            let received = on_world(1 - own, 5, 64).request(9);
            rank.call_with("MPI_Irecv", begin + 4, begin + 6, received);
            rank.call_with("MPI_Wait", begin + 10, begin + 20, completed(8, 1 - own, 5, 64));
            rank.call_with("MPI_Wait", begin + 30, begin + 40, completed(9, 1 - own, 5, 64));
        }
    }
    with_analysis(&ranks, |analysis| {
        let labels = Causes::new(analysis).path_labels(analysis);
        let waits = &of(&labels, "MPI_Wait", false).on_ranks;
        assert_eq!((waits.count, waits.messages, waits.bytes), (8, 8, 512));
        assert_eq!(waits.max_count, 4);
        let sizes = [(0, 4, 0), (128, 4, 512)];
        let sizes = sizes.map(|(from, count, bytes)| SizeClass { from, count, bytes });
        assert_eq!(waits.sizes, sizes);
        let each = of(&labels, "MPI_Wait", false).by_size.iter();
        let each: Vec<_> = each.map(|of| (of.bytes, of.count, of.max_count)).collect();
        assert_eq!(each, [(0, 4, 2), (128, 4, 2)]);
    });
}
