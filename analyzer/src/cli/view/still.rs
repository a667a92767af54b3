//! `gammachi view --text` and `--svg`: draws a run once, in the terminal or as a picture.

use std::path::Path;

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::cli::error::{CommandError, print};
use crate::cli::newest_run::named_or_newest;
use crate::cli::{output_file, terminal};
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::{Answer, Question, Selection};
use crate::present::text_timeline::{self, TextTimeline};
use crate::replay::NoIdeal;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::arguments::ViewArguments;
use super::picture::{self, Part};

/// Draws the timeline in the terminal.
pub(super) fn text(arguments: &ViewArguments) -> Result<(), CommandError> {
    let run = Run::open(&named_or_newest(arguments.run.as_deref())?)?;
    let timeline = GlobalTimeline::new(&run);
    let part = Part::new(arguments, &run, &timeline)?;
    let of_terminal = || terminal::columns().filter(|columns| *columns >= 20).unwrap_or(100);
    let columns = usize::from(arguments.width.unwrap_or_else(of_terminal));
    let activity = part.activity(&run, &timeline, columns, 64);
    let rows = part.rows(&activity);
    if rows.is_empty() {
        let directory = run.directory.display();
        return Err(CommandError::Input(format!(
            "{directory}: none of these ranks left a readable file"
        )));
    }
    let colour = terminal::has_colours();
    let drawn = TextTimeline { seconds: part.seconds, rows, columns, colour };
    let analysis = Analysis::new(&run, &timeline);
    let about = Question::about(&Selection::Whole);
    let (Answer { metrics, .. }, causes) = Causes::in_summary(&analysis, &about)?;
    let diagnosis = Diagnosis::new(Evidence {
        run: &run,
        timeline: &timeline,
        metrics: &metrics,
        causes: causes.as_ref(),
        // What an ideal network would save makes nothing invalid.
        ideal: Err(NoIdeal::NotAsked),
        replay: None,
    });
    run.check_readable()?;
    print(
        &(text_timeline::heading(&diagnosis, &activity, &drawn)
            + &text_timeline::text(&run, &activity, &drawn)),
    )
}

pub(super) fn svg(arguments: &ViewArguments, file: &Path) -> Result<(), CommandError> {
    arguments.rights.apply();
    picture::refuse_other_formats(file)?;
    let run = Run::open(&named_or_newest(arguments.run.as_deref())?)?;
    let svg = picture::svg(arguments, &run, &GlobalTimeline::new(&run))?;
    run.check_readable()?;
    match file.as_os_str() == "-" {
        true => print(&svg),
        false => output_file::write(file, &svg),
    }
}
