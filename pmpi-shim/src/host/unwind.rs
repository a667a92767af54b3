//! Return addresses on a thread's stack.
//!
//! Starting at a frame of the recorder, it finds the return addresses of the functions above it,
//! innermost first. The unwind tables of the loaded modules are read where they are mapped, and
//! rules found for an address are cached. (`_Unwind_Backtrace` also recovers registers that nobody
//! needs, and asks the loader for every frame.) Python's functions stand in place of those that
//! interpret them.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use framehop::{
    AllocationPolicy, CacheNative, ExplicitModuleSectionInfo, FrameAddress,
    MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder, UnwinderNative,
};

use crate::host::frames::MAX_FRAMES;
use crate::host::loader::{Changes, for_each_object};
use crate::host::lock::{Lock, Locked};
use crate::host::python_stack::{Functions, Python};

/// A section of a module, as mapped.
pub type Section = &'static [u8];

/// Unwinds with the modules that were loaded when it was made.
struct Unwinding {
    unwinder: UnwinderNative<Section, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    python: Option<Python>,
    functions: Functions,
    changes: Changes,
}

static UNWINDING: Lock<Option<Unwinding>> = Lock::new(None);

/// Registers of the frame that captures them.
pub struct Registers {
    at: u64,
    registers: UnwindRegsNative,
    stack: u64,
}

