//! The recorder's own messages, each with a deadline, between ranks known to load the recorder.
//!
//! Inside the wrapper of MPI_Init they use MPI_COMM_WORLD, or in that of MPI_Comm_create_from_group the
//! new communicator: the program has not posted receives on them yet. At the end and during the run
//! they use the recorder's own communicator.

use std::time::{Duration, Instant};

use crate::mpi::library::{Entry, Family, Job};

/// After this time the processor is yielded: a wait that long is not part of a clock exchange that
/// counts.
const SPIN: Duration = Duration::from_micros(20);
/// After this time the thread sleeps between tests.
const DOZE: Duration = Duration::from_millis(2);
/// How long it sleeps.
const NAP: Duration = Duration::from_micros(50);
/// Maximum wait for a cancelled receive to complete.
const CANCELLED: Duration = Duration::from_secs(1);

/// A communicator, and the MPI calls that messages need.
#[derive(Debug)]
pub struct Messages {
    communicator: usize,
    byte: usize,
    any_source: i32,
    isend: Entry,
    irecv: Entry,
    test: Entry,
    cancel: Entry,
    request_free: Entry,
}

/// How the wait for a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The request is complete.
    Done,
    /// MPI reported an error, and the request no longer exists.
    Failed,
    /// The deadline passed; MPI may still access the message's memory at any later time.
    Late,
}

impl Messages {
    /// Messages over a job's communicator. `None` if the library's constants are unknown.
    pub fn new(job: &Job) -> Option<Self> {
        let library = job.library;
        Some(Self {
            communicator: job.communicator?,
            byte: library.byte()?,
            any_source: if library.family == Family::Mpich { -2 } else { -1 },
            isend: Entry::find(c"PMPI_Isend")?,
            irecv: Entry::find(c"PMPI_Irecv")?,
            test: Entry::find(c"PMPI_Test")?,
            cancel: Entry::find(c"PMPI_Cancel")?,
            request_free: Entry::find(c"PMPI_Request_free")?,
        })
    }

    /// Sends further messages over another communicator.
    pub fn switch_to(&mut self, communicator: usize) {
        self.communicator = communicator;
    }

    /// Sends bytes and waits until they have left.
    ///
    /// # Safety
    /// The buffer holds that many bytes. If the send is late, the buffer is never freed.
    pub unsafe fn send(
        &self,
        (buffer, bytes): (*const u8, usize),
        to: u32,
        tag: i32,
        deadline: Duration,
    ) -> End {
        // SAFETY: the caller's buffer, which MPI_Isend only reads.
        let (mut request, end) = unsafe {
            self.transfer(&self.isend, (buffer as usize, bytes), to as i32, tag, deadline)
        };
        if end == End::Late {
            // SAFETY: the request is ours and is not used again.
            unsafe { self.request_free.call([&raw mut request as usize]) };
        }
        end
    }

    /// Starts MPI_Isend or MPI_Irecv and waits for its end. Returns the request, too.
    ///
    /// # Safety
    /// `start` is one of these, and may use the buffer until the request is complete.
    unsafe fn transfer(
        &self,
        start: &Entry,
        (buffer, bytes): (usize, usize),
        rank: i32,
        tag: i32,
        deadline: Duration,
    ) -> (usize, End) {
        let mut request = 0usize;
        let (rank, tag, at) = (rank as usize, tag as usize, &raw mut request as usize);
        let arguments = [buffer, bytes, self.byte, rank, tag, self.communicator, at];
        // SAFETY: the arguments of both, with a buffer that stays while the request is open.
        let started = unsafe { start.call(arguments) };
        let end = if started { self.complete(&mut request, deadline) } else { End::Failed };
        (request, end)
    }

    /// Receives at most `bytes` bytes, from any rank if none is given.
    ///
    /// # Safety
    /// The buffer has room for that many bytes and nobody else uses it. If the receive is late, the
    /// buffer is never freed.
    pub unsafe fn receive(
        &self,
        (buffer, bytes): (*mut u8, usize),
        from: Option<u32>,
        tag: i32,
        deadline: Duration,
    ) -> End {
        let from = from.map_or(self.any_source, |from| from as i32);
        // SAFETY: the caller's buffer, which nobody else uses.
        let (mut request, end) =
            unsafe { self.transfer(&self.irecv, (buffer as usize, bytes), from, tag, deadline) };
        if end == End::Late {
            // SAFETY: the request is ours. Once cancelled, it completes now or when MPI is finalized.
            unsafe {
                self.cancel.call([&raw mut request as usize]);
                if self.complete(&mut request, deadline.min(CANCELLED)) == End::Late {
                    self.request_free.call([&raw mut request as usize]);
                }
            }
        }
        end
    }

    /// Sends words, preceded by their number. Returns whether they left before the deadline.
    pub fn send_words(&self, to: u32, tag: i32, words: &[u64], deadline: Duration) -> bool {
        let message: Vec<u64> = [words.len() as u64].iter().chain(words).copied().collect();
        // SAFETY: the vector's own bytes; the vector is leaked if the send is late.
        let end = unsafe {
            self.send((message.as_ptr().cast(), size_of_val(&message[..])), to, tag, deadline)
        };
        if end == End::Late {
            std::mem::forget(message);
        }
        end == End::Done
    }

    /// Receives a message of [`Messages::send_words`] with at most `most` words. `None` after the
    /// deadline.
    pub fn receive_words(
        &self,
        from: Option<u32>,
        tag: i32,
        most: usize,
        deadline: Duration,
    ) -> Option<Vec<u64>> {
        let mut message = vec![0u64; most + 1];
        let room = (message.as_mut_ptr().cast(), size_of_val(&message[..]));
        // SAFETY: the vector's own bytes; the vector is leaked if the receive is late.
        match unsafe { self.receive(room, from, tag, deadline) } {
            End::Done => payload(&message).map(<[u64]>::to_vec),
            End::Failed => None,
            End::Late => {
                std::mem::forget(message);
                None
            }
        }
    }

    /// Tests a request until it completes or the deadline passes. In the latter case it still
    /// exists.
    pub fn complete(&self, request: &mut usize, deadline: Duration) -> End {
        let mut flag = 0i32;
        // Large enough for every ABI's MPI_Status. A real status is never rejected.
        let mut status = [0u64; 8];
        let mut start = None;
        for look in 0u64.. {
            // SAFETY: the arguments of MPI_Test; request, flag and status are ours.
            let sound = unsafe {
                self.test.call([
                    request as *mut usize as usize,
                    &raw mut flag as usize,
                    status.as_mut_ptr() as usize,
                ])
            };
            if !sound {
                return End::Failed;
            }
            if flag != 0 {
                return End::Done;
            }
            if look % 64 == 63 {
                let waited = start.get_or_insert_with(Instant::now).elapsed();
                if waited > deadline {
                    return End::Late;
                }
                if waited > DOZE {
                    std::thread::sleep(NAP);
                } else if waited > SPIN {
                    std::thread::yield_now();
                }
            }
        }
        End::Late
    }
}

/// The words of a message that begins with their number. `None` if there are fewer.
fn payload(message: &[u64]) -> Option<&[u64]> {
    let (number, words) = message.split_first()?;
    words.get(..usize::try_from(*number).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_number_of_words_from_first_word() {
        assert_eq!(payload(&[2, 7, 8, 0]), Some(&[7, 8][..]));
        assert_eq!(payload(&[0, 7]), Some(&[][..]));
        assert_eq!(payload(&[3, 7, 8]), None);
        assert_eq!(payload(&[u64::MAX, 7]), None);
        assert_eq!(payload(&[]), None);
    }
}
