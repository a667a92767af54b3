//! The codec of event slots: what each field holds, and what continuations add.
//!
//! Recorder, reader and writer share it. Only [`crate::encoded`], which packs any bits, looks at
//! slots as words.

use serde::{Deserialize, Serialize};

use crate::file_calls::FileCalls;
use crate::layout::*;
use crate::markers::{CounterSlot, ToolReason};

/// An event slot.
///
/// `word` is zero in an empty slot and is stored last, so that a reader sees the committed prefix
/// however the process died: bits 0–31 duration in ticks, 32–47 function, 48–63 communicator.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Counter at the call's begin.
    pub begin: u64,
    /// Duration, function and communicator; see [`Slot::function`].
    pub word: u64,
    /// Peer rank, root, region or reason, depending on the function.
    pub peer: i32,
    /// What [`Detail`] says of the function.
    pub detail: i32,
    /// Bytes sent or moved.
    pub bytes: u32,
    /// Request handle, shortened to 32 bits.
    pub request: u32,
    /// Return address of the call, from level 1 on; [`SITE_BEHIND_BINDING`] may be set. 0: unknown.
    pub site: u64,
}

/// What [`Slot::detail`] holds for a function ([`crate::meaning::Fields::detail`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A message's tag.
    Tag,
    /// Bytes received by a collective operation.
    Received,
    /// The id of a window or file.
    Object,
    /// Nothing of its own: 0, or part of [`Slot::payload`].
    Nothing,
}

/// Whether bytes sent (or moved) and received fit in an event's slot, which has room for those
/// received if its function has [`Detail::Received`]. [`Continuation::Bytes`] takes others.
#[inline(always)]
pub const fn bytes_fit(sent: u64, received: u64, has_received: bool) -> bool {
    sent < BYTES_ESCAPE as u64 && received <= if has_received { i32::MAX as u64 } else { 0 }
}

/// Joins the halves of a number.
#[inline(always)]
const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The low and the high half of a number.
#[inline(always)]
const fn split(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

impl Slot {
    /// Function number with its flags.
    #[inline]
    pub fn function_and_flags(&self) -> u16 {
        (self.word >> 32) as u16
    }

    /// Function number without flags.
    #[inline]
    pub fn function(&self) -> u16 {
        self.function_and_flags() & FUNCTION_MASK
    }

    /// Duration in ticks, or [`DURATION_ESCAPE`].
    #[inline]
    pub fn duration(&self) -> u32 {
        self.word as u32
    }

    /// Communicator's local id.
    #[inline]
    pub fn communicator(&self) -> u16 {
        (self.word >> 48) as u16
    }

    /// Whether the call had not returned when the slot was last written.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.function_and_flags() & FUNCTION_OPEN != 0
    }

    /// Whether the call was left by longjmp or an exception.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.function_and_flags() & FUNCTION_ABANDONED != 0
    }

    /// Whether the call returned.
    #[inline]
    pub fn returned(&self) -> bool {
        self.function_and_flags() & (FUNCTION_OPEN | FUNCTION_ABANDONED) == 0
    }

    /// Whether it continues the event before it.
    #[inline]
    pub fn is_continuation(&self) -> bool {
        self.function() == CONTINUATION
    }

    /// The tag, for a function with [`Detail::Tag`].
    #[inline]
    pub fn tag(&self) -> i32 {
        self.detail
    }

    /// Bytes received, for a function with [`Detail::Received`].
    #[inline]
    pub fn received(&self) -> u64 {
        u64::from(self.detail as u32)
    }

    /// Id of the window or file, for a function with [`Detail::Object`].
    #[inline]
    pub fn object(&self) -> u32 {
        self.detail as u32
    }

    /// The fields `peer` to `request` as two words: a compute call's operations and bytes, a
    /// counter's reading.
    #[inline]
    pub fn payload(&self) -> [u64; 2] {
        [join(self.peer as u32, self.detail as u32), join(self.bytes, self.request)]
    }

    /// Stores what [`Slot::payload`] returns.
    #[inline(always)]
    pub fn set_payload(&mut self, [first, second]: [u64; 2]) {
        let ((peer, detail), (bytes, request)) = (split(first), split(second));
        (self.peer, self.detail) = (peer as i32, detail as i32);
        (self.bytes, self.request) = (bytes, request);
    }

    #[inline(always)]
    fn with_payload(payload: [u64; 2]) -> Self {
        let mut slot = Self::default();
        slot.set_payload(payload);
        slot
    }

    /// A compute call's operations and bytes.
    #[inline(always)]
    pub fn of_work(flops: f64, bytes: u64) -> Self {
        Self::with_payload([flops.to_bits(), bytes])
    }

    /// The recorder's own time, with a number that belongs to the reason.
    #[inline(always)]
    pub fn of_tool(reason: ToolReason, number: u32) -> Self {
        Self { peer: reason as i32, detail: number as i32, ..Self::default() }
    }

    /// The end of a parallel region: how many threads it had, and the number of the one that worked longest. Begin and
    /// place are to be added.
    #[inline(always)]
    pub fn of_team(threads: u16, longest: u32) -> Self {
        Self { word: slot_word(0, TOOL, threads), ..Self::of_tool(ToolReason::Team, longest) }
    }

    /// Calls of a kind, with its flags, on a file. Begin and place are to be added.
    #[inline(always)]
    pub fn of_file_calls(kind_and_flags: u16, file: u32) -> Self {
        let word = slot_word(0, TOOL, kind_and_flags);
        Self { word, ..Self::of_tool(ToolReason::FileCalls, file) }
    }

    /// The recorder's time in which a counter was read.
    #[inline(always)]
    pub fn of_reading(reading: CounterSlot) -> Self {
        Self::with_payload(reading.payload())
    }
}

