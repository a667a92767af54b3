//! The file of a ledger. Each line is a JSON object with its `version` and its `record` kind. Lines
//! are appended with a single write, so that lines of concurrent commands do not mix.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::prediction::{Answer, Prediction};

/// Name of the ledger in a folder of runs.
pub const LEDGER_FILE: &str = "gammachi-ledger.jsonl";

/// Version of the keys.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Line {
    /// 1.
    version: u32,
    #[serde(flatten)]
    record: Record,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record {
    Prediction(Box<Prediction>),
    Answer(Answer),
}

/// Why a line is ignored. Lines are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineFault {
    /// It is not a JSON object of a ledger.
    #[error("line {line} is not a line of a ledger; it is ignored: {what}")]
    Syntax {
        line: usize,
        /// Where and why parsing failed.
        what: String,
    },
    /// A later version of gammachi wrote it.
    #[error(
        "line {line} has version {version} and is ignored: this gammachi reads version {VERSION}; use the one \
         that wrote it"
    )]
    Version { line: usize, version: u64 },
    /// Two predictions have one id.
    #[error("line {line} repeats prediction {id} and is ignored")]
    Repeated { line: usize, id: String },
    /// An answer refers to no prediction.
    #[error("line {line} answers {id}, but there is no such prediction; it is ignored")]
    NoPrediction { line: usize, id: String },
}

/// The contents of a ledger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// Predictions, oldest first.
    pub predictions: Vec<Prediction>,
    /// Answers, oldest first.
    pub answers: Vec<Answer>,
    /// Lines that were ignored.
    pub faults: Vec<LineFault>,
}

impl Ledger {
    /// Reads a file.
    ///
    /// # Errors
    /// The error of the system, including a missing file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::parse(&fs::read(path)?))
    }

    /// Reads a file; a missing file is an empty ledger.
    pub fn read_or_empty(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            read => read,
        }
    }

    fn parse(text: &[u8]) -> Self {
        let mut ledger = Self::default();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Err(fault) = ledger.add_line(number + 1, line) {
                ledger.faults.push(fault);
            }
        }
        ledger
    }

    fn add_line(&mut self, line: usize, text: &[u8]) -> Result<(), LineFault> {
        let syntax = |error: serde_json::Error| LineFault::Syntax { line, what: error.to_string() };
        let value: serde_json::Value = serde_json::from_slice(text).map_err(syntax)?;
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        if let Some(version) = version.filter(|version| *version != u64::from(VERSION)) {
            return Err(LineFault::Version { line, version });
        }
        match serde_json::from_value::<Line>(value).map_err(syntax)?.record {
            Record::Prediction(prediction) if self.prediction(&prediction.id).is_some() => {
                Err(LineFault::Repeated { line, id: prediction.id })
            }
            Record::Answer(answer) if self.prediction(&answer.prediction).is_none() => {
                Err(LineFault::NoPrediction { line, id: answer.prediction })
            }
            Record::Prediction(prediction) => {
                self.predictions.push(*prediction);
                Ok(())
            }
            Record::Answer(answer) => {
                self.answers.push(answer);
                Ok(())
            }
        }
    }

    pub fn prediction(&self, id: &str) -> Option<&Prediction> {
        self.predictions.iter().find(|prediction| prediction.id == id)
    }

    /// Whether a run has already answered a prediction.
    pub fn has_answer(&self, id: &str, run: &str) -> bool {
        self.answers.iter().any(|answer| answer.prediction == id && answer.run == run)
    }

    /// An id that no prediction of the ledger has yet.
    pub fn new_id(&self) -> String {
        loop {
            let id = format!("{:06x}", fastrand::u32(..1 << 24));
            if self.prediction(&id).is_none() {
                return id;
            }
        }
    }
}