impl Registers {
    /// Captures the registers of the function that this is inlined in.
    #[inline(always)]
    pub fn here() -> Self {
        let (at, stack, frame): (u64, u64, u64);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads three registers.
        unsafe {
            std::arch::asm!(
                "lea {at}, [rip]",
                "mov {stack}, rsp",
                "mov {frame}, rbp",
                at = out(reg) at,
                stack = out(reg) stack,
                frame = out(reg) frame,
                options(nomem, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "x86_64")]
        let registers = UnwindRegsNative::new(at, stack, frame);
        #[cfg(target_arch = "aarch64")]
        let link: u64;
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads four registers. Not yet run on AArch64.
        unsafe {
            std::arch::asm!(
                "adr {at}, .",
                "mov {stack}, sp",
                "mov {frame}, x29",
                "mov {link}, x30",
                at = out(reg) at,
                stack = out(reg) stack,
                frame = out(reg) frame,
                link = out(reg) link,
                options(nomem, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        let registers = UnwindRegsNative::new(link, stack, frame);
        Self { at, registers, stack }
    }
}

/// Passes the return addresses to `take`, starting with the frame at `entered`, the stack address
/// at which the program called the recorder, for as long as the stack can be read (`stack`: its
/// mapped addresses) and understood.
pub fn walk(from: Registers, entered: usize, stack: &Range<usize>, take: impl FnMut(u64)) {
    let mut unwinding = up_to_date();
    let Some(Unwinding { unwinder, cache, python, functions, .. }) = unwinding.as_mut() else {
        return;
    };
    let Registers { at, mut registers, stack: lowest } = from;
    let readable = lowest..(stack.end as u64).saturating_sub(size_of::<u64>() as u64);
    if !stack.contains(&(lowest as usize)) {
        return;
    }
    let mut read = |address: u64| {
        let is_a_word = readable.contains(&address) && address.is_multiple_of(8);
        // SAFETY: a word of the thread's own stack, which is mapped from the start of the walk to
        // its end. Frames up there are not written while their callee runs.
        if is_a_word { Ok(unsafe { (address as *const u64).read_volatile() }) } else { Err(()) }
    };
    let mut address = FrameAddress::InstructionPointer(at);
    let compiled = &mut functions.compiled;
    compiled.clear();
    // The recorder's own frames count, too.
    for _ in 0..MAX_FRAMES {
        let found = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
        compiled.is_complete = matches!(found, Ok(None));
        compiled.end_last(if compiled.is_complete { stack.end as u64 } else { registers.sp() });
        let Ok(Some(goes_on)) = found else { break };
        let Some(next) = FrameAddress::from_return_address(goes_on) else { break };
        if registers.sp() > entered as u64
            || cfg!(target_arch = "aarch64") && registers.sp() == entered as u64
        {
            compiled.push(goes_on);
        }
        address = next;
    }
    let all = functions.all(python.as_ref(), entered as u64);
    all.addresses().iter().copied().for_each(take);
}

/// Reads the tables of the loaded modules. This takes a millisecond, a walk some hundred
/// nanoseconds.
pub fn prepare() {
    drop(up_to_date());
}

fn up_to_date() -> Locked<'static, Option<Unwinding>> {
    let mut unwinding = UNWINDING.lock();
    let changes = Changes::now();
    if unwinding.as_ref().is_none_or(|known| known.changes != changes) {
        let unwinder = unwinder_of(loaded_modules().into_iter().map(|(module, _)| module));
        let (python, functions) = (Python::find(), Functions::default());
        let cache = CacheNative::default();
        *unwinding = Some(Unwinding { unwinder, cache, python, functions, changes });
    }
    unwinding
}

/// Which addresses of a module have rules: the index of its unwind tables.
pub struct Index {
    /// Where the index and the tables are mapped.
    at: u64,
    frames_at: u64,
    index: Section,
    frames: Section,
}

impl Index {
    /// Whether there is a rule for an address; also if the index has another form than usual.
    pub fn covers(&self, address: u64) -> bool {
        self.find(address).unwrap_or(true)
    }

    fn find(&self, address: u64) -> Option<bool> {
        // Number of entries: unsigned, 32 bits; entries: two numbers relative to the index.
        const USUAL: [u8; 2] = [0x03, 0x3b];
        let number = |bytes: Section, at: usize| Some(*bytes.get(at..)?.first_chunk::<4>()?);
        let signed = |bytes, at| number(bytes, at).map(i32::from_le_bytes).map(i64::from);
        if self.index.get(2..4)? != USUAL {
            return None;
        }
        let entries = u32::from_le_bytes(number(self.index, 8)?) as usize;
        let wanted = address.wrapping_sub(self.at) as i64;
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = (low + high) / 2;
            let is_before = signed(self.index, 12 + 8 * middle)? <= wanted;
            if is_before { low = middle + 1 } else { high = middle }
        }
        let Some(entry) = low.checked_sub(1) else { return Some(false) };
        let begin = signed(self.index, 12 + 8 * entry)?;
        let rule = self.at.wrapping_add_signed(signed(self.index, 16 + 8 * entry)?);
        let rule_at = usize::try_from(rule.checked_sub(self.frames_at)?).ok()?;
        // Length, common part, begin relative to itself, length of the code.
        let same = rule.wrapping_add(8).wrapping_add_signed(signed(self.frames, rule_at + 8)?);
        if same != self.at.wrapping_add_signed(begin) {
            return None;
        }
        let bytes = u32::from_le_bytes(number(self.frames, rule_at + 12)?);
        Some(wanted - begin < i64::from(bytes))
    }
}

/// The modules loaded now, with their unwind tables. Must not be used after one was unloaded.
pub fn loaded_modules() -> Vec<(Module<Section>, Index)> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record; `out` is the vector below. Sections lie in
        // segments that stay mapped as long as the module is loaded.
        unsafe {
            let modules = &mut *out.cast::<Vec<(Module<Section>, Index)>>();
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
            modules.extend(module_of(headers, (*info).dlpi_addr));
        }
        0
    }
    let mut modules: Vec<(Module<Section>, Index)> = Vec::new();
    // SAFETY: callback and argument match.
    unsafe { for_each_object(add, (&raw mut modules).cast()) };
    modules
}

/// An unwinder for these modules.
pub fn unwinder_of<P: AllocationPolicy>(
    modules: impl IntoIterator<Item = Module<Section>>,
) -> UnwinderNative<Section, P> {
    let mut unwinder = UnwinderNative::new();
    modules.into_iter().for_each(|module| unwinder.add_module(module));
    unwinder
}

