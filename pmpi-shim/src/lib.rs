//! `libgammachi.so`: records every MPI call of the program it is preloaded into.
//!
//! One binary for every MPI: the library never includes `mpi.h` and links to no MPI. Every argument
//! is a machine word that goes on unchanged (`interpose::entries`), so C ints, 32-bit handles and 64-bit
//! handles pass alike on System V x86-64 and AArch64.
//!
//! Its modules stand in floors. A module uses its own floor and those below it, never one above, and no
//! modules use each other in a circle: the test `floors` reads this table, top floor first.
//!
//! | floor | what it is for |
//! |---|---|
//! | `interpose` | symbols that programs bind to |
//! | `life` | begin and end of recording; what stands between them |
//! | `event` | a call becomes slots |
//! | `handles` | communicators, windows, files, datatypes and their lifetimes |
//! | `clock` | this rank's counter against the others' |
//! | `store` | where slots go: windows, the rank's file, totals |
//! | `mpi` | the loaded MPI: its constants, its functions, messages of our own |
//! | `host` | process, host and environment |
//! | `state` | whether calls are recorded; the thread's block |
//!
//! What a lower floor needs of a higher one it is given: as data, as a value returned, or as a function
//! on slots. Each floor's `mod.rs` says what its modules are for.
//!
//! Rules: no panic crosses the C boundary; no allocation, lock or system call on the path of a call (a full
//! window, and a handle that the thread does not remember, leave the path); whatever goes wrong with
//! recording, the program runs as if the recorder were not there.

mod clock;
mod event;
mod handles;
mod host;
mod interpose;
mod life;
mod mpi;
mod state;
mod store;

#[global_allocator]
static MEMORY: host::memory::Memory = host::memory::Memory::new();

#[cfg(test)]
mod floors;
