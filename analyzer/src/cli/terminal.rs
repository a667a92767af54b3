//! Properties of the terminal that standard output goes to, if any.

use std::io::IsTerminal;

/// Whether to use colours: on a terminal, unless the user has set NO_COLOR.
pub fn has_colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Columns of the terminal. COLUMNS takes precedence, for output that is displayed by something
/// else.
pub fn columns() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.filter(|columns| *columns > 0).or_else(terminal_columns)
}

fn terminal_columns() -> Option<u16> {
    // SAFETY: `winsize` consists of plain numbers, so all zeros is valid.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes a `winsize` to the given address, which outlives the call.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col)
}
