//! The barrier at which the threads of the shares wait between rounds. Rounds are short and waking
//! a thread can take as long as a round, so a thread spins for a while before it sleeps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread spins before it sleeps, and how many iterations before it yields its
/// processor.
const SPIN_TIME: Duration = Duration::from_millis(2);
const SPINS_BEFORE_YIELD: u32 = 256;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
pub(super) struct RoundBarrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often the barrier has been passed.
    generation: AtomicUsize,
    /// A thread panicked and will never arrive.
    broken: AtomicBool,
    sleeping: Mutex<()>,
    wake: Condvar,
}

impl RoundBarrier {
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleeping: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits for the other threads. What each did before the barrier is visible to all after it.
    /// Returns `false` if one of them panicked.
    pub fn wait(&self) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.release(generation);
        } else {
            self.wait_for_others(generation);
        }
        !self.broken.load(Ordering::Acquire)
    }

    fn release(&self, generation: usize) {
        self.generation.store(generation.wrapping_add(1), Ordering::Release);
        // A thread that gave up spinning is asleep, or will check once more with the lock held.
        drop(self.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    fn is_over(&self, generation: usize) -> bool {
        self.generation.load(Ordering::Acquire) != generation || self.broken.load(Ordering::Acquire)
    }

    fn wait_for_others(&self, generation: usize) {
        let begin = Instant::now();
        while begin.elapsed() < SPIN_TIME {
            for _ in 0..SPINS_BEFORE_YIELD {
                if self.is_over(generation) {
                    return;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        let mut lock = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(generation) {
            lock = self.wake.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes the calling thread a participant until the result is dropped. If a panic drops it,
    /// nobody waits for the thread any more.
    pub fn join(&self) -> Participant<'_> {
        Participant(self)
    }
}

/// See [`RoundBarrier::join`].
#[derive(Debug)]
pub(super) struct Participant<'m>(&'m RoundBarrier);

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
            drop(self.0.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
            self.0.wake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_before_the_barrier_are_visible_after_it() {
        let (barrier, count) = (RoundBarrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..3u64 {
                let (barrier, count) = (&barrier, &count);
                scope.spawn(move || {
                    for round in 1..=50 {
                        if round % 25 == 0 {
                            // Longer than the others spin, so they sleep.
                            std::thread::sleep(number as u32 * 2 * SPIN_TIME);
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                        assert!(barrier.wait());
                        assert!(count.load(Ordering::Relaxed) >= 3 * round);
                        assert!(barrier.wait());
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 150);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let (barrier, both_waited) = (RoundBarrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _participant = barrier.join();
                assert!(barrier.wait());
                both_waited.wait();
                panic!("for the test");
            });
            assert!(barrier.wait());
            both_waited.wait();
            assert!(!barrier.wait());
            assert!(other.join().is_err());
        });
    }
}
