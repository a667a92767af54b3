//! One line on standard error, without harm where there is none.

/// Writes a line; what cannot be written is dropped. A pipe that nobody reads is left alone, for
/// writing to it would raise SIGPIPE in the program.
pub fn say(line: &str) {
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
