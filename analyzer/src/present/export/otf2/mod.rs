//! A run as an OTF2 archive, written by OTF2's own library: a location a thread, with Enter and Leave
//! of every call and region and MPI's records between them.

mod records;
pub mod regions;

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::otf2_library::{FLUSH, FlushCallbacks, Object, Otf2Library, UNDEFINED_32, UNDEFINED_64};

use super::content::{Attributes, Call, Content};
use super::steps::{Kind, Steps};
use super::traffic::Traffic;
use super::{ExportError, Progress, Written};
use records::{At, Records};
use regions::{PROGRAM, PROGRAM_DESCRIPTION, Regions};

/// Name of the archive in its directory.
pub const NAME: &str = "traces";
/// Attributes of Enter records, by their numbers, and what they say: of a run of polls the first two, of
/// a compute call the others.
pub const ATTRIBUTES: [(&str, &str); 4] = [
    ("gammachi polls", "Calls of this function that found nothing, in a row, told as one"),
    ("gammachi polls ns", "Nanoseconds inside those calls"),
    ("gammachi flops", "Floating-point operations of a compute call"),
    ("gammachi bytes", "Bytes of its arguments"),
];
/// Property of processes: what counts as computation.
pub const COMPUTE_PROPERTY: &str = "gammachi compute";
/// Begins the names of regions that are the recorder's own time.
pub const RECORDER_PREFIX: &str = "recorder: ";

// Numbers of OTF2's enumerations.
const FILEMODE_WRITE: u8 = 0;
const EVENT_CHUNK_BYTES: u64 = 1024 * 1024;
const DEFINITION_CHUNK_BYTES: u64 = 4 * 1024 * 1024;
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;
const TYPE_UINT64: u8 = 4;
const TYPE_STRING: u8 = 11;
const PARADIGM_MPI: u8 = 4;
const GROUP_COMM_LOCATIONS: u8 = 4;
const GROUP_COMM_GROUP: u8 = 5;
const GROUP_COMM_SELF: u8 = 6;
const LOCATION_GROUP_PROCESS: u8 = 1;
const LOCATION_CPU_THREAD: u8 = 1;

unsafe extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

/// A location's number: OTF2 leaves it to the writer.
fn location(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}

/// An open archive; closed when it goes.
struct Archive<'a> {
    library: &'a Otf2Library,
    object: Object,
}

impl Drop for Archive<'_> {
    fn drop(&mut self) {
        if !self.object.is_null() {
            // SAFETY: it is open, and not used any more.
            unsafe { (self.library.Archive_Close)(self.object) };
        }
    }
}

/// Strings of the archive, each once.
struct Strings<'a> {
    library: &'a Otf2Library,
    writer: Object,
    known: HashMap<String, u32>,
}

impl Strings<'_> {
    fn of(&mut self, text: &str) -> Result<u32, String> {
        if let Some(number) = self.known.get(text) {
            return Ok(*number);
        }
        let number = self.known.len() as u32;
        let c_text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let write = self.library.GlobalDefWriter_WriteString;
        // SAFETY: the writer is open, and the text ends with a zero and lives long enough.
        self.library.check(unsafe { write(self.writer, number, c_text.as_ptr()) })?;
        self.known.insert(text.to_owned(), number);
        Ok(number)
    }
}

/// Writes the run.
pub(super) fn write(
    content: &Content,
    path: &Path,
    scratch: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    let library = Otf2Library::load().map_err(ExportError::Other)?;
    let traffic = Traffic::gather(content, scratch, progress)?;
    let collectives = traffic.operations().map_err(ExportError::io(scratch))?;
    let calls = archive(&library, content, path, progress).map_err(|what| {
        ExportError::Other(format!("{}: cannot be written: {what}", path.display()))
    })?;
    Ok(Written { calls, messages: traffic.messages.count(), collectives })
}

