//! Writes a replay as a run directory: the files of the recorded run with every time moved to its
//! time in the replay, so that all commands can read it.
//!
//! What calls record is kept: functions, peers, tags, bytes, call sites. Measurements of the
//! machine (time on a core, counters, clocks) are left out. Between two calls with peers, time is
//! stretched evenly.

mod warp;

use std::io;
use std::path::Path;

use rayon::prelude::*;
use trace_format::counter_kind::CounterKind;
use trace_format::fixed_header::{FORMAT_VERSION, FixedHeader};
use trace_format::header::{
    ClockAnchor, ClockExchange, Communicator, Definition, FileHeader, Module, Phase, ProcessLife,
    Topology,
};
use trace_format::reader::RankFile;
use trace_format::writer::RankFileWriter;

use crate::analysis::Analysis;
use crate::causes::{IntegerTimeline, Lines};
use crate::import::run_id;
use crate::replay::{Change, Mapping, WhatIf};
use crate::trace::{RankTrace, SIMULATED};
use warp::Warp;

/// Reading of the simulated counter when the earliest rank begins, in nanoseconds; leaves room for
/// what comes before.
const ZERO_NS: f64 = 1e15;

/// A run to write.
pub struct SimulatedRun<'i, 'a> {
    what_if: &'i WhatIf<'a>,
    analysis: &'i Analysis<'a>,
    clock: IntegerTimeline<'i>,
    /// Begin of the run on this clock.
    begin: i64,
    /// The changes, in words.
    question: String,
    mapping: Option<&'i Mapping>,
    /// By rank position, the warps of the threads.
    warps: Vec<Vec<Warp>>,
    run_id: [u8; 16],
}

impl<'i, 'a> SimulatedRun<'i, 'a> {
    /// Prepares a run with some changes.
    pub fn new(
        what_if: &'i WhatIf<'a>,
        analysis: &'i Analysis<'a>,
        changes: &'i [Change],
        question: String,
        out: &Path,
    ) -> Self {
        let clock = IntegerTimeline::new(analysis.run, analysis.timeline);
        let begin = Lines::new(analysis, &clock).extent().map_or(0, |(begin, _)| begin);
        let mut warps: Vec<Vec<Warp>> = vec![Vec::new(); analysis.run.ranks.len()];
        for (line, moments) in what_if.graph.lines.iter().zip(what_if.moments(changes)) {
            warps[line.position].push(Warp::new(moments));
        }
        let mapping = changes.iter().find_map(|change| match change {
            Change::Placement(mapping) => Some(mapping),
            _ => None,
        });
        let run_id = run_id(out);
        Self { what_if, analysis, clock, begin, question, mapping, warps, run_id }
    }

    /// Writes the files of all ranks into a run directory.
    pub fn write(&self, run: &Path) -> io::Result<()> {
        let ranks = &self.what_if.graph.run.ranks;
        (0..ranks.len()).into_par_iter().try_for_each(|position| self.write_rank(run, position))
    }

    fn write_rank(&self, run: &Path, position: usize) -> io::Result<()> {
        let RankTrace { file, .. } = &self.what_if.graph.run.ranks[position];
        let mut writer = RankFileWriter::create(run, &self.fixed(file), &self.header(position))?;
        for (number, thread) in file.threads.iter().enumerate() {
            let mut last = 0;
            for event in file.events(thread) {
                let begin = self.moved(position, number, event.begin).max(last);
                let end = event.end.map_or(begin, |end| self.moved(position, number, end));
                writer.moved(thread.number, file, &event, (begin, end.max(begin)))?;
                last = begin;
            }
        }
        writer.finish(&self.definitions(position))
    }

    /// Converts a reading of a rank's counter to the simulated counter. What belongs to no thread
    /// moves with the first one.
    fn moved(&self, position: usize, thread: usize, ticks: u64) -> u64 {
        let was_s = self.clock.seconds(self.clock.at(position, ticks) - self.begin);
        let warps = &self.warps[position];
        let warp = warps.get(thread).or(warps.first());
        let is_s = warp.map_or(was_s, |warp| warp.at(was_s));
        (ZERO_NS + is_s * 1e9).round().max(1.0) as u64
    }

    fn fixed(&self, file: &RankFile) -> FixedHeader {
        FixedHeader {
            version: FORMAT_VERSION,
            counter: CounterKind::MonotonicRaw as u8,
            run_id: self.run_id,
            ..file.fixed
        }
    }

