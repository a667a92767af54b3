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
    let own = || Some(rustix::termios::tcgetwinsize(std::io::stdout()).ok()?.ws_col);
    asked.filter(|columns| *columns > 0).or_else(|| own().filter(|columns| *columns > 0))
}
