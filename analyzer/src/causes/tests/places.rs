//! Places of calls: which module an address belonged to.

use trace_format::header::Module;

use super::*;

/// Adds a module at an address, loaded at this moment.
fn load(rank: &mut SyntheticRank, path: &str, begin: u64, ticks: u64) {
    rank.definitions.push(Definition::Module(Module {
        path: path.into(),
        build_id: String::new(),
        base: begin,
        begin,
        end: begin + 0x1000,
        ticks,
    }));
}

/// Makes the last call return to an address.
fn called_from(rank: &mut SyntheticRank, address: u64) {
    rank.threads[0].last_mut().unwrap().site = address;
}

/// Barriers for which rank 0 waits for 90 ticks each, from the given addresses.
fn barriers<const COUNT: usize>(addresses: [u64; COUNT]) -> [SyntheticRank; 2] {
    let mut ranks = world();
    for (number, address) in addresses.into_iter().enumerate() {
        let begin = at(number as u64 * 1_000);
        for (rank, late) in ranks.iter_mut().zip([0, 90]) {
            rank.call_with("MPI_Barrier", begin + late, begin + 100, on_world(0, 0, 0));
            called_from(rank, address);
        }
    }
    ranks
}

/// Module and count of the waits at barriers, by place.
fn barrier_places(causes: &Causes) -> Vec<(String, u64)> {
    let at_barrier = causes.groups.iter().filter(|group| group.state == State::WaitAtBarrier);
    let places = at_barrier.map(|group| match causes.contexts.get(group.context) {
        Context::Transfer(site) => (site.module.clone(), group.count),
        other => panic!("{other:?}"),
    });
    let mut places: Vec<_> = places.collect();
    places.sort();
    places
}

#[test]
fn waits_are_in_the_library_that_was_loaded_then() {
    let mut ranks = barriers([0x9010; 3]);
    for rank in &mut ranks {
        load(rank, "/lib/alpha.so", 0x9000, at(0) - 10);
        load(rank, "/lib/omega.so", 0x9000, at(1_500));
    }
    with_causes(&ranks, |causes| {
        let expected = [("/lib/alpha.so".to_owned(), 2), ("/lib/omega.so".to_owned(), 1)];
        assert_eq!(barrier_places(causes), expected);
    });
}
