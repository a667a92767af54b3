//! What libraries choose, and what that takes.

use super::*;

#[test]
fn ways_of_collective_operations_move_what_algorithms_do() {
    let of = |pattern, q: f64| {
        let ways = ways(Kind::Collective(pattern), 0.0, 1_024.0, shape(q, 1.0));
        ways.into_iter().flatten().map(|way| (way.messages(), way.bytes())).collect::<Vec<_>>()
    };
    // A binomial tree; recursive doubling of 6 ranks works on 4 of them.
    assert_eq!(of(Pattern::FromRoot, 8.0)[0], (3.0, 3.0 * 1_024.0));
    assert!(of(Pattern::Combine, 6.0).contains(&(4.0, 4.0 * 1_024.0)));
    // Bruck's algorithm passes half of the bytes on in each of 3 rounds; pairs exchange 7 blocks of 8.
    assert_eq!(of(Pattern::Exchange, 8.0), [(3.0, 1.5 * 1_024.0), (7.0, 7.0 * 128.0)]);
    assert!(of(Pattern::Synchronise, 8.0).iter().all(|(_, bytes)| *bytes == 0.0));
}

/// All ranks exchange blocks that shrink as 1/p², which MPICH sends one after another down to 32 KiB.
fn transpose(p: f64) -> RunLabels {
    let block = 64e6 / (p * p);
    let seconds = match block > 32_768.0 {
        true => (p - 1.0) * message_s(block),
        false => message_s(block) + (p - 1.0) * message_s(block) / 2.0,
    };
    let exchange = Label {
        bytes: p * block,
        all_bytes: 10.0 * p * p * block,
        all_count: 10.0 * p,
        ranks: p,
        group: Some(Group { ranks: p, per_host: 1.0 }),
        ..label("transpose", Kind::Collective(Pattern::Exchange), 10.0, 10.0 * seconds)
    };
    RunLabels { labels: vec![exchange], tau_s: 10.0 * seconds, ..stencil(p) }
}

#[test]
fn a_known_library_tells_what_it_does_at_other_sizes() {
    let runs = || DOUBLINGS.map(transpose).to_vec();
    let at_256 = |library| Structure::new(runs(), machine(library)).unwrap().at(256);
    let truth = transpose(256.0).tau_s;
    let known = at_256(Some(Library::Mpich));
    assert!((known.tau_s / truth - 1.0).abs() < 0.05, "{}, not {truth}", known.tau_s);
    let change = known.parts[0].regime.unwrap();
    // 64 MB among 45 ranks are blocks of 31.6 kB.
    assert_eq!(change.p, 45, "{change:?}");
    // No run shows what that takes, and without the library it may be anything that libraries do.
    let width = |of: &Forecast| of.interval_s.1 / of.tau_s;
    let unknown = at_256(None);
    assert!(width(&known) > 1.5 && width(&unknown) > 1.2, "{known:?} {unknown:?}");
    assert!(unknown.tau_s / truth > 1.5, "{}, not {truth}", unknown.tau_s);
}

#[test]
fn libraries_are_known_by_their_names() {
    let named = |name| Library::named(name);
    assert_eq!(named("Open MPI v4.1.4, package: Debian"), Some(Library::OpenMpi));
    assert_eq!(named("MPICH Version:      4.0.2"), Some(Library::Mpich));
    // These come from MPICH, or are other versions, and choose otherwise.
    for other in [
        "CRAY MPICH version 8.1",
        "Intel(R) MPI Library 2021.9",
        "MVAPICH2 Version: 2.3.7",
        "Open MPI v4.0.3, package: Debian",
        "Open MPI v5.0.6, package: Debian",
        "",
    ] {
        assert_eq!(named(other), None, "{other}");
    }
}

#[test]
fn communicators_of_a_host_share_its_link() {
    // Two rounds, both between hosts: of one communicator, and of four that call at once.
    let seconds = |groups| {
        let shape = Shape { groups, ..shape(4.0, 1.0) };
        let ways = ways(Kind::Collective(Pattern::Combine), 0.0, 1_000.0, shape);
        ways[0].as_ref().unwrap().seconds(&machine(None)).unwrap()
    };
    let one = message_s(1_000.0);
    near(seconds(1.0), 2.0 * one);
    near(seconds(4.0), 2.0 * (one + 3.0 * one / 2.0));
}

