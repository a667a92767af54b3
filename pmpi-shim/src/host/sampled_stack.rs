//! Functions on the stack of an interrupted thread, found by its signal handler.
//!
//! The handler may not ask the loader, allocate or lock. So the list of modules is made beforehand
//! and published by a pointer. Each sampled thread announces which list it reads; a list that was
//! replaced is freed when nobody reads it.

use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use framehop::{
    CacheNative, FrameAddress, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder,
    UnwinderNative,
};

use crate::host::forks::wait_until;
use crate::host::frames::Frames;
use crate::host::loader::Changes;
use crate::host::lock::Lock;
use crate::host::python_stack::{Functions, Python};
use crate::host::unwind::{Index, Section, loaded_modules, unwinder_of};

/// Rules that a thread remembers, and memory for finding others.
pub type Rules = CacheNative<MustNotAllocateDuringUnwind>;

/// The modules that were loaded at some moment.
pub struct Modules {
    unwinder: UnwinderNative<Section, MustNotAllocateDuringUnwind>,
    /// Addresses of each module that has tables, and which of them have rules.
    ranges: Vec<(Range<u64>, Index)>,
    python: Option<Python>,
    changes: Changes,
}

/// Lists that stay where they are, because handlers have their addresses.
#[allow(clippy::vec_box)] // The vector moves what is not in a box.
type Lists = Vec<Box<Modules>>;

/// The list that handlers read; null while there is none.
static CURRENT: AtomicPtr<Modules> = AtomicPtr::new(null_mut());
/// Lists that were replaced and may still be read.
static REPLACED: Lock<Lists> = Lock::new(Vec::new());
/// Whether a handler met code that its list does not have.
static IS_STALE: AtomicBool = AtomicBool::new(false);

/// Number of threads that are unloading modules, perhaps.
static UNLOADING: AtomicUsize = AtomicUsize::new(0);

/// A thread's place to announce the list that its handler reads.
#[derive(Default)]
pub struct Reading(AtomicPtr<Modules>);

impl Reading {
    /// The current list. It lives until [`Reading::end`].
    pub fn begin(&self) -> Option<&Modules> {
        loop {
            let current = CURRENT.load(SeqCst);
            self.0.store(current, SeqCst);
            if CURRENT.load(SeqCst) == current {
                // SAFETY: whoever replaced this list did so after the announcement, and frees it
                // only when it is no longer announced.
                return unsafe { current.as_ref() };
            }
        }
    }

    pub fn end(&self) {
        self.0.store(null_mut(), SeqCst);
    }
}

/// Publishes the modules loaded now, unless the list is up to date. `readings` are those of all
/// sampled threads.
pub fn renew<'a>(readings: impl Iterator<Item = &'a Reading> + Clone) {
    let mut replaced = REPLACED.lock();
    if UNLOADING.load(SeqCst) > 0 {
        return;
    }
    let changes = Changes::now();
    // SAFETY: a list is freed below only after it was replaced, which takes the lock held here.
    let current = unsafe { CURRENT.load(SeqCst).as_ref() };
    let is_new = current.is_none_or(|current| current.changes != changes);
    let was_stale = IS_STALE.swap(false, Relaxed);
    // Code outside all modules was made by the program; a new list does not help. Where the loader
    // does not count, it may.
    let may_differ = is_new || was_stale && changes.loaded == 0;
    if !may_differ {
        return;
    }
    let (mut modules, mut ranges) = (Vec::new(), Vec::new());
    for (module, index) in loaded_modules() {
        ranges.push((module.avma_range(), index));
        modules.push(module);
    }
    let (unwinder, python) = (unwinder_of(modules), Python::find());
    let list = Box::new(Modules { unwinder, ranges, python, changes });
    replace(&mut replaced, Box::into_raw(list));
    let is_read = |list: &Modules| {
        let list = (&raw const *list).cast_mut();
        readings.clone().any(|reading| reading.0.load(SeqCst) == list)
    };
    replaced.retain(|list| is_read(list));
}

/// Withdraws the list, because a module may be unloaded, and waits until no handler reads it. There is
/// none until [`allow`] is called.
pub fn withdraw<'a>(readings: impl Iterator<Item = &'a Reading> + Clone) {
    let mut replaced = REPLACED.lock();
    UNLOADING.fetch_add(1, SeqCst);
    replace(&mut replaced, null_mut());
    drop(replaced);
    wait_until(|| readings.clone().all(|reading| reading.0.load(SeqCst).is_null()));
}

/// Allows a list again after [`withdraw`].
pub fn allow() {
    UNLOADING.fetch_sub(1, SeqCst);
}

fn replace(replaced: &mut Lists, list: *mut Modules) {
    let before = CURRENT.swap(list, SeqCst);
    if !before.is_null() {
        // SAFETY: made by `Box::into_raw` in `renew`, and no longer current: nobody else puts it
        // into the vector.
        replaced.push(unsafe { Box::from_raw(before) });
    }
}

/// The registers of an interrupted thread.
pub struct Interrupted {
    /// Address of the next instruction.
    pub address: u64,
    /// Stack pointer.
    pub stack: u64,
    registers: UnwindRegsNative,
}

