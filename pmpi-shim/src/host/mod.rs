//! Process, host and environment: what the operating system, the loader and the user say.
//!
//! | module | what it is for |
//! |---|---|
//! | `settings` | what the environment asks for |
//! | `counter` | the counter that times are read from |
//! | `perf_counters` | counters of processor and kernel, where the user asks for them |
//! | `machine` | what the operating system says about process and host |
//! | `loader` | functions by name, objects by address, what came and went |
//! | `modules` | the code that is mapped into the process |
//! | `presence` | which ranks load the recorder, as far as can be told without messages |
//! | `peers` | which ranks run on the same host |
//! | `run_id` | what the files of one run have in common |
//! | `descriptors` | descriptors out of the program's way |
//! | `memory` | what the recorder allocates, apart from the program's |
//! | `own_stack` | where a thread's own stack lies |
//! | `own_work` | `errno` and cancellation stay the program's |
//! | `signals` | signals held off while this thread is inside the loader |
//! | `unwind` | return addresses on a thread's stack |
//! | `warn` | one line on standard error |

pub mod counter;
pub mod descriptors;
pub mod loader;
pub mod machine;
pub mod memory;
pub mod modules;
pub mod own_stack;
pub mod own_work;
pub mod peers;
pub mod perf_counters;
pub mod presence;
pub mod run_id;
pub mod settings;
pub mod signals;
pub mod unwind;
pub mod warn;
