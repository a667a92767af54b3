//! Renders comparisons of several configurations, such as those of two studies: one row for each, and
//! the cause where there is a difference.

use serde::Serialize;

use crate::comparison::configurations::certain;
use crate::comparison::guard::{Check, Verdict};
use crate::comparison::{Comparison, RunRecord};
use crate::present::blocks::Blocks;
use crate::present::context::plural;
use crate::present::document::{Head, text};
use crate::present::quantity::{percent, seconds};
use crate::present::table::Table;

use super::checked::Checked;
use super::{document, verdict, words};

#[derive(Debug, Clone, Copy)]
pub struct Several<'a> {
    /// One comparison for each configuration that both sides have.
    pub compared: &'a [Comparison],
    /// Sentences on configurations that one side has alone.
    pub alone: &'a [String],
    /// The outcome of each check, and how much slower the runs may be, if they are checked.
    pub checks: Option<(&'a [Check], f64)>,
}

impl<'a> Several<'a> {
    /// A configuration with the outcome of its check.
    pub fn checked(&self, at: usize) -> Option<Checked<'a>> {
        let (checks, at_most) = self.checks?;
        let (comparison, check) = (self.compared.get(at)?, checks.get(at)?);
        Some(Checked { comparison, check, at_most, others: &[] })
    }

    /// Whether each configuration differs with certainty, considering how many there are.
    fn results(&self) -> Vec<&'static str> {
        let certain = certain(self.compared);
        let all = self.compared.iter().zip(certain).enumerate();
        let result = |(at, (of, certain)): (usize, (&Comparison, bool))| match self.checked(at) {
            Some(checked) => words::verdict(checked.check.verdict),
            None if certain && of.decisive().difference() > 0.0 => "slower",
            None if certain => "faster",
            None if verdict::lack_of_cores(&of.basis).is_some() => {
                words::verdict(Verdict::CannotTell)
            }
            None => "no significant difference",
        };
        all.map(result).collect()
    }

    pub fn summary(&self) -> String {
        let all = plural(self.compared.len(), "configuration");
        let results = self.results();
        let count = |word: &str| results.iter().filter(|result| **result == word).count();
        if let Some((_, at_most)) = self.checks {
            let [slower, unknown] =
                [Verdict::Regressed, Verdict::CannotTell].map(|of| count(words::verdict(of)));
            let allowed = percent(at_most);
            return match (slower, unknown) {
                (0, 0) => format!("Fine: none of {all} is slower by more than {allowed}."),
                (0, _) => format!(
                    "Cannot tell whether {unknown} of {all} {} slower by more than {allowed}.",
                    be(unknown)
                ),
                _ => format!(
                    "{slower} of {all} {} slower by more than the {allowed} allowed.",
                    be(slower)
                ),
            };
        }
        let parts = [("slower", count("slower")), ("faster", count("faster"))];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{word} in {count}"))
            .collect();
        match parts.is_empty() {
            true => format!("No significant difference in any of {all}."),
            false => format!("AFTER is {} of {all}.", parts.join(" and ")),
        }
    }

    /// What is said of one configuration; nothing where there is nothing to say.
    fn sentences(&self, at: usize, result: &str) -> Option<String> {
        let of = &self.compared[at];
        match self.checked(at) {
            Some(checked) => {
                let is_silent = checked.check.verdict == Verdict::Fine && of.changes.is_empty();
                let is_silent = is_silent && verdict::doubts(of).is_empty();
                (!is_silent).then(|| checked.sentences().join(" "))
            }
            None => {
                let is_told = matches!(result, "slower" | "faster") || !of.changes.is_empty();
                let cause = of.cause.as_ref().filter(|_| is_told);
                let mut sentences = verdict::doubts(of);
                sentences.extend(cause.map(|cause| verdict::cause(of, cause)));
                (!sentences.is_empty()).then(|| sentences.join(" "))
            }
        }
    }
}

