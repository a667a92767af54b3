//! Renders the outcome of `gammachi check` as a screen, JSON document, JUnit report and GitHub annotation.

use std::path::Path;

use serde::Serialize;

use crate::comparison::basis::Basis;
use crate::comparison::guard::{Check, Matching, UndecidedReason, Verdict};
use crate::comparison::subject::Difference;
use crate::comparison::{Comparison, RunRecord};
use crate::plain_text::printable;
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::document::text;
use crate::present::quantity::percent;
use crate::present::svg::escaped;

use super::{document, screen, verdict, words};

#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    pub comparison: &'a Comparison,
    pub check: &'a Check,
    /// How much slower the runs may be, as a share.
    pub at_most: f64,
    /// Runs of the baseline that are not compared, by what they differ in.
    pub others: &'a [(Vec<Difference>, usize)],
}

impl Checked<'_> {
    /// Sentences on the outcome, and on the cause if one was found.
    pub fn sentences(&self) -> Vec<String> {
        let (of, check) = (self.comparison, self.check);
        let decisive = of.decisive();
        let allowed = percent(self.at_most);
        let name = self.decisive_name();
        let mut sentences = verdict::doubts(of);
        match check.verdict {
            Verdict::Fine => sentences.push(format!(
                "Fine: not slower by more than {allowed}; {name} is {}.",
                words::change(decisive)
            )),
            Verdict::Regressed => {
                let whole = [(&of.elapsed, "the run"), (decisive, self.decisive_name())];
                let slower = whole.iter().filter(|(time, _)| {
                    (time.is_certain() || of.basis == Basis::Counts)
                        && time.relative() > self.at_most
                });
                match slower.max_by(|a, b| a.0.relative().total_cmp(&b.0.relative())) {
                    Some((worst, name)) => sentences.push(format!(
                        "Slower by more than the {allowed} allowed: {name} is {}.",
                        words::change(worst)
                    )),
                    None => sentences.push(self.slower_part(&allowed)),
                }
            }
            Verdict::CannotTell => sentences.push(self.why_undecided()),
        }
        let is_found = check.verdict == Verdict::Regressed || !of.changes.is_empty();
        if let Some(cause) = of.cause.as_ref().filter(|_| is_found) {
            sentences.push(verdict::cause(of, cause));
        }
        sentences
    }

    /// The time that the verdict is about.
    fn decisive_name(&self) -> &'static str {
        if self.comparison.is_mostly_iterations() { "an iteration" } else { "the run" }
    }

    fn slower_part(&self, allowed: &str) -> String {
        let of = self.comparison;
        let parts = self.check.slower_parts.iter().map(|at| &of.tested[*at]);
        let most = parts.max_by(|a, b| a.estimate.difference().total_cmp(&b.estimate.difference()));
        let Some(most) = most else {
            return format!("Slower by more than the {allowed} allowed.");
        };
        let whose = if most.most { "the rank that takes longest" } else { "the mean rank" };
        format!(
            "A part is slower by more than the {allowed} allowed: {whose} {}, {}.",
            words::at(&most.spot),
            words::change(&most.estimate)
        )
    }

    fn why_undecided(&self) -> String {
        let (of, check) = (self.comparison, self.check);
        let decisive = of.decisive();
        let allowed = percent(self.at_most);
        let wanted = match check.runs_wanted {
            Some(runs) => format!(
                "it would take about {} of each (now {} in the baseline, {} to check)",
                plural(runs, "run"),
                of.before.len(),
                of.after.len()
            ),
            None => "no number of runs would suffice: measure on a quieter machine".to_owned(),
        };
        if let Some(why) = verdict::lack_of_cores(&of.basis) {
            return format!("Cannot tell: {why}. So far: {}.", words::change(decisive));
        }
        match check.because {
            Some(UndecidedReason::TooFewRuns) => format!(
                "Cannot tell: too few runs to know how much they vary; {wanted}. So far: {}.",
                words::change(decisive)
            ),
            _ => format!(
                "Cannot tell whether it is slower by more than {allowed}: {}; runs vary by {}, and {wanted}.",
                words::change(decisive),
                percent(decisive.spread)
            ),
        }
    }

    /// Runs of the baseline that are not compared, by what they differ in.
    fn left_out(&self) -> Option<String> {
        let parts: Vec<String> = self.others.iter().map(others).collect();
        (!parts.is_empty()).then(|| format!("Not compared: {} of the baseline.", parts.join("; ")))
    }
}

