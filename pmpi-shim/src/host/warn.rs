//! One line on standard error, without harm where there is none.

use std::sync::OnceLock;

use crate::host::descriptors::identity_of;

/// Which file descriptor 2 stood for when the library was loaded.
static STANDARD_ERROR: OnceLock<Option<(libc::dev_t, libc::ino_t)>> = OnceLock::new();

/// The loader calls this before the program can close or open anything.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = know_standard_error;

extern "C" fn know_standard_error() {
    let _ = STANDARD_ERROR.set(identity_of(2));
}

/// Writes a line; what cannot be written is dropped. A file that the program has opened in the place of its
/// standard error is its own: nothing is written there. A pipe that nobody reads is left alone, for
/// writing to it would raise SIGPIPE in the program.
pub fn warn(line: &str) {
    let there = identity_of(2);
    if there.is_none() || STANDARD_ERROR.get().copied() != Some(there) {
        return;
    }
    let text = format!("gammachi: {line}\n");
    let mut error_output = libc::pollfd { fd: 2, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one pollfd of ours, and a buffer of ours.
    unsafe {
        let ready = libc::poll(&mut error_output, 1, 0) == 1;
        if ready && error_output.revents & (libc::POLLERR | libc::POLLNVAL) == 0 {
            libc::write(2, text.as_ptr().cast(), text.len());
        }
    }
}
