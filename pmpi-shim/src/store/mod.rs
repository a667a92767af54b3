//! Where slots go.
//!
//! | module | what it is for |
//! |---|---|
//! | `slots` | how an event stands in its slots |
//! | `outermost` | which call of a thread is an event, and what longjmp leaves behind |
//! | `window` | a thread's windows: what it writes to, how they take turns |
//! | `mapping` | a window's memory: taken, opened, emptied |
//! | `site_table` | addresses that a thread has called from, and the modules that they lie in |
//! | `paths` | numbers of call paths |
//! | `keeping` | what becomes of a full window, by the run's policy |
//! | `codec` | a window's slots in few bytes |
//! | `totals` | events folded into totals |
//! | `regions` | names of regions, and which are computation |
//! | `transient` | definitions of what the program makes and frees, in bounded space |
//! | `trace_file` | the rank's file: windows, chunks, definitions |
//! | `file_space` | space of a file by its descriptor |
//! | `stage` | a staging directory, from which the file moves at the end |

pub mod codec;
pub mod file_space;
pub mod keeping;
pub mod mapping;
pub mod outermost;
pub mod paths;
pub mod regions;
pub mod site_table;
pub mod slots;
pub mod stage;
pub mod totals;
pub mod trace_file;
pub mod transient;
pub mod window;
