//! Writes the global definitions of an archive: clock, strings, hosts, processes, regions,
//! communicators.

use std::collections::HashMap;
use std::ffi::CString;

use crate::export::content::{Content, HeadRank};
use crate::export::samples::Samples;
use crate::formats::otf2::library::{Object, Otf2Error, Otf2Library, UNDEFINED_32, UNDEFINED_64};
use crate::formats::otf2::names::{
    ATTRIBUTES, CLOCK_BOUND_PROPERTY, COMPUTE_PROPERTY, GROUP_COMM_GROUP, GROUP_COMM_LOCATIONS,
    GROUP_COMM_SELF, LOCATION_CPU_THREAD, LOCATION_GROUP_PROCESS, PARADIGM_MPI,
    PROGRAM_DESCRIPTION, PROGRAM_PROPERTY, TYPE_STRING, TYPE_UINT64, UNSAMPLED_PROPERTY,
};
use crate::string_table::StringTable;

use super::io;
use super::location::location;
use super::regions::{PROGRAM, Regions};
use super::samples::{Contexts, define, further_locations};

/// Strings of the archive, each written once.
struct Strings<'a> {
    library: &'a Otf2Library,
    writer: Object,
    known: StringTable,
}

impl Strings<'_> {
    fn number(&mut self, text: &str) -> Result<u32, Otf2Error> {
        let (number, is_new) = self.known.insert(text);
        if !is_new {
            return Ok(number);
        }
        let c_text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let write = self.library.GlobalDefWriter_WriteString;
        // SAFETY: the writer is open, and the text ends with a zero and lives long enough.
        self.library.check(unsafe { write(self.writer, number, c_text.as_ptr()) })?;
        Ok(number)
    }
}

/// Writes the global definitions.
pub(super) fn write_definitions(
    library: &Otf2Library,
    content: &Content,
    archive: Object,
    (regions, events): (&Regions, &HashMap<u64, u64>),
    sampled: Option<(&Contexts, &Samples)>,
) -> Result<(), Otf2Error> {
    let head = &content.head;
    let check = |code| library.check(code);
    // SAFETY: the archive is open and primary.
    let writer = unsafe { (library.Archive_GetGlobalDefWriter)(archive) };
    if writer.is_null() {
        return Err(Otf2Error::NoDefinitionWriter);
    }
    let length = (head.last_ns - head.first_ns).max(0) as u64 + 1;
    let realtime = head.zero_unix_ns.and_then(|zero| u64::try_from(zero + head.first_ns).ok());
    let realtime = realtime.unwrap_or(UNDEFINED_64);
    // SAFETY: the writer is open; so in every block below.
    check(unsafe {
        (library.GlobalDefWriter_WriteClockProperties)(writer, 1_000_000_000, 0, length, realtime)
    })?;
    let mut strings = Strings { library, writer, known: StringTable::default() };
    let empty = strings.number("")?;
    for ((name, what), number) in ATTRIBUTES.iter().zip(0..) {
        let (name, what) = (strings.number(name)?, strings.number(what)?);
        // SAFETY: see above.
        check(unsafe {
            (library.GlobalDefWriter_WriteAttribute)(writer, number, name, what, TYPE_UINT64)
        })?;
    }
    // SAFETY: see above.
    let node = |number, name, class, parent| unsafe {
        check((library.GlobalDefWriter_WriteSystemTreeNode)(writer, number, name, class, parent))
    };
    let (machine, class) = (strings.number("machine")?, strings.number("node")?);
    node(0, machine, machine, UNDEFINED_32)?;
    let mut hosts: HashMap<&str, u32> = HashMap::new();
    for rank in &head.ranks {
        let number = hosts.len() as u32 + 1;
        if !hosts.contains_key(rank.host.as_str()) {
            node(number, strings.number(&rank.host)?, class, 0)?;
            hosts.insert(&rank.host, number);
        }
    }
    let exported: HashMap<u32, &HeadRank> =
        head.ranks.iter().map(|rank| (rank.rank, rank)).collect();
    let (bound_key, program_key) =
        (strings.number(CLOCK_BOUND_PROPERTY)?, strings.number(PROGRAM_PROPERTY)?);
    let (compute_key, compute) =
        (strings.number(COMPUTE_PROPERTY)?, strings.number(&head.compute)?);
    for rank in 0..head.world_size {
        let name = strings.number(&format!("MPI Rank {rank}"))?;
        let of = exported.get(&rank);
        let parent = of.and_then(|of| hosts.get(of.host.as_str())).copied().unwrap_or(0);
        let program = strings.number(&head.program)?;
        let bound = match of.and_then(|of| of.bound_ns) {
            Some(bound) => Some(strings.number(&format!("{bound:.1}"))?),
            None => None,
        };
        // SAFETY: see above; a string's number is the lowest 32 bits of the value.
        unsafe {
            check((library.GlobalDefWriter_WriteLocationGroup)(
                writer,
                rank,
                name,
                LOCATION_GROUP_PROCESS,
                parent,
                UNDEFINED_32,
            ))?;
            let property = library.GlobalDefWriter_WriteLocationGroupProperty;
            check(property(writer, rank, program_key, TYPE_STRING, u64::from(program)))?;
            check(property(writer, rank, compute_key, TYPE_STRING, u64::from(compute)))?;
            if let Some(bound) = bound {
                check(property(writer, rank, bound_key, TYPE_STRING, u64::from(bound)))?;
            }
        }
        let samples = sampled.map(|(_, samples)| samples);
        let place = content.exported_rank(rank);
        for of in samples.iter().flat_map(|of| &of.unsampled).filter(|of| Some(of.rank) == place) {
            let key = strings.number(&format!("{UNSAMPLED_PROPERTY}{}", of.name))?;
            let value = u64::from(strings.number(&of.ns.to_string())?);
            let property = library.GlobalDefWriter_WriteLocationGroupProperty;
            // SAFETY: see above.
            check(unsafe { property(writer, rank, key, TYPE_STRING, value) })?;
        }
        let further = place.map(|place| further_locations(samples, place, rank));
        for number in further.into_iter().flatten() {
            let name = strings.number("Thread without MPI")?;
            let count = events.get(&number).copied().unwrap_or(0);
            let write = library.GlobalDefWriter_WriteLocation;
            // SAFETY: see above.
            check(unsafe { write(writer, number, name, LOCATION_CPU_THREAD, count, rank) })?;
        }
        let threads = of.map_or(&[0][..], |of| &of.threads);
        for &thread in threads.iter().chain([0].iter().filter(|zero| !threads.contains(zero))) {
            let name = match thread {
                0 => strings.number("Master thread")?,
                _ => strings.number(&format!("Thread {thread}"))?,
            };
            let number = location(rank, thread);
            let count = events.get(&number).copied().unwrap_or(0);
            let write = library.GlobalDefWriter_WriteLocation;
            // SAFETY: see above.
            check(unsafe { write(writer, number, name, LOCATION_CPU_THREAD, count, rank) })?;
        }
    }
    for (region, number) in regions.found.iter().zip(0..) {
        let name = strings.number(&region.name)?;
        let description = match number {
            PROGRAM => strings.number(PROGRAM_DESCRIPTION)?,
            _ => empty,
        };
        let file = match &region.source_file {
            Some(file) => strings.number(file)?,
            None => UNDEFINED_32,
        };
        let (role, paradigm) = (region.role, region.paradigm);
        let write = library.GlobalDefWriter_WriteRegion;
        // SAFETY: see above.
        check(unsafe {
            write(writer, number, name, name, description, role, paradigm, 0, file, region.line, 0)
        })?;
    }
    if let Some(sampled) = sampled {
        let name = strings.number("task clock")?;
        let file_of = |region: u32| {
            let file = regions.found[region as usize].source_file.as_ref();
            file.and_then(|file| strings.known.find(file)).unwrap_or(UNDEFINED_32)
        };
        define(library, writer, sampled, name, &file_of)?;
    }
    communicators(library, content, writer, &mut strings)?;
    io::define(library, writer, content, |text| strings.number(text))?;
    // SAFETY: it is open, and not used afterwards.
    check(unsafe { (library.Archive_CloseGlobalDefWriter)(archive, writer) })
}

