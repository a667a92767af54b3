//! What every run's outputs must satisfy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::agreement::outputs::{Output, Outputs};
use crate::instance;

/// What stands beside figures that say little.
const MARK: &str = "unreliable: ";

/// The blocks of a screen and the figures that they show. Blocks that are left out say nothing.
const BLOCKS: [(&str, &[(&str, &str)]); 4] = [
    (
        "report",
        &[
            ("EFFICIENCY", "efficiency"),
            ("WAIT STATES", "waits"),
            ("REGIONS", "efficiency"),
            ("PHASES", "efficiency"),
            ("ITERATIONS", "efficiency"),
            ("WHAT IF", "predictions"),
        ],
    ),
    (
        "why",
        &[
            ("EFFICIENCY", "efficiency"),
            ("WAIT TIME", "waits"),
            ("WAIT STATES", "waits"),
            ("DELAY COSTS", "delays"),
            ("CHAIN", "delays"),
            ("CRITICAL PATH", "delays"),
            ("RANKS", "delays"),
            ("HOSTS", "delays"),
            ("REGIONS", "efficiency"),
            ("PHASES", "efficiency"),
            ("ITERATIONS", "efficiency"),
        ],
    ),
    ("whatif", &[("WHAT IF", "predictions"), ("TOLERATES", "predictions")]),
    ("compare", &[("PARTS", "waits"), ("WHERE", "delays"), ("EFFICIENCY", "efficiency")]),
];

/// Parts of the page, from a text to another one behind it, and the figures that they show.
const PARTS: [(&str, &str, &str); 6] = [
    ("id=\"efficiency\"", "</div>\n</div>", "efficiency"),
    ("id=\"top-causes\"", "</ol>", "delays"),
    ("id=\"savings\"", "</ul>", "predictions"),
    ("<h2 id=\"waits\"", "</section>", "delays"),
    ("<h2 id=\"parts\"", "</section>", "efficiency"),
    ("Longest waits</h2>", "</section>", "delays"),
];

/// The figures that findings of these kinds are about.
const ABOUT: [(&str, &[&str]); 4] = [
    ("efficiency", &["efficiency", "loses_most", "asleep"]),
    ("waits", &["transfer", "waiting", "overlap", "small_messages", "no_overlap", "placement"]),
    (
        "delays",
        &[
            "slow_iterations",
            "slow_host",
            "delay",
            "serial_io",
            "blocked",
            "no_main_delay",
            "unattributed",
            "in_turn",
        ],
    ),
    ("predictions", &["overlap", "placement"]),
];

/// The schemas of the documents.
static SCHEMAS: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/schema");
    let schema = |name: &'static str| {
        let text =
            fs::read_to_string(folder.join(format!("{name}.schema.json"))).expect("a schema");
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    ["report", "why", "whatif", "compare"].into_iter().map(schema).collect()
});

/// Where a document does not fit its schema.
fn misfit(of: &Output) -> Option<String> {
    let found = instance::violations(&SCHEMAS[of.command], &of.document);
    found.first().map(|first| format!("the document of {} at {first}", of.command))
}

/// The first rule that outputs break, if they break one.
pub fn broken(of: &Outputs) -> Option<String> {
    let found = &of.report.document["findings"];
    let others = [Some(&of.why), of.whatif.as_ref()];
    for other in others.into_iter().flatten() {
        if other.document["findings"] != *found {
            let theirs = &other.document["findings"];
            return Some(format!("{} finds {theirs:#}\nreport finds {found:#}", other.command));
        }
    }
    let invalid = invalid(found);
    let on_screens = [Some(&of.report), Some(&of.why), of.whatif.as_ref(), of.compare.as_ref()];
    said_first(of, found)
        .or_else(|| on_screens.into_iter().flatten().find_map(long_headline))
        .or_else(|| contradicts_itself(found, &invalid))
        .or_else(|| names_elsewhere(&of.report.document))
        .or_else(|| on_screens.into_iter().flatten().find_map(|of| unmarked(of, &invalid)))
        .or_else(|| on_screens.into_iter().flatten().find_map(misfit))
        .or_else(|| pages(of).find_map(|(name, page)| unmarked_on_page(name, page, &invalid)))
        .or_else(|| shows_other_waits(of))
        .or_else(|| promises(of, &invalid))
        .or_else(|| promises_alone(found))
        .or_else(|| doubts_above(&of.timeline, found))
        .or_else(|| of.compare.as_ref().and_then(|compare| compared(compare, found)))
}

