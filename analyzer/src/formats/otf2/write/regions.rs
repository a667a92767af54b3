//! Numbers the regions of an archive and defines their properties.
//!
//! Definitions follow Score-P, so that Scalasca recognises them: MPI's functions have the source
//! file "MPI" and the role of their operation (Score-P: `SCOREP_Mpi_Reg.inc.c`).

use std::collections::HashMap;

use trace_format::meaning::{Class, Meaning, Synchronises};

use crate::export::beside::Beside;
use crate::export::content::{Content, Function, What};
use crate::export::samples::Frame;
use crate::export::steps::{Kind, Step, step_name};
use crate::formats::otf2::names::{
    PARADIGM_MEASUREMENT_SYSTEM, PARADIGM_MPI, PARADIGM_OPENMP, PARADIGM_SAMPLING, PARADIGM_USER,
};
use crate::trace::symbols::SourceLocation;

/// Number of the program's region, which contains all events of every location.
pub(super) const PROGRAM: u32 = 0;
/// Source file of MPI's functions.
const MPI_FILE: &str = "MPI";

// OTF2_RegionRole.
const FUNCTION: u8 = 1;
const CODE: u8 = 4;
const PARALLEL: u8 = 5;
const BARRIER: u8 = 15;
const COLL_ONE2ALL: u8 = 23;
const COLL_ALL2ONE: u8 = 24;
const COLL_ALL2ALL: u8 = 25;
const COLL_OTHER: u8 = 26;
const FILE_IO: u8 = 27;
const POINT2POINT: u8 = 28;
const RMA: u8 = 29;
const ARTIFICIAL: u8 = 31;
const FILE_IO_METADATA: u8 = 38;

/// Definition of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub name: String,
    pub role: u8,
    pub paradigm: u8,
    pub source_file: Option<String>,
    /// Line where it begins; 0: not known.
    pub line: u32,
}

/// Regions, numbered in order of their first use.
pub(super) struct Regions {
    numbers: HashMap<usize, u32>,
    /// By the numbers of sampled functions.
    functions: HashMap<u32, u32>,
    /// By the places where parallel regions begin.
    teams: HashMap<u32, u32>,
    pub found: Vec<Region>,
}

fn role(function: &Function) -> u8 {
    let name = function.name.as_str();
    match function.class {
        Class::PointToPoint | Class::Completion | Class::Probe => POINT2POINT,
        Class::Collective => match Meaning::by_name(name) {
            meaning if meaning.blocking_form == "MPI_Barrier" => BARRIER,
            meaning => match meaning.synchronises {
                Synchronises::FromRoot => COLL_ONE2ALL,
                Synchronises::ToRoot => COLL_ALL2ONE,
                Synchronises::All | Synchronises::Exchanging => COLL_ALL2ALL,
                _ => COLL_OTHER,
            },
        },
        // Functions that make and synchronise windows are plain functions.
        Class::OneSided if !name.starts_with("MPI_Win_") => RMA,
        Class::Io if name.contains("read") || name.contains("write") => FILE_IO,
        Class::Io => FILE_IO_METADATA,
        _ => FUNCTION,
    }
}

impl Regions {
    /// Starts with the program's region; the path may be empty.
    pub fn of_program(path: &str) -> Self {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("program");
        let program = Region {
            name: name.to_owned(),
            role: FUNCTION,
            paradigm: PARADIGM_USER,
            source_file: None,
            line: 0,
        };
        let (numbers, functions, teams) = Default::default();
        Self { numbers, functions, teams, found: vec![program] }
    }

    /// Number of the region that a step begins or ends.
    pub fn number(&mut self, content: &Content, beside: Option<&Beside>, step: &Step) -> u32 {
        if let (Kind::Team(place), Some(beside)) = (step.kind, beside) {
            return self.team(beside, place);
        }
        let head = &content.head;
        let (functions, regions) = (head.functions.len(), head.regions.len());
        let (index, role, paradigm) = match (step.kind, step.call.what) {
            (Kind::Region(region), _) => (functions + region as usize, CODE, PARADIGM_USER),
            (_, What::Call(function)) => {
                let of = &head.functions[function as usize];
                let paradigm =
                    if of.class == Class::Compute { PARADIGM_USER } else { PARADIGM_MPI };
                (function as usize, role(of), paradigm)
            }
            (_, What::Tool(reason)) => {
                let index = functions + regions + reason as usize;
                (index, ARTIFICIAL, PARADIGM_MEASUREMENT_SYSTEM)
            }
            _ => (functions, 0, PARADIGM_USER),
        };
        *self.numbers.entry(index).or_insert_with(|| {
            let source_file = (paradigm == PARADIGM_MPI).then(|| MPI_FILE.to_owned());
            let name = step_name(content, step);
            self.found.push(Region { name, role, paradigm, source_file, line: 0 });
            self.found.len() as u32 - 1
        })
    }

    /// Number of the region of the parallel regions that begin at a place.
    fn team(&mut self, beside: &Beside, place: u32) -> u32 {
        *self.teams.entry(place).or_insert_with(|| {
            let SourceLocation { file, line, .. } = beside.place(place);
            self.found.push(Region {
                name: beside.team_title(place),
                role: PARALLEL,
                paradigm: PARADIGM_OPENMP,
                source_file: file.clone(),
                line: line.unwrap_or(0),
            });
            self.found.len() as u32 - 1
        })
    }

    /// Number of the region of a sampled function.
    pub fn function(&mut self, frame: &Frame) -> u32 {
        *self.functions.entry(frame.number).or_insert_with(|| {
            self.found.push(Region {
                name: frame.name(),
                role: FUNCTION,
                paradigm: PARADIGM_SAMPLING,
                source_file: frame.file().map(str::to_owned),
                line: 0,
            });
            self.found.len() as u32 - 1
        })
    }
}
