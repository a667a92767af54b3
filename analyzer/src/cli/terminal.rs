//! The terminal that standard output goes to, if it does.

use std::io::IsTerminal;

/// Whether screens are coloured: on a terminal, unless the user does not want colours (NO_COLOR).
pub fn has_colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Columns of the terminal; those of COLUMNS where it is set, for output that is shown by something else.
pub fn columns() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.filter(|columns| *columns > 0).or_else(of_terminal)
}

fn of_terminal() -> Option<u16> {
    // SAFETY: `winsize` is plain numbers, for which zeros are a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes a `winsize` to the address that it is given, which outlives the call.
    let told = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (told == 0 && size.ws_col > 0).then_some(size.ws_col)
}
