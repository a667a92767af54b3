//! An OTF2 archive as a run, read by OTF2's own library: one location after the other.

mod definitions;
mod location;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use trace_format::layout::ToolReason;

use crate::otf2_library::{CALLBACK_SUCCESS, Object, Otf2Library, UNDEFINED_64};
use crate::present::export::otf2::regions::PROGRAM_DESCRIPTION;
use crate::present::export::otf2::{ATTRIBUTES, COMPUTE_PROPERTY, RECORDER_PREFIX};
use crate::timeline::matching::operations::operation;

use super::rank::{ImportedCommunicator, RankWriter, World, ZERO_TICKS};
use super::{ImportError, Imported};
use definitions::{Comm, Definitions, GROUP_COMM_LOCATIONS, GROUP_COMM_SELF, PARADIGM_MPI};
use location::{EnterAttributes, InFlights, Kind, Location};

const INTERRUPT: c_int = 1;

/// A reader; closed when it goes.
struct Reader<'a>(&'a Otf2Library, Object);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open, and not used any more.
        unsafe { (self.0.Reader_Close)(self.1) };
    }
}

/// What the callbacks of events need.
struct Events<'a> {
    library: &'a Otf2Library,
    location: Location<'a>,
    kinds: &'a HashMap<u32, Kind>,
    /// Ticks a second, and the offset.
    clock: (u64, u64),
    /// Numbers of our own attributes, in the order of [`ATTRIBUTES`].
    attributes: [Option<u32>; ATTRIBUTES.len()],
    last: u64,
    handled: u64,
    failed: Option<std::io::Error>,
}

impl Events<'_> {
    /// Nanoseconds from the archive's begin on; never back.
    fn time(&mut self, time: u64) -> u64 {
        let (hz, offset) = self.clock;
        let since = u128::from(time.saturating_sub(offset));
        let ns = since * 1_000_000_000 / u128::from(hz.max(1));
        let ticks = ZERO_TICKS.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX / 2));
        self.last = self.last.max(ticks);
        self.last
    }

    fn keep(&mut self, result: std::io::Result<()>) -> c_int {
        self.handled += 1;
        match result {
            Ok(()) => CALLBACK_SUCCESS,
            Err(error) => {
                self.failed = Some(error);
                INTERRUPT
            }
        }
    }

    fn attribute(&self, list: Object, which: usize) -> Option<u64> {
        let number = self.attributes[which]?;
        let mut value = 0;
        // SAFETY: the list is that of the record at hand; the value goes to a variable of this frame.
        let code = unsafe { (self.library.AttributeList_GetUint64)(list, number, &mut value) };
        (code == 0).then_some(value)
    }
}

/// Imports an archive by its anchor file.
///
/// # Errors
/// See [`super::import`].
pub fn import(file: &Path, run: &Path) -> Result<Imported, ImportError> {
    let library = Otf2Library::load().map_err(ImportError::Other)?;
    let damaged = |what: String| ImportError::Damaged { path: file.to_owned(), what };
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|e| damaged(e.to_string()))?;
    // SAFETY: the name ends with a zero.
    let object = unsafe { (library.Reader_Open)(name.as_ptr()) };
    if object.is_null() {
        return Err(damaged(
            "OTF2 cannot open it: not the anchor file of an archive, or a damaged one".into(),
        ));
    }
    let reader = Reader(&library, object);
    // SAFETY: the reader is open.
    let serial = unsafe { (library.Reader_SetSerialCollectiveCallbacks)(object) };
    library.check(serial).map_err(&damaged)?;
    let definitions = Definitions::read(&library, object).map_err(&damaged)?;
    let imported = Archive::new(&definitions, file).map_err(&damaged)?.write(&reader, file, run)?;
    Ok(imported)
}

/// An archive by what its numbers mean.
struct Archive<'a> {
    definitions: &'a Definitions,
    world: World,
    /// Process of each rank.
    processes: Vec<u32>,
    /// Threads of each process, the rank's own location first.
    threads: BTreeMap<u32, Vec<u64>>,
    kinds: HashMap<u32, Kind>,
    communicators: HashMap<u32, u32>,
}

