//! What the shares exchange between two rounds: within a process through memory, between processes
//! in one exchange of all with all.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bincode::{Decode, Encode};

use crate::processes::Processes;
use crate::timeline::matching::share::Forwarded;

use super::division::Division;
use super::ranks::Progress;
use super::wire::Sent;

/// What the shares of this process exchange with each other and with those of other processes.
/// Others read a share's fields only when it has finished writing them, so nobody waits for a lock.
pub(super) struct Exchange {
    /// By share of this process.
    progress: Vec<Mutex<Progress>>,
    /// Of all shares of other processes.
    elsewhere: Mutex<Progress>,
    /// By sending share of this process, then by receiving share of any process.
    forwarded: Vec<Vec<Mutex<Forwarded>>>,
    /// What other processes sent, by receiving share of this process.
    arrived: Vec<Mutex<Vec<Forwarded>>>,
}

/// What one process sends to another after a round.
#[derive(Debug, Encode, Decode)]
struct RoundMessage {
    progress: Progress,
    /// By number of the receiving share.
    forwarded: Vec<(usize, Sent)>,
}

impl Exchange {
    /// Nothing is exchanged yet.
    pub fn new(division: &Division) -> Self {
        let shares = || division.own.clone();
        Self {
            progress: shares().map(|_| Mutex::new(Progress::NONE)).collect(),
            elsewhere: Mutex::new(Progress::NONE),
            forwarded: shares()
                .map(|_| division.all.iter().map(|_| Mutex::default()).collect())
                .collect(),
            arrived: shares().map(|_| Mutex::default()).collect(),
        }
    }

    /// Stores what a share of this process, by its index here, did and forwards; `swap` exchanges
    /// its outbox for a share with an empty one.
    pub fn put(
        &self,
        index: usize,
        progress: Progress,
        mut swap: impl FnMut(usize, &mut Forwarded),
    ) {
        *lock(&self.progress[index]) = progress;
        for (to, forwarded) in self.forwarded[index].iter().enumerate() {
            swap(to, &mut lock(forwarded));
        }
    }

    /// What all shares did in the round.
    pub fn progress(&self) -> Progress {
        let own = self.progress.iter().map(|of_share| *lock(of_share));
        own.fold(*lock(&self.elsewhere), Progress::and)
    }

    /// Exchanges with the other processes, once a round, when all shares here have put.
    pub fn with_other_processes(&self, division: &Division, processes: &Processes) {
        let own = self.progress.iter().map(|of_share| *lock(of_share));
        let progress = own.fold(Progress::NONE, Progress::and);
        let message = |(process, shares): (usize, &std::ops::Range<usize>)| {
            let mut forwarded = Vec::new();
            if process != processes.number() {
                for (to, from) in shares.clone().flat_map(|to| {
                    self.forwarded.iter().map(move |from_share| (to, &from_share[to]))
                }) {
                    let mut from = lock(from);
                    if !from.is_empty() {
                        forwarded.push((to, Sent::from(std::mem::take(&mut *from))));
                    }
                }
            }
            RoundMessage { progress, forwarded }
        };
        let outgoing = division.of_processes.iter().enumerate().map(message).collect();
        let mut elsewhere = Progress::NONE;
        for (process, message) in processes.exchange_records(outgoing).into_iter().enumerate() {
            if process != processes.number() {
                elsewhere = elsewhere.and(message.progress);
            }
            for (to, forwarded) in message.forwarded {
                lock(&self.arrived[to - division.own.start]).push(forwarded.into());
            }
        }
        *lock(&self.elsewhere) = elsewhere;
    }

    /// Passes what was forwarded to a share of this process, given by its number among all shares
    /// and its index here, to `handle`, by sending share.
    pub fn take(&self, share: usize, index: usize, mut handle: impl FnMut(&mut Forwarded)) {
        for from in &self.forwarded {
            handle(&mut lock(&from[share]));
        }
        for mut forwarded in lock(&self.arrived[index]).drain(..) {
            handle(&mut forwarded);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
