//! Writes the file of one imported rank from another tool's calls, in order of their begin on each
//! thread.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use trace_format::counter_kind::CounterKind;
use trace_format::fixed_header::FixedHeader;
use trace_format::functions::{self, FIRST_FUNCTION};
use trace_format::header::{
    COMMUNICATOR_SELF, COMMUNICATOR_WORLD, ClockAnchor, ClockExchange, Communicator, Definition,
    FileHeader, Phase, ProcessLife,
};
use trace_format::markers::ToolReason;
use trace_format::writer::{Amendment, NewCall, Position, RankFileWriter};

use crate::plain_text::printable;

/// Ticks at the file's earliest time, which leaves room for what precedes the return of MPI_Init.
pub const ZERO_TICKS: u64 = 1_000_000_000;
/// MPI_ANY_SOURCE of the MPI ABI, whose constants imported runs use.
pub const ANY_SOURCE: i32 = -1;
/// MPI_ANY_TAG of the MPI ABI.
pub const ANY_TAG: i32 = -2;
/// MPI_PROC_NULL of the MPI ABI.
pub const PROC_NULL: i32 = -3;

#[derive(Debug, Clone, Default)]
pub struct ImportedCommunicator {
    pub name: String,
    /// World rank of each member.
    pub members: Vec<u32>,
    /// Members of the other group; empty for an intracommunicator.
    pub remote: Vec<u32>,
    /// Whether every rank has its own: MPI_COMM_SELF.
    pub own: bool,
}

/// What the ranks of an imported run share.
#[derive(Debug, Clone)]
pub struct World {
    /// Number of ranks.
    pub size: u32,
    /// Description of what wrote the trace.
    pub origin: String,
    /// The traced program, if known.
    pub program: String,
    /// What counts as computation.
    pub compute: String,
    /// Names of functions, numbered from [`FIRST_FUNCTION`] on.
    pub functions: Vec<String>,
    pub communicators: Vec<ImportedCommunicator>,
    /// Nanoseconds since 1970 at the file's earliest time.
    pub zero_unix_ns: u64,
    /// The same in all files of the run.
    pub run_id: [u8; 16],
}

impl World {
    /// Names of all functions that a trace may contain, and those in `more` that are not among
    /// them. Each becomes one line, as rank files require.
    pub fn function_names(more: impl Iterator<Item = String>) -> Vec<String> {
        let mut names = functions::names();
        for name in more.map(|name| printable(&name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Numbers of functions by their names.
    pub fn numbers(&self) -> HashMap<String, u16> {
        let names = self.functions.iter().cloned();
        names.zip(FIRST_FUNCTION..functions::MAX_FUNCTIONS).collect()
    }

    /// Local ids of the communicators of which a rank is a member, by index.
    fn local_ids(&self, rank: u32) -> HashMap<u32, u16> {
        let mut ids = HashMap::new();
        let mut next = COMMUNICATOR_SELF + 1;
        for (communicator, index) in self.communicators.iter().zip(0u32..) {
            let all = communicator.members.len() == self.size as usize
                && communicator.members.iter().copied().eq(0..self.size);
            if communicator.own {
                ids.insert(index, COMMUNICATOR_SELF);
            } else if all
                && communicator.remote.is_empty()
                && !ids.values().any(|id| *id == COMMUNICATOR_WORLD)
            {
                ids.insert(index, COMMUNICATOR_WORLD);
            } else if communicator.members.contains(&rank) || communicator.remote.contains(&rank) {
                ids.insert(index, next);
                next = next.saturating_add(1);
            }
        }
        ids
    }
}

/// Writes the file of one rank.
#[derive(Debug)]
pub struct RankWriter {
    file: RankFileWriter,
    rank: u32,
    /// Local ids of communicators, by index in [`World::communicators`].
    pub communicators: HashMap<u32, u16>,
    regions: HashMap<String, u32>,
    init: Option<u64>,
    finalize: Option<u64>,
    first: Option<u64>,
    last: u64,
    life: Option<(u64, u64)>,
    init_functions: [Option<u16>; 2],
    finalize_function: Option<u16>,
    /// Calls written.
    pub calls: u64,
}

impl RankWriter {
    /// Creates a rank's file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(run: &Path, world: &World, rank: u32, host: &str) -> io::Result<Self> {
        let fixed = FixedHeader {
            run_id: world.run_id,
            ..FixedHeader::new(CounterKind::MonotonicRaw, 1, rank, world.size)
        };
        let header = FileHeader {
            recorder_version: env!("CARGO_PKG_VERSION").into(),
            program: world.program.clone(),
            build_id: String::new(),
            arguments: Vec::new(),
            directory: String::new(),
            host: host.to_owned(),
            boot_id: format!("imported {host}"),
            mpi_library: world.origin.clone(),
            mpi_family: "abi".into(),
            mpi_version: (0, 0),
            thread_level: -1,
            counter_invariant: true,
            compute: world.compute.clone(),
            parameters: Vec::new(),
            affinity: Vec::new(),
            numa_node: -1,
            function_names: world.functions.join("\n"),
        };
        let numbers = world.numbers();
        let number = |name: &str| numbers.get(name).copied();
        Ok(Self {
            file: RankFileWriter::create(run, &fixed, &header)?,
            rank,
            communicators: world.local_ids(rank),
            regions: HashMap::new(),
            init: None,
            finalize: None,
            first: None,
            last: 0,
            life: None,
            init_functions: [number("MPI_Init"), number("MPI_Init_thread")],
            finalize_function: number("MPI_Finalize"),
            calls: 0,
        })
    }

    /// Records a time that does not belong to a call.
    pub fn note_time(&mut self, at: u64) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at);
    }