impl<'a> Archive<'a> {
    fn new(definitions: &'a Definitions, file: &Path) -> Result<Self, String> {
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
                    let process = process.ok_or("a rank's location is not defined")?;
                    if let Some(of) = threads.get_mut(&process) {
                        of.sort_by_key(|other| (other != location, *other));
                    }
                    processes.push(process);
                }
            }
            // No MPI: every process is a rank of its own.
            None => processes.extend(threads.keys()),
        }
        if processes.is_empty() {
            return Err("it has no process that ran on a processor".into());
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
            program: property("program").unwrap_or_default().to_owned(),
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
                Some(function) if name.starts_with("MPI_") => Kind::Mpi(*function, operation(name)),
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

    fn write(
        &self,
        Reader(library, reader): &Reader,
        file: &Path,
        run: &Path,
    ) -> Result<Imported, ImportError> {
        let (library, reader) = (*library, *reader);
        let damaged = |what: String| ImportError::Damaged { path: file.to_owned(), what };
        let cannot_write = |source| ImportError::Write { path: run.to_owned(), source };
        let check = |code| library.check(code).map_err(damaged);
        // SAFETY: the reader is open; so in every block below.
        unsafe {
            for location in self.threads.values().flatten() {
                check((library.Reader_SelectLocation)(reader, *location))?;
            }
            // Local definitions turn a location's numbers into those of all; some archives have none.
            if (library.Reader_OpenDefFiles)(reader) == 0 {
                for location in self.threads.values().flatten() {
                    let from = (library.Reader_GetDefReader)(reader, *location);
                    if !from.is_null() {
                        let mut count = 0;
                        check((library.Reader_ReadAllLocalDefinitions)(reader, from, &mut count))?;
                        check((library.Reader_CloseDefReader)(reader, from))?;
                    }
                }
                check((library.Reader_CloseDefFiles)(reader))?;
            }
            check((library.Reader_OpenEvtFiles)(reader))?;
        }
        let mut imported = Imported { ranks: self.world.size, ..Imported::default() };
        for (process, rank) in self.processes.iter().zip(0..) {
            let node = self.definitions.processes.get(process);
            let node = node.and_then(|node| self.definitions.nodes.get(node)).copied();
            let host = node.map_or("?", |name| self.definitions.text(name));
            let mut writer =
                RankWriter::create(run, &self.world, rank, host).map_err(cannot_write)?;
            let mut requests = InFlights::new();
            let locations = self.threads.get(process).map_or(&[][..], Vec::as_slice);
            for (location, thread) in locations.iter().zip(0..) {
                let place = (*location, thread);
                self.read_location(
                    library,
                    reader,
                    place,
                    &mut writer,
                    &mut requests,
                    &mut imported,
                )
                .map_err(|failure| match failure {
                    Failure::Archive(what) => damaged(format!("location {location}: {what}")),
                    Failure::Run(source) => cannot_write(source),
                })?;
            }
            for _ in &requests {
                imported.miss(location::NEVER_COMPLETED);
            }
            imported.calls += writer.calls;
            let bound = self.definitions.property(*process, "clock bound ns");
            let bound = bound.and_then(|text| text.parse().ok());
            writer.finish(&self.world, bound).map_err(cannot_write)?;
        }
        // SAFETY: see above.
        check(unsafe { (library.Reader_CloseEvtFiles)(reader) })?;
        if self.definitions.other_locations > 0 {
            let count = self.definitions.other_locations;
            imported.notes.push(format!(
                "{count} locations are no threads of a processor (accelerators, metrics) and are not \
                 kept"
            ));
        }
        imported.notes.push(
            "wildcards of receives, sizes of posted buffers, datatypes, windows and files are not in \
             OTF2's MPI records"
                .into(),
        );
        Ok(imported)
    }

    fn read_location(
        &self,
        library: &Otf2Library,
        reader: Object,
        (location, thread): (u64, u32),
        writer: &mut RankWriter,
        requests: &mut InFlights,
        imported: &mut Imported,
    ) -> Result<(), Failure> {
        let (hz, offset, _) = self.definitions.clock.unwrap_or((1_000_000_000, 0, 0));
        let number = |name: &str| {
            let mut all = self.definitions.attributes.iter();
            all.find(|(_, text)| self.definitions.text(**text) == name).map(|(number, _)| *number)
        };
        let communicators = &self.communicators;
        let mut events = Events {
            library,
            location: Location::new(writer, requests, imported, communicators, thread),
            kinds: &self.kinds,
            clock: (hz, offset),
            attributes: ATTRIBUTES.map(|(name, _)| number(name)),
            last: 0,
            handled: 0,
            failed: None,
        };
        let check = |code| library.check(code).map_err(Failure::Archive);
        let mut count = 0;
        // SAFETY: the reader is open and its event files are. The callbacks have the signatures of
        // OTF2 3.x, are called only by the functions below, and get the events of this frame.
        let read = unsafe {
            let from = (library.Reader_GetEvtReader)(reader, location);
            if from.is_null() {
                return Err(Failure::Archive("its event file cannot be opened".into()));
            }
            let callbacks = (library.EvtReaderCallbacks_New)();
            for (set, callback) in callbacks_of(library) {
                check(set(callbacks, callback))?;
            }
            let data: *mut c_void = (&raw mut events).cast();
            check((library.Reader_RegisterEvtCallbacks)(reader, from, callbacks, data))?;
            (library.EvtReaderCallbacks_Delete)(callbacks);
            let read = (library.Reader_ReadAllLocalEvents)(reader, from, &mut count);
            check((library.Reader_CloseEvtReader)(reader, from))?;
            read
        };
        if let Some(error) = events.failed.take() {
            return Err(Failure::Run(error));
        }
        check(read)?;
        let handled = events.handled;
        events.location.finish().map_err(Failure::Run)?;
        let others = count.saturating_sub(handled);
        if others > 0 {
            let of = imported.missing.entry("records of other kinds (metrics, threads, I/O, …)");
            *of.or_default() += others;
        }
        Ok(())
    }
}

