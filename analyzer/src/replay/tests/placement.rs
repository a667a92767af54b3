//! Programs on other hosts, with times known by formula.

use super::*;

/// L and G between hosts, nanoseconds.
const FAR: f64 = 20_000.0;
const FAR_BYTE: f64 = 5.0;

fn two_levels() -> Network {
    Network { latency: [L * 1e-9, FAR * 1e-9], per_byte: [G * 1e-9, FAR_BYTE * 1e-9], ..network() }
}

/// Nanoseconds up to the end of the last call with a mapping, and the levels that are used.
fn on(program: &Program, mapping: &Mapping) -> (f64, [bool; 2]) {
    program.with_graph(|graph| {
        let graph = graph.unwrap();
        let placement = Placement::mapped(&graph, mapping);
        let network = two_levels();
        let conditions = Conditions::recorded(&graph, &network, &placement);
        let replayed = replay(&graph, &conditions);
        assert_adds_up(&graph, &conditions, &replayed);
        (end_of_last_call(&graph, &replayed.ends), placement.used_levels(&graph))
    })
}

#[track_caller]
fn assert_on(program: &Program, mapping: &Mapping, expected: f64, used: [bool; 2]) {
    let (found, levels) = on(program, mapping);
    assert!((found - expected).abs() < 1e-3, "{found} ns, expected {expected}");
    assert_eq!(levels, used);
}

fn far(bytes: f64) -> f64 {
    FAR + FAR_BYTE * bytes
}

#[test]
fn chain_crosses_hosts_once_in_blocks_and_always_in_turn() {
    let mut program = Program::new(4);
    for from in 0..3 {
        program.sends(from, from + 1, 800);
        program.receives(from, from + 1, 800);
    }
    let (sides, near, far) = (6.0 * side(800.0), way(800.0), far(800.0));
    assert_on(&program, &Mapping::block(4, 1), sides + 3.0 * near, [true, false]);
    assert_on(&program, &Mapping::block(4, 2), sides + 2.0 * near + far, [true, true]);
    assert_on(&program, &Mapping::cyclic(4, 2), sides + 3.0 * far, [false, true]);
    let named = Mapping::named("hosts".into(), &["a", "a", "a", "b"]);
    assert_on(&program, &named, sides + 2.0 * near + far, [true, true]);
}

#[test]
fn barrier_takes_steps_within_and_between_hosts() {
    let mut program = Program::new(4);
    (0..4).for_each(|rank| program.calls(rank, "MPI_Barrier", on_world(0, 0, 0)));
    let (near, far) = (2.0 * O + L, 2.0 * O + FAR);
    assert_on(&program, &Mapping::block(4, 1), 2.0 * near, [true, false]);
    assert_on(&program, &Mapping::block(4, 2), near + far, [true, true]);
    assert_on(&program, &Mapping::cyclic(4, 2), near + far, [true, true]);
    assert_on(&program, &Mapping::block(4, 4), 2.0 * far, [false, true]);
}

#[test]
fn recorded_placement_changes_nothing_and_unused_level_is_unknown() {
    let mut program = Program::new(4);
    for from in 0..3 {
        program.sends(from, from + 1, 800);
        program.receives(from, from + 1, 800);
    }
    program.with_graph(|graph| {
        let what_if = WhatIf::new(graph.unwrap());
        assert_eq!(what_if.shows(), [true, false]);
        let own = Assembled::of_run(what_if.calibration.network, what_if.shows(), [false; 2]);
        assert_eq!((own.latency, own.is_changed()), ([Origin::Run, Origin::Assumed], false));
        let ask = |changes: &[Change]| what_if.ask(changes).elapsed_s;
        let same = Change::Placement(Mapping::block(4, 1));
        assert_eq!(ask(std::slice::from_ref(&same)), ask(&[]));
        let two = Change::Placement(Mapping::block(4, 2));
        let mut far = own.clone();
        far.set_latency(Hop::Between, 1e-3, Origin::Given);
        assert!(far.is_changed());
        let apart = ask(&[two, Change::Network(Box::new(far))]);
        assert!(apart > ask(&[]) + 0.9e-3, "{apart}");
    });
}