impl Interrupted {
    /// # Safety
    /// The context is the one that the kernel passed to a signal handler.
    pub unsafe fn from_context(context: *const libc::ucontext_t) -> Self {
        // SAFETY: the kernel's context lies whole on the interrupted stack until the handler returns.
        let machine = unsafe { &(*context).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        {
            let of = |register: libc::c_int| machine.gregs[register as usize] as u64;
            let (address, stack) = (of(libc::REG_RIP), of(libc::REG_RSP));
            let registers = UnwindRegsNative::new(address, stack, of(libc::REG_RBP));
            Self { address, stack, registers }
        }
        // Not yet run on AArch64.
        #[cfg(target_arch = "aarch64")]
        {
            let (link, frame) = (machine.regs[30], machine.regs[29]);
            let registers = UnwindRegsNative::new(link, machine.sp, frame);
            Self { address: machine.pc, stack: machine.sp, registers }
        }
    }
}

impl Modules {
    /// Whether there is a rule for an address; `None` if no module has it.
    fn know(&self, address: u64) -> Option<bool> {
        let found = self.ranges.iter().find(|(range, _)| range.contains(&address));
        found.map(|(_, index)| index.covers(address))
    }

    /// Finds the functions on the stack of an interrupted thread, which is mapped between these addresses.
    /// Called by its signal handler.
    pub fn functions<'f>(
        &self,
        from: Interrupted,
        stack: &Range<usize>,
        rules: &mut Rules,
        found: &'f mut Functions,
    ) -> &'f Frames {
        let lowest = from.stack;
        self.compiled(from, stack, rules, &mut found.compiled);
        found.all(self.python.as_ref(), lowest)
    }

    fn compiled(
        &self,
        from: Interrupted,
        stack: &Range<usize>,
        rules: &mut Rules,
        found: &mut Frames,
    ) {
        let Interrupted { address, stack: lowest, mut registers } = from;
        found.clear();
        found.push(address);
        let readable = lowest..(stack.end as u64).saturating_sub(size_of::<u64>() as u64);
        let mut read = |address: u64| {
            let is_a_word = readable.contains(&address) && address.is_multiple_of(8);
            // SAFETY: a word of the thread's own stack, which is mapped from its stack pointer to
            // its end; the thread itself is interrupted.
            if is_a_word { Ok(unsafe { (address as *const u64).read_volatile() }) } else { Err(()) }
        };
        let mut at = FrameAddress::InstructionPointer(address);
        loop {
            match self.know(at.address_for_lookup()) {
                Some(true) => {}
                // Written in assembly, without tables: its callers cannot be found.
                Some(false) => return,
                None => {
                    // The address is no caller's if no module has it.
                    if found.addresses().len() > 1 {
                        found.pop();
                    }
                    IS_STALE.store(true, Relaxed);
                    return;
                }
            }
            match self.unwinder.unwind_frame(at, &mut registers, rules, &mut read) {
                Ok(None) => {
                    found.end_last(stack.end as u64);
                    found.is_complete = true;
                    return;
                }
                Ok(Some(caller)) => {
                    found.end_last(registers.sp());
                    let Some(next) = FrameAddress::from_return_address(caller) else { return };
                    if !found.push(caller) {
                        return;
                    }
                    at = next;
                }
                Err(_) => return,
            }
        }
    }
}

/// Whether a handler met code that its list does not have.
pub fn is_stale() -> bool {
    IS_STALE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};
    use std::iter::once;

    use super::*;
    use crate::host::own_stack;
    use crate::host::sample_signal::set_action;

    /// What the handler of the test uses.
    struct Walk {
        reading: Reading,
        rules: Rules,
        stack: Range<usize>,
        functions: Functions,
    }

    static WALK: AtomicPtr<Walk> = AtomicPtr::new(null_mut());

    unsafe extern "C" fn interrupted(_: c_int, _: *const libc::siginfo_t, context: *const c_void) {
        // SAFETY: the test has set the pointer and waits; the context is the kernel's.
        let (walk, from) =
            unsafe { (&mut *WALK.load(SeqCst), Interrupted::from_context(context.cast())) };
        if let Some(modules) = walk.reading.begin() {
            modules.functions(from, &walk.stack, &mut walk.rules, &mut walk.functions);
        }
    }

    #[inline(never)]
    fn raise_below(depth: usize) -> usize {
        // SAFETY: the signal has a handler.
        let raised = unsafe { libc::raise(libc::SIGUSR2) } as usize;
        if depth == 0 { raised } else { raise_below(depth - 1) + std::hint::black_box(1) }
    }

    // A single test, because the list is a global of the process.
    #[test]
    fn finds_callers_and_keeps_list_that_is_read() {
        let (reading, rules, functions) = Default::default();
        let mut walk = Walk { reading, rules, stack: own_stack::find(), functions };
        WALK.store(&raw mut walk, SeqCst);
        // SAFETY: a zeroed action may be written over; the handler takes what SA_SIGINFO promises.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupted as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(set_action(libc::SIGUSR2, &action, null_mut()), 0);
        }
        assert_eq!(raise_below(0), 0);
        assert!(walk.functions.compiled.addresses().is_empty(), "there is no list");
        renew(once(&walk.reading));
        assert_eq!(raise_below(3), 3);
        let (found, is_complete) =
            (walk.functions.compiled.addresses(), walk.functions.compiled.is_complete);
        assert!(is_complete && found.len() > 7, "{found:x?}");
        let repeated = found.windows(2).filter(|two| two[0] == two[1]);
        assert_eq!(repeated.count(), 2, "three calls of the function by itself");

        // The handler has not said that it has read the list.
        withdraw(once(&walk.reading));
        assert_eq!(REPLACED.lock().len(), 1);
        assert!(Reading::default().begin().is_none());
        renew(once(&walk.reading));
        assert!(Reading::default().begin().is_none(), "a module may be unloaded");
        allow();
        renew(once(&walk.reading));
        assert!(Reading::default().begin().is_some());
        assert_eq!(REPLACED.lock().len(), 1);
        walk.reading.end();
        withdraw(once(&walk.reading));
        allow();
        renew(once(&walk.reading));
        assert!(REPLACED.lock().is_empty());
    }
}