    fn header(&self, position: usize) -> FileHeader {
        let file = &self.what_if.graph.run.ranks[position].file;
        let mut header = file.header.clone();
        // An opened file keeps the names apart from its header.
        header.function_names = file.function_names().join("\n");
        header.recorder_version = format!("{SIMULATED} {}", env!("CARGO_PKG_VERSION"));
        header.program.push_str(" (simulated)");
        header.counter_invariant = true;
        header.parameters.push(("if".to_owned(), self.question.clone()));
        if let Some(mapping) = self.mapping {
            header.host = format!("simulated-{}", mapping.host(position));
            (header.affinity, header.numa_node) = (Vec::new(), -1);
        }
        header.boot_id = format!("simulated {}", header.host);
        header
    }

    /// What the file holds besides events.
    fn definitions(&self, position: usize) -> Vec<Definition> {
        let RankTrace { file, facts, rank, .. } = &self.what_if.graph.run.ranks[position];
        let time = &self.analysis.timeline.ranks[position];
        let moved = |ticks: u64| if ticks == 0 { 0 } else { self.moved(position, 0, ticks) };
        let (begin, end) = (moved(time.begin_ticks), moved(time.end_ticks));
        let realtime = facts.anchors.first().map_or(0, |anchor| anchor.realtime_ns);
        let anchor = |ticks: u64| {
            let realtime_ns = realtime + (ticks - begin);
            let (width_ticks, monotonic_raw_ns) = (0, ticks);
            Definition::ClockAnchor(ClockAnchor {
                ticks,
                width_ticks,
                monotonic_raw_ns,
                realtime_ns,
            })
        };
        let end_of_clock = end.max(begin + 1);
        let mut all = vec![anchor(begin), anchor(end_of_clock)];
        if *rank != 0 {
            // All ranks read one clock.
            for (phase, ticks) in [(Phase::Init, begin), (Phase::Finalize, end_of_clock)] {
                let exchange = ClockExchange::on_one_clock(phase, ticks, 0);
                all.push(Definition::ClockExchange(exchange));
            }
        }
        all.extend(
            file.definitions.iter().filter_map(|definition| moved_definition(definition, &moved)),
        );
        all
    }
}

/// The definition for the simulated run, with its time moved; `None` for measurements.
fn moved_definition(definition: &Definition, moved: &impl Fn(u64) -> u64) -> Option<Definition> {
    Some(match definition.clone() {
        Definition::ClockAnchor(_)
        | Definition::ClockExchange(_)
        | Definition::ClockBound(_)
        | Definition::SystemClock(_)
        | Definition::ThreadUsage(_)
        | Definition::ThreadCores(_)
        | Definition::ProcessUsage(_)
        | Definition::UsageReading(_)
        | Definition::Counter(_)
        | Definition::CounterReading(_)
        | Definition::Sampling(_)
        | Definition::OpenMp { .. }
        | Definition::MissedTeams { .. }
        | Definition::File(_)
        | Definition::FileRecording(_)
        | Definition::FileReads { .. }
        | Definition::Unmapped => return None,
        Definition::RankBegin { ticks } => Definition::RankBegin { ticks: moved(ticks) },
        Definition::RankEnd { ticks } => Definition::RankEnd { ticks: moved(ticks) },
        Definition::Stopped { ticks, reason } => {
            Definition::Stopped { ticks: moved(ticks), reason }
        }
        Definition::Communicator(of) => {
            Definition::Communicator(Communicator { ticks: moved(of.ticks), ..of })
        }
        Definition::CommunicatorName { id, ticks, name } => {
            Definition::CommunicatorName { id, ticks: moved(ticks), name }
        }
        Definition::Object { kind, id, ticks, communicator, name } => {
            Definition::Object { kind, id, ticks: moved(ticks), communicator, name }
        }
        Definition::Topology(of) => Definition::Topology(Topology { ticks: moved(of.ticks), ..of }),
        Definition::Module(of) => Definition::Module(Module { ticks: moved(of.ticks), ..of }),
        Definition::ProcessLife(of) => Definition::ProcessLife(ProcessLife {
            ticks: moved(of.ticks),
            end_ticks: moved(of.end_ticks),
            ..of
        }),
        same @ (Definition::Region { .. }
        | Definition::Finalized { .. }
        | Definition::Environment(_)
        | Definition::Keeping(_)
        | Definition::Processor { .. }
        | Definition::LeftOut { .. }
        | Definition::Path { .. }
        | Definition::Code(_)
        | Definition::Group { .. }) => same,
    })
}
