//! Threads in the place of processes, for tests without MPI.

use std::sync::{Arc, Barrier, Mutex, PoisonError};

use super::{Processes, Transport};

/// The bytes on their way: by sender, then by receiver.
type Boxes = Vec<Vec<Mutex<Vec<u8>>>>;

#[derive(Debug)]
struct InThreads {
    number: usize,
    shared: Arc<(Barrier, Boxes)>,
}

impl Transport for InThreads {
    fn count(&self) -> usize {
        self.shared.1.len()
    }

    fn number(&self) -> usize {
        self.number
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (barrier, boxes) = &*self.shared;
        let put = |to: &Mutex<Vec<u8>>, bytes| {
            std::mem::replace(&mut *to.lock().unwrap_or_else(PoisonError::into_inner), bytes)
        };
        for (to, bytes) in boxes[self.number].iter().zip(outgoing) {
            put(to, bytes);
        }
        barrier.wait();
        let received = boxes.iter().map(|from| put(&from[self.number], Vec::new())).collect();
        barrier.wait();
        received
    }
}

/// Runs a function on this many processes; returns their results by number.
pub(crate) fn run<T: Send>(count: usize, function: impl Fn(Processes) -> T + Sync) -> Vec<T> {
    let boxes = (0..count).map(|_| (0..count).map(|_| Mutex::default()).collect()).collect();
    let shared = Arc::new((Barrier::new(count), boxes));
    std::thread::scope(|scope| {
        let (function, shared) = (&function, &shared);
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let processes = Processes::new(InThreads { number, shared: shared.clone() });
                scope.spawn(move || function(processes))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