    /// Sets when the process began and ended, if the tool knows; otherwise its events determine
    /// that.
    pub fn set_life(&mut self, life: Option<(u64, u64)>) {
        self.life = life;
    }

    /// Adds a call, which must not begin before the previous call of its thread.
    pub fn call(&mut self, thread: u32, call: &NewCall) -> io::Result<Position> {
        self.note_time(call.begin);
        self.note_time(call.end.unwrap_or(call.begin));
        if self.init_functions.contains(&Some(call.function)) {
            self.init = self.init.or(call.end);
        }
        if self.finalize_function == Some(call.function) {
            self.finalize = Some(call.begin);
        }
        self.calls += call.polls.map_or(1, |(count, _)| count);
        self.file.call(thread, call)
    }

    /// Adds the begin or end of a region.
    pub fn marker(&mut self, thread: u32, name: &str, begins: bool, at: u64) -> io::Result<()> {
        self.note_time(at);
        let next = self.regions.len() as u32 + 1;
        let id = match self.regions.get(name) {
            Some(id) => *id,
            None => *self.regions.entry(name.to_owned()).or_insert(next),
        };
        self.file.region(thread, id, begins, at)
    }

    /// Adds time of the recorder.
    pub fn tool(&mut self, thread: u32, reason: ToolReason, at: (u64, u64)) -> io::Result<()> {
        self.note_time(at.1);
        if reason == ToolReason::Start {
            // What follows belongs to the program.
            self.init = Some(at.1);
        }
        self.file.tool(thread, reason, at)
    }

    /// Amends a call that was already added.
    pub fn amend(&mut self, at: Position, amendment: Amendment) -> io::Result<()> {
        self.file.amend(at, amendment)
    }