enum Failure {
    Archive(String),
    Run(std::io::Error),
}

fn communicator(definitions: &Definitions, comm: &Comm) -> ImportedCommunicator {
    let group = |number: u32| definitions.groups.get(&number);
    // Members are places among the ranks' locations, which are the ranks.
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
    let all = (1..=9).filter_map(ToolReason::from_number);
    all.into_iter().find(|reason| format!("{reason:?}").to_lowercase() == name)
}

/// An id that the files of this import share, and hardly any other: of the time and the process.
pub(super) fn run_id(file: &Path) -> [u8; 16] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let now = std::time::SystemTime::now();
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (file, now, std::process::id(), salt).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&half(0));
    id[8..].copy_from_slice(&half(1));
    id
}

type Set = unsafe extern "C" fn(Object, *const c_void) -> c_int;

fn callbacks_of(library: &Otf2Library) -> [(Set, *const c_void); 14] {
    [
        (library.EvtReaderCallbacks_SetEnterCallback, enter as *const c_void),
        (library.EvtReaderCallbacks_SetLeaveCallback, leave as *const c_void),
        (library.EvtReaderCallbacks_SetMpiSendCallback, send as *const c_void),
        (library.EvtReaderCallbacks_SetMpiIsendCallback, isend as *const c_void),
        (library.EvtReaderCallbacks_SetMpiIsendCompleteCallback, isend_complete as *const c_void),
        (library.EvtReaderCallbacks_SetMpiIrecvRequestCallback, ireceive as *const c_void),
        (library.EvtReaderCallbacks_SetMpiRecvCallback, receive as *const c_void),
        (library.EvtReaderCallbacks_SetMpiIrecvCallback, received as *const c_void),
        (library.EvtReaderCallbacks_SetMpiRequestTestCallback, tested as *const c_void),
        (library.EvtReaderCallbacks_SetMpiRequestCancelledCallback, cancelled as *const c_void),
        (
            library.EvtReaderCallbacks_SetMpiCollectiveBeginCallback,
            collective_begin as *const c_void,
        ),
        (library.EvtReaderCallbacks_SetMpiCollectiveEndCallback, collective as *const c_void),
        (
            library.EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback,
            icollective as *const c_void,
        ),
        (
            library.EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback,
            collective_complete as *const c_void,
        ),
    ]
}

