//! Prints the results of rank 0 to standard output.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::{Progress, ProgressOption};
use crate::world::{World, library_name};

/// The keys with which the documents of most kernels begin.
#[derive(Serialize)]
pub struct Head {
    kernel: &'static str,
    version: u32,
    mpi: String,
    ranks: i32,
}

impl Head {
    /// Of a kernel on the ranks of the world.
    pub fn new(kernel: &'static str, world: &World) -> Self {
        // Incremented when a key of any of them changes its meaning.
        Self { kernel, version: 1, mpi: library_name(), ranks: world.size }
    }
}

/// Progress, and the form of the results. There is one; the command's `calibrate` and `roofline` make tables of it.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct OutputOptions {
    #[command(flatten)]
    progress: ProgressOption,
    /// Print one JSON document, as without this (keys: docs/reference/machine-json.md)
    #[arg(long)]
    json: bool,
}

impl OutputOptions {
    /// Begins to show the progress of a kernel.
    pub fn progress(self, what: &'static str, steps: usize) -> Progress {
        self.progress.start(what, steps)
    }

    /// Prints the results.
    pub fn print(self, results: &impl Serialize) -> Result<(), Failure> {
        print(&(serde_json::to_string(results).map_err(io::Error::from)? + "\n"))
    }
}

/// Prints a text at once.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Three significant digits and a decimal prefix: `12.3 G`, `4.50 µ`.
pub fn prefixed(value: f64) -> String {
    const PREFIXES: [(f64, &str); 8] = [
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
    ];
    if value == 0.0 || !value.is_finite() {
        return format!("{value} ");
    }
    let found = PREFIXES.iter().find(|(scale, _)| value.abs() >= scale * 0.9995);
    let (scale, prefix) = found.copied().unwrap_or((1e-9, "n"));
    let value = value / scale;
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {prefix}")
}

/// Seconds with a unit prefix.
pub fn seconds(value: f64) -> String {
    prefixed(value) + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_with_three_digits() {
        for (value, text) in
            [(1.2345e10, "12.3 G"), (0.9999, "1.00 "), (4.5e-6, "4.50 µ"), (123.4, "123 ")]
        {
            assert_eq!(prefixed(value), text);
        }
    }
}
