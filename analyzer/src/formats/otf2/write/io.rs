//! Calls on files as OTF2's I/O operations.
//!
//! An operation is a record of the run: one call, or calls of one kind on one file, one after the other, whose number
//! and time are attributes then. Its begin and end are those of the first and of the last call, or of the call of MPI
//! inside which they were made.

use std::collections::{HashMap, VecDeque};

use trace_format::file_calls::FileCallKind;

use crate::export::beside::{Beside, FileCalls};
use crate::export::content::Content;
use crate::formats::otf2::library::{Object, Otf2Error, Otf2Library, UNDEFINED_32};
use crate::formats::otf2::names::{CALLS_ATTRIBUTE, INSIDE_ATTRIBUTE};

use super::records::At;

// OTF2_IoOperationMode.
const READ: u8 = 0;
const WRITE: u8 = 1;
const FLUSH: u8 = 2;
/// The only I/O paradigm.
const POSIX: u8 = 0;
const CLASS_SERIAL: u8 = 0;
const FLAG_OS: u32 = 1;
const HANDLE_PRE_CREATED: u32 = 1;
const ACCESS_READ_WRITE: u8 = 2;

/// Begin or end of an operation.
#[derive(Debug, Clone, Copy)]
struct Mark {
    time: u64,
    begins: bool,
    number: u64,
    calls: FileCalls,
}

/// Operations of a rank that are still to be written, by thread.
pub(super) struct Operations {
    /// When the archive's time begins.
    first_ns: i64,
    marks: HashMap<u32, VecDeque<Mark>>,
    count: u64,
}

fn mode(kind: FileCallKind) -> Option<u8> {
    match kind {
        FileCallKind::Read => Some(READ),
        FileCallKind::Write => Some(WRITE),
        FileCallKind::Sync => Some(FLUSH),
        _ => None,
    }
}

impl Operations {
    pub fn new(content: &Content) -> Self {
        Self { first_ns: content.head.first_ns, marks: HashMap::new(), count: 0 }
    }

    pub fn add(&mut self, calls: FileCalls) {
        if mode(calls.kind).is_none() {
            return;
        }
        let number = self.count;
        self.count += 1;
        let marks = self.marks.entry(calls.thread).or_default();
        let time = |at_ns: i64| (at_ns - self.first_ns).max(0) as u64;
        marks.push_back(Mark { time: time(calls.begin_ns), begins: true, number, calls });
        marks.push_back(Mark { time: time(calls.end_ns), begins: false, number, calls });
    }

    /// Has to be called when all are there.
    pub fn sort(&mut self) {
        for marks in self.marks.values_mut() {
            marks.make_contiguous().sort_by_key(|mark| mark.time);
        }
    }

    /// Time of a thread's next mark, if it is not behind another time.
    pub fn next_until(&self, thread: u32, until: u64) -> Option<u64> {
        let next = self.marks.get(&thread)?.front()?.time;
        (next <= until).then_some(next)
    }

    /// Writes a thread's next mark.
    pub fn write_next(
        &mut self,
        library: &Otf2Library,
        thread: u32,
        At { writer, time }: At,
    ) -> Result<(), Otf2Error> {
        let next = self.marks.get_mut(&thread).and_then(VecDeque::pop_front);
        let Some(Mark { begins, number, calls, .. }) = next else { return Ok(()) };
        let (handle, bytes) = (calls.file as u32, calls.bytes);
        let check = |code| library.check(code);
        let Some(mode) = mode(calls.kind).filter(|_| begins) else {
            let write = library.EvtWriter_IoOperationComplete;
            // SAFETY: the writer is open, and no attributes are given.
            return check(unsafe {
                write(writer, std::ptr::null_mut(), time, handle, bytes, number)
            });
        };
        let write = library.EvtWriter_IoOperationBegin;
        // SAFETY: the list is made, filled, passed with its record, and deleted only here.
        unsafe {
            let list = (library.AttributeList_New)();
            let add = library.AttributeList_AddUint64;
            let inside_ns = calls.inside_ns.max(0) as u64;
            let written = check(add(list, CALLS_ATTRIBUTE, calls.calls))
                .and_then(|()| check(add(list, INSIDE_ATTRIBUTE, inside_ns)))
                .and_then(|()| check(write(writer, list, time, handle, mode, 0, bytes, number)));
            (library.AttributeList_Delete)(list);
            written
        }
    }
}

/// Defines the files of a run, each with one handle. `string` writes a text and returns its number.
pub(super) fn define(
    library: &Otf2Library,
    writer: Object,
    content: &Content,
    mut string: impl FnMut(&str) -> Result<u32, Otf2Error>,
) -> Result<(), Otf2Error> {
    let Some(beside) = Beside::new(content).filter(|_| content.has_file_calls()) else {
        return Ok(());
    };
    let check = |code| library.check(code);
    let (identification, name) = (string("POSIX")?, string("POSIX I/O")?);
    let write = library.GlobalDefWriter_WriteIoParadigm;
    // SAFETY: the writer is open, and there are no properties; so below.
    check(unsafe {
        let (names, types, values) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
        let (class, flags) = (CLASS_SERIAL, FLAG_OS);
        write(writer, POSIX, identification, name, class, flags, 0, names, types, values)
    })?;
    for index in 0..beside.files.count() {
        let (name, number) = (string(&beside.files.title(index))?, index as u32);
        // SAFETY: see above.
        unsafe {
            check((library.GlobalDefWriter_WriteIoRegularFile)(
                writer,
                number,
                name,
                UNDEFINED_32,
            ))?;
            check((library.GlobalDefWriter_WriteIoHandle)(
                writer,
                number,
                name,
                number,
                POSIX,
                HANDLE_PRE_CREATED,
                UNDEFINED_32,
                UNDEFINED_32,
            ))?;
            let state = library.GlobalDefWriter_WriteIoPreCreatedHandleState;
            check(state(writer, number, ACCESS_READ_WRITE, 0))?;
        }
    }
    Ok(())
}
