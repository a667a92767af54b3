//! Imports an OTF2 archive as a run with OTF2's own library, one location after the other.

mod archive;
mod definitions;
mod events;
mod location;

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::library::{Object, Otf2Error, Otf2Library};
use super::names::{ATTRIBUTES, CLOCK_BOUND_PROPERTY};
use crate::import::rank::RankWriter;
use crate::import::{ImportError, ImportNote, Imported};
use archive::Archive;
use definitions::Definitions;
use events::{Events, callbacks_of};
use location::{InFlights, Location};

/// An open reader, closed when dropped.
struct Reader<'a>(&'a Otf2Library, Object);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open, and not used afterwards.
        unsafe { (self.0.Reader_Close)(self.1) };
    }
}

/// Imports an archive by its anchor file. `bound_ns` is the error of its clocks, if more is known than
/// it states.
///
/// # Errors
/// The library is not found; the archive cannot be read or is damaged; the run cannot be written.
pub fn import(file: &Path, run: &Path, bound_ns: Option<f64>) -> Result<Imported, ImportError> {
    let library = Otf2Library::load().map_err(ImportError::format)?;
    let damaged = |what: String| ImportError::Damaged { path: file.to_owned(), what };
    let of_archive = |error: Otf2Error| damaged(error.to_string());
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
    library.check(serial).map_err(of_archive)?;
    let definitions = Definitions::read(&library, object).map_err(of_archive)?;
    let imported = Archive::new(&definitions, file)
        .map_err(of_archive)?
        .write(&reader, file, run, bound_ns)?;
    Ok(imported)
}

impl Archive<'_> {
    fn write(
        &self,
        Reader(library, reader): &Reader,
        file: &Path,
        run: &Path,
        bound_ns: Option<f64>,
    ) -> Result<Imported, ImportError> {
        let (library, reader) = (*library, *reader);
        let damaged = |what: String| ImportError::Damaged { path: file.to_owned(), what };
        let cannot_write = |source| ImportError::Write { path: run.to_owned(), source };
        let check = |code| library.check(code).map_err(|error| damaged(error.to_string()));
        // SAFETY: the reader is open; so in every block below.
        unsafe {
            for location in self.threads.values().flatten() {
                check((library.Reader_SelectLocation)(reader, *location))?;
            }
            // Local definitions map a location's numbers to global ones; some archives have none.
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
            let bound = self.definitions.property(*process, CLOCK_BOUND_PROPERTY);
            let bound = bound_ns.or_else(|| bound.and_then(|text| text.parse().ok()));
            writer.finish(&self.world, bound).map_err(cannot_write)?;
        }
        // SAFETY: see above.
        check(unsafe { (library.Reader_CloseEvtFiles)(reader) })?;
        if self.definitions.other_locations > 0 {
            let count = self.definitions.other_locations;
            imported.notes.push(ImportNote::OtherLocations { count });
        }
        imported.notes.push(ImportNote::LacksOfOtf2);
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
        // OTF2 3.x, are called only by the functions below, and receive the events of this frame.
        let read = unsafe {
            let from = (library.Reader_GetEvtReader)(reader, location);
            if from.is_null() {
                return Err(Failure::Archive(Otf2Error::NoEvents));
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
    Archive(Otf2Error),
    Run(std::io::Error),
}
