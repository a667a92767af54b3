//! What the threads of OpenMP teams did in their parallel regions.
//!
//! Each thread writes to a slot of its own, which no other thread reads before the region has ended, so that a cache line
//! travels from core to core once a region. A team belongs to the thread that begins its regions, until that thread
//! ends. What the thread writes for each region and what the others read lie on different lines.

use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::host::own_work::OwnWork;
use crate::state::thread_block::ThreadBlock;

/// As many threads as can have teams.
const MAX_TEAMS: usize = 256;
/// As many threads as a team can have.
const MAX_THREADS: usize = 1024;
/// Number of words that a team's threads may be told.
pub const WORDS: usize = 4;

/// What a thread waits for inside a region: indices of [`Share::waits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    AtBarrier,
    ForLock,
    ForTasks,
}

/// Ticks of one thread in a region: it works, or it waits (by [`Waits`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub work: u64,
    pub waits: [u64; 3],
}

/// A thread's part in a region; only that thread writes it.
#[repr(align(64))]
pub struct Slot {
    /// The region that the rest belongs to.
    region: AtomicU64,
    work: AtomicU64,
    waits: [AtomicU64; 3],
    makes_tasks: AtomicBool,
}

impl Slot {
    /// A region begins. Storing early has the line here when the region ends.
    #[inline(always)]
    pub fn begin(&self, region: u64) {
        self.region.store(region, Relaxed);
        self.makes_tasks.store(false, Relaxed);
        self.set(Share::default());
    }

    /// What the thread has done in the region so far.
    #[inline(always)]
    pub fn set(&self, share: Share) {
        self.work.store(share.work, Relaxed);
        for (sum, ticks) in self.waits.iter().zip(share.waits) {
            sum.store(ticks, Relaxed);
        }
    }

    /// The thread has made tasks, which others may run wherever they wait.
    #[inline(always)]
    pub fn has_tasks(&self) {
        self.makes_tasks.store(true, Relaxed);
    }
}

/// What the thread that owns a team alone writes and reads.
#[repr(align(64))]
struct Owned {
    /// How often a region has begun and ended: odd in between.
    generation: AtomicU32,
    threads: AtomicU32,
    begin: AtomicU64,
    site: AtomicUsize,
    is_taken: AtomicBool,
}

/// What all threads of a team read: it changes seldom.
#[repr(align(64))]
struct Told {
    slots: AtomicPtr<Slot>,
    words: [AtomicUsize; WORDS],
}

/// A team of threads.
pub struct Team {
    owned: Owned,
    told: Told,
    /// Threads that do not know their numbers take one here.
    arrived: Arrived,
}

#[repr(align(64))]
struct Arrived(AtomicU32);

static TEAMS: [Team; MAX_TEAMS] = [const {
    Team {
        owned: Owned {
            generation: AtomicU32::new(0),
            threads: AtomicU32::new(0),
            begin: AtomicU64::new(0),
            site: AtomicUsize::new(0),
            is_taken: AtomicBool::new(false),
        },
        told: Told {
            slots: AtomicPtr::new(null_mut()),
            words: [const { AtomicUsize::new(0) }; WORDS],
        },
        arrived: Arrived(AtomicU32::new(0)),
    }
}; MAX_TEAMS];

/// The sums over a region's threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub threads: u32,
    pub share: Share,
    /// Work of the thread that worked longest, and its number.
    pub longest: (u64, u32),
    pub makes_tasks: bool,
}

/// The thread's team, which it takes for its first region; `None` if too many threads have one.
#[inline(always)]
pub fn own_team(block: &ThreadBlock) -> Option<&'static Team> {
    match block.team.get() {
        0 => take(block),
        number => TEAMS.get(number as usize - 1),
    }
}

#[cold]
#[inline(never)]
fn take(block: &ThreadBlock) -> Option<&'static Team> {
    let _own = OwnWork::begin();
    let free =
        |team: &Team| !team.owned.is_taken.load(Relaxed) && !team.owned.is_taken.swap(true, AcqRel);
    let at = TEAMS.iter().position(free)?;
    let team = &TEAMS[at];
    if team.told.slots.load(Relaxed).is_null() {
        let bytes = MAX_THREADS * size_of::<Slot>();
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages, which stay; zeros are a valid slot.
        let slots = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
        if slots == libc::MAP_FAILED {
            team.owned.is_taken.store(false, Release);
            return None;
        }
        team.told.slots.store(slots.cast(), Release);
    }
    block.team.set(at as u32 + 1);
    Some(team)
}

/// The thread ends.
pub fn give_back(block: &ThreadBlock) {
    if let Some(at) = block.team.take().checked_sub(1) {
        TEAMS[at as usize].owned.is_taken.store(false, Release);
    }
}

impl Team {
    /// A region of the owner's begins at this place. The number says which, and is never 0.
    #[inline(always)]
    pub fn begin(&self, block: &ThreadBlock, site: usize, ticks: u64) -> u64 {
        let Owned { generation, threads, begin, site: place, .. } = &self.owned;
        let now = generation.load(Relaxed).wrapping_add(1) | 1;
        generation.store(now, Relaxed);
        threads.store(0, Relaxed);
        place.store(site, Relaxed);
        begin.store(ticks, Relaxed);
        u64::from(now) << 32 | u64::from(block.team.get() - 1)
    }

