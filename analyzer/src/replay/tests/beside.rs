//! Parallel regions with balanced threads, and faster calls on files.

use trace_format::file_calls::{FileCallKind, FileCalls};
use trace_format::header::{Definition, FileRecording, Phase};
use trace_format::layout::{Team, TeamWaits};

use super::*;

const WRITE: u16 = FileCallKind::Write as u16;

/// Rank 0 computes 100 us, of which a region of four threads takes 80, and calls on files 6; then it sends to rank 1.
/// Then a region of 40 us, inside which it sends again, and 20 us more.
fn program() -> Program {
    let mut program = Program::new(2);
    let of = &mut program.ranks[0];
    of.definitions.push(Definition::OpenMp { runtimes: vec!["libgomp.so.1".into()] });
    of.definitions.push(Definition::FileRecording(FileRecording {
        phase: Phase::Init,
        is_loaded: true,
        moved: None,
        elsewhere: Default::default(),
        sums: Vec::new(),
    }));
    let team = |span, work, longest| {
        (Team { span, inside: 4 * span, work, longest }, TeamWaits::default())
    };
    let calls = |inside, span| FileCalls { calls: 3, bytes: 300, inside, span };
    of.file_calls((WRITE, 1), BEGIN + 2_000, calls(6_000, 8_000));
    of.team((4, 2), BEGIN + 95_000, team(80_000, 200_000, 78_000));
    program.works(0, 100_000);
    program.sends(0, 1, 8);
    program.works(0, 20_000);
    program.sends(0, 1, 8);
    program.works(0, 20_000);
    let at = program.now[0];
    let of = &mut program.ranks[0];
    of.file_calls((WRITE | FileCallKind::INSIDE_MPI, 1), at - 20_000, calls(5, 5));
    of.team((4, 2), at, team(40_000, 50_000, 40_000));
    program.works(0, 20_000);
    program.receives(0, 1, 8);
    program.receives(0, 1, 8);
    program
}

#[test]
fn threads_are_balanced_and_files_are_faster() {
    program().with_graph(|graph| {
        let graph = graph.unwrap();
        let computed = |own: &[f64]| -> f64 {
            graph.lines[0].ops.clone().map(|op| own[op as usize]).sum::<f64>() * 1e6
        };
        let before = computed(&graph.own);
        let Beside { threads, files, with_mpi } = &graph.beside;
        let us = |parts: &[(u32, f64)]| parts.iter().map(|(_, s)| s * 1e6).sum::<f64>();
        assert!((us(threads) - 28.0).abs() < 1e-3, "{threads:?}");
        assert!((us(files) - 6.0).abs() < 1e-3, "{files:?}");
        assert_eq!(*with_mpi, 1);
        let shortened = |parts, share| {
            let mut own = graph.own.clone();
            crate::replay::beside::shorten(&mut own, parts, share);
            before - computed(&own)
        };
        assert!((shortened(threads, 1.0) - 28.0).abs() < 1e-3);
        // Twice as fast, and half as fast.
        assert!((shortened(files, 0.5) - 3.0).abs() < 1e-3);
        assert!((shortened(files, -1.0) + 6.0).abs() < 1e-3);
    });
}

#[test]
fn they_are_asked_for_where_they_were_recorded() {
    let asked = |program: Program| {
        program.with_graph(|graph| {
            let what_if = WhatIf::new(graph.unwrap());
            let questions = what_if.standard();
            let has = |change| questions.contains(&vec![change]);
            [has(Change::BalancedThreads), has(Change::FileSpeed(2.0))]
        })
    };
    assert_eq!(asked(program()), [true, true]);
    let mut without = Program::new(2);
    without.works(0, 100_000);
    without.sends(0, 1, 8);
    without.receives(0, 1, 8);
    assert_eq!(asked(without), [false, false]);
}