/// Figures that a finding makes invalid.
fn invalid(findings: &Value) -> Vec<&str> {
    let all = findings.as_array().into_iter().flatten();
    let mut invalid: Vec<&str> = all
        .filter_map(|finding| finding["invalidates"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    invalid.sort_unstable();
    invalid.dedup();
    invalid
}

fn sentences(findings: &Value) -> Vec<&str> {
    let all = findings.as_array().into_iter().flatten();
    all.filter_map(|finding| finding["sentence"].as_str()).collect()
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text of the page without marks of HTML.
fn plain(page: &str) -> String {
    let mut text = String::new();
    for (number, piece) in page.split('<').enumerate() {
        text +=
            if number == 0 { piece } else { piece.split_once('>').map_or("", |(_, text)| text) };
    }
    let entities =
        [("&#x27;", "'"), ("&#x2f;", "/"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">")];
    let text = entities.iter().fold(text, |text, (entity, plain)| text.replace(entity, plain));
    joined(&text.replace("&amp;", "&"))
}

/// Every screen that shows findings has their sentences at its head, in order.
fn said_first(of: &Outputs, findings: &Value) -> Option<String> {
    let expected = joined(&sentences(findings).join(" "));
    for output in [&of.report, &of.why] {
        let head = output.screen.split_once("\n\n").map_or("", |(_, rest)| rest);
        if !joined(head).starts_with(&expected) {
            return Some(format!("{} does not begin with {expected:?}: {head}", output.command));
        }
    }
    pages(of).find_map(|(name, page)| {
        let verdict = page.split_once("id=\"verdict\">").map_or("", |(_, rest)| rest);
        let verdict = plain(verdict.split_once("</p>").map_or("", |(verdict, _)| verdict));
        (verdict != expected).then(|| format!("{name} says {verdict:?}, not {expected:?}"))
    })
}

/// The page as a file, and the parts of it that the viewer answers.
fn pages(of: &Outputs) -> impl Iterator<Item = (&'static str, &str)> {
    let served = of.served.iter().map(|served| ("the viewer", served.parts.as_str()));
    [("the page", of.page.as_str())].into_iter().chain(served)
}

/// Words that a reader takes in at once.
const AT_ONCE: usize = 35;

/// The first lines of a screen's findings, up to the next paragraph, if they are more than a reader takes in at once.
fn long_headline(of: &Output) -> Option<String> {
    let (_, findings) = of.screen.split_once("\n\n")?;
    let continues = |line: &&str| line.starts_with("    ");
    let mut lines = findings.lines();
    let first = lines.next()?;
    let headline = std::iter::once(first).chain(lines.take_while(continues)).collect::<Vec<_>>();
    let headline = headline.join(" ");
    let words = headline.split_whitespace().count();
    (words > AT_ONCE).then(|| format!("{} begins with {words} words: {headline}", of.command))
}

/// No finding is about what another one makes invalid.
fn contradicts_itself(findings: &Value, invalid: &[&str]) -> Option<String> {
    let kinds: Vec<&str> =
        findings.as_array().into_iter().flatten().filter_map(|one| one["kind"].as_str()).collect();
    ABOUT.iter().filter(|(figures, _)| invalid.contains(figures)).find_map(|(figures, about)| {
        let stated = kinds.iter().find(|kind| about.contains(kind))?;
        Some(format!("{figures} are invalid, but {stated} is stated: {findings:#}"))
    })
}

/// A function that the verdict names must be one of those shown, and be longer on that rank than on another.
fn names_elsewhere(report: &Value) -> Option<String> {
    let named = report["findings"].as_array().into_iter().flatten();
    let mut named = named.filter(|one| one["kind"] == "delay" && one["function"].is_string());
    named.find_map(|delay| {
        let of_function = report["code"].as_array().into_iter().flatten();
        let of_function = of_function.filter(|row| row["function"] == delay["function"]);
        let total_s = |of: &Value| of["total_s"].as_f64().unwrap_or(0.0);
        let (own, others): (Vec<&Value>, Vec<&Value>) = of_function
            .filter(|row| !row["rank"].is_null())
            .partition(|row| row["rank"] == delay["rank"]);
        let own_s = own.into_iter().map(total_s).fold(0.0, f64::max);
        let least_s = others.into_iter().map(total_s).fold(own_s, f64::min);
        let is_said = delay["sentence"].as_str()?.contains(delay["function"].as_str()?);
        (!is_said || least_s >= own_s)
            .then(|| format!("{delay:#} is not in CODE: {own_s} s, {least_s} s"))
    })
}

/// The blocks of a screen, by label.
fn blocks(screen: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    for line in screen.lines() {
        // A longer label stands above its lines.
        let is_beside = line.chars().nth(11).is_none_or(|last| last == ' ');
        let label: String = line.chars().take(if is_beside { 12 } else { usize::MAX }).collect();
        match line.starts_with(' ') || line.is_empty() {
            false => blocks.push((label.trim().to_owned(), line.to_owned())),
            true => blocks.iter_mut().last().into_iter().for_each(|(_, text)| {
                text.push('\n');
                text.push_str(line);
            }),
        }
    }
    blocks
}

/// A block with invalid figures and without a mark.
fn unmarked(of: &Output, invalid: &[&str]) -> Option<String> {
    let (_, rules) = BLOCKS.iter().find(|(command, _)| *command == of.command)?;
    blocks(&of.screen).into_iter().find_map(|(label, text)| {
        let is_it = |(name, figures): &&(&str, &str)| *name == label && invalid.contains(figures);
        let (_, figures) = rules.iter().find(is_it)?;
        let is_marked = text.contains(MARK);
        (!is_marked)
            .then(|| format!("{} shows invalid {figures} without a mark:\n{text}", of.command))
    })
}

fn unmarked_on_page(name: &str, page: &str, invalid: &[&str]) -> Option<String> {
    PARTS.iter().filter(|(.., figures)| invalid.contains(figures)).find_map(
        |(from, to, figures)| {
            let (before, rest) = page.split_once(from)?;
            let part = rest.split_once(to).map_or(rest, |(part, _)| part);
            // A heading is followed by the mark, or has it before its list.
            let before = before.rsplit("<h2").next().unwrap_or_default();
            let is_marked = part.contains(MARK) || before.contains(MARK);
            (!is_marked).then(|| format!("{name} shows invalid {figures} at {from} without a mark"))
        },
    )
}

/// The viewer's timeline has the waits of the page.
fn shows_other_waits(of: &Outputs) -> Option<String> {
    let served = of.served.as_ref()?;
    let (_, data) = of.page.split_once("id=\"timeline-data\">")?;
    let data: Value = serde_json::from_str(data.split_once("</script>")?.0).expect("data");
    let embedded = &data["causes"];
    (*embedded != served.causes)
        .then(|| format!("the viewer's waits are {}, the page's {embedded}", served.causes))
}

/// Savings, and steps that promise some, where predictions are invalid.
fn promises(of: &Outputs, invalid: &[&str]) -> Option<String> {
    if !invalid.contains(&"predictions") {
        return None;
    }
    let savings = &of.report.document["what_if"];
    if savings.as_array().is_some_and(|savings| !savings.is_empty()) {
        return Some(format!("report promises {savings}"));
    }
    [&of.report, &of.why].into_iter().find_map(|output| {
        let next = blocks(&output.screen).into_iter().find(|(label, _)| label == "NEXT")?;
        next.1.contains("gammachi whatif").then(|| format!("{}: {}", output.command, next.1))
    })
}

/// A sentence that promises time without the interval that a replay gave.
fn promises_alone(findings: &Value) -> Option<String> {
    let promises = ["save", "faster", "sooner"];
    findings.as_array()?.iter().find_map(|finding| {
        let sentence = finding["sentence"].as_str()?;
        let saves = if finding["saves"].is_object() { &finding["saves"] } else { finding };
        let is_replayed = saves["lo_s"].is_number() && saves["hi_s"].is_number();
        // All of the interval may lie above what can be overlapped.
        let tells = match saves["lo_s"] == saves["hi_s"] {
            true => sentence.contains("at most") && sentence.contains("no more can be overlapped"),
            false => {
                sentence.contains("90 % interval") || sentence.contains("in nine of ten cases")
            }
        };
        let is_promise = promises.iter().any(|word| sentence.contains(word));
        (is_promise && !(is_replayed && tells)).then(|| format!("promises alone: {sentence}"))
    })
}

/// The sentences on what makes figures invalid.
fn doubts(findings: &Value) -> impl Iterator<Item = &str> {
    let invalidates = |finding: &&Value| {
        finding["invalidates"].as_array().is_some_and(|figures| !figures.is_empty())
    };
    let all = findings.as_array().into_iter().flatten().filter(invalidates);
    all.filter_map(|finding| finding["sentence"].as_str())
}

/// The timeline in a terminal stands below the same doubts.
fn doubts_above(timeline: &str, findings: &Value) -> Option<String> {
    let text = joined(timeline);
    let missing = doubts(findings).find(|sentence| !text.contains(&joined(sentence)))?;
    Some(format!("the timeline does not say {missing:?}: {text}"))
}

/// What `compare` says of a run: the same findings, and first of all those that make figures invalid.
fn compared(of: &Output, findings: &Value) -> Option<String> {
    for side in ["before", "after"] {
        let theirs = &of.document[side]["findings"][0];
        if theirs != findings {
            return Some(format!("compare finds {theirs:#}\nreport finds {findings:#}"));
        }
    }
    let head = joined(of.screen.split_once("\n\n").map_or("", |(_, rest)| rest));
    let claim = ["AFTER is", "AFTER took", "Cannot tell", "No significant difference"];
    let before_claims = claim.iter().filter_map(|claim| head.find(claim)).min();
    doubts(findings).find_map(|sentence| {
        let at = head.find(&joined(sentence));
        let is_first = at.zip(before_claims).is_some_and(|(at, claim)| at < claim);
        (!is_first).then(|| format!("compare does not say first: {sentence:?}\n{head}"))
    })
}