/// A module with its unwind tables. `None` if it has none.
///
/// # Safety
/// The headers are those of a module loaded at `base`.
unsafe fn module_of(headers: &[libc::Elf64_Phdr], base: u64) -> Option<(Module<Section>, Index)> {
    let range = |header: &libc::Elf64_Phdr| {
        let begin = base.wrapping_add(header.p_vaddr);
        begin..begin.saturating_add(header.p_memsz)
    };
    let is_load = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0
    };
    let loads = || headers.iter().filter(is_load).map(range);
    let whole = loads().map(|load| load.start).min()?..loads().map(|load| load.end).max()?;
    let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(range)?;
    let segment = loads().find(|load| load.contains(&index.start))?;
    if index.end > segment.end || index.end - index.start < 8 {
        return None;
    }
    // Version, encodings of the pointer to the frames, of their number and of the table; then the
    // pointer.
    const VERSION: u8 = 1;
    const RELATIVE_TO_ITSELF_SIGNED_32: u8 = 0x1b;
    // SAFETY: checked above: inside a readable segment, which the loader has mapped as a whole.
    let index_bytes = unsafe {
        std::slice::from_raw_parts(index.start as *const u8, (index.end - index.start) as usize)
    };
    let [VERSION, RELATIVE_TO_ITSELF_SIGNED_32, _, _, distance @ ..] =
        index_bytes.first_chunk::<8>()?
    else {
        return None;
    };
    let distance = i64::from(i32::from_le_bytes(*distance));
    let frames = index.start.wrapping_add(4).wrapping_add_signed(distance);
    let frames = frames..loads().find(|load| load.contains(&frames))?.end;
    // SAFETY: from inside a readable segment to its end, and the loader has mapped all of it.
    let frame_bytes = unsafe {
        std::slice::from_raw_parts(frames.start as *const u8, (frames.end - frames.start) as usize)
    };
    let (at, frames_at) = (index.start, frames.start);
    let rules = Index { at, frames_at, index: index_bytes, frames: frame_bytes };
    let in_file = |range: Range<u64>| range.start.wrapping_sub(base)..range.end.wrapping_sub(base);
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_hdr_svma: Some(in_file(index)),
        eh_frame_hdr: Some(index_bytes),
        eh_frame_svma: Some(in_file(frames)),
        eh_frame: Some(frame_bytes),
        ..Default::default()
    };
    Some((Module::new(String::new(), whole, base, sections), rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::own_stack;
    use crate::state::thread_block::thread_block;

    #[inline(never)]
    fn addresses() -> Vec<u64> {
        let (mut found, from) = (Vec::new(), Registers::here());
        let entered = from.stack as usize;
        walk(from, entered, &own_stack::range(thread_block()), |address| found.push(address));
        found
    }

    #[test]
    fn finds_same_return_addresses_again() {
        #[inline(never)]
        fn twice() -> [Vec<u64>; 2] {
            std::hint::black_box([addresses(), addresses()])
        }
        let [first, second] = twice();
        assert!(first.len() > 5, "{first:x?}");
        // Two call sites in one function; the frames above are the same.
        assert_ne!(first[0], second[0]);
        assert_eq!(first[1..], second[1..]);
    }

    #[test]
    fn code_has_rules_and_what_lies_between_has_none() {
        let own = finds_same_return_addresses_again as *const () as u64;
        let all = loaded_modules();
        let holds = |module: &Module<Section>| module.avma_range().contains(&own);
        let (module, index) = all.iter().find(|(module, _)| holds(module)).expect("it is loaded");
        assert_eq!(index.find(own + 1), Some(true));
        assert_eq!(index.find(module.avma_range().start), Some(false), "the file's header");
    }

    #[test]
    fn reads_nothing_beyond_stack() {
        let from = Registers::here();
        let entered = from.stack as usize;
        walk(from, entered, &(0..0), |_| panic!("no address is known"));
    }
}
