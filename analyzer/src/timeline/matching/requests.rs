//! Which operation a request handle stands for, over its life: creations, completions and frees of
//! one rank come in, in order of their begin; the operation that each concerns goes out.
//!
//! MPI uses handles again, and libraries give one handle to several operations that are complete at
//! once (Open MPI's empty request, MPICH's eager sends). So a handle stands for a queue: what was
//! made first is completed first. Threads keep the rule: a handle cannot be made anew before the
//! call that completes its last use has begun.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::timeline::communicators::Standing;

use super::call::Call;
use super::channel::Wanted;
use super::channels::Address;
use super::collectives::{Part, SequenceKey};

/// Where a posted receive stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In a channel.
    Channel(Address),
    /// It will take from one that its status names.
    Wildcard(Box<Wildcard>),
}

/// Rare, and large: kept out of the way of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wildcard {
    pub communicator: Standing,
    pub wanted: Wanted,
    /// The call that posted it.
    pub call: Call,
}

/// A receive that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posted {
    /// Its place in the rank's order of posting.
    pub sequence: u64,
    pub begin_ticks: u64,
    pub place: Place,
}

/// What an active request works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing that is matched.
    Nothing,
    Send {
        to: Address,
        number: u64,
        begin_ticks: u64,
    },
    Receive(Posted),
    /// A send, where it has a partner, and a receive.
    Both(Box<Both>),
    Collective {
        sequence: SequenceKey,
        number: u64,
        place: usize,
        begin_ticks: u64,
    },
}

/// A send and a receive of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Both {
    pub send: Option<(Address, u64)>,
    pub receive: Posted,
}

/// What a request stands for.
pub(crate) trait Tracked: Clone {
    /// Whether MPI gives such a request a handle of its own.
    fn owns_its_handle(&self) -> bool;
}

impl Tracked for Work {
    fn owns_its_handle(&self) -> bool {
        matches!(self, Self::Receive(_) | Self::Both(_))
    }
}

/// Arguments of a send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arguments {
    pub communicator: Option<Standing>,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// 0, or for partitioned operations 1 + their number by initialisation.
    pub lane: u32,
}

/// What a persistent request does each time it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    Send(Arguments),
    Receive(Arguments),
    Collective {
        sequence: SequenceKey,
        function: u16,
        part: Part,
    },
    /// On a communicator that is not known.
    Nothing,
}

/// Rare, and large: kept out of the way of the others.
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
    /// `None` when it stands for nothing: as a rule it soon will again.
    first: Option<Request<W, T>>,
    /// Mostly none.
    #[allow(clippy::box_collection)] // Handles move: they are kept small.
    later: Option<Box<VecDeque<Request<W, T>>>>,
}

impl<W, T> Handle<W, T> {
    fn all(self) -> impl Iterator<Item = Request<W, T>> {
        let later = self.later.into_iter().flat_map(|later| *later);
        self.first.into_iter().chain(later)
    }
}

/// Handles that are kept although they stand for nothing.
const KEPT_HANDLES: usize = 64;

/// What a completion or free found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<W> {
    /// An operation that was active.
    Active(W),
    /// A persistent request that was not.
    Inactive,
    /// The handle was never made, in what was recorded.
    Unknown,
}

/// The requests of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Requests<W, T> {
    handles: FxHashMap<u32, Handle<W, T>>,
    /// Handles that stand for something.
    used: usize,
    /// Calls of several threads may overlap.
    threaded: bool,
}

impl<W: Tracked, T: Copy> Requests<W, T> {
    pub fn new(threaded: bool) -> Self {
        Self { handles: FxHashMap::default(), used: 0, threaded }
    }

    /// A request for one operation was made. Gives what its handle stood for, where its end was
    /// not seen.
    #[inline(always)]
    pub fn made(&mut self, handle: u32, work: W) -> Vec<W> {
        // The usual case, so that the work is written where it stays.
        if let Some(held) = self.handles.get_mut(&handle)
            && held.first.is_none()
        {
            held.first = Some(Request::Once(work));
            self.used += 1;
            return Vec::new();
        }
        let own = work.owns_its_handle();
        self.insert(handle, Request::Once(work), own)
    }

    /// As [`Requests::made`], for a persistent one.
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
        // Handles that stand for nothing are given up where they are the most.
        if self.handles.len() > 2 * self.used + KEPT_HANDLES {
            self.handles.retain(|_, held| held.first.is_some());
        }
        self.used += 1;
        self.handles.insert(handle, Handle { first: Some(request), later: None });
    }

    /// What a start of a persistent request does; and what is still active, where its completion
    /// was not seen.
    pub fn template(&mut self, handle: u32) -> Option<(T, Option<W>)> {
        match &mut self.handles.get_mut(&handle)?.first {
            Some(Request::Persistent(persistent)) => {
                Some((persistent.template, persistent.active.take()))
            }
            _ => None,
        }
    }

    /// A persistent request was started.
    pub fn started(&mut self, handle: u32, work: W) {
        if let Some(Handle { first: Some(Request::Persistent(persistent)), .. }) =
            self.handles.get_mut(&handle)
        {
            persistent.active = Some(work);
        }
    }

    /// The operation that a handle stands for now.
    pub fn active(&self, handle: u32) -> Option<W> {
        match self.handles.get(&handle)?.first.as_ref()? {
            Request::Once(work) => Some(work.clone()),
            Request::Persistent(persistent) => persistent.active.clone(),
        }
    }

    /// A request was completed.
    #[inline(always)]
    pub fn completed(&mut self, handle: u32) -> Found<W> {
        self.ended(handle, false)
    }

    /// A request was freed, or its only operation completed.
    pub fn freed(&mut self, handle: u32) -> Found<W> {
        self.ended(handle, true)
    }

    #[inline(always)]
    fn ended(&mut self, handle: u32, freed: bool) -> Found<W> {
        let Some(Handle { first, later }) = self.handles.get_mut(&handle) else {
            return Found::Unknown;
        };
        if let Some(Request::Persistent(persistent)) = first
            && !freed
        {
            return persistent.active.take().map_or(Found::Inactive, Found::Active);
        }
        let Some(request) = first.take() else { return Found::Unknown };
        *first = later.as_mut().and_then(|later| later.pop_front());
        self.used -= usize::from(first.is_none());
        request.work().map_or(Found::Inactive, Found::Active)
    }

    /// Every operation that is still active and its handle, by handle.
    pub fn left(self) -> impl Iterator<Item = (u32, W)> {
        let mut handles: Vec<(u32, Handle<W, T>)> = self.handles.into_iter().collect();
        handles.sort_unstable_by_key(|(handle, _)| *handle);
        let requests = handles
            .into_iter()
            .flat_map(|(handle, held)| held.all().map(move |request| (handle, request)));
        requests.filter_map(|(handle, request)| Some((handle, request.work()?)))
    }
}
