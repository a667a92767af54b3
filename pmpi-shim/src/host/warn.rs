//! Writes one line to standard error, safely if the program has closed or replaced it.

use std::sync::OnceLock;

use crate::host::descriptors::identity_of;

/// The file that descriptor 2 referred to when the library was loaded.
static STANDARD_ERROR: OnceLock<Option<(libc::dev_t, libc::ino_t)>> = OnceLock::new();

/// The loader calls this before the program can close or open any file.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = know_standard_error;

extern "C" fn know_standard_error() {
    let _ = STANDARD_ERROR.set(identity_of(2));
}

/// Writes a line, dropping what cannot be written. If the program has opened a file of its own in
/// place of standard error, nothing is written. A pipe without a reader is left alone, because
/// writing to it would raise SIGPIPE in the program.
pub fn warn(line: &str) {
    let there = identity_of(2);
    if there.is_none() || STANDARD_ERROR.get().copied() != Some(there) {
        return;
    }
    let text = format!("gammachi: {line}\n");
    let mut error_output = libc::pollfd { fd: 2, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the pollfd and the buffer are ours.
    unsafe {
        let ready = libc::poll(&mut error_output, 1, 0) == 1;
        if ready && error_output.revents & (libc::POLLERR | libc::POLLNVAL) == 0 {
            libc::write(2, text.as_ptr().cast(), text.len());
        }
    }
}
