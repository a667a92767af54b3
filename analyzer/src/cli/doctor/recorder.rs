//! Checks whether the recorder is installed and programs can load it.

use std::process::{Command, Stdio};
use std::{env, fs};

use trace_format::settings::LIBRARY;

use super::super::library_path::library_path;
use super::super::recorder_environment::{LD_PRELOAD, preload};
use super::finding::{Finding, Mark};

pub(super) fn findings() -> Vec<Finding> {
    let finding =
        |mark, value: String, meaning: &str| vec![Finding::new("library", mark, value, meaning)];
    let path = match library_path() {
        Ok(path) => path,
        Err(error) => {
            let meaning = "Nothing can be recorded on this machine; traces can be read.";
            return finding(Mark::Limit, error.to_string(), meaning);
        }
    };
    let shown = path.display().to_string();
    let trial = preload(&[&path], None).map_err(|error| error.to_string()).and_then(|preload| {
        // Preloads the recorder as `gammachi run` does, into a harmless program: this one.
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let output = Command::new(program)
            .arg("--version")
            .env(LD_PRELOAD, preload)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() && complaint.is_empty() { Ok(()) } else { Err(complaint) }
    });
    let findings = match trial {
        _ if !interposes(&fs::read(&path).unwrap_or_default()) => finding(
            Mark::Limit,
            format!("{shown} holds no MPI_Init"),
            &format!(
                "It is some other library ({}?); programs would run with it and nothing would be \
                 recorded.",
                LIBRARY.name
            ),
        ),
        Ok(()) => finding(Mark::Ok, shown, "Programs load it; any MPI program can be recorded."),
        Err(why) => finding(
            Mark::Limit,
            format!("{shown}: {why}"),
            "Programs cannot load it, so nothing can be recorded: it was built for another \
             processor or a newer system.",
        ),
    };
    findings
        .into_iter()
        .map(|finding| finding.with("path", path.to_string_lossy().into_owned()))
        .collect()
}

/// Whether a library contains the name of a function that every recorder exports.
fn interposes(library: &[u8]) -> bool {
    let name = b"\0MPI_Init\0";
    library.windows(name.len()).any(|bytes| bytes == name)
}