/// Number of each communicator in the archive; every rank's MPI_COMM_SELF has the same number.
pub(super) fn communicator_numbers(content: &Content) -> Vec<u32> {
    let mut next = 0;
    let mut own = None;
    let mut number = |is_own: bool| {
        if let Some(own) = own.filter(|_| is_own) {
            return own;
        }
        next += 1;
        if is_own {
            own = Some(next - 1);
        }
        next - 1
    };
    content.head.communicators.iter().map(|communicator| number(communicator.own)).collect()
}

fn communicators(
    library: &Otf2Library,
    content: &Content,
    writer: Object,
    strings: &mut Strings,
) -> Result<(), Otf2Error> {
    let head = &content.head;
    let empty = strings.number("")?;
    let mut groups = 0;
    let mut group = |name: u32, kind: u8, members: &[u64]| {
        let number = groups;
        groups += 1;
        let (count, write) = (members.len() as u32, library.GlobalDefWriter_WriteGroup);
        // SAFETY: the writer is open; `count` is the number of members.
        let code =
            unsafe { write(writer, number, name, kind, PARADIGM_MPI, 0, count, members.as_ptr()) };
        library.check(code).map(|()| number)
    };
    let world: Vec<u64> = (0..head.world_size).map(|rank| location(rank, 0)).collect();
    group(empty, GROUP_COMM_LOCATIONS, &world)?;
    let own = group(empty, GROUP_COMM_SELF, &[])?;
    let mut written = 0;
    for (communicator, number) in head.communicators.iter().zip(communicator_numbers(content)) {
        // MPI_COMM_SELF of all ranks is one communicator in OTF2.
        if number < written {
            continue;
        }
        written = number + 1;
        let name = strings.number(&communicator.name)?;
        let mut of_members = |members: &[Option<u32>]| {
            let known = members.iter().map(|rank| rank.map_or(UNDEFINED_64, u64::from));
            group(empty, GROUP_COMM_GROUP, &known.collect::<Vec<u64>>())
        };
        let code = if communicator.own {
            let write = library.GlobalDefWriter_WriteComm;
            // SAFETY: the writer is open.
            unsafe { write(writer, number, name, own, UNDEFINED_32, 0) }
        } else if communicator.inter {
            let (a, b) =
                (of_members(&communicator.groups[0])?, of_members(&communicator.groups[1])?);
            let write = library.GlobalDefWriter_WriteInterComm;
            // SAFETY: the writer is open.
            unsafe { write(writer, number, name, a, b, UNDEFINED_32, 0) }
        } else {
            let of = of_members(&communicator.groups[0])?;
            let write = library.GlobalDefWriter_WriteComm;
            // SAFETY: the writer is open.
            unsafe { write(writer, number, name, of, UNDEFINED_32, 0) }
        };
        library.check(code)?;
    }
    Ok(())
}
