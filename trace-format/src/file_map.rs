//! A file mapped for reading that other processes may shorten meanwhile.
//!
//! Reading a mapping beyond its file's end, or where the file system cannot deliver (a disk error, a file that a
//! server has removed), is SIGBUS, which by default ends the process. Rank files shrink in normal use: the
//! recorder cuts a file's unused end off when it completes it, and people copy and truncate. So a page that
//! cannot be read becomes a page of zeros here, and [`FileMap::unreadable_from`] says so; whoever reads a map asks
//! afterwards. Reading costs nothing more than from a plain mapping.
//!
//! The signal's handler is installed with the first map and passes on what is none of its business.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions};

/// A private mapping of a whole file, or of memory: what is stored into it stays in this process.
#[derive(Debug)]
pub struct FileMap {
    map: MmapMut,
    guard: Option<&'static Guard>,
}

/// What the handler knows of a mapping. Guards are never freed, for the handler may look at any time; they are
/// used again.
#[derive(Debug)]
struct Guard {
    /// Addresses of the mapping, from and up to; an unused guard has 0 and 0.
    from: AtomicUsize,
    to: AtomicUsize,
    /// Lowest offset of a page that could not be read; `usize::MAX` while there is none.
    unreadable_from: AtomicUsize,
    /// The guard made before this one.
    earlier: *const Guard,
}

// SAFETY: `earlier` is written before a guard is shared and points to one that is never freed.
unsafe impl Sync for Guard {}

static LATEST: AtomicPtr<Guard> = AtomicPtr::new(null_mut());
static UNUSED: Mutex<Vec<&'static Guard>> = Mutex::new(Vec::new());
/// Bytes of a page; set before the handler is installed.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

impl FileMap {
    /// Maps a file as long as it is now.
    ///
    /// # Errors
    /// When the system refuses to map it.
    pub fn of_file(file: &File) -> io::Result<Self> {
        watch_bus_errors()?;
        // Hardly a page is ever written to: memory for all of a large file need not be there.
        // SAFETY: the mapping is private, and the guard below keeps the process alive where the file
        // shrinks. Its bytes may change under us while the file's writer runs: readers copy what changes
        // (`RankFile::hold`) and load shared words atomically.
        let map = unsafe { MmapOptions::new().no_reserve_swap().map_copy(file) }?;
        let guard = Guard::over(map.as_ptr() as usize, map.len());
        Ok(Self { map, guard: Some(guard) })
    }

    /// Zeros in memory, at least one byte; pages that nothing is written to take none.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn of_memory(bytes: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon()?;
        Ok(Self { map, guard: None })
    }

    /// Where the first byte lies that could not be read when it was wanted, and reads as zero since.
    pub fn unreadable_from(&self) -> Option<usize> {
        let from = self.guard?.unreadable_from.load(Ordering::Relaxed);
        (from != usize::MAX).then_some(from)
    }

    /// Advice on how the map will be used, all of it; it may be refused.
    pub fn advise(&self, advice: Advice) {
        let _ = self.map.advise(advice);
    }

    /// Has the system fetch a stretch that will be read soon.
    pub fn fetch(&self, stretch: Range<usize>) {
        let to = stretch.end.min(self.map.len());
        if self.guard.is_some() && stretch.start < to {
            let _ = self.map.advise_range(Advice::WillNeed, stretch.start, to - stretch.start);
        }
    }

    /// Puts memory in the place of a stretch of the file, so that nothing that happens to the file changes it any
    /// more: these bytes, and zeros up to the end of the stretch. (A private copy of a page is not enough:
    /// shortening a file takes those away, too.)
    ///
    /// # Errors
    /// When there is no memory; the stretch is as it was.
    pub fn replace(&mut self, stretch: Range<usize>, bytes: &[u8]) -> io::Result<()> {
        let page = PAGE_BYTES.load(Ordering::Relaxed).max(1);
        if self.guard.is_some() {
            let from = stretch.start / page * page;
            let to = stretch.end.next_multiple_of(page).min(self.len());
            // What shares the first and the last page stays as it is now.
            let before = self.map[from..stretch.start].to_vec();
            let behind = self.map[stretch.end..to].to_vec();
            // SAFETY: whole pages of our own mapping, which we hold exclusively.
            unsafe { put_zeros(self.map[from..to].as_mut_ptr(), to - from)? };
            self.map[from..stretch.start].copy_from_slice(&before);
            self.map[stretch.end..to].copy_from_slice(&behind);
        } else {
            self.map[stretch.clone()].fill(0);
        }
        self.map[stretch.start..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl Deref for FileMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl DerefMut for FileMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if let Some(guard) = self.guard {
            // Before the addresses are given back, which happens when the field is dropped.
            guard.to.store(0, Ordering::SeqCst);
            guard.from.store(0, Ordering::SeqCst);
            UNUSED.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
        }
    }
}

