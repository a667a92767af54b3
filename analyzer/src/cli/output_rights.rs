//! Who may read the files that a command writes.

use clap::Args;
use rustix::fs::Mode;

/// Access rights of files that contain what a trace contains: command lines, paths, host names.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputRights {
    /// Let others read the output, as your umask allows; otherwise only you can
    #[arg(long)]
    pub share: bool,
}

impl OutputRights {
    /// Makes all files that the command creates from here on readable by their owner alone, unless
    /// they are shared.
    pub fn apply(self) {
        if !self.share {
            rustix::process::umask(Mode::RWXG | Mode::RWXO);
        }
    }
}
