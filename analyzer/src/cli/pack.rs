//! `gammachi pack` and `gammachi unpack`: a run directory comes in; its rank files are packed for the
//! archive, or are again what the recorder wrote.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::error::{CommandError, print};
use crate::present::quantity;
use crate::trace::packing::{Direction, Packing, PackingError};

/// Packs a run for keeping: columns, differences, compression; every command reads it as before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi pack app-20260131-120000.gammachi\n  \
                  gammachi pack app-20260131-120000.gammachi --out /archive/app.gammachi\n\nEach \
                  rank file is written beside its place, unpacked again, compared byte by byte, and \
                  only then replaces\nthe original. `gammachi unpack` gives that back bit for bit. \
                  The form is described in docs/pack.md.")]
pub struct PackArguments {
    /// Run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Write a packed copy of the run there, and leave RUN as it is
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Also replace files of ranks that did not finish on another host: their processes have ended
    #[arg(long)]
    pub ended: bool,
}

/// Unpacks a run: the rank files are again, bit for bit, what the recorder wrote.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  gammachi unpack app-20260131-120000.gammachi\n\nOnly needed for \
                  programs that read rank files themselves: every command of gammachi reads packed\n\
                  runs directly."
)]
pub struct UnpackArguments {
    /// Run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Write an unpacked copy of the run there, and leave RUN as it is
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// A bar over bytes, on a terminal only.
fn bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn do_it(packing: &Packing) -> Result<crate::trace::packing::Packed, CommandError> {
    let bytes = packing.bytes().map_err(|error| CommandError::failed(error.to_string()))?;
    let bar = bar(bytes);
    let done = packing.run(|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    done.map_err(|error: PackingError| CommandError::failed(error.to_string()))
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".into() } else { format!("{} files", quantity::count(count)) }
}

/// Packs a run and says how small it became.
///
/// # Errors
/// Failed, naming the file that stands in the way.
pub fn pack(arguments: &PackArguments) -> Result<(), CommandError> {
    let packing = Packing {
        direction: Direction::Pack,
        run: &arguments.run,
        out: arguments.out.as_deref(),
        ended: arguments.ended,
    };
    let done = do_it(&packing)?;
    let shown = arguments.out.as_ref().unwrap_or(&arguments.run).display();
    let size = |bytes: u64| quantity::with_prefix(bytes as f64) + "B";
    let mut text = format!(
        "{shown}: {} packed, {} to {}",
        files(done.files),
        size(done.original_bytes),
        size(done.packed_bytes)
    );
    if done.files > 0 && done.already == 0 && done.events > 0 {
        let each = done.packed_bytes as f64 / done.events as f64;
        text.push_str(&format!(", {each:.2} bytes an event"));
    }
    if done.already > 0 {
        text.push_str(&format!("; {} packed before", files(done.already)));
    }
    print(&format!("{text}\n"))
}

/// Unpacks a run.
///
/// # Errors
/// Failed, naming the file that stands in the way.
pub fn unpack(arguments: &UnpackArguments) -> Result<(), CommandError> {
    let packing = Packing {
        direction: Direction::Unpack,
        run: &arguments.run,
        out: arguments.out.as_deref(),
        ended: false,
    };
    let done = do_it(&packing)?;
    let shown = arguments.out.as_ref().unwrap_or(&arguments.run).display();
    let size = quantity::with_prefix(done.original_bytes as f64);
    let before = match done.already {
        0 => String::new(),
        count => format!("; {} not packed", files(count)),
    };
    print(&format!("{shown}: {} unpacked, {size}B{before}\n", files(done.files)))
}