    /// The team whose region has this number, if the region has not ended. For the owner.
    #[inline(always)]
    pub fn of(region: u64) -> Option<&'static Self> {
        let team = Self::in_region(region)?;
        (team.owned.generation.load(Relaxed) == (region >> 32) as u32).then_some(team)
    }

    /// The same for a thread that is in the region.
    #[inline(always)]
    pub fn in_region(region: u64) -> Option<&'static Self> {
        if region == 0 { None } else { TEAMS.get(region as u32 as usize) }
    }

    /// The region has ended: the counter when it began, and its place.
    #[inline(always)]
    pub fn end(&self) -> (u64, usize) {
        self.owned.generation.store(self.owned.generation.load(Relaxed).wrapping_add(1), Relaxed);
        (self.owned.begin.load(Relaxed), self.owned.site.load(Relaxed))
    }

    /// Tells the threads. What they know already stays in their caches.
    #[inline(always)]
    pub fn tell(&self, words: [usize; WORDS]) {
        for (told, word) in self.told.words.iter().zip(words) {
            if told.load(Relaxed) != word {
                told.store(word, Relaxed);
            }
        }
    }

    /// What the threads are told.
    #[inline(always)]
    pub fn told(&self) -> [usize; WORDS] {
        self.told.words.each_ref().map(|word| word.load(Relaxed))
    }

    /// So many threads take part; the owner counts them.
    #[inline(always)]
    pub fn has_threads(&self, count: u32) {
        self.owned.threads.store(count, Relaxed);
    }

    /// The slot of the thread with this number.
    #[inline(always)]
    pub fn slot(&self, number: u32) -> Option<&Slot> {
        let slots = self.told.slots.load(Acquire);
        let exists = (number as usize) < MAX_THREADS && !slots.is_null();
        // SAFETY: the mapping has so many slots and stays.
        exists.then(|| unsafe { &*slots.add(number as usize) })
    }

    /// A slot for a thread that does not know its number.
    pub fn next_slot(&self) -> Option<&Slot> {
        self.slot(self.arrived.0.fetch_add(1, Relaxed))
    }

    /// What the threads did in this region, after all have come to its end; `None` if they are too many.
    pub fn sums(&self, region: u64) -> Option<Sums> {
        let (known, arrived) = (self.owned.threads.load(Relaxed), self.arrived.0.load(Relaxed));
        if arrived > 0 {
            self.arrived.0.store(0, Relaxed);
        }
        let threads = known.max(arrived);
        let mut sums = Sums { threads, ..Sums::default() };
        for number in 0..threads {
            let slot = self.slot(number)?;
            if slot.region.load(Relaxed) != region {
                continue;
            }
            let work = slot.work.load(Relaxed);
            sums.share.work += work;
            for (sum, ticks) in sums.share.waits.iter_mut().zip(&slot.waits) {
                *sum += ticks.load(Relaxed);
            }
            if work >= sums.longest.0 {
                sums.longest = (work, if arrived > 0 { u32::MAX } else { number });
            }
            sums.makes_tasks |= slot.makes_tasks.load(Relaxed);
        }
        Some(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_sums_what_its_own_threads_did() {
        // SAFETY: a thread's block is all zero when the thread starts.
        let block: Box<ThreadBlock> = unsafe { Box::new(std::mem::zeroed()) };
        let team = own_team(&block).unwrap();
        let before = team.begin(&block, 7, 100);
        team.has_threads(3);
        for number in 0..3 {
            let slot = team.slot(number).unwrap();
            slot.begin(before);
            slot.set(Share { work: 10 * u64::from(number), waits: [1, 2, 3] });
        }
        team.slot(1).unwrap().has_tasks();
        let share = Share { work: 30, waits: [3, 6, 9] };
        let sums = Sums { threads: 3, share, longest: (20, 2), makes_tasks: true };
        assert_eq!((team.sums(before), team.end()), (Some(sums), (100, 7)));
        assert!(Team::of(before).is_none(), "it has ended");

        let region = team.begin(&block, 8, 200);
        assert!(region != before && Team::of(region).is_some());
        team.has_threads(2);
        team.slot(1).unwrap().begin(region);
        team.slot(1).unwrap().set(Share { work: 5, waits: [0; 3] });
        let sums = team.sums(region).unwrap();
        assert_eq!((sums.share.work, sums.longest, sums.makes_tasks), (5, (5, 1), false));

        team.end();
        let region = team.begin(&block, 9, 300);
        team.next_slot().unwrap().begin(region);
        assert_eq!(team.sums(region).unwrap().longest.1, u32::MAX, "of whom is not known");
        team.has_threads(MAX_THREADS as u32 + 1);
        assert_eq!(team.sums(region), None);
        give_back(&block);
        assert!(block.team.get() == 0 && own_team(&block).is_some());
        give_back(&block);
    }
}
