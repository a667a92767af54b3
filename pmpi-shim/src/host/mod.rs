//! Process, host and environment: queries to the operating system, the loader and the user's
//! settings.
//!
//! | module | what it is for |
//! |---|---|
//! | `settings` | the user's settings from the environment |
//! | `counter` | the counter that times are read from |
//! | `perf_counters` | performance counters of processor and kernel, on request |
//! | `machine` | facts about process and host |
//! | `elf` | symbols of loaded objects, read without the loader |
//! | `forks` | keeps forks and the recorder's stay in the loader apart |
//! | `loader` | functions by name, objects by address, loading and unloading |
//! | `modules` | the code that is mapped into the process |
//! | `presence` | which ranks load the recorder, as far as can be told without messages |
//! | `peers` | which ranks run on the same host |
//! | `run_id` | the id shared by the files of one run |
//! | `descriptors` | keeps descriptors out of the program's way |
//! | `memory` | the recorder's allocator |
//! | `lock` | locks that a jump out of a signal handler cannot leave locked |
//! | `own_stack` | the address range of a thread's stack |
//! | `handler_stack` | a stack for a signal handler |
//! | `own_work` | protects `errno`, holds off cancellation and signals |
//! | `signals` | holds signals off while this thread does the recorder's own work |
//! | `unwind` | return addresses on a thread's stack |
//! | `frames` | the functions on a thread's stack, compiled and interpreted |
//! | `own_memory` | reads of the process's own memory that may fail |
//! | `recurring_memory` | many such reads with one system call |
//! | `python_layout` | where CPython keeps frames and code |
//! | `python_lines` | lines of a Python function's instructions |
//! | `python_code` | Python functions that were met on stacks |
//! | `python_stack` | Python functions on a thread's stack |
//! | `sample_signal` | the signal that interrupts sampled threads |
//! | `sample_timer` | what sends it |
//! | `sampled_stack` | callers of an interrupted thread |
//! | `warn` | one line on standard error |

pub mod counter;
pub mod descriptors;
pub mod elf;
pub mod forks;
pub mod frames;
pub mod handler_stack;
pub mod loader;
pub mod lock;
pub mod machine;
pub mod memory;
pub mod modules;
pub mod own_memory;
pub mod own_stack;
pub mod own_work;
pub mod peers;
pub mod perf_counters;
pub mod presence;
pub mod python_code;
pub mod python_layout;
pub mod python_lines;
pub mod python_stack;
pub mod recurring_memory;
pub mod run_id;
pub mod sample_signal;
pub mod sample_timer;
pub mod sampled_stack;
pub mod settings;
pub mod signals;
pub mod unwind;
pub mod warn;