/// The receiving half of a call that sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Half {
    /// Source.
    pub peer: i32,
    /// Tag.
    pub tag: i32,
    /// Bytes.
    pub bytes: u64,
}

/// One request of a call on several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestState {
    /// The request, shortened to 32 bits; 0 for MPI_REQUEST_NULL.
    pub request: u32,
    /// Whether this call completed it.
    pub completed: bool,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
    /// Source from its status.
    pub peer: i32,
    /// Tag from its status.
    pub tag: i32,
    /// Bytes from its status.
    pub bytes: u64,
    /// Error class of its status; 0 if the operation succeeded.
    pub error: u32,
}

/// Encodes in a communicator's field how a call completed a request.
#[inline(always)]
pub fn completion_flags(completed: bool, cancelled: bool) -> u16 {
    match (completed, cancelled) {
        (false, _) => 0,
        (true, false) => COMPLETED,
        (true, true) => COMPLETED | CANCELLED,
    }
}

/// Undoes [`completion_flags`]: whether the request was completed, and whether its operation was
/// cancelled.
#[inline]
pub fn completion(flags: u16) -> (bool, bool) {
    (flags & COMPLETED != 0, flags & COMPLETED != 0 && flags & CANCELLED != 0)
}

/// What a continuation slot adds to the event before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The full duration, and the class of the error ([`crate::errors`]) that the call returned,
    /// otherwise 0.
    Duration {
        /// In ticks.
        ticks: u64,
        /// Its class.
        error: u32,
    },
    /// Byte counts that do not fit the event's slot.
    Bytes {
        /// Sent.
        sent: u64,
        /// Received.
        received: u64,
    },
    /// The receiving half of a call that sends and receives.
    Receive(Half),
    /// One request of a call on several.
    Request(RequestState),
    /// Turns the event into a run of empty polls. Its own duration is [`DURATION_ESCAPE`].
    Polls {
        /// Their number.
        count: u64,
        /// Ticks inside the calls.
        inside: u64,
        /// Ticks from the first begin to the last end.
        span: u64,
    },
    /// The message handle of a matched probe or receive.
    Message(u32),
    /// What the threads of an OpenMP team did in a parallel region.
    Team(Team),
    /// What they waited for.
    TeamWaits(TeamWaits),
    /// Calls on a file.
    FileCalls(FileCalls),
}

/// Ticks of an OpenMP parallel region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Team {
    /// From its begin to its end, on the thread that began it.
    pub span: u64,
    /// In the region's code, over all threads.
    pub inside: u64,
    /// The part of it without waits.
    pub work: u64,
    /// That part of the thread with the most.
    pub longest: u64,
}

/// Ticks that the threads of a team waited inside a parallel region, over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TeamWaits {
    /// At barriers.
    pub barriers: u64,
    /// For locks, critical and ordered sections.
    pub locks: u64,
    /// In a region that made tasks: at barriers, at its end and for tasks, running tasks or idle.
    pub tasks: u64,
}

