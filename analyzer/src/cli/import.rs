//! `gammachi import`: converts a trace of another tool into a run directory.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, eprint_message};
use super::unfinished_output::UnfinishedOutput;
use super::whatif::amount::seconds;
use crate::formats;
use crate::import::{ImportError, ImportNote};

/// Converts another tool's trace into a run.
///
/// Reports what the trace does not contain. OTF2 archives (Score-P, TAU, `gammachi export`) are
/// read by OTF2's own library; Paraver traces (Extrae, Dimemas) may be compressed with gzip. For
/// figures of the whole trace, as POP gives them: gammachi report RUN --from-start.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi import scorep-run/traces.otf2 --out scorep.gammachi\n  gammachi \
                  import hpl.prv.gz --out hpl.gammachi && gammachi report hpl.gammachi"
)]
pub struct ImportArguments {
    /// Anchor file of an OTF2 archive (`traces.otf2`), or `.prv` or `.prv.gz` of Paraver with its
    /// `.pcf` and `.row` beside it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Run directory to create; must not exist yet
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,

    /// Largest error of the trace's clocks against each other, as 1us; 0ns for simulated time.
    /// Without it, what an OTF2 archive states; of other traces the error is found from messages
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub clocks_within: Option<f64>,
}

fn parse_time(text: &str) -> Result<f64, String> {
    seconds(text).ok_or_else(|| "not a time with its unit, as 1us or 0ns".to_owned())
}

pub fn import(arguments: &ImportArguments) -> Result<(), CommandError> {
    let output = UnfinishedOutput::beside("--out", &arguments.out)?;
    let part = output.path().display().to_string();
    let shown = arguments.out.display().to_string();
    let imported = formats::import(&arguments.file, output.path(), arguments.clocks_within)
        .map_err(|error: ImportError| {
            CommandError::Input(error.to_string().replace(&part, &shown))
        })?;
    let moves = [(output.path().to_owned(), arguments.out.clone())];
    output.finish(&moves)?;
    imported.notes.iter().for_each(|note| eprint_message(&sentence(note)));
    for (what, count) in &imported.missing {
        eprint_message(&format!("not kept: {count} {what}"));
    }
    eprint_message(&format!("{shown}: {} ranks, {} calls", imported.ranks, imported.calls));
    Ok(())
}

fn sentence(note: &ImportNote) -> String {
    match note {
        ImportNote::OtherLocations { count } => format!(
            "{count} locations are not threads of a processor (accelerators, metrics) and are not kept"
        ),
        ImportNote::LacksOfOtf2 => "OTF2's MPI records do not contain wildcards of receives, sizes of posted \
                                    buffers, datatypes, windows and files"
            .into(),
        ImportNote::LacksOfParaver => "Paraver records neither the communicator nor the request of a \
                                       message: MPI_COMM_WORLD and the thread's next wait are assumed"
            .into(),
        ImportNote::OtherStates(states) => {
            let names: Vec<String> = states
                .iter()
                .map(|(state, ns)| format!("state {state} {:.6} s", *ns as f64 * 1e-9))
                .collect();
            format!(
                "outside MPI and not Running, all ranks together: {}; counted as lost, shown with the \
                 recorder's time",
                names.join(", ")
            )
        }
    }
}
