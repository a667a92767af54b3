//! Where the threads of the shares meet between rounds. Rounds are short, and waking a thread can take as long
//! as one: who comes early looks for the others for a while before it sleeps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread looks for the others, and how often it does before it gives its processor to another.
const LOOKS_FOR: Duration = Duration::from_millis(2);
const LOOKS_BEFORE_YIELD: u32 = 256;

/// A place for so many threads.
#[derive(Debug)]
pub(super) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have met.
    times: AtomicUsize,
    /// One of them will never come.
    broken: AtomicBool,
    sleeping: Mutex<()>,
    wake: Condvar,
}

impl Meeting {
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            times: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleeping: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits for the others; what each did before, all others see behind. `false` when one of them panicked.
    pub fn meet(&self) -> bool {
        let times = self.times.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.go_on(times);
        } else {
            self.wait(times);
        }
        !self.broken.load(Ordering::Acquire)
    }

    fn go_on(&self, times: usize) {
        self.times.store(times.wrapping_add(1), Ordering::Release);
        // Who has looked in vain is asleep, or will look once more with the lock.
        drop(self.sleeping.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    fn is_over(&self, times: usize) -> bool {
        self.times.load(Ordering::Acquire) != times || self.broken.load(Ordering::Acquire)
    }

    fn wait(&self, times: usize) {
        let begin = Instant::now();
        while begin.elapsed() < LOOKS_FOR {
            for _ in 0..LOOKS_BEFORE_YIELD {
                if self.is_over(times) {
                    return;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        let mut lock = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(times) {
            lock = self.wake.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The calling thread takes part until what it gets is dropped; where that is by a panic, nobody waits for
    /// it.
    pub fn take_part(&self) -> TakesPart<'_> {
        TakesPart(self)
    }
}

/// See [`Meeting::take_part`].
#[derive(Debug)]
pub(super) struct TakesPart<'m>(&'m Meeting);

impl Drop for TakesPart<'_> {
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
    fn what_was_done_before_a_meeting_is_seen_behind_it() {
        let (meeting, count) = (Meeting::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..3u64 {
                let (meeting, count) = (&meeting, &count);
                scope.spawn(move || {
                    for round in 1..=50 {
                        if round % 25 == 0 {
                            // Longer than the others look: they sleep.
                            std::thread::sleep(number as u32 * 2 * LOOKS_FOR);
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                        assert!(meeting.meet());
                        assert!(count.load(Ordering::Relaxed) >= 3 * round);
                        assert!(meeting.meet());
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 150);
    }

    #[test]
    fn nobody_waits_for_one_that_panicked() {
        let (meeting, have_met) = (Meeting::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _takes_part = meeting.take_part();
                assert!(meeting.meet());
                have_met.wait();
                panic!("as a test");
            });
            assert!(meeting.meet());
            have_met.wait();
            assert!(!meeting.meet());
            assert!(other.join().is_err());
        });
    }
}