impl Continuation {
    /// Its slot.
    #[inline(always)]
    pub fn slot(self) -> Slot {
        let of = |kind: u32| Slot { word: slot_word(kind, CONTINUATION, 0), ..Slot::default() };
        match self {
            Self::Duration { ticks, error } => {
                Slot { begin: ticks, peer: error as i32, ..of(CONTINUES_DURATION) }
            }
            Self::Bytes { sent, received } => {
                let word = slot_word(CONTINUES_BYTES, CONTINUATION, 0);
                Slot { begin: sent, word, ..Slot::with_payload([received, 0]) }
            }
            Self::Receive(Half { peer, tag, bytes }) => {
                Slot { begin: bytes, peer, detail: tag, ..of(CONTINUES_RECEIVE) }
            }
            Self::Request(state) => Slot {
                begin: state.bytes,
                word: slot_word(
                    CONTINUES_REQUEST,
                    CONTINUATION,
                    completion_flags(state.completed, state.cancelled),
                ),
                peer: state.peer,
                detail: state.tag,
                bytes: state.error,
                request: state.request,
                site: 0,
            },
            Self::Polls { count, inside, span } => {
                let word = slot_word(CONTINUES_POLLS, CONTINUATION, 0);
                Slot { begin: inside, word, ..Slot::with_payload([count, span]) }
            }
            Self::Message(request) => Slot { request, ..of(CONTINUES_MESSAGE) },
            Self::Team(Team { span, inside, work, longest }) => {
                let word = slot_word(CONTINUES_TEAM, CONTINUATION, 0);
                Slot { begin: span, word, site: longest, ..Slot::with_payload([inside, work]) }
            }
            Self::TeamWaits(TeamWaits { barriers, locks, tasks }) => {
                let word = slot_word(CONTINUES_TEAM_WAITS, CONTINUATION, 0);
                Slot { begin: barriers, word, ..Slot::with_payload([locks, tasks]) }
            }
            Self::FileCalls(FileCalls { calls, bytes, inside, span }) => {
                let word = slot_word(CONTINUES_FILE_CALLS, CONTINUATION, 0);
                Slot { begin: bytes, word, site: span, ..Slot::with_payload([calls, inside]) }
            }
        }
    }

    /// Decodes a continuation slot. `None` if its kind is unknown.
    #[inline]
    pub fn decode(slot: &Slot) -> Option<Self> {
        let Slot { begin, peer, detail: tag, request, .. } = *slot;
        let [first, second] = slot.payload();
        Some(match slot.duration() {
            CONTINUES_DURATION => Self::Duration { ticks: begin, error: peer as u32 },
            CONTINUES_BYTES => Self::Bytes { sent: begin, received: first },
            CONTINUES_RECEIVE => Self::Receive(Half { peer, tag, bytes: begin }),
            CONTINUES_REQUEST => {
                let (completed, cancelled) = completion(slot.communicator());
                let (bytes, error) = (begin, slot.bytes);
                let state = RequestState { request, completed, cancelled, peer, tag, bytes, error };
                Self::Request(state)
            }
            CONTINUES_POLLS => Self::Polls { count: first, inside: begin, span: second },
            CONTINUES_MESSAGE => Self::Message(request),
            CONTINUES_TEAM => {
                let (inside, work, longest) = (first, second, slot.site);
                Self::Team(Team { span: begin, inside, work, longest })
            }
            CONTINUES_TEAM_WAITS => {
                Self::TeamWaits(TeamWaits { barriers: begin, locks: first, tasks: second })
            }
            CONTINUES_FILE_CALLS => {
                let (calls, inside, span) = (first, second, slot.site);
                Self::FileCalls(FileCalls { calls, bytes: begin, inside, span })
            }
            _ => return None,
        })
    }

    /// The requests among an event's continuations, in the order of the call's array.
    #[inline]
    pub fn requests_of(slots: impl Iterator<Item = Slot>) -> impl Iterator<Item = RequestState> {
        slots.filter_map(|slot| match Self::decode(&slot)? {
            Self::Request(state) => Some(state),
            _ => None,
        })
    }

    /// A parallel region among an event's continuations, and what its threads waited for.
    pub fn team_of(slots: impl Iterator<Item = Slot>) -> Option<(Team, TeamWaits)> {
        let (mut team, mut waits) = (None, TeamWaits::default());
        for slot in slots {
            match Self::decode(&slot) {
                Some(Self::Team(of)) => team = Some(of),
                Some(Self::TeamWaits(of)) => waits = of,
                _ => {}
            }
        }
        team.map(|team| (team, waits))
    }

    /// Calls on a file among an event's continuations.
    pub fn file_calls_of(mut slots: impl Iterator<Item = Slot>) -> Option<FileCalls> {
        slots.find_map(|slot| match Self::decode(&slot)? {
            Self::FileCalls(calls) => Some(calls),
            _ => None,
        })
    }

    /// The message handle among an event's continuations.
    pub fn message_of(mut slots: impl Iterator<Item = Slot>) -> Option<u32> {
        slots.find_map(|slot| match Self::decode(&slot)? {
            Self::Message(handle) => Some(handle),
            _ => None,
        })
    }
}

