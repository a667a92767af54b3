//! A thread's state on the path of a call, found with two instructions.
//!
//! The block is defined in assembly as a `.tbss` object and addressed by its offset in the global
//! offset table (initial-exec). Stable Rust's `thread_local!` would call `__tls_get_addr` in a
//! shared library, which costs as much as a third of the whole path.
//!
//! A library opened with `dlopen` may find no place in the static TLS area, so the block stays
//! small. There is no destructor: a pthread key, set when the first window is opened, tells when a
//! thread ends.

use std::arch::{asm, global_asm};
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::panic::RefUnwindSafe;

use trace_format::layout::Slot;

/// Bytes reserved for the block in assembly.
const BLOCK_BYTES: usize = 896;

/// Number of datatype sizes cached per thread.
pub const CACHED_SIZES: usize = 16;
/// Number of communicators cached per thread.
pub const CACHED_COMMUNICATORS: usize = 8;
/// Number of groups of ranks cached per thread.
pub const CACHED_GROUPS: usize = 4;

/// The facts about a communicator that the path of a call needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CommunicatorFacts {
    /// Local id.
    pub id: u16,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// This process's rank in it.
    pub rank: i32,
    /// Number of ranks that a collective call exchanges with: the communicator's size, or that of
    /// the remote group.
    pub peers: i32,
    /// Number of ranks in the local group.
    pub size: i32,
    /// Number of neighbours received from.
    pub in_neighbours: i32,
    /// Number of neighbours sent to.
    pub out_neighbours: i32,
    /// A bit for each neighbour that is MPI_PROC_NULL, at the edges of a Cartesian topology.
    pub missing_neighbours: u64,
}

/// A thread's part in an OpenMP parallel region.
pub struct TeamShare {
    /// Number of the region (`store::teams`); 0 outside regions.
    pub region: Cell<u64>,
    /// What the runtime calls the thread's part.
    pub task: Cell<usize>,
    /// Counter at the thread's last event there.
    pub since: Cell<u64>,
    /// Ticks of work there.
    pub work: Cell<u64>,
    /// The thread's number in the team.
    pub index: Cell<u32>,
    /// Waits inside waits that it is in, and whether the outermost is for a lock.
    pub depth: Cell<u16>,
    pub waits_for_lock: Cell<bool>,
}

