//! A file mapped for reading that other processes may shorten meanwhile.
//!
//! Reading a mapping beyond the end of its file, or where the file system cannot deliver (a disk
//! error, a file removed on a server), raises SIGBUS, which by default ends the process. Rank files
//! shrink in normal use: the recorder cuts off a file's unused end when it completes it, and people
//! copy and truncate files. Here, a page that cannot be read becomes a page of zeros, and
//! [`FileMap::unreadable_from`] reports it; readers of a map must check afterwards. Reading costs
//! no more than from a plain mapping.
//!
//! The signal handler is installed with the first map. It passes on signals that do not concern it.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions};

/// A private mapping of a whole file, or of memory. Stores into it stay in this process.
#[derive(Debug)]
pub struct FileMap {
    map: MmapMut,
    guard: Option<&'static Guard>,
}

/// What the handler knows about a mapping. Guards are never freed, because the handler may read
/// them at any time; they are reused.
#[derive(Debug)]
struct Guard {
    /// Addresses of the mapping, from and up to; both are 0 in an unused guard.
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
/// Page size in bytes; set before the handler is installed.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The previous action for SIGBUS.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

impl FileMap {
    /// Maps a file at its present length.
    ///
    /// # Errors
    /// If the system refuses to map it.
    pub fn of_file(file: &File) -> io::Result<Self> {
        watch_bus_errors()?;
        // Pages are hardly ever written to, so no memory is reserved for all of a large file.
        // SAFETY: the mapping is private, and the guard below keeps the process alive if the file
        // shrinks. The bytes may change under us while the file's writer runs: readers copy what
        // may change (`RankFile::hold`) and load shared words atomically.
        let map = unsafe { MmapOptions::new().no_reserve_swap().map_copy(file) }?;
        let guard = Guard::over(map.as_ptr() as usize, map.len());
        Ok(Self { map, guard: Some(guard) })
    }

    /// Zeroed memory of at least one byte. Pages that are never written take no memory.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn of_memory(bytes: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon()?;
        Ok(Self { map, guard: None })
    }

    /// Zeroed memory in place of a file of this size that cannot be read.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn of_nothing(bytes: usize) -> io::Result<Self> {
        let mut map = Self::of_memory(bytes)?;
        let guard = Guard::over(0, 0);
        guard.unreadable_from.store(0, Ordering::SeqCst);
        map.guard = Some(guard);
        Ok(map)
    }

    /// Offset of the first byte that could not be read when it was accessed, and that reads as zero
    /// since.
    pub fn unreadable_from(&self) -> Option<usize> {
        let from = self.guard?.unreadable_from.load(Ordering::Relaxed);
        (from != usize::MAX).then_some(from)
    }

    /// Advises the system how the whole map will be used; the system may ignore it.
    pub fn advise(&self, advice: Advice) {
        let _ = self.map.advise(advice);
    }

    /// Has the system fetch a range that will be read soon.
    pub fn fetch(&self, range: Range<usize>) {
        let to = range.end.min(self.map.len());
        if self.guard.is_some() && range.start < to {
            let _ = self.map.advise_range(Advice::WillNeed, range.start, to - range.start);
        }
    }

    /// Replaces a range of the file by memory, so that nothing that happens to the file changes it
    /// any more: these bytes, then zeros up to the end of the range. (A private copy of a page is
    /// not enough: shortening the file discards those, too.)
    ///
    /// # Errors
    /// If there is not enough memory; the range is unchanged.
    pub fn replace(&mut self, range: Range<usize>, bytes: &[u8]) -> io::Result<()> {
        let page = PAGE_BYTES.load(Ordering::Relaxed).max(1);
        if self.guard.is_some() {
            let from = range.start / page * page;
            let to = range.end.next_multiple_of(page).min(self.len());
            // Bytes of the first and last page outside the range keep their present contents.
            let before = self.map[from..range.start].to_vec();
            let behind = self.map[range.end..to].to_vec();
            // SAFETY: whole pages of our own mapping, which we hold exclusively.
            unsafe { put_zeros(self.map[from..to].as_mut_ptr(), to - from)? };
            self.map[from..range.start].copy_from_slice(&before);
            self.map[range.end..to].copy_from_slice(&behind);
        } else {
            self.map[range.clone()].fill(0);
        }
        self.map[range.start..][..bytes.len()].copy_from_slice(bytes);
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
            // Done before the addresses are released, which happens when the field is dropped.
            guard.to.store(0, Ordering::SeqCst);
            guard.from.store(0, Ordering::SeqCst);
            UNUSED.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
        }
    }
}