/// The combined contents of an event's continuations, of which later ones override earlier ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct More {
    /// Number of continuations.
    pub slots: usize,
    /// Ticks from begin to end, if they do not fit the event's own slot.
    pub duration: Option<u64>,
    /// Class of the error that the call returned, otherwise 0.
    pub error: u32,
    /// Bytes sent and received, if they do not fit.
    pub bytes: Option<(u64, u64)>,
    /// The receiving half.
    pub receive: Option<Half>,
    /// Number of polls and the ticks inside them.
    pub polls: Option<(u64, u64)>,
    /// Ticks of which an event without length tells: those of a parallel region, or inside calls on files.
    pub told: Option<u64>,
}

impl More {
    /// Adds a continuation. Returns whether its kind is known.
    #[inline]
    pub fn add(&mut self, slot: &Slot) -> bool {
        self.slots += 1;
        match Continuation::decode(slot) {
            None => return false,
            Some(Continuation::Duration { ticks, error }) => {
                (self.duration, self.error) = (Some(ticks), error);
            }
            Some(Continuation::Bytes { sent, received }) => self.bytes = Some((sent, received)),
            Some(Continuation::Receive(half)) => self.receive = Some(half),
            Some(Continuation::Polls { count, inside, span }) => {
                (self.polls, self.duration) = (Some((count, inside)), Some(span));
            }
            Some(Continuation::Team(team)) => self.told = Some(team.span),
            Some(Continuation::FileCalls(calls)) => self.told = Some(calls.inside),
            Some(
                Continuation::Request(_) | Continuation::Message(_) | Continuation::TeamWaits(_),
            ) => {}
        }
        true
    }

    /// Ticks from begin to end of the event with that slot. `None` if they are missing.
    #[inline]
    pub fn ticks(&self, slot: &Slot) -> Option<u64> {
        match slot.duration() {
            DURATION_ESCAPE if slot.returned() => self.duration,
            short => Some(u64::from(short)),
        }
    }

    /// As [`More::moved`], of an event in brief; one without length has the ticks there of which it tells.
    #[inline]
    pub fn moved_in_brief(&self, slot: &Slot) -> (u64, u64) {
        match self.told {
            Some(ticks) => (ticks, 0),
            None => self.moved(slot, Detail::Nothing),
        }
    }

    /// Bytes sent (or moved) and received beside them, of the event with that slot, whose function
    /// has that detail. Those of a receiving half are not among them.
    #[inline]
    pub fn moved(&self, slot: &Slot, detail: Detail) -> (u64, u64) {
        match (slot.bytes, self.bytes) {
            (BYTES_ESCAPE, Some(both)) => both,
            (sent, None) if detail == Detail::Received => (u64::from(sent), slot.received()),
            (sent, _) => (u64::from(sent), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_keeps_its_parts() {
        let slot = Slot {
            word: slot_word(7, 0x1234 & FUNCTION_MASK | FUNCTION_OPEN, 0xfffe),
            ..Slot::default()
        };
        assert_eq!(slot.duration(), 7);
        assert_eq!(slot.function(), 0x1234);
        assert!(slot.is_open() && !slot.is_abandoned());
        assert_eq!(slot.communicator(), 0xfffe);
    }

    #[test]
    fn continuations_keep_their_values() {
        let (long, half) =
            (0x89ab_cdef_0123_4567, Half { peer: -1, tag: i32::MAX, bytes: 1 << 40 });
        let state = RequestState {
            request: u32::MAX,
            completed: true,
            cancelled: true,
            peer: -2,
            tag: 9,
            bytes: long,
            error: 15,
        };
        for continuation in [
            Continuation::Duration { ticks: long, error: 17 },
            Continuation::Bytes { sent: long, received: long + 1 },
            Continuation::Receive(half),
            Continuation::Request(state),
            Continuation::Request(RequestState { request: 3, ..RequestState::default() }),
            Continuation::Polls { count: long, inside: long + 1, span: long + 2 },
            Continuation::Message(u32::MAX),
            Continuation::Team(Team { span: long, inside: long + 1, work: long + 2, longest: 3 }),
            Continuation::TeamWaits(TeamWaits { barriers: long, locks: long + 1, tasks: 2 }),
        ] {
            let slot = continuation.slot();
            assert!(slot.is_continuation(), "{continuation:?}");
            assert_eq!(Continuation::decode(&slot), Some(continuation));
        }
        let unknown = Slot { word: slot_word(99, CONTINUATION, 0), ..Slot::default() };
        assert!(Continuation::decode(&unknown).is_none() && !More::default().add(&unknown));
    }
}