/// Runs of a baseline that are not compared, and what they differ in.
fn others((what, count): &(Vec<Difference>, usize)) -> String {
    let verb = if *count == 1 { "differs" } else { "differ" };
    format!("{} that {verb} in {}", plural(*count, "run"), words::differences(what))
}

/// The error for a baseline that has no run to compare with.
pub fn no_match(matching: &Matching, runs: &[RunRecord], folder: &Path) -> String {
    let parts = matching.others.iter().map(others);
    let others = match parts.collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => none,
        others => format!(", only {others}"),
    };
    format!(
        "cannot tell: {} has no run of {} on {} ranks on this machine ({}){others}; `gammachi check --add` adds some",
        folder.display(),
        words::program(&runs[0]),
        runs[0].ranks,
        words::machine(&runs[0])
    )
}

pub fn checked_screen(of: &Checked, colour: bool) -> String {
    let mut blocks =
        Blocks::headed(&screen::head(of.comparison), &of.sentences().join(" "), colour);
    screen::fill(&mut blocks, of.comparison);
    of.left_out().iter().for_each(|note| blocks.note(note));
    blocks.finish()
}

/// A comparison with a baseline.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// The outcome.
    check: Verdict,
    /// How much slower the runs may be, as a share.
    at_most: f64,
    /// Runs of each side that would decide; null: over 100, or none.
    runs_wanted: Option<usize>,
    /// The outcome in words.
    sentence: String,
    /// Number of runs of the baseline that differ too much.
    not_compared: usize,
    #[serde(flatten)]
    comparison: document::Document<'a>,
}

/// The document of a comparison, with the outcome of the check.
pub fn checked_json(of: &Checked) -> Result<String, serde_json::Error> {
    text(&document(of))
}

pub(super) fn document<'a>(of: &Checked<'a>) -> Document<'a> {
    Document {
        check: of.check.verdict,
        at_most: of.at_most,
        runs_wanted: of.check.runs_wanted,
        sentence: of.sentences().join(" "),
        not_compared: of.others.iter().map(|(_, count)| count).sum(),
        comparison: document::document(of.comparison),
    }
}

/// A test case of a JUnit report: a configuration, or the whole check where no run could be read.
#[derive(Debug, Clone)]
pub struct Case {
    /// What was checked.
    pub name: String,
    /// Elapsed time of one of the runs, seconds.
    pub seconds: f64,
    /// The verdict; `None` if there was an error.
    pub verdict: Option<Verdict>,
    pub sentence: String,
}

impl Case {
    /// The check of one configuration, named after one of its runs.
    pub fn new(run: &RunRecord, verdict: Verdict, sentence: String) -> Self {
        let name = format!("{} on {} ranks", words::program(run), run.ranks);
        Self { name, seconds: run.elapsed_ns as f64 * 1e-9, verdict: Some(verdict), sentence }
    }
}

/// A JUnit report; a test case is skipped if its check could not tell.
pub fn junit(cases: &[Case]) -> String {
    let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
    let [failures, skipped, errors] =
        [Some(Verdict::Regressed), Some(Verdict::CannotTell), None].map(count);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"gammachi check\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n",
        cases.len()
    );
    for case in cases {
        let [name, sentence] = [&case.name, &case.sentence].map(|text| escaped(&printable(text)));
        let inside = match case.verdict {
            Some(Verdict::Fine) => format!("<system-out>{sentence}</system-out>"),
            Some(Verdict::Regressed) => format!("<failure message=\"{sentence}\"/>"),
            Some(Verdict::CannotTell) => format!("<skipped message=\"{sentence}\"/>"),
            None => format!("<error message=\"{sentence}\"/>"),
        };
        text += &format!(
            "  <testcase classname=\"gammachi\" name=\"{name}\" time=\"{:.6}\">\n    {inside}\n  </testcase>\n",
            case.seconds
        );
    }
    text + "</testsuite>\n"
}

/// Workflow commands that make GitHub show an annotation for each case; escapes the characters that
/// are special there.
pub fn annotations(cases: &[Case]) -> String {
    let line = |case: &Case| {
        let level = match case.verdict {
            Some(Verdict::Fine) => "notice",
            Some(Verdict::CannotTell) => "warning",
            Some(Verdict::Regressed) | None => "error",
        };
        let text = match cases.len() {
            1 => printable(&case.sentence),
            _ => printable(&format!("{}: {}", case.name, case.sentence)),
        };
        let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        format!("::{level} title=gammachi check::{text}\n")
    };
    cases.iter().map(line).collect()
}