fn archive(
    library: &Otf2Library,
    content: &Content,
    path: &Path,
    progress: &dyn Progress,
) -> Result<u64, String> {
    let directory = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let name = CString::new(NAME).unwrap_or_default();
    let open = library.Archive_Open;
    // SAFETY: the texts end with a zero and live long enough; the numbers are those of OTF2.
    let object = unsafe {
        open(
            directory.as_ptr(),
            name.as_ptr(),
            FILEMODE_WRITE,
            EVENT_CHUNK_BYTES,
            DEFINITION_CHUNK_BYTES,
            SUBSTRATE_POSIX,
            COMPRESSION_NONE,
        )
    };
    if object.is_null() {
        let error = std::io::Error::last_os_error();
        return Err(format!("OTF2 cannot make the archive ({error})"));
    }
    let mut archive = Archive { library, object };
    let callbacks = FlushCallbacks { pre: flush, post: None };
    let check = |code| library.check(code);
    let creator = concat!("gammachi ", env!("CARGO_PKG_VERSION"), "\0");
    // SAFETY: the archive is open; the library copies callbacks and texts.
    unsafe {
        check((library.Archive_SetFlushCallbacks)(object, &callbacks, std::ptr::null_mut()))?;
        check((library.Archive_SetSerialCollectiveCallbacks)(object))?;
        check((library.Archive_SetCreator)(object, creator.as_ptr().cast()))?;
        check((library.Archive_OpenEvtFiles)(object))?;
    }
    let mut regions = Regions::of_program(&content.head.program);
    let mut events = HashMap::new();
    let mut calls = 0;
    progress.stage("calls", Some(content.slots()));
    let communicators = numbers(content);
    for rank in 0..content.head.ranks.len() {
        let of = (rank, communicators.as_slice());
        calls += events_of(library, content, object, of, &mut regions, &mut events, progress)?;
    }
    // Locations of ranks that are only members of communicators have files, too, without events.
    let mut locations: Vec<u64> = events.keys().copied().collect();
    let rest = (0..content.head.world_size).map(|rank| location(rank, 0));
    let rest: Vec<u64> = rest.filter(|location| !events.contains_key(location)).collect();
    for location in &rest {
        // SAFETY: the archive is open and its event files are; the writer is closed at once.
        unsafe {
            let writer = (library.Archive_GetEvtWriter)(object, *location);
            check((library.Archive_CloseEvtWriter)(object, writer))?;
        }
    }
    locations.extend(rest);
    locations.sort_unstable();
    // SAFETY: the archive is open, and all writers of events are closed.
    unsafe {
        check((library.Archive_CloseEvtFiles)(object))?;
        check((library.Archive_OpenDefFiles)(object))?;
        for location in &locations {
            let writer = (library.Archive_GetDefWriter)(object, *location);
            check((library.Archive_CloseDefWriter)(object, writer))?;
        }
        check((library.Archive_CloseDefFiles)(object))?;
    }
    definitions(library, content, object, &regions, &events)?;
    archive.object = std::ptr::null_mut();
    // SAFETY: it is open, and not used any more.
    check(unsafe { (library.Archive_Close)(object) })?;
    Ok(calls)
}

