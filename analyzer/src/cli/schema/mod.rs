//! Schemas of the JSON documents, made from the types that are written, and the lists of keys in `docs/reference`,
//! made from the schemas and so from the doc comments of these types. The test here compares both with the files.

mod close;
mod keys;

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::calibration::Calibration;
use crate::comparison::RunRecord;
use crate::ledger::Line;
use crate::models::machine::Machine;
use crate::present::comparison::{self, Baseline, checked, several};
use crate::present::dump::{EventLine, MessageLine, UnmatchedLine};
use crate::present::{causes, ledger, live, logpq, model, report, roofline, scaling, whatif};
use crate::trace::run_json::RunJson;
use crate::trace::study_json::StudyJson;

use super::doctor;

use keys::{Known, Page};

/// What refreshes the files.
const REFRESH: &str = "BLESS=1 cargo test -p gammachi --lib schema";

/// A document: the name of its files, the command that prints it, the page of `docs/reference` that lists its keys.
struct Document {
    name: &'static str,
    page: Option<Page>,
    schema: Value,
}

const REPORT: Page = Page { name: "report-json.md", level: "##" };
const WHY: Page = Page { name: "why-json.md", level: "##" };
const TOP: Page = Page { name: "top-json.md", level: "##" };
const RUN: Page = Page { name: "run-json.md", level: "##" };
const COMPARE: Page = Page { name: "compare-json.md", level: "###" };
const DUMP: Page = Page { name: "dump.md", level: "##" };
const PREDICTIONS: Page = Page { name: "predictions-json.md", level: "###" };

impl Document {
    /// What the command of this name prints with `--json`.
    fn describing<T: JsonSchema>(name: &'static str) -> Self {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema = generator.into_root_schema_for::<T>().to_value();
        let title = format!("gammachi {} --json", name.replace('-', " "));
        Self { name, page: None, schema: close::closed(schema, name, &title) }
    }

    fn titled(mut self, title: &str) -> Self {
        self.schema["title"] = title.into();
        self
    }

    fn listed(self, page: Page) -> Self {
        Self { page: Some(page), ..self }
    }

    /// The documents, those first whose keys others have as well.
    fn all() -> Vec<Self> {
        let lines = "a line of gammachi dump --messages --json";
        vec![
            Self::describing::<report::Document>("report").listed(REPORT),
            Self::describing::<causes::Document>("why").listed(WHY),
            Self::describing::<comparison::Document>("compare").listed(COMPARE),
            Self::describing::<checked::Document>("check"),
            Self::describing::<Baseline>("check-show").titled("gammachi check --show --json"),
            Self::describing::<several::Document<comparison::Document>>("compare-several")
                .titled("gammachi compare --json of several configurations"),
            Self::describing::<several::Document<checked::Document>>("check-several")
                .titled("gammachi check --json of several configurations"),
            Self::describing::<RunRecord>("record").titled("a file of a baseline").listed(COMPARE),
            Self::describing::<RunJson>("run").titled("run.json").listed(RUN),
            Self::describing::<StudyJson>("study").titled("study.json").listed(PREDICTIONS),
            Self::describing::<scaling::Document>("scaling").listed(PREDICTIONS),
            Self::describing::<model::Document>("model").listed(PREDICTIONS),
            Self::describing::<whatif::Document>("whatif").listed(PREDICTIONS),
            Self::describing::<Line>("ledger")
                .titled("a line of gammachi-ledger.jsonl")
                .listed(PREDICTIONS),
            Self::describing::<ledger::Document>("whatif-ledger")
                .titled("gammachi whatif --ledger --json")
                .listed(PREDICTIONS),
            Self::describing::<roofline::Document>("roofline").listed(PREDICTIONS),
            Self::describing::<logpq::Document>("calibrate-logpq").listed(PREDICTIONS),
            Self::describing::<Calibration>("calibrate-clock"),
            Self::describing::<EventLine>("dump-event")
                .titled("a line of gammachi dump --json")
                .listed(DUMP),
            Self::describing::<MessageLine>("dump-message").titled(lines).listed(DUMP),
            Self::describing::<UnmatchedLine>("dump-unmatched").titled(lines).listed(DUMP),
            Self::describing::<live::Document>("top").listed(TOP),
            Self::describing::<doctor::Document>("doctor"),
            Self::describing::<Machine>("machine").titled("machine.json"),
        ]
    }
}

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference")
}

/// JSON, with each object and list on one line if it is short enough.
fn laid_out(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    if indent + line.chars().count() <= 118 {
        return line;
    }
    let inner = |of: &Value| laid_out(of, indent + 2);
    let (open, parts, close): (char, Vec<String>, char) = match value {
        Value::Object(keys) => {
            ('{', keys.iter().map(|(key, of)| format!("\"{key}\": {}", inner(of))).collect(), '}')
        }
        Value::Array(items) => ('[', items.iter().map(inner).collect(), ']'),
        _ => return line,
    };
    let end = " ".repeat(indent);
    format!("{open}\n{end}  {}\n{end}{close}", parts.join(&format!(",\n{end}  ")))
}

/// A page with the keys of a document between the two lines that begin and end them.
fn with_keys(page: &str, name: &str, keys: &str) -> String {
    let begin = format!("<!-- keys of {name}: made by `{REFRESH}` -->\n");
    let end = format!("<!-- end of the keys of {name} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the line before the keys");
    let (_, after) = rest.split_once(&end).expect("the line behind the keys");
    format!("{before}{begin}\n{keys}\n{end}{after}")
}

/// Writes a file if asked to; otherwise names it if it is not what it should be.
fn stale(path: &Path, text: &str) -> Option<String> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return None;
    }
    if std::env::var_os("BLESS").is_none() {
        return Some(path.file_name()?.to_string_lossy().into_owned());
    }
    fs::write(path, text).expect("docs/reference can be written");
    None
}

#[test]
fn schemas_and_lists_of_keys_are_those_of_the_types() {
    let (mut known, mut wrong) = (Known::default(), Vec::new());
    for document in Document::all() {
        let file = format!("schema/{}.schema.json", document.name);
        let text = laid_out(&document.schema, 0) + "\n";
        wrong.extend(stale(&reference().join(file), &text));
        let Some(page) = document.page else { continue };
        let keys = known.list(page, &document.schema);
        let page = reference().join(page.name);
        let text = fs::read_to_string(&page).expect("a page of the reference");
        wrong.extend(stale(&page, &with_keys(&text, document.name, &keys)));
    }
    assert!(wrong.is_empty(), "docs/reference is stale: {wrong:?}. Refresh it: {REFRESH}");
}
