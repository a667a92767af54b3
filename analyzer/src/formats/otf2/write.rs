//! Writes a run as an OTF2 archive with OTF2's own library: a location per thread, with Enter and
//! Leave of every call and region, and MPI's records in between.

mod definitions;
mod io;
mod location;
mod records;
mod regions;
mod samples;

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::export::beside::{self, Beside, with_teams};
use crate::export::content::{Attributes, Call, Content, Export};
use crate::export::samples::Samples;
use crate::export::steps::{Kind, Steps};
use crate::export::traffic::Traffic;
use crate::export::{ExportError, Progress, Written};

use super::library::{FLUSH, FlushCallbacks, Object, Otf2Error, Otf2Library};
use super::names::NAME;

use definitions::{communicator_numbers, write_definitions};
use io::Operations;
use location::location;
use records::{At, Records};
use regions::{PROGRAM, Regions};
use samples::{Contexts, RankSamples};

// Numbers of OTF2's enumerations.
const FILEMODE_WRITE: u8 = 0;
const EVENT_CHUNK_BYTES: u64 = 1024 * 1024;
const DEFINITION_CHUNK_BYTES: u64 = 4 * 1024 * 1024;
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;

unsafe extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

/// An open archive, closed when dropped.
struct Archive<'a> {
    library: &'a Otf2Library,
    object: Object,
}

impl Drop for Archive<'_> {
    fn drop(&mut self) {
        if !self.object.is_null() {
            // SAFETY: it is open, and not used afterwards.
            unsafe { (self.library.Archive_Close)(self.object) };
        }
    }
}

/// Writes the run.
pub fn write(export: Export, path: &Path) -> Result<Written, ExportError> {
    let Export { content, scratch, progress } = export;
    let library = Otf2Library::load().map_err(ExportError::format)?;
    let traffic = Traffic::gather(export)?;
    let collectives = traffic.operations().map_err(ExportError::io(scratch))?;
    let calls = archive(&library, content, path, progress).map_err(ExportError::of_file(path))?;
    Ok(Written { calls, messages: traffic.messages.count(), collectives })
}

fn archive(
    library: &Otf2Library,
    content: &Content,
    path: &Path,
    progress: &dyn Progress,
) -> Result<u64, Otf2Error> {
    let directory = CString::new(path.as_os_str().as_bytes())?;
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
        return Err(Otf2Error::Create(std::io::Error::last_os_error()));
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
    let samples = Samples::read(content);
    let mut numbers = Numbers {
        regions: Regions::of_program(&content.head.program),
        contexts: Contexts::default(),
        events: HashMap::new(),
    };
    let mut calls = 0;
    progress.stage("calls", Some(content.most_events()));
    let mut beside = Beside::new(content);
    let communicators = communicator_numbers(content);
    for rank in 0..content.head.ranks.len() {
        let of = (rank, communicators.as_slice());
        let sampled = samples.as_ref().map(|all| RankSamples::new(library, content, all, rank));
        let others = (sampled, beside.as_mut());
        calls += events_of(library, content, object, of, others, &mut numbers, progress)?;
    }
    let Numbers { regions, contexts, events } = numbers;
    // Ranks that are not exported may be members of communicators: their locations have files
    // without events.
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
    let sampled = samples.as_ref().map(|samples| (&contexts, samples));
    write_definitions(library, content, object, (&regions, &events), sampled)?;
    archive.object = std::ptr::null_mut();
    // SAFETY: it is open, and not used afterwards.
    check(unsafe { (library.Archive_Close)(object) })?;
    Ok(calls)
}

/// What was numbered while events were written.
struct Numbers {
    regions: Regions,
    contexts: Contexts,
    /// Events of each location.
    events: HashMap<u64, u64>,
}

/// What a rank has beside calls and regions.
struct Others<'a> {
    sampled: Option<RankSamples<'a>>,
    operations: Operations,
    /// Threads that have entered the program, with the time of their last record.
    inside: HashMap<u32, u64>,
}