/// Writes the events of a rank's threads; gives the number of its calls.
fn events_of(
    library: &Otf2Library,
    content: &Content,
    archive: Object,
    (rank, communicators): (usize, &[u32]),
    regions: &mut Regions,
    events: &mut HashMap<u64, u64>,
    progress: &dyn Progress,
) -> Result<u64, String> {
    let head = &content.head.ranks[rank];
    let mut writers = HashMap::new();
    for &thread in &head.threads {
        // SAFETY: the archive is open and its event files are.
        let writer =
            unsafe { (library.Archive_GetEvtWriter)(archive, location(head.rank, thread)) };
        if writer.is_null() {
            return Err(format!("OTF2 gives no writer for rank {}", head.rank));
        }
        writers.insert(thread, writer);
    }
    let mut records = Records::new(library, content, communicators, head.threads.len());
    // Threads that have entered the program, and when they did something last.
    let mut inside: HashMap<u32, u64> = HashMap::new();
    let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
    let clock = &content.timeline.ranks[head.position].clock;
    let mut calls = 0;
    for step in Steps::new(content, content.calls_of(rank), &passed) {
        let Some(&writer) = writers.get(&step.call.thread) else { continue };
        let time = (step.at_ns - content.head.first_ns).max(0) as u64;
        let region = regions.of(content, &step);
        let at = At { writer, time };
        if inside.insert(step.call.thread, time).is_none() {
            enter(library, at, PROGRAM, None)?;
        }
        let function = content.function(&step.call).filter(|_| step.kind == Kind::Call);
        if step.begins {
            let polls = step.call.event.polls.filter(|_| function.is_some());
            let pair = match (polls, content.attributes(&step.call)) {
                (Some((count, ticks)), _) => {
                    let inside_ns = (clock.duration_s(ticks) * 1e9).round() as u64;
                    Some((0, [count, inside_ns]))
                }
                (None, Attributes { flops: Some(flops), bytes, .. }) if function.is_some() => {
                    Some((2, [flops as u64, bytes.unwrap_or(0)]))
                }
                _ => None,
            };
            enter(library, at, region, pair)?;
            if let Some(function) = function {
                calls += 1;
                if polls.is_none() {
                    records.begin(at, &step.call, function)?;
                }
            }
        } else {
            if let Some(function) = function.filter(|_| step.call.event.polls.is_none()) {
                records.end(at, &step.call, function)?;
            }
            // SAFETY: the writer is open, and no attributes are given.
            let code =
                unsafe { (library.EvtWriter_Leave)(writer, std::ptr::null_mut(), time, region) };
            library.check(code)?;
        }
    }
    for (thread, writer) in writers {
        if let Some(&last) = inside.get(&thread) {
            let end = match thread {
                // What the rank computes at its end is the program's, too.
                0 if content.choice.window_s.is_none() => {
                    last.max((head.last_ns - content.head.first_ns).max(0) as u64)
                }
                _ => last,
            };
            // SAFETY: the writer is open, and no attributes are given.
            let code =
                unsafe { (library.EvtWriter_Leave)(writer, std::ptr::null_mut(), end, PROGRAM) };
            library.check(code)?;
        }
        let mut count = 0;
        // SAFETY: the writer is open, and the count is written to a variable of this frame; then the
        // writer is not used any more.
        unsafe {
            library.check((library.EvtWriter_GetNumberOfEvents)(writer, &mut count))?;
            library.check((library.Archive_CloseEvtWriter)(archive, writer))?;
        }
        events.insert(location(head.rank, thread), count);
    }
    Ok(calls)
}

/// Writes an Enter record, with two attributes from a number on where they are given.
fn enter(
    library: &Otf2Library,
    at: At,
    region: u32,
    attributes: Option<(u32, [u64; 2])>,
) -> Result<(), String> {
    let At { writer, time } = at;
    let Some((first, [a, b])) = attributes else {
        // SAFETY: the writer is open, and no attributes are given.
        let code = unsafe { (library.EvtWriter_Enter)(writer, std::ptr::null_mut(), time, region) };
        return library.check(code);
    };
    let check = |code| library.check(code);
    // SAFETY: the list is made, filled, handed over with its record, and deleted here alone.
    unsafe {
        let list = (library.AttributeList_New)();
        let written = check((library.AttributeList_AddUint64)(list, first, a))
            .and_then(|()| check((library.AttributeList_AddUint64)(list, first + 1, b)))
            .and_then(|()| check((library.EvtWriter_Enter)(writer, list, time, region)));
        (library.AttributeList_Delete)(list);
        written
    }
}

