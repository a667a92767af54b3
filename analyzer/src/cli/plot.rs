//! `gammachi plot`: draws a picture of a run for a paper.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::{CommandError, print};
use super::output_file;
use super::output_rights::OutputRights;
use super::selection_arguments::{self, selection_sentence};
use super::timeline::{clamped, rows, window};
use super::whatif::accurate_replay_of;
use crate::analysis::Analysis;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::activity::detail::{Budget, Detail};
use crate::metrics::activity::{Activity, bins_for};
use crate::metrics::{Metrics, Selection};
use crate::present::picture::matrix::{self, CellValue, LabelledMatrix};
use crate::present::picture::{self, timeline as timeline_picture};
use crate::present::whatif::sensitivity;
use crate::present::{Report, figure::Figure};
use crate::shell_word::shell_word;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlotKind {
    /// One row per rank, coloured by kind of call; arrows and bands if single calls fit
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
    /// Time of the run against costs of messages, added latency, and speed of ranks and regions, by replay
    Sensitivity,
}

/// Draws a picture of a run as SVG, for papers and slides.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi plot hpl-20260131-120000.gammachi --kind tau-chi --out \
                  tau-chi.svg\n  gammachi plot hpl-20260131-120000.gammachi --kind timeline --window \
                  1.5,1.51 --ranks 0-7 --out zoom.svg\n\nAn existing file is replaced. --out - writes to \
                  standard output."
)]
pub struct PlotArguments {
    /// Run directory printed by `gammachi run`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// What to draw
    #[arg(long, value_enum)]
    pub kind: PlotKind,

    /// File to write, `-` for standard output
    #[arg(long, value_name = "FILE.svg")]
    pub out: PathBuf,

    /// Who may read what is written
    #[command(flatten)]
    pub rights: OutputRights,

    /// Only this stretch of a timeline, in seconds since the first rank left MPI_Init (`1.5,1.6`)
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub window: Option<String>,

    /// Only these ranks of a timeline (`0-3,8`)
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<String>,

    /// Restrict figures to a region that the program marked (tau-chi, matrix, sizes)
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// Maximum numbers of single calls and messages in a picture.
const BUDGET: Budget = Budget { events: 20_000, messages: 4_000, regions: 0 };

/// Writes a picture.
///
/// # Errors
/// Wrong usage for something the run does not have; failure if nothing can be read or written.
pub fn plot(arguments: &PlotArguments) -> Result<(), CommandError> {
    arguments.rights.apply();
    refuse_other_formats(&arguments.out)?;
    let run = Run::open(&arguments.run).map_err(|error| CommandError::failed(error.to_string()))?;
    let timeline = GlobalTimeline::new(&run);
    if arguments.kind != PlotKind::Timeline
        && (arguments.window.is_some() || arguments.ranks.is_some())
    {
        return Err(CommandError::usage("--window and --ranks are for --kind timeline only"));
    }
    let svg = match arguments.kind {
        PlotKind::Timeline => draw_timeline(arguments, &run, &timeline)?,
        PlotKind::Sensitivity => draw_sensitivity(arguments, &run, &timeline)?,
        kind => draw_figures(arguments, kind, &run, &timeline)?,
    };
    run.check_readable().map_err(CommandError::unreadable_run)?;
    match arguments.out.as_os_str() == "-" {
        true => print(&svg),
        false => output_file::write(&arguments.out, &svg),
    }
}

/// Refuses file names that imply another format than SVG.
fn refuse_other_formats(out: &Path) -> Result<(), CommandError> {
    let others = ["png", "pdf", "eps", "ps", "jpg", "jpeg", "gif", "webp"];
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    if !extension.is_some_and(|extension| others.contains(&extension.as_str())) {
        return Ok(());
    }
    let (asked, svg) = (out.to_string_lossy(), out.with_extension("svg"));
    let svg = svg.to_string_lossy();
    Err(CommandError::usage(format!(
        "--out {asked}: pictures are written as SVG; write {0}, then convert it: rsvg-convert {0} -o {1}, or \
         inkscape {0} -o {1}",
        shell_word(&svg),
        shell_word(&asked)
    )))
}

fn draw_timeline(
    arguments: &PlotArguments,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    if arguments.region.is_some() {
        return Err(CommandError::usage("--region: use --window with --kind timeline"));
    }
    let length_s = timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
    let window = window(arguments.window.as_deref())?;
    let seconds = clamped("--window", window, length_s)?;
    let ranks = arguments.ranks.as_deref();
    let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
    let ranks = ranks.transpose()?;
    let wanted = 600.0 * length_s / (seconds.end - seconds.start).max(f64::MIN_POSITIVE);
    let most = 16 * bins_for(run.ranks.len());
    let activity = Activity::new(run, timeline, (wanted.ceil() as usize).clamp(600, most.max(600)));
    let asked = std::slice::from_ref(&seconds);
    let detail = Detail::new(run, timeline, &activity, asked, BUDGET);
    let rows = rows(&activity, ranks.as_deref());
    let view = timeline_picture::View { seconds, from_left: false, rows };
    let name = run.directory.file_name().unwrap_or(run.directory.as_os_str()).to_string_lossy();
    Ok(timeline_picture::svg(run, &activity, &detail, &view, &name))
}

/// The time of a run under other conditions.
///
/// # Errors
/// Wrong usage with a region; failure if the run cannot be replayed.
fn draw_sensitivity(
    arguments: &PlotArguments,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    if arguments.region.is_some() {
        return Err(CommandError::usage("--region: a replay is of the whole run"));
    }
    let what_if = accurate_replay_of(&Analysis::of(run, timeline))?;
    Ok(sensitivity(&what_if).svg())
}

fn draw_figures(
    arguments: &PlotArguments,
    kind: PlotKind,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    let selection = arguments.region.clone().map_or(Selection::Whole, Selection::Region);
    let metrics = Metrics::new(run, timeline, &selection)
        .map_err(|error| CommandError::failed(selection_sentence(&error)))?;
    let diagnosis = Diagnosis::new(Evidence::of_metrics(run, timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    let nothing = |what: &str| CommandError::failed(format!("{}: {what}", run.directory.display()));
    let drawn = |figure: Option<Figure>, what: &str| {
        figure.map(|figure| figure.svg()).ok_or_else(|| nothing(what))
    };
    let no_messages = "no message was recorded (level 0 records none)";
    match kind {
        PlotKind::TauChi | PlotKind::Timeline | PlotKind::Sensitivity => {
            Ok(picture::tau_chi(&report).svg())
        }
        PlotKind::Sizes => drawn(picture::sizes(&report), no_messages),
        PlotKind::Durations => {
            let activity = Activity::new(run, timeline, 1);
            drawn(picture::durations(&activity), "no call was recorded")
        }
        PlotKind::Matrix | PlotKind::MatrixCount => {
            let shown = if kind == PlotKind::Matrix { CellValue::Bytes } else { CellValue::Count };
            let messages = metrics.messages.as_ref().ok_or_else(|| nothing(no_messages))?;
            let places = LabelledMatrix::new(run, &messages.matrix);
            let places =
                places.ok_or_else(|| nothing("more than 128 hosts: no matrix is drawn"))?;
            Ok(matrix::svg(&places, shown, false))
        }
    }
}
