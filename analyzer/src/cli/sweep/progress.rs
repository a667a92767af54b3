//! Shows the progress of a sweep: a bar with the remaining time on a terminal, otherwise one line
//! per run.

use std::fmt;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::cli::error::eprint_message;
use crate::trace::study_json::{StudyJson, StudyRun, StudyRunState};

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Expected end of the last run; the thread of the bar counts down to it.
    end: Arc<Mutex<Option<Instant>>>,
}

impl Progress {
    pub fn new(done: usize, study: &StudyJson) -> Self {
        let total = study.runs.len();
        let end = Arc::new(Mutex::new(None));
        let bar = (std::io::stderr().is_terminal() && done < total).then(|| {
            let shown = Arc::clone(&end);
            let left = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write_left(out, *shown.lock().unwrap_or_else(PoisonError::into_inner));
            };
            let template = "{bar:24} {pos}/{len} runs, {elapsed}{left}  {wide_msg}";
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::new(total as u64);
            bar.set_style(
                style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left),
            );
            bar.set_position(done as u64);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar, end }
    }

    pub fn begin(&mut self, study: &StudyJson, at: usize) {
        if let Some(bar) = &self.bar {
            let end = time_left_s(study).map(|left_s| Instant::now() + seconds(left_s));
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = end;
            bar.set_message(label(&study.runs[at]));
        }
    }

    pub fn end(&mut self, study: &StudyJson, at: usize) {
        let run = &study.runs[at];
        let failure = run.reason.as_ref().filter(|_| run.state == StudyRunState::Failed);
        let done = study.runs.iter().filter(|run| run.state != StudyRunState::Pending).count();
        let line = match failure {
            Some(reason) => format!("{}: failed: {reason}", label(run)),
            None => {
                let seconds = run.duration_s.unwrap_or(0.0);
                format!("{done}/{}: {}: {seconds:.2} s", study.runs.len(), label(run))
            }
        };
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                if failure.is_some() {
                    bar.println(format!("gammachi: {line}"));
                }
            }
            None => eprint_message(&line),
        }
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn write_left(out: &mut dyn fmt::Write, end: Option<Instant>) -> fmt::Result {
    let Some(end) = end else { return Ok(()) };
    let left = end.saturating_duration_since(Instant::now());
    write!(out, ", about {} left", duration(left.as_secs_f64()))
}

/// Converts to a duration; a study that takes years must not panic.
fn seconds(seconds: f64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Duration::try_from_secs_f64(seconds).unwrap_or(YEAR).min(YEAR)
}

fn label(run: &StudyRun) -> String {
    let params: String =
        run.params.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    format!("p={}{params} rep {}", run.np, run.rep)
}

/// Seconds that the pending runs will take: each as long as the same combination took so far,
/// otherwise as long as an average run. `None` before the first has ended.
fn time_left_s(study: &StudyJson) -> Option<f64> {
    let mean = |all: &mut dyn Iterator<Item = &StudyRun>| {
        let known: Vec<f64> = all.filter_map(|run| run.duration_s).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let overall = mean(&mut study.runs.iter())?;
    let pending = study.runs.iter().filter(|run| run.state == StudyRunState::Pending);
    let expected = pending.map(|run| {
        let same = |other: &&StudyRun| other.np == run.np && other.params == run.params;
        mean(&mut study.runs.iter().filter(same)).unwrap_or(overall)
    });
    Some(expected.sum())
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::study_json::{FORMAT, FORMAT_VERSION};

    #[test]
    fn time_left_follows_the_same_combination() {
        let run = |np, rep, state, duration_s| StudyRun {
            directory: format!("{np}-{rep}"),
            np,
            params: Vec::new(),
            rep,
            counts_only: false,
            state,
            exit_code: None,
            reason: None,
            duration_s,
        };
        use StudyRunState::{Finished, Pending};
        let mut study = StudyJson {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            gammachi_version: String::new(),
            argv: Vec::new(),
            level: 1,
            compute: "outside".into(),
            region: None,
            seed: 1,
            runs: vec![
                run(1, 1, Pending, None),
                run(1, 2, Pending, None),
                run(4, 1, Pending, None),
            ],
        };
        assert_eq!(time_left_s(&study), None);
        study.runs[0] = run(1, 1, Finished, Some(10.0));
        study.runs.push(run(2, 1, Finished, Some(2.0)));
        // p=1 took 10 s; p=4 is unknown: the mean, 6 s.
        assert_eq!(time_left_s(&study), Some(16.0));
        assert_eq!(duration(119.6), "2 min");
        assert_eq!(duration(7300.0), "2 h 1 min");
    }
}
