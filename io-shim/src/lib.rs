//! `libgammachi_io.so`: sees the calls on files of a program that `libgammachi.so` records.
//!
//! It is a library of its own, because a program must keep its `write` where calls on files are not recorded. It is
//! preloaded behind the recorder, finds it by [`SYMBOL`](trace_format::preload::SYMBOL), and forwards everything if
//! it is not there.
//!
//! | module | what it is for |
//! |---|---|
//! | `entries` | the functions that programs bind to, on descriptors |
//! | `streams` | those of the C library's streams |
//! | `calls` | forwards a call and has it recorded |
//! | `descriptors` | what is known of each open descriptor |
//! | `positions` | where reads begin and end |
//! | `real` | the functions behind ours |
//! | `recorder` | `libgammachi.so`, if it is there |
//!
//! Rules: a call takes no lock, allocates nothing and asks the system nothing, but once for each descriptor what it is.
//! `errno` is that of the real function. A descriptor that is no regular file costs a look into a table. The recorder's
//! own calls are forwarded. Signal handlers may call, threads may be cancelled inside a call, and a jump may leave it:
//! nothing is held, and the call is not recorded.
//!
//! The C library's own calls (inside `printf`, `getc`, `dlopen`) do not go through here. `fread`, `fwrite`, `fflush`,
//! `fseek` and `fclose` show what they made the library read and write; the rest is known only as a
//! sum of bytes, from the kernel.

mod calls;
mod descriptors;
mod entries;
mod positions;
mod real;
mod recorder;
#[cfg(target_env = "gnu")]
mod streams;

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    entries::find_all();
    entries::find_mmap();
    #[cfg(target_env = "gnu")]
    streams::find_all();
    recorder::find();
    // SAFETY: the handler takes no arguments.
    unsafe { libc::pthread_atfork(None, Some(positions::all_shared), None) };
}
