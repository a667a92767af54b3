//! Tracks which operation each request handle of a rank refers to, through creations, completions
//! and frees in order of their begin.
//!
//! MPI reuses handles, and libraries give one handle to several operations that complete
//! immediately (Open MPI's empty request, MPICH's eager sends). So a handle refers to a queue of
//! operations, which complete in the order of their creation. This also holds with several threads,
//! because a handle cannot be reused before the call that completes its last use has begun.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::timeline::communicators::Membership;

use super::call::Call;
use super::channel_key::Address;
use super::collectives::{Contribution, SequenceKey};
use super::in_flight::Pattern;

/// Where a posted receive is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queue {
    Channel(Address),
    /// It will take from the channel that its status names.
    Wildcard(Box<Wildcard>),
}

/// Boxed, because it is rare and large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wildcard {
    pub communicator: Membership,
    pub pattern: Pattern,
    /// The call that posted it.
    pub call: Call,
}

/// A receive that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posted {
    /// Number in the rank's order of posting.
    pub sequence: u64,
    pub begin_ticks: u64,
    pub queue: Queue,
}

/// The operation of an active request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// An operation that is not matched.
    Nothing,
    Send {
        to: Address,
        number: u64,
        begin_ticks: u64,
    },
    Receive(Posted),
    /// A receive of a message by an unknown handle, which may be MPI_MESSAGE_NO_PROC: only its
    /// status tells.
    UnknownMessage(Call),
    /// A send, if it has a partner, and a receive.
    SendReceive(Box<SendReceive>),
    Collective {
        sequence: SequenceKey,
        number: u64,
        member: usize,
        begin_ticks: u64,
    },
}

/// A send and a receive of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SendReceive {
    pub send: Option<(Address, u64)>,
    pub receive: Posted,
}

/// The operation behind a request.
pub(crate) trait Tracked: Clone {
    /// Whether the library gives such a request a handle of its own.
    fn has_own_handle(&self) -> bool;
}

impl Tracked for Work {
    fn has_own_handle(&self) -> bool {
        matches!(self, Self::Receive(_) | Self::SendReceive(_))
    }
}

/// Arguments of a send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arguments {
    pub communicator: Option<Membership>,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// 0; for partitioned operations 1 + their number in order of initialisation.
    pub lane: u32,
}

/// The operation that each start of a persistent request begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    Send(Arguments),
    Receive(Arguments),
    Collective {
        sequence: SequenceKey,
        function: u16,
        contribution: Contribution,
    },
    /// An operation on an unknown communicator.
    Nothing,
}

/// Boxed, because it is rare and large.
#[derive(Debug, Clone)]
struct Persistent<W, T> {
    template: T,
    active: Option<W>,
}

#[derive(Debug, Clone)]
enum Request<W, T> {
    Once(W),
    Persistent(Box<Persistent<W, T>>),
}

impl<W, T> Request<W, T> {
    fn work(self) -> Option<W> {
        match self {
            Self::Once(work) => Some(work),
            Self::Persistent(persistent) => persistent.active,
        }
    }
}

#[derive(Debug, Clone)]
struct Handle<W, T> {
    /// `None` if it refers to nothing; usually it will soon be reused.
    first: Option<Request<W, T>>,
    /// Usually none.
    #[allow(clippy::box_collection)] // Handles are moved, so they should be small.
    later: Option<Box<VecDeque<Request<W, T>>>>,
}

impl<W, T> Handle<W, T> {
    fn all(self) -> impl Iterator<Item = Request<W, T>> {
        let later = self.later.into_iter().flat_map(|later| *later);
        self.first.into_iter().chain(later)
    }
}

/// Number of unused handles that are kept.
const KEPT_HANDLES: usize = 64;

/// What a completion or free found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup<W> {
    Active(W),
    /// An inactive persistent request.
    Inactive,
    /// The creation of the handle was not recorded.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Requests<W, T> {
    handles: FxHashMap<u32, Handle<W, T>>,
    /// Number of handles that refer to something.
    used: usize,
    /// Whether calls of several threads may overlap.
    threaded: bool,
}

impl<W: Tracked, T: Copy> Requests<W, T> {
    pub fn new(threaded: bool) -> Self {
        Self { handles: FxHashMap::default(), used: 0, threaded }
    }

