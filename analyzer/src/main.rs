//! The command `gammachi`; everything is in the library's `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gammachi_analyzer::cli::run_command()
}
