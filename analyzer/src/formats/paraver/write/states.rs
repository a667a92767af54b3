//! Derives Paraver's states from the calls of threads.

use std::io;

use trace_format::meaning::{Class, Operation};
use trace_format::plain::Plain;

use crate::export::content::{Call, Export, Function};
use crate::export::steps::{Kind, Steps};
use crate::formats::paraver::names::RUNNING;
use crate::spill::{Record, Sorted, Spill};

/// A stretch of a thread in one of Paraver's states.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) begin_ns: i64,
    pub(super) end_ns: i64,
    pub(super) number: u64,
    pub(super) state: u32,
    pub(super) thread: u32,
}
// SAFETY: repr(C), integers only, three of 8 bytes and then two of 4: no padding.
unsafe impl Plain for State {}

impl Record for State {
    type Key = (i64, u64);
    fn key(&self) -> (i64, u64) {
        (self.begin_ns, self.number)
    }
}

fn state_of(function: Option<&Function>) -> u32 {
    let Some(function) = function else { return 15 };
    match (function.operation, function.class) {
        (Operation::Receive | Operation::MatchedReceive, _) => 3,
        (Operation::Send, _) => 4,
        (Operation::Isend, _) => 10,
        (Operation::Ireceive | Operation::MatchedIreceive, _) => 11,
        (Operation::SendReceive | Operation::IsendReceive, _) => 16,
        _ if function.name == "MPI_Barrier" => 5,
        _ if function.name.starts_with("MPI_Test") => 6,
        (_, Class::Probe) => 6,
        (_, Class::Completion) => 8,
        (_, Class::Collective) => 13,
        (_, Class::Io) => 12,
        (_, Class::Compute) => RUNNING,
        _ => 15,
    }
}

/// The states of all threads: that of the innermost call, and running between calls.
pub(super) fn states(export: Export, first_threads: &[usize]) -> io::Result<Sorted<State>> {
    let Export { content, scratch, progress } = export;
    progress.stage("states", Some(content.most_events()));
    let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
    let mut spill = Spill::new(scratch);
    let all: usize = content.head.ranks.iter().map(|rank| rank.threads.len()).sum();
    let mut since: Vec<Option<i64>> = vec![None; all];
    let mut stacks: Vec<Vec<u32>> = vec![Vec::new(); all];
    let mut number = 0;
    for step in Steps::new(content, content.calls(), &passed) {
        if step.kind != Kind::Call {
            continue;
        }
        let threads = &content.head.ranks[step.call.rank].threads;
        let within = threads.iter().position(|thread| *thread == step.call.thread).unwrap_or(0);
        let thread = first_threads[step.call.rank] + within;
        let state = stacks[thread].last().copied().unwrap_or(RUNNING);
        if let Some(begin_ns) = since[thread].filter(|begin_ns| *begin_ns < step.at_ns) {
            number += 1;
            let thread = thread as u32;
            spill.push(State { begin_ns, end_ns: step.at_ns, number, state, thread })?;
        }
        since[thread] = Some(step.at_ns);
        match step.begins {
            true => stacks[thread].push(state_of(content.function(&step.call))),
            false => _ = stacks[thread].pop(),
        }
    }
    spill.sorted()
}
