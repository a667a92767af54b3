//! `gammachi calibrate kernels`: prints tables from the results of the benchmark kernels: a recorded run of
//! `kernels blocking` or `kernels collectives`, or the document of `kernels lattice`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::error::{CommandError, Context, print};
use crate::cli::figure_files::FigureOptions;
use crate::metrics::{LatePartner, NoTables};
use crate::models::machine::Lattice;
use crate::present::machine::lattice;
use crate::present::report::late_partner::screen;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Prints tables from recorded runs of the benchmark kernels.
///
/// A recorded run of `kernels blocking` gives tables 2 and 3 of Masuguchi et al. (send, receive,
/// and the time between their ends) with the recorder's own cost per call, one of `kernels
/// collectives` gives table 4 (the longest call of each loop and its rank). The output of `kernels
/// lattice --json` gives the splits.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    gammachi run --out blocking.gammachi -- mpirun -n 2 kernels blocking\n  \
    gammachi calibrate kernels blocking.gammachi\n  \
    gammachi run --out late.gammachi -- mpirun -n 4 kernels collectives\n  \
    gammachi calibrate kernels late.gammachi\n  \
    mpirun -n 16 kernels lattice --json > lattice.json\n  \
    gammachi calibrate kernels lattice.json --figures plots")]
pub struct KernelsArguments {
    /// Run directory printed by `gammachi run`, or the lattice's JSON document
    #[arg(value_name = "RUN|FILE")]
    pub run: PathBuf,

    #[command(flatten)]
    pub figures: FigureOptions,
}

pub fn kernels(arguments: &KernelsArguments) -> Result<(), CommandError> {
    if arguments.run.is_file() {
        return lattice_splits(&arguments.run, &arguments.figures);
    }
    if let Some(folder) = &arguments.figures.figures {
        return Err(CommandError::usage(format!(
            "--figures {}: only the lattice has a picture here; gammachi view --svg draws runs",
            folder.display()
        )));
    }
    let run = Run::open(&arguments.run)?;
    let timeline = GlobalTimeline::new(&run);
    let tables = LatePartner::new(&run, &timeline).map_err(|why| {
        let why = match why {
            NoTables::OtherProgram => {
                "not a run of `kernels blocking` or `kernels collectives`: only these have tables"
            }
            NoTables::NoMessages => "recorded at level 0, without messages; record with --level 1",
            NoTables::NoCalls => "no call of the kernel's experiments was recorded",
        };
        CommandError::Input(format!("{}: {why}", run.directory.display()))
    })?;
    run.check_readable()?;
    print(&screen(&tables))
}

fn lattice_splits(document: &Path, figures: &FigureOptions) -> Result<(), CommandError> {
    let shown = document.display();
    let text = std::fs::read_to_string(document)
        .context(CommandError::Input, format_args!("{shown}: cannot be read"))?;
    let other = format_args!("{shown}: not what `mpirun -n 16 kernels lattice --json` prints");
    let splits = Lattice::parse(&text).context(CommandError::Input, other)?;
    figures.write(|| vec![(lattice::PICTURE, lattice::figure(&splits).svg())])?;
    print(&lattice::screen(&splits))
}
