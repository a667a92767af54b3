//! Storage of slots: a thread's windows, the rank's file, totals.
//!
//! | module | what it is for |
//! |---|---|
//! | `slots` | layout of an event in its slots |
//! | `outermost` | which call of a thread is an event; cleaning up after longjmp |
//! | `window` | a thread's windows and how they take turns |
//! | `mapping` | a window's memory: taken, opened, cleared |
//! | `site_table` | call addresses that a thread remembers, and the modules that contain them |
//! | `paths` | numbers of call paths |
//! | `interpreted` | definitions of interpreted functions |
//! | `keeping` | archiving full windows according to the run's policy |
//! | `ring` | a thread's newest events in bounded space of the file |
//! | `codec` | a window's slots in few bytes |
//! | `teams` | what the threads of OpenMP teams did in their parallel regions |
//! | `thread_records` | numbers of threads; records that threads continue one after the other |
//! | `totals` | events folded into totals |
//! | `file_calls` | calls on files, merged into records |
//! | `file_sums` | calls on files that are no events at once |
//! | `file_recording` | whether calls on files are recorded |
//! | `known_files` | numbers of the files that the program works on |
//! | `regions` | names of regions, and which are computation |
//! | `transient` | definitions of objects that the program makes and frees, in bounded space |
//! | `directories` | run directories, and folders in them |
//! | `due` | when a call that ends has more to do |
//! | `usage` | readings of what the process has used so far |
//! | `sample_area` | a thread's area of samples, which its signal handler fills |
//! | `sampler` | the signal handler that samples a thread |
//! | `sampling` | which threads are sampled, and how |
//! | `stack_answers` | the stacks of threads, for whoever asks for them by the signal |
//! | `trace_file` | the rank's file: windows, chunks, definitions |
//! | `chunk_headers` | headers of the file's chunks |
//! | `free_space` | space of the file that a thread fills again and again |
//! | `file_space` | space of a file, by its descriptor |
//! | `stage` | the staging directory, from which the file is moved at the end |

pub mod chunk_headers;
pub mod codec;
pub mod directories;
pub mod due;
pub mod file_calls;
pub mod file_recording;
pub mod file_space;
pub mod file_sums;
pub mod free_space;
pub mod interpreted;
pub mod keeping;
pub mod known_files;
pub mod mapping;
pub mod outermost;
pub mod paths;
pub mod regions;
pub mod ring;
pub mod sample_area;
pub mod sampler;
pub mod sampling;
pub mod site_table;
pub mod slots;
pub mod stack_answers;
pub mod stage;
#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod stepped;
pub mod teams;
pub mod thread_records;
pub mod totals;
pub mod trace_file;
pub mod transient;
pub mod usage;
pub mod window;