impl Guard {
    /// A guard over `bytes` from an address on.
    fn over(from: usize, bytes: usize) -> &'static Self {
        let unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let guard = unused.unwrap_or_else(Self::new);
        guard.unreadable_from.store(usize::MAX, Ordering::SeqCst);
        guard.from.store(from, Ordering::SeqCst);
        guard.to.store(from + bytes, Ordering::SeqCst);
        guard
    }

    /// One more guard, where the handler finds it.
    fn new() -> &'static Self {
        let made: &'static mut Self = Box::leak(Box::new(Self {
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            unreadable_from: AtomicUsize::new(usize::MAX),
            earlier: LATEST.load(Ordering::SeqCst),
        }));
        let made: *mut Self = made;
        loop {
            // SAFETY: ours alone until the exchange succeeds.
            let earlier = unsafe { (*made).earlier }.cast_mut();
            match LATEST.compare_exchange(earlier, made, Ordering::SeqCst, Ordering::SeqCst) {
                // SAFETY: leaked above, and only read from here on.
                Ok(_) => return unsafe { &*made },
                // SAFETY: as above: ours alone.
                Err(other) => unsafe { (*made).earlier = other },
            }
        }
    }

    /// The guard of the mapping that an address lies in. Safe in a signal handler: it only loads.
    fn of(address: usize) -> Option<&'static Self> {
        let mut next: *const Self = LATEST.load(Ordering::SeqCst);
        // SAFETY: guards are never freed.
        while let Some(guard) = unsafe { next.as_ref() } {
            let range = guard.from.load(Ordering::SeqCst)..guard.to.load(Ordering::SeqCst);
            if range.contains(&address) {
                return Some(guard);
            }
            next = guard.earlier;
        }
        None
    }
}

/// Puts fresh pages of zeros in the place of mapped ones.
///
/// # Safety
/// The pages are whole ones of a private mapping that this module made, and nobody relies on what they hold.
unsafe fn put_zeros(at: *mut u8, bytes: usize) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller's promise.
    let put = unsafe { libc::mmap(at.cast(), bytes, protection, flags, -1, 0) };
    if put == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Installs the handler, once.
fn watch_bus_errors() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: sysconf takes a number; a zeroed sigaction is valid, and both are ours to be read and written.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        PAGE_BYTES.store(usize::try_from(page).unwrap_or(4096), Ordering::SeqCst);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = BEFORE.set(before.assume_init());
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            on_bus_error;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &action, null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    *installed = true;
    Ok(())
}

/// A page could not be read: where it is of a guarded mapping, zeros take its place, and the load that failed
/// is made again when this returns.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the signal's own description, which holds an address for SIGBUS; errno is
    // this thread's. Nothing here locks or allocates.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        let page = PAGE_BYTES.load(Ordering::SeqCst).max(1);
        if let Some(guard) = Guard::of(address) {
            let at = address / page * page;
            // The mapping begins at a page.
            let offset = at - guard.from.load(Ordering::SeqCst);
            if put_zeros(at as *mut u8, page).is_ok() {
                guard.unreadable_from.fetch_min(offset, Ordering::SeqCst);
                *libc::__errno_location() = errno;
                return;
            }
        }
        pass_on(signal, info, context);
        *libc::__errno_location() = errno;
    }
}

/// What SIGBUS would have done without this module.
///
/// # Safety
/// Called from the handler with its arguments.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: the action was installed before ours, so its handler takes what its flags say.
    unsafe {
        match before.sa_sigaction {
            // Ends the process as soon as the load is made again, or the signal sent again.
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, before, null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(name: &str, bytes: usize) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("file-map-{name}-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        (file, path)
    }

    #[test]
    fn what_was_cut_off_reads_as_zero_and_is_told() {
        let (shrinking, path) = file("cut", 1 << 20);
        let map = FileMap::of_file(&shrinking).unwrap();
        assert_eq!((map[0], map[(1 << 20) - 1], map.unreadable_from()), (7, 7, None));
        shrinking.set_len(300_000).unwrap();
        assert!(map[1 << 19..].iter().all(|byte| *byte == 0));
        assert_eq!(map.unreadable_from(), Some(1 << 19));
        assert!(map[..300_000].iter().all(|byte| *byte == 7));
        // Each map has a guard of its own, and gives it back.
        drop(map);
        let again = FileMap::of_file(&shrinking).unwrap();
        assert_eq!((again.len(), again.unreadable_from()), (300_000, None));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_was_replaced_outlives_the_file() {
        let (shrinking, path) = file("replace", 1 << 20);
        let mut map = FileMap::of_file(&shrinking).unwrap();
        map.replace(100_000..170_000, &[9; 50_000]).unwrap();
        shrinking.set_len(0).unwrap();
        assert!(map[100_000..150_000].iter().all(|byte| *byte == 9));
        assert!(map[150_000..170_000].iter().all(|byte| *byte == 0));
        assert!(map[99_999] == 7 && map[170_000] == 7, "the rest of their pages stays");
        assert_eq!(map.unreadable_from(), None);
        assert_eq!((map[0], map.unreadable_from()), (0, Some(0)));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn threads_meet_the_same_cut() {
        let (shrinking, path) = file("threads", 1 << 20);
        let map = FileMap::of_file(&shrinking).unwrap();
        shrinking.set_len(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert!(map.iter().all(|byte| *byte == 0)));
            }
        });
        assert_eq!(map.unreadable_from(), Some(0));
        std::fs::remove_file(path).unwrap();
    }
}