    /// Completes the file. `bound_ns` is the tool's error bound for the rank's clock against rank
    /// 0's, if known.
    pub fn finish(self, world: &World, bound_ns: Option<f64>) -> io::Result<()> {
        let first = self.first.unwrap_or(ZERO_TICKS);
        let last = self.last.max(first);
        let begin = self.init.unwrap_or(first);
        let end = self.finalize.unwrap_or(last).max(begin);
        let anchor = |ticks: u64| {
            Definition::ClockAnchor(ClockAnchor {
                ticks,
                width_ticks: 0,
                monotonic_raw_ns: ticks,
                realtime_ns: (world.zero_unix_ns + ticks).saturating_sub(ZERO_TICKS),
            })
        };
        let mut definitions = vec![anchor(first), anchor(last.max(first + 1))];
        if let Some(bound_ns) = bound_ns.filter(|_| self.rank != 0) {
            for (phase, ticks) in [(Phase::Init, begin), (Phase::Finalize, end.max(begin + 1))] {
                let bound_ticks = bound_ns.max(0.0).ceil() as u64;
                let exchange = ClockExchange::on_one_clock(phase, ticks, bound_ticks);
                definitions.push(Definition::ClockExchange(exchange));
            }
        }
        let (born, died) = self.life.unwrap_or((first, last));
        let (born, died) = (born.min(first), died.max(last));
        let (ticks, age_ns) = (begin, begin.saturating_sub(born));
        definitions.push(Definition::ProcessLife(ProcessLife { ticks, age_ns, end_ticks: died }));
        definitions.push(Definition::RankBegin { ticks: begin });
        // Some tools stop before MPI_Finalize; then the last event ends the rank.
        if self.finalize.is_some() {
            definitions.push(Definition::RankEnd { ticks: end });
        }
        let regions = self.regions.iter();
        definitions
            .extend(regions.map(|(name, id)| Definition::Region { id: *id, name: name.clone() }));
        definitions.extend(self.communicator_definitions(world));
        definitions.push(Definition::Finalized { lost_events: 0 });
        self.file.finish(&definitions)
    }

    fn communicator_definitions(&self, world: &World) -> Vec<Definition> {
        let mut definitions = vec![
            self.communicator(COMMUNICATOR_WORLD, 1, &(0..world.size).collect::<Vec<_>>(), &[], 0),
            self.communicator(COMMUNICATOR_SELF, 2 + u64::from(self.rank), &[self.rank], &[], 0),
        ];
        let made_by = world.numbers().get("MPI_Comm_create").copied().unwrap_or(0);
        let mut ids: Vec<(u32, u16)> = self.communicators.iter().map(|(p, id)| (*p, *id)).collect();
        ids.sort_unstable();
        for (index, id) in ids {
            if id == COMMUNICATOR_WORLD || id == COMMUNICATOR_SELF {
                continue;
            }
            let of = &world.communicators[index as usize];
            let hash = 1 << 32 | u64::from(index);
            definitions.push(self.communicator(id, hash, &of.members, &of.remote, made_by));
            if !of.name.is_empty() {
                let name = of.name.clone();
                definitions.push(Definition::CommunicatorName { id, ticks: 0, name });
            }
        }
        definitions
    }

    fn communicator(
        &self,
        id: u16,
        hash: u64,
        members: &[u32],
        remote: &[u32],
        made_by: u16,
    ) -> Definition {
        let index = |group: &[u32]| group.iter().position(|rank| *rank == self.rank);
        let (own, other) = match index(members) {
            Some(_) => (members, remote),
            None => (remote, members),
        };
        let rank = index(own).unwrap_or(0) as u32;
        // Only rank 0 of the first group lists the members, so that all ranks agree on which group
        // is the first.
        let lists = rank == 0 && std::ptr::eq(own, members);
        let runs = |group: &[u32]| if lists { runs_of(group) } else { Vec::new() };
        Definition::Communicator(Communicator {
            id,
            ticks: 0,
            hash,
            instance: 0,
            size: own.len() as u32,
            rank,
            inter: !remote.is_empty(),
            members: runs(own),
            remote_members: runs(other),
            remote_size: other.len() as u32,
            parent: 0,
            made_by,
        })
    }
}

/// Encodes ranks as runs of (first, stride, count).
fn runs_of(ranks: &[u32]) -> Vec<(i64, i64, u32)> {
    let mut runs: Vec<(i64, i64, u32)> = Vec::new();
    for rank in ranks.iter().map(|rank| i64::from(*rank)) {
        match runs.last_mut() {
            Some((first, stride, count @ 1)) => {
                *stride = rank - *first;
                *count = 2;
            }
            Some((first, stride, count)) if rank == *first + *stride * i64::from(*count) => {
                *count += 1;
            }
            _ => runs.push((rank, 1, 1)),
        }
    }
    runs
}
