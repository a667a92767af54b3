//! Several processes that analyse one run together.
//!
//! Every process runs the same program on the same run directory. Each reads the events of its own
//! ranks; what these add up to goes to all processes, or to the first alone, which writes the
//! result. The library knows no MPI: [`Transport`] carries bytes between processes, and with one
//! process nothing is carried at all.
//!
//! | file | content |
//! |---|---|
//! | `transport` | what carries bytes between processes |
//! | `division` | divides the ranks of a run |
//! | `codec` | values as bytes |
//!
//! All processes call the functions of [`Processes`] in the same order. None of these functions
//! fails: if a process or an exchange fails, the transport ends them all.

mod codec;
mod division;
#[cfg(test)]
pub(crate) mod in_threads;
mod transport;

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use bincode::{Decode, Encode};
pub(crate) use codec::{decode, encode};
use codec::{decode_records, encode_records};
pub(crate) use division::divide;
pub use transport::{Alone, Transport};

/// The processes that analyse a run, and this one among them.
#[derive(Debug, Clone)]
pub struct Processes(Arc<dyn Transport>);

impl Default for Processes {
    fn default() -> Self {
        Self::alone()
    }
}

impl Processes {
    /// One process.
    pub fn alone() -> Self {
        Self(Arc::new(Alone))
    }

    /// The processes that a transport connects.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self(Arc::new(transport))
    }

    /// Number of processes, at least 1.
    pub fn count(&self) -> usize {
        self.0.count()
    }

    /// Number of this process, from 0.
    pub fn number(&self) -> usize {
        self.0.number()
    }

    /// Whether this is the process that writes results.
    pub fn is_first(&self) -> bool {
        self.number() == 0
    }

    /// Whether there is no other process.
    pub fn is_alone(&self) -> bool {
        self.count() == 1
    }

    /// The values of all processes, by their numbers, on all of them.
    pub fn share<T: Serialize + DeserializeOwned>(&self, own: T) -> Vec<T> {
        if self.is_alone() {
            return vec![own];
        }
        let mut outgoing = vec![encode(&own); self.count()];
        outgoing[self.number()].clear();
        let mut own = Some(own);
        let received = self.0.all_to_all(outgoing).into_iter().enumerate();
        let value = |(number, bytes): (usize, Vec<u8>)| {
            own.take_if(|_| number == self.number()).unwrap_or_else(|| decode(&bytes))
        };
        received.map(value).collect()
    }

    /// The lists of all processes, joined in the order of their numbers, on all of them.
    pub fn join<T: Serialize + DeserializeOwned>(&self, own: Vec<T>) -> Vec<T> {
        match self.is_alone() {
            true => own,
            false => self.share(own).into_iter().flatten().collect(),
        }
    }

    /// Like [`Processes::join`], but for the first process alone; on others the list is empty.
    pub fn join_at_first<T: Serialize + DeserializeOwned>(&self, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let mut outgoing = vec![Vec::new(); self.count()];
        outgoing[0] = encode(&own);
        let received = self.0.all_to_all(outgoing);
        match self.is_first() {
            true => received.iter().flat_map(|bytes| decode::<Vec<T>>(bytes)).collect(),
            false => Vec::new(),
        }
    }

    /// The values of all processes, merged in the order of their numbers, on the first process;
    /// `None` on others. Values travel along a binary tree, so that no process ever holds more than
    /// two.
    pub fn reduce<T: Serialize + DeserializeOwned>(
        &self,
        own: T,
        merge: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let (number, count) = (self.number(), self.count());
        let mut merged = Some(own);
        let mut step = 1;
        while step < count {
            let mut outgoing = vec![Vec::new(); count];
            if number % (2 * step) == step
                && let Some(value) = merged.take()
            {
                outgoing[number - step] = encode(&value);
            }
            let mut received = self.0.all_to_all(outgoing);
            if number % (2 * step) == 0
                && let Some(bytes) = received.get_mut(number + step).map(std::mem::take)
            {
                merged = merged.map(|value| merge(value, decode(&bytes)));
            }
            step *= 2;
        }
        merged
    }

    /// Sends the value at each position to the process of that number; returns what each process
    /// sent here.
    pub(crate) fn exchange<T: Serialize + DeserializeOwned>(&self, outgoing: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return outgoing;
        }
        let bytes = outgoing.iter().map(encode).collect();
        self.0.all_to_all(bytes).iter().map(|bytes| decode(bytes)).collect()
    }

    /// Like [`Processes::exchange`], for values that consist of many records.
    pub(crate) fn exchange_records<T: Encode + Decode<()>>(&self, outgoing: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return outgoing;
        }
        let bytes = outgoing.iter().map(encode_records).collect();
        self.0.all_to_all(bytes).iter().map(|bytes| decode_records(bytes)).collect()
    }

    /// Sends each process but the first what the first makes for it; `part_of` is given there alone,
    /// and makes the part of the process with a number. `None` on the first.
    pub(crate) fn scatter<T: Serialize + DeserializeOwned>(
        &self,
        part_of: Option<impl Fn(usize) -> T>,
    ) -> Option<T> {
        if self.is_alone() {
            return None;
        }
        let mut outgoing = vec![Vec::new(); self.count()];
        if let Some(part_of) = part_of.filter(|_| self.is_first()) {
            let others = outgoing.iter_mut().enumerate().skip(1);
            others.for_each(|(number, bytes)| *bytes = encode(&part_of(number)));
        }
        let received = self.0.all_to_all(outgoing);
        (!self.is_first()).then(|| decode(&received[0]))
    }

    /// Divides positions among the processes by their weights; returns each process's range, which
    /// may be empty.
    pub(crate) fn divide(&self, weights: &[u64]) -> Vec<Range<usize>> {
        let mut ranges = divide(weights, self.count());
        ranges.resize(self.count(), weights.len()..weights.len());
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_processes_shares_joins_and_reduces_in_order() {
        for count in 1..=9 {
            let results = in_threads::run(count, |processes| {
                let own = vec![processes.number() as u32; processes.number() % 3];
                let merged = processes.reduce(own.clone(), |a, b| [a, b].concat());
                (processes.join(own.clone()), processes.join_at_first(own), merged)
            });
            let expected: Vec<u32> =
                (0..count as u32).flat_map(|n| vec![n; n as usize % 3]).collect();
            for (number, (joined, at_first, merged)) in results.into_iter().enumerate() {
                assert_eq!(joined, expected);
                let on_first = (number == 0).then(|| expected.clone());
                assert_eq!(at_first, on_first.clone().unwrap_or_default());
                assert_eq!(merged, on_first);
            }
        }
    }

    #[test]
    fn first_process_sends_each_other_its_part() {
        for count in 1..=4 {
            let parts = in_threads::run(count, |processes| {
                processes.scatter(processes.is_first().then_some(|to| vec![to; to]))
            });
            let expected = (0..count).map(|number| (number > 0).then(|| vec![number; number]));
            assert_eq!(parts, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_process_gets_what_was_sent_to_it() {
        let results = in_threads::run(3, |processes| {
            let outgoing: Vec<_> = (0..3usize).map(|to| (processes.number(), to)).collect();
            processes.exchange(outgoing)
        });
        for (to, received) in results.into_iter().enumerate() {
            assert_eq!(received, [(0, to), (1, to), (2, to)]);
        }
    }
}
