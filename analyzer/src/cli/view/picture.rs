//! Pictures of a run for papers and slides.

use std::ops::Range;
use std::path::Path;

use crate::analysis::Analysis;
use crate::cli::error::CommandError;
use crate::cli::selection_arguments;
use crate::cli::whatif::accurate_replay_of;
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

use super::arguments::{PictureKind, ViewArguments};

/// Maximum numbers of single calls and messages in a picture.
const BUDGET: Budget = Budget { events: 20_000, messages: 4_000, regions: 0 };

pub(super) fn svg(
    arguments: &ViewArguments,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    let is_timeline = arguments.kind == PictureKind::Timeline;
    if !is_timeline && (arguments.window.is_some() || arguments.ranks.is_some()) {
        return Err(CommandError::usage("--window and --ranks are for --kind timeline only"));
    }
    match arguments.kind {
        PictureKind::Timeline => draw_timeline(arguments, run, timeline),
        PictureKind::Sensitivity => draw_sensitivity(arguments, run, timeline),
        kind => draw_figures(arguments, kind, run, timeline),
    }
}

/// Refuses file names that imply another format than SVG.
pub(super) fn refuse_other_formats(out: &Path) -> Result<(), CommandError> {
    let others = ["png", "pdf", "eps", "ps", "jpg", "jpeg", "gif", "webp"];
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    if !extension.is_some_and(|extension| others.contains(&extension.as_str())) {
        return Ok(());
    }
    let (asked, svg) = (out.to_string_lossy(), out.with_extension("svg"));
    let svg = svg.to_string_lossy();
    Err(CommandError::usage(format!(
        "--svg {asked}: pictures are written as SVG; write {0}, then convert it: rsvg-convert {0} -o {1}, or \
         inkscape {0} -o {1}",
        shell_word(&svg),
        shell_word(&asked)
    )))
}

fn draw_timeline(
    arguments: &ViewArguments,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    if arguments.region.is_some() {
        return Err(CommandError::usage("--region: use --window with --kind timeline"));
    }
    let part = Part::new(arguments, run, timeline)?;
    let activity = part.activity(run, timeline, 600, 16);
    let asked = std::slice::from_ref(&part.seconds);
    let detail = Detail::new(run, timeline, &activity, asked, BUDGET);
    let rows = part.rows(&activity);
    let view = timeline_picture::View { seconds: part.seconds, from_left: false, rows };
    let name = run.directory.file_name().unwrap_or(run.directory.as_os_str()).to_string_lossy();
    Ok(timeline_picture::svg(run, &activity, &detail, &view, &name))
}

fn draw_sensitivity(
    arguments: &ViewArguments,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    if arguments.region.is_some() {
        return Err(CommandError::usage("--region: a replay is of the whole run"));
    }
    let what_if = accurate_replay_of(&Analysis::new(run, timeline))?;
    Ok(sensitivity(&what_if).svg())
}

fn draw_figures(
    arguments: &ViewArguments,
    kind: PictureKind,
    run: &Run,
    timeline: &GlobalTimeline,
) -> Result<String, CommandError> {
    let selection = arguments.region.clone().map_or(Selection::Whole, Selection::Region);
    let metrics = Metrics::new(run, timeline, &selection)?;
    let diagnosis = Diagnosis::new(Evidence::of_metrics(run, timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    let nothing = |what: &str| CommandError::Input(format!("{}: {what}", run.directory.display()));
    let drawn = |figure: Option<Figure>, what: &str| {
        figure.map(|figure| figure.svg()).ok_or_else(|| nothing(what))
    };
    let no_messages = "no message was recorded (level 0 records none)";
    match kind {
        PictureKind::TauChi | PictureKind::Timeline | PictureKind::Sensitivity => {
            Ok(picture::tau_chi(&report).svg())
        }
        PictureKind::Sizes => drawn(picture::sizes(&report), no_messages),
        PictureKind::Durations => {
            let activity = Activity::new(run, timeline, 1);
            drawn(picture::durations(&activity), "no call was recorded")
        }
        PictureKind::Matrix | PictureKind::MatrixCount => {
            let shown =
                if kind == PictureKind::Matrix { CellValue::Bytes } else { CellValue::Count };
            let messages = metrics.messages.as_ref().ok_or_else(|| nothing(no_messages))?;
            let places = LabelledMatrix::new(run, &messages.matrix);
            let places =
                places.ok_or_else(|| nothing("more than 128 hosts: no matrix is drawn"))?;
            Ok(matrix::svg(&places, shown, false))
        }
    }
}

/// The part of a timeline to draw.
pub(super) struct Part {
    pub seconds: Range<f64>,
    ranks: Option<Vec<Range<u32>>>,
    length_s: f64,
}

impl Part {
    pub fn new(
        arguments: &ViewArguments,
        run: &Run,
        timeline: &GlobalTimeline,
    ) -> Result<Self, CommandError> {
        let window = arguments.window.as_deref();
        let window = window.map(|text| selection_arguments::seconds("--window", text));
        let ranks = arguments.ranks.as_deref();
        let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
        let length_s = timeline.ranks.iter().map(|rank| rank.end_s()).fold(0.0, f64::max);
        let seconds = clamped(window.transpose()?, length_s)?;
        Ok(Self { seconds, ranks: ranks.transpose()?, length_s })
    }

    /// Activity in bins no wider than a cell of the drawing, as far as memory permits: `most` times
    /// the bins of a page.
    pub fn activity(
        &self,
        run: &Run,
        timeline: &GlobalTimeline,
        cells: usize,
        most: usize,
    ) -> Activity {
        let shown_s = (self.seconds.end - self.seconds.start).max(f64::MIN_POSITIVE);
        let wanted = (cells as f64 * self.length_s / shown_s).ceil() as usize;
        let most = most * bins_for(run.ranks.len());
        Activity::new(run, timeline, wanted.clamp(cells, most.max(cells)))
    }

    /// Positions of the rows of its ranks.
    pub fn rows(&self, activity: &Activity) -> Vec<usize> {
        let ranks = self.ranks.as_deref();
        let wanted = |rank| ranks.is_none_or(|ranges| ranges.iter().any(|r| r.contains(&rank)));
        let rows = activity.rows.iter().enumerate().filter(|(_, row)| wanted(row.rank));
        rows.map(|(index, _)| index).collect()
    }
}

/// The part of a window that lies in the run; the whole run if no window is given.
fn clamped(window: Option<Range<f64>>, length_s: f64) -> Result<Range<f64>, CommandError> {
    let whole = 0.0..length_s.max(1e-9);
    let Some(Range { start, end }) = window else { return Ok(whole) };
    if start >= length_s || end <= 0.0 {
        return Err(CommandError::usage(format!(
            "--window {start},{end}: lies outside the run, which lasts from 0 to {length_s} s"
        )));
    }
    Ok(start.max(0.0)..end.min(whole.end))
}