fn be(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// `p=4 N=1000`, or the arguments where there are no parameters.
pub fn configuration(record: &RunRecord) -> String {
    let ranks = format!("p={}", record.ranks);
    let params = record.work().filter(|(name, _)| *name != "p");
    let mut words: Vec<String> = params.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() {
        words.clone_from(&record.arguments);
    }
    words.insert(0, ranks);
    crate::present::context::shortened(&words.join(" "))
}

pub fn several_screen(of: &Several, colour: bool) -> String {
    let Some(first) = of.compared.first() else { return String::new() };
    let sums = [
        of.compared.iter().map(|one| one.before.len()).sum(),
        of.compared.iter().map(|one| one.after.len()).sum(),
    ];
    let [before, after] = sums.map(|runs: usize| plural(runs, "run"));
    let head = [
        first.after[0].program.clone(),
        plural(of.compared.len(), "configuration"),
        format!("before: {before}"),
        format!("after: {after}"),
    ];
    let mut blocks = Blocks::headed(&head.join(" | "), &of.summary(), colour);
    let results = of.results();
    blocks.block("TIME", times(of, &results));
    let mut label = "WHY";
    for (at, result) in results.iter().enumerate() {
        if let Some(text) = of.sentences(at, result) {
            let name = configuration(&of.compared[at].after[0]);
            blocks.sentence(label, &format!("{name}: {text}"));
            label = "";
        }
    }
    of.alone.iter().for_each(|note| blocks.note(note));
    let others: Vec<_> = of.compared[1..].iter().map(verdict::notes).collect();
    let mut common = verdict::notes(first);
    common.retain(|note| others.iter().all(|notes| notes.contains(note)));
    common.iter().for_each(|note| blocks.note(note));
    let most = worst(of, &results).map(|at| &of.compared[at].after[0]);
    if let Some(record) = most {
        let choice = record.work().filter(|(name, _)| *name != "p");
        let choice = choice.map(|(name, value)| {
            format!(" --only {}", crate::shell_word::shell_word(&format!("{name}={value}")))
        });
        let choice: String = choice.collect();
        let choice = format!("--only p={}{choice}", record.ranks);
        blocks
            .sentence("NEXT", &format!("with {choice}: where the time of one configuration went"));
    }
    blocks.finish()
}

fn times(of: &Several, results: &[&str]) -> Vec<String> {
    let all = || of.compared.iter();
    let what = |of: &Comparison| match of.is_mostly_iterations() {
        true => "iteration",
        false => "run",
    };
    let s = |ns: f64| seconds(ns * 1e-9);
    let mut table = Table::default();
    table.left("configuration", all().map(|of| configuration(&of.after[0])));
    table.left("runs", all().map(|of| format!("{}, {}", of.before.len(), of.after.len())));
    table.left("time of", all().map(|of| what(of).to_owned()));
    table.right("before", all().map(|of| s(of.decisive().before)));
    table.right("after", all().map(|of| s(of.decisive().after)));
    table.right("difference", all().map(|of| words::signed(of.decisive().difference())));
    table.left("98 % interval", all().map(|of| words::interval(of.decisive(), 1.0)));
    table.left("", results.iter().map(|result| (*result).to_owned()));
    table.lines()
}

/// The configuration to look at first: of those with the worst result the one that changed most.
fn worst(of: &Several, results: &[&str]) -> Option<usize> {
    let weight = |result: &str| match result {
        "slower" => 2,
        "faster" | "cannot tell" => 1,
        _ => 0,
    };
    let change = |at: usize| of.compared[at].decisive().relative().abs();
    (0..results.len()).max_by(|a, b| {
        let weights = weight(results[*a]).cmp(&weight(results[*b]));
        weights.then(change(*a).total_cmp(&change(*b)))
    })
}

/// Comparisons or checks of several configurations.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a, C> {
    #[serde(flatten)]
    head: Head,
    /// Name of the program.
    program: &'a str,
    /// The worst outcome; only of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Verdict>,
    /// How much slower the runs may be, as a share; only of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    /// The outcome in words.
    sentence: String,
    /// Those of both sides.
    configurations: Vec<Part<C>>,
    /// Sentences on configurations of one side.
    notes: &'a [String],
}

/// A configuration, with the keys of a single comparison or check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Part<C> {
    /// Rank count and parameters: `p=4 N=1000`.
    configuration: String,
    /// `slower`, `faster`, `no significant difference` or `cannot tell`; of a check `fine`, `slower` or `cannot
    /// tell`. It considers how many configurations there are.
    result: &'static str,
    #[serde(flatten)]
    document: C,
}

/// The document: one part for each configuration, with the keys of a single comparison.
pub fn several_json(of: &Several) -> Result<String, serde_json::Error> {
    let mut parts = Vec::new();
    for (at, (comparison, result)) in of.compared.iter().zip(of.results()).enumerate() {
        let document = match of.checked(at) {
            Some(checked) => serde_json::to_value(super::checked::document(&checked))?,
            None => serde_json::to_value(document::document(comparison))?,
        };
        let configuration = configuration(&comparison.after[0]);
        parts.push(Part { configuration, result, document });
    }
    let document = Document {
        head: Head::default(),
        program: of.compared.first().map_or("", |one| &one.after[0].program),
        check: of.checks.map(|(checks, _)| Check::worst(checks)),
        at_most: of.checks.map(|(_, at_most)| at_most),
        sentence: of.summary(),
        configurations: parts,
        notes: of.alone,
    };
    text(&document)
}
