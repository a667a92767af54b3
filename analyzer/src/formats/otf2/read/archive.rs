//! Interprets an archive's definitions: the world of a run, and the meaning of regions and
//! communicators.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use trace_format::markers::ToolReason;
use trace_format::meaning::Meaning;

use super::definitions::{Comm, Definitions};
use super::location::Kind;
use crate::formats::otf2::library::{Otf2Error, UNDEFINED_64};
use crate::formats::otf2::names::{
    COMPUTE_PROPERTY, GROUP_COMM_LOCATIONS, GROUP_COMM_SELF, PARADIGM_MPI, PROGRAM_DESCRIPTION,
    PROGRAM_PROPERTY, RECORDER_PREFIX,
};
use crate::import::rank::{ImportedCommunicator, World};
use crate::import::run_id;

/// An archive with interpreted definitions.
pub(super) struct Archive<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) world: World,
    /// Process of each rank.
    pub(super) processes: Vec<u32>,
    /// Threads of each process, the rank's own location first.
    pub(super) threads: BTreeMap<u32, Vec<u64>>,
    pub(super) kinds: HashMap<u32, Kind>,
    pub(super) communicators: HashMap<u32, u32>,
}

impl<'a> Archive<'a> {
    pub(super) fn new(definitions: &'a Definitions, file: &Path) -> Result<Self, Otf2Error> {
        let ranks = definitions
            .groups
            .values()
            .find(|group| group.kind == GROUP_COMM_LOCATIONS && group.paradigm == PARADIGM_MPI);
        let mut threads: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (location, process) in &definitions.threads {
            threads.entry(*process).or_default().push(*location);
        }
        let mut processes: Vec<u32> = Vec::new();
        match ranks {
            Some(group) => {
                for location in &group.members {
                    let process = definitions.threads.get(location).copied();
                    let process = process.ok_or(Otf2Error::UndefinedLocation)?;
                    if let Some(of) = threads.get_mut(&process) {
                        of.sort_by_key(|other| (other != location, *other));
                    }
                    processes.push(process);
                }
            }
            // No MPI: every process is a rank.
            None => processes.extend(threads.keys()),
        }
        if processes.is_empty() {
            return Err(Otf2Error::NoProcess);
        }
        let names =
            definitions.regions.values().map(|(name, _)| definitions.text(*name).to_owned());
        let mpi = names.filter(|name| name.starts_with("MPI_"));
        let functions = World::function_names(mpi);
        let (_, _, unix) = definitions.clock.unwrap_or((1_000_000_000, 0, UNDEFINED_64));
        let property = |name| definitions.property(processes[0], name);
        let mut world = World {
            size: processes.len() as u32,
            origin: format!("imported from OTF2 ({})", file.display()),
            program: property(PROGRAM_PROPERTY).unwrap_or_default().to_owned(),
            compute: property(COMPUTE_PROPERTY).unwrap_or("outside").to_owned(),
            functions,
            communicators: Vec::new(),
            zero_unix_ns: if unix == UNDEFINED_64 { 0 } else { unix },
            run_id: run_id(file),
        };
        let mut communicators = HashMap::new();
        for (comm, place) in definitions.communicators.iter().zip(0..) {
            communicators.insert(comm.number, place);
            world.communicators.push(communicator(definitions, comm));
        }
        let numbers = world.numbers();
        let kind = |(number, (name, description)): (&u32, &(u32, u32))| {
            let name = definitions.text(*name);
            let kind = match numbers.get(name) {
                _ if definitions.text(*description) == PROGRAM_DESCRIPTION => Kind::Program,
                Some(function) if name.starts_with("MPI_") => {
                    Kind::Mpi(*function, Meaning::by_name(name).operation)
                }
                Some(function) => Kind::Compute(*function),
                _ => match name.strip_prefix(RECORDER_PREFIX).and_then(reason) {
                    Some(reason) => Kind::Tool(reason),
                    None => Kind::Region(name.to_owned()),
                },
            };
            (*number, kind)
        };
        let kinds = definitions.regions.iter().map(kind).collect();
        Ok(Self { definitions, world, processes, threads, kinds, communicators })
    }
}

fn communicator(definitions: &Definitions, comm: &Comm) -> ImportedCommunicator {
    let group = |number: u32| definitions.groups.get(&number);
    // Members are positions among the ranks' locations, that is, ranks.
    let members = |number: u32| -> Vec<u32> {
        let members = group(number).map_or(&[][..], |group| &group.members);
        members.iter().map(|member| u32::try_from(*member).unwrap_or(u32::MAX)).collect()
    };
    ImportedCommunicator {
        name: definitions.text(comm.name).to_owned(),
        members: members(comm.groups.0),
        remote: comm.groups.1.map(members).unwrap_or_default(),
        own: group(comm.groups.0).is_some_and(|group| group.kind == GROUP_COMM_SELF),
    }
}

fn reason(name: &str) -> Option<ToolReason> {
    ToolReason::ALL.into_iter().find(|reason| format!("{reason:?}").to_lowercase() == name)
}