impl Guard {
    /// Adds a guard for `bytes` bytes from an address.
    fn over(from: usize, bytes: usize) -> &'static Self {
        let unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let guard = unused.unwrap_or_else(Self::new);
        guard.unreadable_from.store(usize::MAX, Ordering::SeqCst);
        guard.from.store(from, Ordering::SeqCst);
        guard.to.store(from + bytes, Ordering::SeqCst);
        guard
    }

    /// Allocates a guard and puts it where the handler finds it.
    fn new() -> &'static Self {
        let made: &'static mut Self = Box::leak(Box::new(Self {
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            unreadable_from: AtomicUsize::new(usize::MAX),
            earlier: LATEST.load(Ordering::SeqCst),
        }));
        let made: *mut Self = made;
        loop {
            // SAFETY: `made` is ours alone until the exchange succeeds.
            let earlier = unsafe { (*made).earlier }.cast_mut();
            match LATEST.compare_exchange(earlier, made, Ordering::SeqCst, Ordering::SeqCst) {
                // SAFETY: leaked above, and only read from here on.
                Ok(_) => return unsafe { &*made },
                // SAFETY: the exchange failed, so `made` is still ours alone.
                Err(other) => unsafe { (*made).earlier = other },
            }
        }
    }

    /// The guard of the mapping that contains an address. Safe in a signal handler: it only loads.
    fn containing(address: usize) -> Option<&'static Self> {
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

/// Replaces mapped pages by new pages of zeros.
///
/// # Safety
/// The pages are whole pages of a private mapping that this module made, and nobody relies on their
/// contents.
unsafe fn put_zeros(at: *mut u8, bytes: usize) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: replaces pages of a private mapping of this module, whose contents nobody relies on.
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
    // SAFETY: sysconf takes a number; a zeroed sigaction is valid, and both are ours to read and write.
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

/// Handles a page that could not be read. If it belongs to a guarded mapping, zeros replace it, and
/// the failed load is repeated when the handler returns.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the signal's own description, which holds an address for SIGBUS;
    // errno is this thread's. Nothing here locks or allocates.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        let page = PAGE_BYTES.load(Ordering::SeqCst).max(1);
        if let Some(guard) = Guard::containing(address) {
            let at = address / page * page;
            // The mapping begins at a page boundary.
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

/// Does what SIGBUS would have done without this module.
///
/// # Safety
/// Must be called from the handler with its arguments.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: the action was installed before ours, so its handler takes the arguments
    // that its flags specify.
    unsafe {
        match before.sa_sigaction {
            // Ends the process when the load is repeated or the signal is sent again.
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
    fn reads_zeros_behind_cut_and_reports_it() {
        let (shrinking, path) = file("cut", 1 << 20);
        let map = FileMap::of_file(&shrinking).unwrap();
        assert_eq!((map[0], map[(1 << 20) - 1], map.unreadable_from()), (7, 7, None));
        shrinking.set_len(300_000).unwrap();
        assert!(map[1 << 19..].iter().all(|byte| *byte == 0));
        assert_eq!(map.unreadable_from(), Some(1 << 19));
        assert!(map[..300_000].iter().all(|byte| *byte == 7));
        // Each map has a guard of its own and releases it.
        drop(map);
        let again = FileMap::of_file(&shrinking).unwrap();
        assert_eq!((again.len(), again.unreadable_from()), (300_000, None));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn replaced_range_outlives_file() {
        let (shrinking, path) = file("replace", 1 << 20);
        let mut map = FileMap::of_file(&shrinking).unwrap();
        map.replace(100_000..170_000, &[9; 50_000]).unwrap();
        shrinking.set_len(0).unwrap();
        assert!(map[100_000..150_000].iter().all(|byte| *byte == 9));
        assert!(map[150_000..170_000].iter().all(|byte| *byte == 0));
        assert!(map[99_999] == 7 && map[170_000] == 7, "the rest of their pages is unchanged");
        assert_eq!(map.unreadable_from(), None);
        assert_eq!((map[0], map.unreadable_from()), (0, Some(0)));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn threads_survive_same_cut() {
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
