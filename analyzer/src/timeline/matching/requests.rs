//! Which operation a request handle stands for, over its life: creations, completions and frees of
//! one rank come in, in order of their begin; the operation that each concerns goes out.
//!
//! MPI uses handles again, and libraries give one handle to several operations that are complete at
//! once (Open MPI's empty request, MPICH's eager sends). So a handle stands for a queue: what was
//! made first is completed first. Threads keep the rule: a handle cannot be made anew before the
//! call that completes its last use has begun.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::timeline::communicators::Standing;

use super::channels::{ChannelKey, Post, Wanted};
use super::collectives::SequenceKey;

/// Where a posted receive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a channel.
    Channel(ChannelKey),
    /// It will take from one that its status names.
    Wildcard { communicator: Standing, wanted: Wanted },
}

/// A receive that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posted {
    /// Its place in the rank's order of posting.
    pub sequence: u64,
    pub post: Post,
    pub place: Place,
}

/// What an active request works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing that is matched.
    Nothing,
    Send {
        key: ChannelKey,
        number: u64,
        begin_ticks: u64,
    },
    Receive(Posted),
    /// A send, where it has a partner, and a receive.
    Both {
        send: Option<(ChannelKey, u64)>,
        receive: Posted,
    },
    Collective {
        sequence: SequenceKey,
        number: u64,
        place: usize,
        begin_ticks: u64,
    },
}

/// What a request stands for.
pub(crate) trait Tracked: Copy {
    /// Whether MPI gives such a request a handle of its own.
    fn owns_its_handle(&self) -> bool;
}

impl Tracked for Work {
    fn owns_its_handle(&self) -> bool {
        matches!(self, Self::Receive(_) | Self::Both { .. })
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
        sent_bytes: u64,
        received_bytes: u64,
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
    first: Request<W, T>,
    /// Mostly none.
    #[allow(clippy::box_collection)] // Handles move: they are kept small.
    later: Option<Box<VecDeque<Request<W, T>>>>,
}

impl<W, T> Handle<W, T> {
    fn all(self) -> impl Iterator<Item = Request<W, T>> {
        let later = self.later.into_iter().flat_map(|later| *later);
        std::iter::once(self.first).chain(later)
    }
}

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
    /// Calls of several threads may overlap.
    threaded: bool,
}

impl<W: Tracked, T: Copy> Requests<W, T> {
    pub fn new(threaded: bool) -> Self {
        Self { handles: FxHashMap::default(), threaded }
    }

    /// A request for one operation was made. Gives what its handle stood for, where its end was
    /// not seen.
    pub fn made(&mut self, handle: u32, work: W) -> Vec<W> {
        self.insert(handle, Request::Once(work), work.owns_its_handle())
    }

    /// As [`Requests::made`], for a persistent one.
    pub fn made_persistent(&mut self, handle: u32, template: T) -> Vec<W> {
        let persistent = Box::new(Persistent { template, active: None });
        self.insert(handle, Request::Persistent(persistent), true)
    }

    fn insert(&mut self, handle: u32, request: Request<W, T>, own: bool) -> Vec<W> {
        let mut stale = Vec::new();
        if own
            && !self.threaded
            && let Some(old) = self.handles.remove(&handle)
        {
            stale.extend(old.all().filter_map(Request::work));
        }
        match self.handles.entry(handle) {
            Entry::Occupied(held) => {
                held.into_mut().later.get_or_insert_default().push_back(request);
            }
            Entry::Vacant(place) => {
                place.insert(Handle { first: request, later: None });
            }
        }
        stale
    }

    /// What a start of a persistent request does; and what is still active, where its completion
    /// was not seen.
    pub fn template(&mut self, handle: u32) -> Option<(T, Option<W>)> {
        match &mut self.handles.get_mut(&handle)?.first {
            Request::Persistent(persistent) => {
                Some((persistent.template, persistent.active.take()))
            }
            Request::Once(_) => None,
        }
    }

    /// A persistent request was started.
    pub fn started(&mut self, handle: u32, work: W) {
        if let Some(Handle { first: Request::Persistent(persistent), .. }) =
            self.handles.get_mut(&handle)
        {
            persistent.active = Some(work);
        }
    }

    /// The operation that a handle stands for now.
    pub fn active(&self, handle: u32) -> Option<W> {
        match &self.handles.get(&handle)?.first {
            Request::Once(work) => Some(*work),
            Request::Persistent(persistent) => persistent.active,
        }
    }

    /// A request was completed.
    pub fn completed(&mut self, handle: u32) -> Found<W> {
        self.ended(handle, false)
    }

    /// A request was freed, or its only operation completed.
    pub fn freed(&mut self, handle: u32) -> Found<W> {
        self.ended(handle, true)
    }

    fn ended(&mut self, handle: u32, freed: bool) -> Found<W> {
        let Entry::Occupied(mut held) = self.handles.entry(handle) else { return Found::Unknown };
        let Handle { first, later } = held.get_mut();
        let active = match first {
            Request::Once(work) => Some(*work),
            Request::Persistent(persistent) => {
                let active = persistent.active.take();
                if !freed {
                    return active.map_or(Found::Inactive, Found::Active);
                }
                active
            }
        };
        match later.as_mut().and_then(|later| later.pop_front()) {
            Some(next) => *first = next,
            None => {
                held.remove();
            }
        }
        active.map_or(Found::Inactive, Found::Active)
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