impl Others<'_> {
    /// Writes a thread's samples before a time, and I/O operations that begin or end until then.
    fn write_until(
        &mut self,
        library: &Otf2Library,
        (contexts, regions): (&mut Contexts, &mut Regions),
        (writer, thread, until): (Object, u32, u64),
    ) -> Result<(), Otf2Error> {
        loop {
            let sample = self.sampled.as_ref().and_then(|of| of.next_before(thread, until));
            let operation = self.operations.next_until(thread, until);
            let is_sample = sample.is_some_and(|at| operation.is_none_or(|other| at < other));
            let Some(time) = (if is_sample { sample } else { operation }) else { return Ok(()) };
            // A call that another one cut off may have ended later.
            let time = self.inside.get(&thread).map_or(time, |last| time.max(*last));
            let at = At { writer, time };
            if self.inside.insert(thread, time).is_none() {
                enter(library, at, PROGRAM, None)?;
            }
            match self.sampled.as_mut().filter(|_| is_sample) {
                Some(sampled) => sampled.write_next(thread, at, contexts, regions)?,
                None => self.operations.write_next(library, thread, at)?,
            }
        }
    }
}

/// Writes the events of a rank's threads; returns the number of calls.
fn events_of(
    library: &Otf2Library,
    content: &Content,
    archive: Object,
    (rank, communicators): (usize, &[u32]),
    (sampled, beside): (Option<RankSamples>, Option<&mut Beside>),
    numbers: &mut Numbers,
    progress: &dyn Progress,
) -> Result<u64, Otf2Error> {
    let Numbers { regions, contexts, events } = numbers;
    let head = &content.head.ranks[rank];
    let mut writers = HashMap::new();
    let without_calls = sampled.as_ref().map(RankSamples::without_calls).unwrap_or_default();
    for &thread in head.threads.iter().chain(&without_calls) {
        // SAFETY: the archive is open and its event files are.
        let writer =
            unsafe { (library.Archive_GetEvtWriter)(archive, location(head.rank, thread)) };
        if writer.is_null() {
            return Err(Otf2Error::NoEventWriter(head.rank));
        }
        writers.insert(thread, writer);
    }
    let mut records = Records::new(library, content, communicators, head.threads.len());
    let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
    let clock = &content.timeline.ranks[head.position].clock;
    let mut calls = 0;
    let (mut marks, mut operations) = (Vec::new(), Operations::new(content));
    let beside = beside.map(|beside| {
        let read = beside.of_ranks(rank..rank + 1, |_, record| {
            match record {
                beside::Record::Team(team) => marks.extend(beside::Mark::both(&team)),
                beside::Record::FileCalls(calls) => operations.add(calls),
            }
            Ok::<(), Otf2Error>(())
        });
        operations.sort();
        read.map(|()| &*beside)
    });
    let beside = beside.transpose()?;
    let mut others = Others { sampled, operations, inside: HashMap::new() };
    for step in Steps::new(content, with_teams(content.calls_of(rank), rank, marks), &passed) {
        let Some(&writer) = writers.get(&step.call.thread) else { continue };
        let time = (step.at_ns - content.head.first_ns).max(0) as u64;
        let of = (&mut *contexts, &mut *regions);
        others.write_until(library, of, (writer, step.call.thread, time))?;
        let region = regions.number(content, beside, &step);
        let at = At { writer, time };
        if others.inside.insert(step.call.thread, time).is_none() {
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
        let of = (&mut *contexts, &mut *regions);
        others.write_until(library, of, (writer, thread, u64::MAX))?;
        if let Some(&last) = others.inside.get(&thread) {
            let end = match thread {
                // The rank's computation at its end belongs to the program, too.
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
        // SAFETY: the writer is open, and the count is written to a variable of this frame; the
        // writer is not used afterwards.
        unsafe {
            library.check((library.EvtWriter_GetNumberOfEvents)(writer, &mut count))?;
            library.check((library.Archive_CloseEvtWriter)(archive, writer))?;
        }
        events.insert(location(head.rank, thread), count);
    }
    Ok(calls)
}

/// Writes an Enter record, with two attributes of consecutive numbers if given.
fn enter(
    library: &Otf2Library,
    at: At,
    region: u32,
    attributes: Option<(u32, [u64; 2])>,
) -> Result<(), Otf2Error> {
    let At { writer, time } = at;
    let Some((first, [a, b])) = attributes else {
        // SAFETY: the writer is open, and no attributes are given.
        let code = unsafe { (library.EvtWriter_Enter)(writer, std::ptr::null_mut(), time, region) };
        return library.check(code);
    };
    let check = |code| library.check(code);
    // SAFETY: the list is made, filled, passed with its record, and deleted only here.
    unsafe {
        let list = (library.AttributeList_New)();
        let written = check((library.AttributeList_AddUint64)(list, first, a))
            .and_then(|()| check((library.AttributeList_AddUint64)(list, first + 1, b)))
            .and_then(|()| check((library.EvtWriter_Enter)(writer, list, time, region)));
        (library.AttributeList_Delete)(list);
        written
    }
}