#[test]
fn rules_of_libraries_go_by_members_and_bytes() {
    let algorithm = |library, pattern, members, bytes| {
        let of = by_rule(Some(library), Kind::Collective(pattern), bytes, shape(members, 1.0));
        of.into_iter().next().flatten().map_or("", |work: Work| work.algorithm)
    };
    use Library::{Mpich, OpenMpi};
    use Pattern::{Collect, Combine, CombineAtRoot, Exchange, FromRoot, Synchronise, ToRoot};
    for (library, pattern, members, bytes, name) in [
        (OpenMpi, Combine, 8.0, 8.0, "recursive doubling"),
        // Of fewer elements than members no ring is made.
        (OpenMpi, Combine, 32.0, 8.0, "recursive doubling"),
        (OpenMpi, Combine, 32.0, 1e6, "Rabenseifner"),
        (OpenMpi, Combine, 256.0, 8.0, "reduce and broadcast"),
        (OpenMpi, Exchange, 64.0, 64.0 * 1_023.0, "Bruck"),
        (OpenMpi, Exchange, 64.0, 64.0 * 1_024.0, "posted at once"),
        (OpenMpi, Exchange, 64.0, 64.0 * 262_144.0, "pairwise"),
        (OpenMpi, Collect, 256.0, 4_096.0, "neighbour exchange"),
        (OpenMpi, Collect, 25.0, 4_096.0, "doubling blocks"),
        (OpenMpi, FromRoot, 100.0, 1e6, "4-nomial tree"),
        (OpenMpi, FromRoot, 4_096.0, 1e6, "scatter and doubling"),
        (OpenMpi, CombineAtRoot, 300.0, 1e4, "binomial tree"),
        (OpenMpi, Synchronise, 100.0, 0.0, "dissemination"),
        (Mpich, FromRoot, 64.0, 12_287.0, "binomial tree"),
        (Mpich, FromRoot, 64.0, 12_288.0, "scatter and doubling"),
        (Mpich, FromRoot, 48.0, 12_288.0, "scatter and ring"),
        (Mpich, Combine, 64.0, 2_048.0, "recursive doubling"),
        (Mpich, Combine, 64.0, 2_056.0, "Rabenseifner"),
        (Mpich, CombineAtRoot, 64.0, 2_048.0, "binomial tree"),
        (Mpich, Exchange, 64.0, 64.0 * 32_768.0, "posted at once"),
        (Mpich, Exchange, 64.0, 64.0 * 32_776.0, "pairwise"),
        (Mpich, Collect, 64.0, 8_191.0, "doubling blocks"),
        (Mpich, Collect, 64.0, 8_192.0, "ring"),
        (Mpich, ToRoot, 64.0, 8.0, ""),
    ] {
        let found = algorithm(library, pattern, members, bytes);
        assert_eq!(found, name, "{library:?} {pattern:?} {members} {bytes}");
    }
}

/// Sums of 8 bytes in as many rounds as Open MPI's rule says, but twice as many on 16 and 32 ranks.
fn sums(p: f64) -> RunLabels {
    let rounds = p.log2() * if (16.0..64.0).contains(&p) { 2.0 } else { 1.0 };
    let seconds = 10.0 * rounds * message_s(8.0);
    let sum = Label {
        bytes: 8.0,
        all_bytes: 80.0 * p,
        all_count: 10.0 * p,
        ranks: p,
        group: Some(Group { ranks: p, per_host: 1.0 }),
        ..label("sum", Kind::Collective(Pattern::Combine), 10.0, seconds)
    };
    let ring = Label { bytes: 1e6, all_bytes: 1e7 * p, name: "ring".to_owned(), ..sum.clone() };
    RunLabels { labels: vec![sum, ring], tau_s: 2.0 * seconds, ..stencil(p) }
}

#[test]
fn what_a_library_does_elsewhere_does_not_count_where_it_does_something_else() {
    let runs = DOUBLINGS.map(sums).to_vec();
    let at_256 = |library| {
        let structure = Structure::new(runs.clone(), machine(library)).unwrap();
        structure.at(256).parts.into_iter().find(|part| part.name == "sum").unwrap()
    };
    // A tree to the root, and one back in which each sends to three others.
    let one = message_s(8.0);
    let truth = 10.0 * (8.0 * one + 4.0 * (one + 2.0 * one / 2.0));
    near(at_256(Some(Library::OpenMpi)).seconds, truth);
    assert!((at_256(None).seconds / truth - 1.0).abs() > 0.05);
}

#[test]
fn a_rule_is_not_followed_where_another_way_explains_all_runs() {
    // Broadcasts of 256 KiB down a binomial tree, for which MPICH's rule is another from eight members on.
    let broadcast = |p: f64| {
        let seconds = 10.0 * p.log2() * message_s(262_144.0);
        let label = Label {
            bytes: 262_144.0,
            all_bytes: 10.0 * 262_144.0,
            all_count: 10.0 * p,
            ranks: p,
            group: Some(Group { ranks: p, per_host: 1.0 }),
            ..label("broadcast", Kind::Collective(Pattern::FromRoot), 10.0, seconds)
        };
        RunLabels { labels: vec![label], tau_s: seconds, ..stencil(p) }
    };
    let runs = DOUBLINGS.map(broadcast).to_vec();
    let found = Structure::new(runs, machine(Some(Library::Mpich))).unwrap().at(256).tau_s;
    near(found, broadcast(256.0).tau_s);
}