/// Writes what all locations share.
fn definitions(
    library: &Otf2Library,
    content: &Content,
    archive: Object,
    regions: &Regions,
    events: &HashMap<u64, u64>,
) -> Result<(), String> {
    let head = &content.head;
    let check = |code| library.check(code);
    // SAFETY: the archive is open and primary.
    let writer = unsafe { (library.Archive_GetGlobalDefWriter)(archive) };
    if writer.is_null() {
        return Err("OTF2 gives no writer of definitions".into());
    }
    let length = (head.last_ns - head.first_ns).max(0) as u64 + 1;
    let realtime = head.zero_unix_ns.and_then(|zero| u64::try_from(zero + head.first_ns).ok());
    let realtime = realtime.unwrap_or(UNDEFINED_64);
    // SAFETY: the writer is open; so in every block below.
    check(unsafe {
        (library.GlobalDefWriter_WriteClockProperties)(writer, 1_000_000_000, 0, length, realtime)
    })?;
    let mut strings = Strings { library, writer, known: HashMap::new() };
    let empty = strings.of("")?;
    for ((name, what), number) in ATTRIBUTES.iter().zip(0..) {
        let (name, what) = (strings.of(name)?, strings.of(what)?);
        // SAFETY: see above.
        check(unsafe {
            (library.GlobalDefWriter_WriteAttribute)(writer, number, name, what, TYPE_UINT64)
        })?;
    }
    // SAFETY: see above.
    let node = |number, name, class, parent| unsafe {
        check((library.GlobalDefWriter_WriteSystemTreeNode)(writer, number, name, class, parent))
    };
    let (machine, class) = (strings.of("machine")?, strings.of("node")?);
    node(0, machine, machine, UNDEFINED_32)?;
    let mut hosts: HashMap<&str, u32> = HashMap::new();
    for rank in &head.ranks {
        let number = hosts.len() as u32 + 1;
        if !hosts.contains_key(rank.host.as_str()) {
            node(number, strings.of(&rank.host)?, class, 0)?;
            hosts.insert(&rank.host, number);
        }
    }
    let exported: HashMap<u32, &super::content::HeadRank> =
        head.ranks.iter().map(|rank| (rank.rank, rank)).collect();
    let (bound_key, program_key) = (strings.of("clock bound ns")?, strings.of("program")?);
    let (compute_key, compute) = (strings.of(COMPUTE_PROPERTY)?, strings.of(&head.compute)?);
    for rank in 0..head.world_size {
        let name = strings.of(&format!("MPI Rank {rank}"))?;
        let of = exported.get(&rank);
        let parent = of.and_then(|of| hosts.get(of.host.as_str())).copied().unwrap_or(0);
        let program = strings.of(&head.program)?;
        let bound = match of.and_then(|of| of.bound_ns) {
            Some(bound) => Some(strings.of(&format!("{bound:.1}"))?),
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
        let threads = of.map_or(&[0][..], |of| &of.threads);
        for &thread in threads.iter().chain([0].iter().filter(|zero| !threads.contains(zero))) {
            let name = match thread {
                0 => strings.of("Master thread")?,
                _ => strings.of(&format!("Thread {thread}"))?,
            };
            let number = location(rank, thread);
            let count = events.get(&number).copied().unwrap_or(0);
            let write = library.GlobalDefWriter_WriteLocation;
            // SAFETY: see above.
            check(unsafe { write(writer, number, name, LOCATION_CPU_THREAD, count, rank) })?;
        }
    }
    for (region, number) in regions.found.iter().zip(0..) {
        let name = strings.of(&region.name)?;
        let description = match number {
            PROGRAM => strings.of(PROGRAM_DESCRIPTION)?,
            _ => empty,
        };
        let file = match region.source_file {
            Some(file) => strings.of(file)?,
            None => UNDEFINED_32,
        };
        let (role, paradigm) = (region.role, region.paradigm);
        let write = library.GlobalDefWriter_WriteRegion;
        // SAFETY: see above.
        check(unsafe {
            write(writer, number, name, name, description, role, paradigm, 0, file, 0, 0)
        })?;
    }
    communicators(library, content, writer, &mut strings)?;
    // SAFETY: it is open, and not used any more.
    check(unsafe { (library.Archive_CloseGlobalDefWriter)(archive, writer) })
}

/// Number of each communicator in the archive: every rank's MPI_COMM_SELF is one and the same.
fn numbers(content: &Content) -> Vec<u32> {
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
) -> Result<(), String> {
    let head = &content.head;
    let empty = strings.of("")?;
    let mut groups = 0;
    let mut group = |name: u32, kind: u8, members: &[u64]| {
        let number = groups;
        groups += 1;
        let (count, write) = (members.len() as u32, library.GlobalDefWriter_WriteGroup);
        // SAFETY: the writer is open; there are as many members as said.
        let code =
            unsafe { write(writer, number, name, kind, PARADIGM_MPI, 0, count, members.as_ptr()) };
        library.check(code).map(|()| number)
    };
    let world: Vec<u64> = (0..head.world_size).map(|rank| location(rank, 0)).collect();
    group(empty, GROUP_COMM_LOCATIONS, &world)?;
    let own = group(empty, GROUP_COMM_SELF, &[])?;
    let mut written = 0;
    for (communicator, number) in head.communicators.iter().zip(numbers(content)) {
        // The ranks' own ones are one communicator to OTF2.
        if number < written {
            continue;
        }
        written = number + 1;
        let name = strings.of(&communicator.name)?;
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
