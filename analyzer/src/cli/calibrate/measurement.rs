//! Runs a kernel and reads what it prints.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

use crate::cli::error::{CommandError, Context, eprint_message};
use crate::cli::program_search::cannot_start;
use crate::plain_text::printable;

pub(super) fn run_kernel(
    launcher: &[OsString],
    kernels: &Path,
    kernel: &str,
    options: &[String],
) -> Result<String, CommandError> {
    let mut child = Command::new(&launcher[0])
        .args(&launcher[1..])
        .arg(kernels)
        .arg(kernel)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(&launcher[0], &error))?;
    let errors = child.stderr.take();
    let watcher = std::thread::spawn(move || errors.map(show_progress).unwrap_or_default());
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text)).transpose();
    let status = child.wait();
    let lines = watcher.join().unwrap_or_default();
    let failed = CommandError::Program;
    read.context(failed, format_args!("kernels {kernel}: its output cannot be read"))?;
    let status = status.context(failed, format_args!("kernels {kernel}: cannot be waited for"))?;
    if status.success() {
        // Warnings of the launcher or the MPI library.
        lines.iter().for_each(|line| eprint_message(line));
        return Ok(text);
    }
    // The kernel's own messages, or those of the launcher if there are none.
    let own: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("kernels: ")).collect();
    let words = if own.is_empty() { lines.join("\n") } else { own.join("; ") };
    match status.code() {
        Some(2) => Err(CommandError::usage(format!("kernels {kernel}: {words}"))),
        _ => Err(failed(format!("kernels {kernel}: {words} ({status})"))),
    }
}

/// Shows progress lines on a terminal; returns all other lines.
pub(super) fn show_progress(errors: impl Read) -> Vec<String> {
    let terminal = std::io::stderr().is_terminal();
    let mut others = Vec::new();
    for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match line.strip_prefix("progress: ") {
            Some(progress) if terminal => {
                let (percent, what) = progress.split_once(' ').unwrap_or((progress, ""));
                let _ = write!(
                    std::io::stderr(),
                    "\r\x1b[K{:>3} %  {}",
                    printable(percent),
                    printable(what)
                );
            }
            Some(_) => {}
            None if line.is_empty() => {}
            None => others.push(line),
        }
    }
    if terminal {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    others
}

/// Reads the JSON document in the output of launcher and kernel.
pub(super) fn read_document<T: DeserializeOwned>(
    text: &str,
    kernel: &str,
) -> Result<T, CommandError> {
    let document = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(document).map_err(|error| {
        CommandError::Program(format!(
            "kernels {kernel}: its output cannot be read ({error}): the kernels are of another version; \
             build them again with scripts/build-kernels"
        ))
    })
}