/// Appends lines to a file: all of them, or, if the system fails, as many bytes as it wrote.
pub fn append(path: &Path, predictions: &[Prediction], answers: &[Answer]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut text = Vec::new();
    // A line truncated by a full disk must not swallow the next one.
    if file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push(b'\n');
        }
    }
    let predictions = predictions.iter().cloned().map(Box::new).map(Record::Prediction);
    for record in predictions.chain(answers.iter().cloned().map(Record::Answer)) {
        serde_json::to_writer(&mut text, &Line { version: VERSION, record })?;
        text.push(b'\n');
    }
    file.write_all(&text)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::ledger::{Predictor, Subject};
    use crate::trace::run_json::Instant;

    pub fn prediction(id: &str, seconds: f64) -> Prediction {
        Prediction {
            id: id.into(),
            at: Instant::from_unix_ns(1_700_000_000_000_000_000),
            by: Predictor::Scaling,
            question: "p = 8".into(),
            source: "study".into(),
            subject: Subject { program: Some("app".into()), p: Some(8), ..Subject::default() },
            quantity: vec!["tau_s".into()],
            seconds,
            lo_s: Some(seconds * 0.875),
            hi_s: Some(seconds * 1.125),
            coverage: 0.9,
        }
    }

    pub fn answer(prediction: &str, run: &str, seconds: f64) -> Answer {
        let at = Instant::from_unix_ns(1_700_000_100_000_000_000);
        Answer { prediction: prediction.into(), at, run: run.into(), seconds, named: false }
    }

    fn fresh(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ledger-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn appended_records_are_read_back_in_order() {
        let path = fresh("round-trip");
        assert_eq!(Ledger::read_or_empty(&path).unwrap(), Ledger::default());
        append(&path, &[prediction("00000a", 1.5), prediction("00000b", 0.25)], &[]).unwrap();
        append(&path, &[], &[answer("00000b", "r1", 0.5)]).unwrap();
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!(ledger.predictions, [prediction("00000a", 1.5), prediction("00000b", 0.25)]);
        assert_eq!(ledger.answers, [answer("00000b", "r1", 0.5)]);
        assert!(ledger.faults.is_empty() && ledger.has_answer("00000b", "r1"));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn truncated_line_damages_no_other() {
        let path = fresh("torn");
        append(&path, &[prediction("00000a", 1.5)], &[]).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], &whole[..40]].concat()).unwrap();
        append(&path, &[prediction("00000b", 2.5)], &[]).unwrap();
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!(ledger.predictions.len(), 2);
        assert!(matches!(ledger.faults[..], [LineFault::Syntax { line: 2, .. }]), "{ledger:?}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn reports_ignored_lines() {
        let path = fresh("faults");
        append(&path, &[prediction("00000a", 1.5), prediction("00000a", 3.0)], &[]).unwrap();
        append(&path, &[], &[answer("0000ff", "r1", 0.5)]).unwrap();
        let mut text = fs::read(&path).unwrap();
        text.extend(b"{\"version\":2,\"record\":\"bet\"}\n\xff\n\n");
        fs::write(&path, text).unwrap();
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!(ledger.predictions, [prediction("00000a", 1.5)]);
        let [repeated, alone, later, syntax] = &ledger.faults[..] else { panic!("{ledger:?}") };
        assert_eq!(*repeated, LineFault::Repeated { line: 2, id: "00000a".into() });
        assert_eq!(*alone, LineFault::NoPrediction { line: 3, id: "0000ff".into() });
        assert_eq!(*later, LineFault::Version { line: 4, version: 2 });
        assert!(matches!(syntax, LineFault::Syntax { line: 5, .. }));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn concurrent_writers_lose_no_line() {
        let path = fresh("together");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..50 {
                        let id = format!("{writer:03x}{number:03x}");
                        append(path, &[prediction(&id, 1.0)], &[]).unwrap();
                    }
                });
            }
        });
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!((ledger.predictions.len(), ledger.faults.len()), (400, 0));
        fs::remove_file(path).unwrap();
    }
}
