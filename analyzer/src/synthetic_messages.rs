//! Adds what level 1 records to [`SyntheticRank`]: calls with attributes, and communicators.

use trace_format::header::{Communicator, Definition};
use trace_format::layout::*;
use trace_format::slot::completion;

use crate::synthetic_trace::{SyntheticRank, number_of};

/// What an event holds besides function and times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    pub communicator: u16,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u32,
    pub request: u32,
}

/// Attributes on MPI_COMM_WORLD.
pub fn on_world(peer: i32, tag: i32, bytes: u32) -> Attributes {
    Attributes { communicator: COMMUNICATOR_WORLD, peer, tag, bytes, request: 0 }
}

/// Attributes of a completed request.
pub fn completed(request: u32, peer: i32, tag: i32, bytes: u32) -> Attributes {
    Attributes { communicator: COMPLETED, peer, tag, bytes, request }
}

/// The slot of a request of a call on several, with the error class of its operation.
fn request_slot(of: &Attributes, error: u32) -> Slot {
    let (completed, cancelled) = completion(of.communicator);
    let Attributes { peer, tag, request, .. } = *of;
    let bytes = of.bytes.into();
    let state = RequestState { request, completed, cancelled, peer, tag, bytes, error };
    Continuation::Request(state).slot()
}

impl Attributes {
    pub fn request(self, request: u32) -> Self {
        Self { request, ..self }
    }

    pub fn communicator(self, communicator: u16) -> Self {
        Self { communicator, ..self }
    }
}

const ANY: i32 = -1;

impl SyntheticRank {
    /// A rank of Open MPI recorded at level 1, from 1 ms to `end`, with its predefined
    /// communicators defined.
    pub fn level_1(rank: u32, world_size: u32, end: u64) -> Self {
        let mut this = Self::complete(rank, world_size, 1_000_000, end);
        this.fixed.level = 1;
        let world = vec![(0, 1, world_size)];
        this.communicator(COMMUNICATOR_WORLD, 0, (7, 0), rank, world_size, &world);
        let own = [(i64::from(rank), 0, 1)];
        this.communicator(COMMUNICATOR_SELF, 0, (100 + u64::from(rank), 0), 0, 1, &own);
        this
    }

    /// Defines a communicator. Only its rank 0 writes the members, as in the recorder.
    pub fn communicator(
        &mut self,
        id: u16,
        ticks: u64,
        (hash, instance): (u64, u32),
        rank: u32,
        size: u32,
        members: &[(i64, i64, u32)],
    ) -> &mut Self {
        let predefined = id == COMMUNICATOR_WORLD || id == COMMUNICATOR_SELF;
        self.definitions.push(Definition::Communicator(Communicator {
            id,
            ticks,
            hash,
            instance,
            size,
            rank,
            inter: false,
            members: if rank == 0 { members.to_vec() } else { Vec::new() },
            remote_members: Vec::new(),
            remote_size: 0,
            parent: u16::from(!predefined),
            made_by: if predefined { 0 } else { number_of("MPI_Comm_split") },
        }));
        self
    }

    /// Defines an intercommunicator between two groups, given as (members, size).
    pub fn intercommunicator(
        &mut self,
        id: u16,
        hash: u64,
        rank: u32,
        local: (&[(i64, i64, u32)], u32),
        remote: (&[(i64, i64, u32)], u32),
    ) -> &mut Self {
        self.definitions.push(Definition::Communicator(Communicator {
            id,
            ticks: 1,
            hash,
            instance: 0,
            size: local.1,
            rank,
            inter: true,
            members: if rank == 0 { local.0.to_vec() } else { Vec::new() },
            remote_members: if rank == 0 { remote.0.to_vec() } else { Vec::new() },
            remote_size: remote.1,
            parent: 1,
            made_by: number_of("MPI_Intercomm_create"),
        }));
        self
    }

    /// A call with attributes.
    pub fn call_with(
        &mut self,
        name: &str,
        begin: u64,
        end: u64,
        attributes: Attributes,
    ) -> &mut Self {
        self.thread_call_with(0, name, begin, end, attributes)
    }

    /// A call with attributes on a thread.
    pub fn thread_call_with(
        &mut self,
        thread: usize,
        name: &str,
        begin: u64,
        end: u64,
        attributes: Attributes,
    ) -> &mut Self {
        let Attributes { communicator, peer, tag, bytes, request } = attributes;
        let word = slot_word((end - begin) as u32, number_of(name), communicator);
        self.slot(thread, Slot { begin, word, peer, detail: tag, bytes, request, site: 0 })
    }

    /// A call with attributes that returned an error of the given class.
    pub fn failed_call_with(
        &mut self,
        name: &str,
        (begin, end): (u64, u64),
        attributes: Attributes,
        error: u32,
    ) -> &mut Self {
        let Attributes { communicator, peer, tag, bytes, request } = attributes;
        let word = slot_word(DURATION_ESCAPE, number_of(name), communicator);
        self.slot(0, Slot { begin, word, peer, detail: tag, bytes, request, site: 0 });
        self.slot(0, Continuation::Duration { ticks: end - begin, error }.slot())
    }

    /// A request of the preceding call, completed with an error of the given class.
    pub fn request_failed(&mut self, attributes: Attributes, error: u32) -> &mut Self {
        self.slot(0, request_slot(&attributes, error))
    }

    /// A call with attributes that has not returned.
    pub fn open_call_with(&mut self, name: &str, begin: u64, attributes: Attributes) -> &mut Self {
        let Attributes { communicator, peer, tag, bytes, request } = attributes;
        let word = slot_word(0, number_of(name) | FUNCTION_OPEN, communicator);
        self.slot(0, Slot { begin, word, peer, detail: tag, bytes, request, site: 0 })
    }

    /// A call on several requests. Those of `completions` that have [`COMPLETED`] as communicator
    /// were completed.
    pub fn several(
        &mut self,
        name: &str,
        begin: u64,
        end: u64,
        completions: &[Attributes],
    ) -> &mut Self {
        self.call_with(name, begin, end, Attributes::default());
        for attributes in completions {
            self.slot(0, request_slot(attributes, 0));
        }
        self
    }

    /// The receiving half of the preceding call.
    pub fn receiving(&mut self, peer: i32, tag: i32, bytes: u32) -> &mut Self {
        let half = Half { peer, tag, bytes: bytes.into() };
        self.slot(0, Continuation::Receive(half).slot())
    }

    /// The message handle of the preceding call.
    pub fn message_handle(&mut self, request: u32) -> &mut Self {
        self.slot(0, Continuation::Message(request).slot())
    }

    /// Posts a receive on MPI_COMM_WORLD from any source with any tag.
    pub fn irecv_any(&mut self, at: u64, request: u32) -> &mut Self {
        self.call_with("MPI_Irecv", at, at + 1, on_world(ANY, ANY, 1000).request(request))
    }
}
