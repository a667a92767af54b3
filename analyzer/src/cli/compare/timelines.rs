//! Draws both timelines for the page of a comparison, one iteration each, to the same scale.

use std::path::Path;

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::comparison::baseline;
use crate::metrics::activity::Activity;
use crate::metrics::activity::detail::{Budget, Detail};
use crate::present::comparison::Timelines;
use crate::present::picture::timeline::{View, svg};
use crate::present::quantity::seconds;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Maximum numbers of single calls, messages and regions in a picture.
const BUDGET: Budget = Budget { events: 10_000, messages: 2_000, regions: 1_000 };
/// Maximum number of rows in a picture.
const MAX_ROWS: usize = 64;
/// Maximum number of bins of a run.
const MAX_BINS: f64 = 20_000.0;

/// An open run and the stretch of it that is shown.
struct OpenRun {
    run: Run,
    timeline: GlobalTimeline,
    /// Index and number of iterations.
    iteration: Option<(usize, usize)>,
    begin_s: f64,
    length_s: f64,
}

impl OpenRun {
    fn open(path: &Path, iteration: Option<usize>) -> Result<Self, String> {
        let run = Run::open(path).map_err(|error| error.to_string())?;
        let timeline = GlobalTimeline::new(&run);
        let analysis = Analysis::new(&run, &timeline);
        let causes = Causes::new(&analysis);
        let (iteration, (begin_s, end_s)) = match (causes.phases.first(), iteration) {
            (Some(phase), asked) => {
                let count = phase.iterations.len();
                let at = asked.unwrap_or_else(|| phase.statistics().representative);
                if at >= count {
                    return Err(format!(
                        "{} has the iterations 0 to {}",
                        path.display(),
                        count - 1
                    ));
                }
                let s = |at: usize| causes.clock.seconds(phase.bounds[at]);
                (Some((at, count)), (s(at), s(at + 1)))
            }
            (None, Some(_)) => {
                return Err(format!("no iterations were found in {}", path.display()));
            }
            (None, None) => {
                let s = |ticks: i64| causes.clock.seconds(ticks);
                (None, (s(causes.whole.0), s(causes.whole.1)))
            }
        };
        drop(causes);
        Ok(Self { run, timeline, iteration, begin_s, length_s: (end_s - begin_s).max(1e-9) })
    }

    fn picture(&self, length_s: f64, name: &str) -> String {
        let whole = self.timeline.ranks.iter().map(|rank| rank.end_s()).fold(1e-9, f64::max);
        let seconds = self.begin_s..self.begin_s + length_s;
        let bins = (600.0 * whole / length_s).clamp(600.0, MAX_BINS).ceil() as usize;
        let activity = Activity::new(&self.run, &self.timeline, bins);
        let asked = std::slice::from_ref(&seconds);
        let detail = Detail::new(&self.run, &self.timeline, &activity, asked, BUDGET);
        let rows = (0..activity.rows.len().min(MAX_ROWS)).collect();
        let view = View { seconds, from_left: true, rows };
        svg(&self.run, &activity, &detail, &view, name)
    }
}

/// Draws the first run of each side: the given iteration, or a typical one.
pub(super) fn draw(
    [before, after]: [&Path; 2],
    iteration: Option<usize>,
) -> Result<Timelines, String> {
    let is_study =
        |path: &&Path| path.join(crate::trace::study_json::STUDY_JSON).is_file() || path.is_file();
    if let Some(path) = [before, after].iter().find(|path| baseline::is_one(path)) {
        return Err(format!("{} is a baseline, which keeps no events; name runs", path.display()));
    }
    if let Some(path) = [before, after].iter().find(|path| is_study(path)) {
        return Err(format!("{} is not a run; name runs to see their timelines", path.display()));
    }
    let shown = [OpenRun::open(before, iteration)?, OpenRun::open(after, iteration)?];
    let length_s = shown.iter().map(|shown| shown.length_s).fold(0.0, f64::max);
    let name = |shown: &OpenRun, side: &str| match shown.iteration {
        Some((at, count)) => format!("{side}: iteration {at} of {count}"),
        None => format!("{side}: the whole run"),
    };
    let caption = format!(
        "One run of each side, both drawn over {} from the begin of {}.",
        seconds(length_s),
        if shown.iter().all(|shown| shown.iteration.is_some()) {
            "an iteration"
        } else {
            "the run"
        }
    );
    let pictures = [
        shown[0].picture(length_s, &name(&shown[0], "before")),
        shown[1].picture(length_s, &name(&shown[1], "after")),
    ];
    Ok(Timelines { pictures, caption })
}