/// The events that a callback was given.
///
/// # Safety
/// `data` is what [`Archive::read_location`] registered.
unsafe fn of<'a>(data: *mut c_void) -> &'a mut Events<'a> {
    // SAFETY: the caller's promise; the library calls back one record at a time.
    unsafe { &mut *data.cast() }
}

extern "C" fn enter(
    _location: u64,
    time: u64,
    _position: u64,
    data: *mut c_void,
    list: Object,
    region: u32,
) -> c_int {
    // SAFETY: see `of`.
    let events = unsafe { of(data) };
    let at = events.time(time);
    let pair = |a, b| Some((events.attribute(list, a)?, events.attribute(list, b)?));
    let attributes = EnterAttributes { polls: pair(0, 1), compute: pair(2, 3) };
    let unknown = Kind::Region(String::new());
    let kind = events.kinds.get(&region).unwrap_or(&unknown);
    let entered = events.location.enter(at, kind, attributes);
    events.keep(entered)
}

extern "C" fn leave(
    _location: u64,
    time: u64,
    _position: u64,
    data: *mut c_void,
    _list: Object,
    _region: u32,
) -> c_int {
    // SAFETY: see `of`.
    let events = unsafe { of(data) };
    let at = events.time(time);
    let left = events.location.leave(at);
    events.keep(left)
}

macro_rules! record {
    ($name:ident, $events:ident, ($($argument:ident: $type:ty),*) $body:expr) => {
        #[allow(clippy::too_many_arguments)] // The library's signature.
        extern "C" fn $name(
            _location: u64,
            time: u64,
            _position: u64,
            data: *mut c_void,
            _list: Object,
            $($argument: $type),*
        ) -> c_int {
            // SAFETY: see `of`.
            let $events = unsafe { of(data) };
            $events.time(time);
            let done: std::io::Result<()> = $body;
            $events.keep(done)
        }
    };
}

record!(send, events, (to: u32, on: u32, tag: u32, bytes: u64) {
    events.location.send(to, on, tag, bytes);
    Ok(())
});
record!(isend, events, (to: u32, on: u32, tag: u32, bytes: u64, id: u64) {
    events.location.isend((to, on, tag), bytes, id);
    Ok(())
});
record!(isend_complete, events, (id: u64) {
    events.location.isend_complete(id);
    Ok(())
});
record!(ireceive, events, (id: u64) {
    events.location.ireceive(id);
    Ok(())
});
record!(receive, events, (from: u32, on: u32, tag: u32, bytes: u64) {
    events.location.receive(from, on, tag, bytes);
    Ok(())
});
record!(received, events, (from: u32, on: u32, tag: u32, bytes: u64, id: u64) {
    events.location.received((from, on, tag), bytes, id)
});
record!(tested, events, (id: u64) {
    events.location.tested(id);
    Ok(())
});
record!(cancelled, events, (id: u64) {
    events.location.cancelled(id);
    Ok(())
});
// What it says, the call itself says.
record!(collective_begin, events, () Ok(()));
record!(collective, events, (_what: u8, on: u32, root: u32, sent: u64, received: u64) {
    events.location.collective(on, root, sent, received);
    Ok(())
});
record!(icollective, events, (id: u64) {
    events.location.icollective(id);
    Ok(())
});
record!(
    collective_complete,
    events,
    (_what: u8, on: u32, root: u32, sent: u64, received: u64, id: u64) {
        events.location.collective_complete((on, root), (sent, received), id)
    }
);
