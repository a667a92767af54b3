//! Who may read the files that a command writes.

use clap::Args;

/// Rights of files that hold what a trace says: command lines, paths, host names.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputRights {
    /// Let others read what is written, as your umask says; without this only you can
    #[arg(long)]
    pub share: bool,
}

impl OutputRights {
    /// Has all files that the command makes from here on read by their owner alone, unless they are shared.
    pub fn apply(self) {
        if !self.share {
            // SAFETY: umask has no obligations; it is changed before threads are started.
            unsafe { libc::umask(0o077) };
        }
    }
}
