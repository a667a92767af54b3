//! `libgammachi.so`: records every MPI call of the program it is preloaded into.
//!
//! One binary for every MPI: the library never includes `mpi.h` and links to no MPI. Every argument
//! is a machine word that goes on unchanged (module `entries`), so C ints, 32-bit handles and 64-bit
//! handles pass alike on System V x86-64 and AArch64.
//!
//! | module | what it does |
//! |---|---|
//! | `entries` | the exported wrappers, generated from the table of procedures |
//! | `exceptions` | the entries that need a hand: init, finalize, Pcontrol, Wtime |
//! | `compute`, `work`, `plans` | interposed BLAS, LAPACK and FFTW, and their work from their arguments; declared work |
//! | `region` | what `gammachi.h` calls |
//! | `path` | the hot path: one event a call |
//! | `outermost` | which call of a thread is an event, and what longjmp leaves behind |
//! | `polls` | runs of tests and probes that found nothing, merged |
//! | `plan` | what a procedure's arguments mean for its event |
//! | `attributes` | peer, tag, bytes, requests and statuses of a call |
//! | `completions` | what a wait or test on several requests completed |
//! | `ignored_statuses` | what MPICH does otherwise where statuses are ignored |
//! | `collective_bytes` | what a collective sends and receives |
//! | `communicators` | identity of communicators, windows and files |
//! | `datatypes` | their sizes |
//! | `lifetimes` | what a call makes, names or frees |
//! | `abi` | where the loaded MPI keeps what a status says |
//! | `thread_block` | what a thread needs on that path |
//! | `counter` | the cycle counter |
//! | `counters` | counters of processor and kernel, where the user asks for them |
//! | `window` | the thread's windows: memory that its events go to |
//! | `keeping` | what becomes of a full window, by the run's policy |
//! | `peers` | which ranks run on the same host |
//! | `totals` | events folded into totals |
//! | `transient` | definitions of what the program makes and frees, in bounded space |
//! | `trace_file` | the rank's file: windows, chunks, definitions |
//! | `file_space` | space of a file by its descriptor |
//! | `life` | the recorder's states, start and finish |
//! | `real_entry`, `callers` | the way to the interposed functions |
//! | `absent` | what is called where no library has one |
//! | `closed_objects` | what lay in objects that the program closes |
//! | `weak_references` | procedures that the loaded MPI lacks look absent again |
//! | `mpi_library` | which MPI is loaded, and its constants |
//! | `presence` | which ranks load the recorder, as far as it shows |
//! | `agreement` | which ranks record together |
//! | `mail` | words between them, with deadlines |
//! | `clock_tree` | who exchanges clocks with whom |
//! | `clock_exchange` | this rank's counter against another's |
//! | `clock_schedule` | exchanges during the run |
//! | `sites` | where the program called from, at level 2 |
//! | `modules` | the code that is mapped into the process |
//! | `machine` | what the operating system says about process and host |
//! | `run_id` | what the files of one run have in common |
//! | `say` | one line on standard error |
//! | `settings` | environment variables |
//! | `sanitizers` | lets programs start that are built with AddressSanitizer |
//!
//! Rules: no panic crosses the C boundary, no allocation, lock or system call on the path of a
//! call (a full window, and a handle that the thread does not remember, leave the path), and whatever goes wrong with recording, the program goes on as without us.

// An exported C symbol is no API of this crate's; its docs are generated with it.
mod abi;
mod absent;
mod agreement;
mod attributes;
mod callers;
mod clock_exchange;
mod clock_schedule;
mod clock_tree;
mod closed_objects;
mod collective_bytes;
mod communicators;
mod completions;
mod compute;
mod counter;
mod counters;
mod datatypes;
mod entries;
mod exceptions;
mod file_space;
mod ignored_statuses;
mod keeping;
mod life;
mod lifetimes;
mod machine;
mod mail;
mod modules;
mod mpi_library;
mod outermost;
mod path;
mod peers;
mod plan;
mod plans;
mod polls;
mod presence;
mod real_entry;
mod region;
mod run_id;
mod sanitizers;
mod say;
mod settings;
mod sites;
mod stage;
mod thread_block;
mod totals;
mod trace_file;
mod transient;
mod weak_references;
mod window;
mod work;
