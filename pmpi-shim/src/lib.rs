//! `libgammachi.so`: records every MPI call of the program it is preloaded into.
//!
//! One binary serves every MPI: the library never includes `mpi.h` and links to no MPI. Every
//! argument is a machine word that is passed on unchanged (`interpose::entries`), so C ints, 32-bit
//! handles and 64-bit handles all work on System V x86-64 and AArch64.
//!
//! The modules form layers. A module uses its own layer and those below it, never one above, and no
//! modules use each other in a circle. The test `layers` reads this table, top layer first.
//!
//! | layer | what it is for |
//! |---|---|
//! | `interpose` | symbols that programs bind to |
//! | `life` | begin and end of recording, and the run's directory |
//! | `event` | turning calls into slots |
//! | `handles` | communicators, windows, files, datatypes and their lifetimes |
//! | `clock` | relating this rank's counter to the others' |
//! | `store` | where slots go: windows, the rank's file, totals |
//! | `mpi` | the loaded MPI: its constants, its functions, the recorder's own messages |
//! | `host` | process, host and environment |
//! | `state` | whether calls are recorded; the thread's block |
//!
//! What a lower layer needs from a higher one is passed to it: as data, as a return value, or as a
//! function on slots. Each layer's `mod.rs` describes its modules.
//!
//! Rules: no panic crosses the C boundary. The path of a call has no allocation, lock or system
//! call (a full window, or a handle that the thread does not remember, leaves the path). Whatever
//! goes wrong with recording, the program runs as if the recorder were not there.

mod clock;
mod event;
mod handles;
mod host;
mod interpose;
mod life;
mod mpi;
mod state;
mod store;

// Miri lets no allocator written in Rust store to a block while the call that drops its box returns.
#[cfg(not(miri))]
#[global_allocator]
static MEMORY: host::memory::Memory = host::memory::Memory::new();

#[cfg(test)]
mod layers;
