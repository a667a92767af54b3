//! Generates shell completions and man pages from the definition of the command line, for packagers
//! and `scripts/install`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use super::error::{CommandError, Context, print};

/// Prints completions for a shell.
#[derive(Debug, Args)]
#[command(hide = true)]
#[command(after_help = "Examples:\n  gammachi completions bash > ~/.local/share/bash-completion/\
    completions/gammachi\n  gammachi completions zsh > \"${fpath[1]}/_gammachi\"")]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes the man pages, one per subcommand.
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:\n  gammachi man-pages ~/.local/share/man/man1 && man gammachi-run"
)]
pub struct ManPagesArguments {
    /// Directory to write them into; created if missing
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

pub fn completions(
    arguments: &CompletionsArguments,
    mut command: Command,
) -> Result<(), CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "gammachi", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Writes `gammachi.1`, `gammachi-run.1` … into a directory.
pub fn man_pages(arguments: &ManPagesArguments, command: Command) -> Result<(), CommandError> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), directory))
        .context(
            CommandError::Output,
            format_args!("cannot write man pages into {}", directory.display()),
        )
}
