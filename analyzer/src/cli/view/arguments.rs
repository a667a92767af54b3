//! The arguments of gammachi view.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::output_rights::OutputRights;

/// Shows the timeline of a run in the browser, the terminal or a picture.
///
/// Serves it to a browser on this machine only, under an address that cannot be guessed, until
/// Ctrl-C. What is shown is read from the trace on demand; an index is built the first time and kept
/// beside the trace. With --text, each line is a rank, each cell a span of time; its colour, or
/// its letter on terminals without colours, shows what took most of the time, and a mark below means
/// that it contains shorter calls, too.
#[derive(Debug, Default, Args)]
#[command(mut_arg("share", |share| share.requires("svg").conflicts_with("text")))]
#[command(after_help = "Examples:\n  gammachi view hpl-20260131-120000.gammachi\n  \
                  gammachi view hpl-20260131-120000.gammachi --text --window 1.5,1.6 --ranks 0-3,8\n  \
                  gammachi view hpl-20260131-120000.gammachi --svg zoom.svg --window 1.5,1.51\n  \
                  gammachi view hpl-20260131-120000.gammachi --svg tau-chi.svg --kind tau-chi\n  \
                  gammachi view hpl-20260131-120000.gammachi --no-open --port 8123\n\nOn another \
                  machine: ssh -L 8123:127.0.0.1:8123 HOST, then gammachi view RUN --no-open --port \
                  8123 there, and \
                  open the\naddress that it prints here. See docs/guide/read.md.")]
pub struct ViewArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here)
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,

    /// Draw the timeline in the terminal
    #[arg(long, group = "still")]
    pub text: bool,

    /// Draw a picture for papers and slides, and replace an existing file; `-` for standard output
    #[arg(long, value_name = "FILE", group = "still")]
    pub svg: Option<PathBuf>,

    /// What the picture shows
    #[arg(long, value_enum, requires = "svg", conflicts_with = "text", default_value_t = PictureKind::Timeline)]
    pub kind: PictureKind,

    /// Draw only this part of the timeline, in seconds since the first rank left MPI_Init
    /// (`1.5,1.6`)
    #[arg(long, value_name = "FROM,TO", requires = "still", allow_hyphen_values = true)]
    pub window: Option<String>,

    /// Draw only these ranks of the timeline (`0-3,8`)
    #[arg(long, value_name = "LIST", requires = "still")]
    pub ranks: Option<String>,

    /// Restrict a picture to a region that the program marked (tau-chi, matrix, sizes)
    #[arg(long, value_name = "NAME", requires = "svg", conflicts_with = "text")]
    pub region: Option<String>,

    /// Columns of the text (default: those of the terminal, or 100 if there is none)
    #[arg(long, value_name = "N", requires = "text", conflicts_with = "svg", value_parser = clap::value_parser!(u16).range(20..=1000))]
    pub width: Option<u16>,

    #[command(flatten)]
    pub rights: OutputRights,

    /// Do not open a browser; the address is printed in any case
    #[arg(long, conflicts_with = "still")]
    pub no_open: bool,

    /// Port of 127.0.0.1 (default: any free port)
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "still")]
    pub port: u16,

    /// Build the index, keep it beside the trace, and exit
    #[arg(long, conflicts_with_all = ["no_open", "port", "still"])]
    pub index_only: bool,
}

/// What a picture shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PictureKind {
    /// One row per rank, coloured by kind of call; arrows and bands if single calls fit
    #[default]
    Timeline,
    /// Every rank in τ–χ space with lines of equal efficiency
    TauChi,
    /// Bytes from rank to rank (host to host if there are many ranks)
    Matrix,
    /// Messages from rank to rank
    MatrixCount,
    /// Messages by size
    Sizes,
    /// Calls by duration and kind
    Durations,
    /// Elapsed time as a function of message costs, added latency, and the speed of ranks and
    /// regions, by replay
    Sensitivity,
}
