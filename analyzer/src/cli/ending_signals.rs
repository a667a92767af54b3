//! Cleans up when a signal ends the command.

use libc::c_int;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::child_signals::is_ignored;

/// When a signal ends the command, runs `clean_up` with its number first, on a thread of its own.
/// Ignored signals (nohup) stay ignored. Without threads or descriptors, nothing is cleaned up.
pub fn before_ending(clean_up: impl FnOnce(c_int) + Send + 'static) {
    let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter();
    let Ok(mut signals) = Signals::new(ending.filter(|signal| !is_ignored(*signal))) else {
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            clean_up(signal);
            let _ = emulate_default_handler(signal);
        }
    });
}
