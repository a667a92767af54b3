//! Callbacks of the library, one per kind of record: they convert times to ticks and pass records
//! to the location.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};

use super::location::{EnterAttributes, Kind, Location};
use crate::formats::otf2::library::{CALLBACK_SUCCESS, Object, Otf2Library};
use crate::formats::otf2::names::ATTRIBUTES;
use crate::import::rank::ZERO_TICKS;

const INTERRUPT: c_int = 1;

/// Data for the callbacks of events.
pub(super) struct Events<'a> {
    pub(super) library: &'a Otf2Library,
    pub(super) location: Location<'a>,
    pub(super) kinds: &'a HashMap<u32, Kind>,
    /// Ticks per second, and the offset.
    pub(super) clock: (u64, u64),
    /// Numbers of our own attributes, in the order of [`ATTRIBUTES`].
    pub(super) attributes: [Option<u32>; ATTRIBUTES.len()],
    pub(super) last: u64,
    pub(super) handled: u64,
    pub(super) failed: Option<std::io::Error>,
}

impl Events<'_> {
    /// Converts a time to nanoseconds from the archive's beginning; times never go back.
    fn time(&mut self, time: u64) -> u64 {
        let (hz, offset) = self.clock;
        let since = u128::from(time.saturating_sub(offset));
        let ns = since * 1_000_000_000 / u128::from(hz.max(1));
        let ticks = ZERO_TICKS.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX / 2));
        self.last = self.last.max(ticks);
        self.last
    }

    fn note_result(&mut self, result: std::io::Result<()>) -> c_int {
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
        // SAFETY: the list is that of the current record; the value is written to a variable of
        // this frame.
        let code = unsafe { (self.library.AttributeList_GetUint64)(list, number, &mut value) };
        (code == 0).then_some(value)
    }
}

/// Sets a callback.
pub(super) type Set = unsafe extern "C" fn(Object, *const c_void) -> c_int;

/// The callbacks of events, with the functions that set them.
pub(super) fn callbacks_of(library: &Otf2Library) -> [(Set, *const c_void); 14] {
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

/// The events of a callback.
///
/// # Safety
/// `data` is the pointer that `Archive::read_location` registered.
unsafe fn events<'a>(data: *mut c_void) -> &'a mut Events<'a> {
    // SAFETY: guaranteed by the caller; the library calls back one record at a time.
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
    // SAFETY: see `events`.
    let events = unsafe { events(data) };
    let at = events.time(time);
    let pair = |a, b| Some((events.attribute(list, a)?, events.attribute(list, b)?));
    let attributes = EnterAttributes { polls: pair(0, 1), compute: pair(2, 3) };
    let unknown = Kind::Region(String::new());
    let kind = events.kinds.get(&region).unwrap_or(&unknown);
    let entered = events.location.enter(at, kind, attributes);
    events.note_result(entered)
}

extern "C" fn leave(
    _location: u64,
    time: u64,
    _position: u64,
    data: *mut c_void,
    _list: Object,
    _region: u32,
) -> c_int {
    // SAFETY: see `events`.
    let events = unsafe { events(data) };
    let at = events.time(time);
    let left = events.location.leave(at);
    events.note_result(left)
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
            // SAFETY: see `events`.
            let $events = unsafe { events(data) };
            $events.time(time);
            let done: std::io::Result<()> = $body;
            $events.note_result(done)
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
// The call itself has the same information.
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