/// A thread's state. All zero when the thread starts.
///
/// Only its thread has a reference to it: [`thread_block`] is the only source, and cells are not
/// shared between threads. What a signal handler of the thread changes lies in cells, too.
#[repr(C, align(64))]
pub struct ThreadBlock {
    /// Next free slot of the window; equal to `end` when there is none.
    pub cursor: Cell<*mut Slot>,
    /// End of the window's slots.
    pub end: Cell<*mut Slot>,
    /// Stack address at which the outermost call in progress was entered, 0 outside MPI.
    pub outer_stack: Cell<usize>,
    /// The word at that address, the call's return address. It stays there while the frame lives.
    pub outer_return: Cell<usize>,
    /// Stack address at which the last wrapper was entered; stored by [`entry_stub`].
    pub entered_stack: Cell<usize>,
    /// 0: read the time-stamp counter. Otherwise call `host::counter::read_slow`.
    pub counter_slow: Cell<u32>,
    /// Detail level: 0 function and times, 1 and above attributes.
    pub level: Cell<u32>,
    /// Mapping of the current window, null before the first.
    pub window: Cell<*mut u8>,
    /// Bytes of that mapping.
    pub window_bytes: Cell<usize>,
    /// The thread's windows (only `store::window` knows their type), null before the first.
    pub recorder: Cell<*mut c_void>,
    /// Handle generation that the two caches below belong to.
    pub generation: Cell<u32>,
    /// Records of runs of empty polls that may still grow: the first one, and the end of the last;
    /// null if there are none.
    pub polls: Cell<(*mut Slot, *mut Slot)>,
    /// Records of calls on files that may still grow: the first one, and the end of the last; null if
    /// there are none.
    pub file_calls: Cell<(*mut Slot, *mut Slot)>,
    /// Handles copied before a call that overwrites them. Grown by mmap.
    pub handles: Cell<*mut usize>,
    /// Capacity of `handles` in words.
    pub handle_capacity: Cell<usize>,
    /// Cached datatypes: handle and size, by hash.
    pub sizes: [Cell<(usize, u64)>; CACHED_SIZES],
    /// Cached communicators: handle and facts, by hash.
    pub communicators: [Cell<(usize, Option<&'static CommunicatorFacts>)>; CACHED_COMMUNICATORS],
    /// The last window or file: its handle and whether it is a window; its id and its
    /// communicator's id.
    pub object: Cell<((usize, bool), (u32, u16))>,
    /// Cached groups of ranks by hash: handle, number of groups freed when it was cached, number in the
    /// trace.
    pub groups: [Cell<(usize, u32, u32)>; CACHED_GROUPS],
    /// The window's cursor and end while MPI_Pcontrol has paused the thread.
    pub paused: Cell<(*mut Slot, *mut Slot)>,
    /// Counter when the thread was paused, 0 while it is not.
    pub paused_at: Cell<u64>,
    /// Stack address at which the plan execution in progress was entered, 0 outside. MPI calls
    /// inside it are events, compute calls are not.
    pub transform_stack: Cell<usize>,
    /// The word at that address.
    pub transform_return: Cell<usize>,
    /// Begin and end of the stack that the thread was started with, mapped as long as the thread
    /// lives. Equal until a nested call needs them.
    pub own_stack: Cell<(usize, usize)>,
    /// Depth of the recorder's stay inside the loader (`host::forks`).
    pub in_loader: Cell<u32>,
    /// Number of holders of the thread's signals (`host::signals`).
    pub held_off: Cell<u32>,
    /// The signals that were blocked before the first of them.
    pub signals_before: Cell<u64>,
    /// What interrupts the thread and where its samples go (only `store::sampler` knows the type);
    /// null while it is not known.
    pub sampler: Cell<*mut c_void>,
    /// Whether it is in an OpenMP parallel region that is recorded, and what it does there (bits of
    /// `interpose::team`); 0 outside.
    pub region: Cell<u8>,
    /// Ticks that it has waited there so far, by what for.
    pub region_waits: Cell<[u64; 3]>,
    /// Its team (`store::teams`), counted from 1; 0 before its first region.
    pub team: Cell<u32>,
    /// Its part in a region of which the OpenMP runtime tells.
    pub team_share: TeamShare,
    /// Slots for events that are not recorded.
    pub scratch: UnsafeCell<[Slot; 2]>,
}

const _: () = assert!(size_of::<ThreadBlock>() <= BLOCK_BYTES);

global_asm!(
    ".section .tbss.gammachi_thread_block,\"awT\",@nobits",
    ".p2align 6",
    ".hidden gammachi_thread_block",
    ".globl gammachi_thread_block",
    ".type gammachi_thread_block,@object",
    ".size gammachi_thread_block, {bytes}",
    "gammachi_thread_block:",
    ".zero {bytes}",
    ".text",
    bytes = const BLOCK_BYTES,
);

// A panic is caught where the recorder's own work ends, and each step of that leaves the cells as
// the next one needs them.
impl RefUnwindSafe for ThreadBlock {}

/// The calling thread's block.
#[inline(always)]
pub fn thread_block() -> &'static ThreadBlock {
    let block: *const ThreadBlock;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer and a constant of the global offset table. The dynamic
    // loader sets up both before any code of this library runs.
    unsafe {
        asm!(
            "mov {block}, qword ptr fs:[0]",
            "add {block}, qword ptr [rip + gammachi_thread_block@GOTTPOFF]",
            block = out(reg) block,
            options(pure, nomem, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer and a constant of the global offset table, as on x86-64. Not
    // yet run on AArch64.
    unsafe {
        asm!(
            "mrs {block}, tpidr_el0",
            "adrp {offset}, :gottprel:gammachi_thread_block",
            "ldr {offset}, [{offset}, :gottprel_lo12:gammachi_thread_block]",
            "add {block}, {block}, {offset}",
            block = out(reg) block,
            offset = out(reg) _,
            options(pure, nomem, nostack),
        );
    }
    // SAFETY: the object lives as long as its thread, which the reference cannot leave. It has the
    // size and alignment of the type, begins as zeros, and all its fields are cells.
    unsafe { &*block }
}

/// Defines an exported C function that stores the stack address at which it is entered in the
/// thread's block and jumps to `$inner`, which takes the same arguments.
///
/// On x86-64 the return address is at that address. It stays there until the call returns.
macro_rules! entry_stub {
    ($symbol:ident, $inner:path) => {
        entry_stub!($symbol, $inner, concat!("Interposes `", stringify!($symbol), "`."));
    };
    ($symbol:ident, $inner:path, $about:expr) => {
        #[doc = $about]
        ///
        /// # Safety
        /// The caller vouches for the arguments, as for the procedure itself.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $symbol() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "mov r11, qword ptr fs:[0]",
                "add r11, qword ptr [rip + gammachi_thread_block@GOTTPOFF]",
                "mov qword ptr [r11 + {entered}], rsp",
                "jmp {inner}",
                entered = const core::mem::offset_of!(crate::state::thread_block::ThreadBlock, entered_stack),
                inner = sym $inner,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "mrs x16, tpidr_el0",
                "adrp x17, :gottprel:gammachi_thread_block",
                "ldr x17, [x17, :gottprel_lo12:gammachi_thread_block]",
                "add x16, x16, x17",
                "mov x17, sp",
                "str x17, [x16, {entered}]",
                "b {inner}",
                entered = const core::mem::offset_of!(crate::state::thread_block::ThreadBlock, entered_stack),
                inner = sym $inner,
            );
        }
    };
}
pub(crate) use entry_stub;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the recorder supports x86-64 and AArch64 only");