    /// Records the creation of a request for one operation. Returns what its handle referred to
    /// before, if the end of that was not seen.
    #[inline(always)]
    pub fn made(&mut self, handle: u32, work: W) -> Vec<W> {
        // The usual case: the operation is written in place.
        if let Some(held) = self.handles.get_mut(&handle)
            && held.first.is_none()
        {
            held.first = Some(Request::Once(work));
            self.used += 1;
            return Vec::new();
        }
        let own = work.has_own_handle();
        self.insert(handle, Request::Once(work), own)
    }

    /// Like [`Requests::made`], for a persistent request.
    pub fn made_persistent(&mut self, handle: u32, template: T) -> Vec<W> {
        let persistent = Box::new(Persistent { template, active: None });
        self.insert(handle, Request::Persistent(persistent), true)
    }

    #[inline(never)]
    fn insert(&mut self, handle: u32, request: Request<W, T>, own: bool) -> Vec<W> {
        let mut stale = Vec::new();
        let Some(held) = self.handles.get_mut(&handle) else {
            self.insert_new(handle, request);
            return stale;
        };
        if held.first.is_none() {
            held.first = Some(request);
            self.used += 1;
        } else if own && !self.threaded {
            let old = std::mem::replace(held, Handle { first: Some(request), later: None });
            stale.extend(old.all().filter_map(Request::work));
        } else {
            held.later.get_or_insert_default().push_back(request);
        }
        stale
    }

    #[cold]
    fn insert_new(&mut self, handle: u32, request: Request<W, T>) {
        // Unused handles are removed once they outnumber the used ones.
        if self.handles.len() > 2 * self.used + KEPT_HANDLES {
            self.handles.retain(|_, held| held.first.is_some());
        }
        self.used += 1;
        self.handles.insert(handle, Handle { first: Some(request), later: None });
    }

    /// The operation that a start of a persistent request begins, and the one that is still active
    /// if its completion was not seen.
    pub fn template(&mut self, handle: u32) -> Option<(T, Option<W>)> {
        match &mut self.handles.get_mut(&handle)?.first {
            Some(Request::Persistent(persistent)) => {
                Some((persistent.template, persistent.active.take()))
            }
            _ => None,
        }
    }

    /// Records the start of a persistent request.
    pub fn started(&mut self, handle: u32, work: W) {
        if let Some(Handle { first: Some(Request::Persistent(persistent)), .. }) =
            self.handles.get_mut(&handle)
        {
            persistent.active = Some(work);
        }
    }

    /// The operation that a handle currently refers to.
    pub fn active(&self, handle: u32) -> Option<W> {
        match self.handles.get(&handle)?.first.as_ref()? {
            Request::Once(work) => Some(work.clone()),
            Request::Persistent(persistent) => persistent.active.clone(),
        }
    }

    /// Replaces the operation that a handle currently refers to, and returns it.
    pub fn replace(&mut self, handle: u32, work: W) -> Option<W> {
        match self.handles.get_mut(&handle)?.first.as_mut()? {
            Request::Once(active) => Some(std::mem::replace(active, work)),
            Request::Persistent(persistent) => {
                let active = persistent.active.as_mut()?;
                Some(std::mem::replace(active, work))
            }
        }
    }

    /// Records the completion of a request.
    #[inline(always)]
    pub fn completed(&mut self, handle: u32) -> Lookup<W> {
        self.ended(handle, false)
    }

    /// Records that a request was freed, or its only operation completed.
    pub fn freed(&mut self, handle: u32) -> Lookup<W> {
        self.ended(handle, true)
    }

    #[inline(always)]
    fn ended(&mut self, handle: u32, freed: bool) -> Lookup<W> {
        let Some(Handle { first, later }) = self.handles.get_mut(&handle) else {
            return Lookup::Unknown;
        };
        if let Some(Request::Persistent(persistent)) = first
            && !freed
        {
            return persistent.active.take().map_or(Lookup::Inactive, Lookup::Active);
        }
        let Some(request) = first.take() else { return Lookup::Unknown };
        *first = later.as_mut().and_then(|later| later.pop_front());
        self.used -= usize::from(first.is_none());
        request.work().map_or(Lookup::Inactive, Lookup::Active)
    }

    /// Every operation that is still active, by handle.
    pub fn left(self) -> impl Iterator<Item = (u32, W)> {
        let mut handles: Vec<(u32, Handle<W, T>)> = self.handles.into_iter().collect();
        handles.sort_unstable_by_key(|(handle, _)| *handle);
        let requests = handles
            .into_iter()
            .flat_map(|(handle, held)| held.all().map(move |request| (handle, request)));
        requests.filter_map(|(handle, request)| Some((handle, request.work()?)))
    }
}
