//! Words from one rank to another over MPI_COMM_WORLD, inside MPI_Init's wrapper: with a deadline on
//! both sides, and only between ranks that are known to load the recorder.

use std::time::{Duration, Instant};

use crate::mpi_library::{Entry, Family, MpiLibrary};

/// Between two looks at a request that was looked at often enough.
const DOZE: Duration = Duration::from_micros(100);
const QUICK_LOOKS: u32 = 2000;

/// The calls that it takes.
#[derive(Debug)]
pub struct Mail {
    world: usize,
    byte: usize,
    any_source: i32,
    isend: Entry,
    irecv: Entry,
    test: Entry,
    cancel: Entry,
    free: Entry,
}

impl Mail {
    /// `None` where the library's constants are not known.
    pub fn new(library: &MpiLibrary) -> Option<Self> {
        Some(Self {
            world: library.comm_world()?,
            byte: library.byte()?,
            any_source: if library.family == Family::Mpich { -2 } else { -1 },
            isend: Entry::of(c"PMPI_Isend")?,
            irecv: Entry::of(c"PMPI_Irecv")?,
            test: Entry::of(c"PMPI_Test")?,
            cancel: Entry::of(c"PMPI_Cancel")?,
            free: Entry::of(c"PMPI_Request_free")?,
        })
    }

    /// Sends words; whether they had left before the deadline.
    pub fn send(&self, to: u32, tag: i32, words: &[u64], deadline: Duration) -> bool {
        let mut request = 0usize;
        let mut message = Vec::with_capacity(words.len() + 1);
        message.push(words.len() as u64);
        message.extend_from_slice(words);
        // SAFETY: the arguments of MPI_Isend; the buffer lives until the send has completed, and for
        // ever where it does not.
        let started = unsafe {
            self.isend.call([
                message.as_ptr() as usize,
                size_of_val(message.as_slice()),
                self.byte,
                to as usize,
                tag as usize,
                self.world,
                &raw mut request as usize,
            ])
        };
        let done = started && self.complete(&mut request, deadline);
        if started && !done {
            std::mem::forget(message);
            // SAFETY: the request is ours and not used again.
            unsafe { self.free.call([&raw mut request as usize]) };
        }
        done
    }

    /// Receives at most `most` words, of any rank where none is named; `None` after the deadline.
    pub fn receive(
        &self,
        from: Option<u32>,
        tag: i32,
        most: usize,
        deadline: Duration,
    ) -> Option<Vec<u64>> {
        let mut request = 0usize;
        let mut message = vec![0u64; most + 1];
        let from = from.map_or(self.any_source, |from| from as i32);
        // SAFETY: as in `send`.
        let started = unsafe {
            self.irecv.call([
                message.as_mut_ptr() as usize,
                size_of_val(message.as_slice()),
                self.byte,
                from as usize,
                tag as usize,
                self.world,
                &raw mut request as usize,
            ])
        };
        if !started {
            return None;
        }
        if !self.complete(&mut request, deadline) {
            // SAFETY: the request is ours; MPI_Test completes it once it is cancelled.
            unsafe { self.cancel.call([&raw mut request as usize]) };
            if !self.complete(&mut request, deadline.min(Duration::from_secs(1))) {
                std::mem::forget(message);
            }
            return None;
        }
        let words = usize::try_from(message[0]).ok().filter(|words| *words <= most)?;
        Some(message[1..=words].to_vec())
    }

    fn complete(&self, request: &mut usize, deadline: Duration) -> bool {
        let mut flag = 0i32;
        // Large enough for every ABI's MPI_Status; no library refuses a real one.
        let mut status = [0u64; 8];
        let start = Instant::now();
        for look in 0u32.. {
            // SAFETY: the arguments of MPI_Test; all three are ours.
            let sound = unsafe {
                self.test.call([
                    request as *mut usize as usize,
                    &raw mut flag as usize,
                    status.as_mut_ptr() as usize,
                ])
            };
            if !sound || flag != 0 {
                return sound;
            }
            if start.elapsed() > deadline {
                return false;
            }
            if look < QUICK_LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(DOZE);
            }
        }
        false
    }
}
