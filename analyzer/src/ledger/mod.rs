//! What was predicted, and what the runs made since took: a file of one JSON object a line, to which lines are only
//! ever added.
//!
//! | file | its idea |
//! |---|---|
//! | `subject` | of which runs a prediction speaks, and whether another run is one of them |
//! | `file` | lines are read and added |
//! | `score` | promises beside what was measured |
//!
//! `docs/reference/predictions-json.md` describes the file to users, decision 88 says why it is as it is.

mod file;
mod score;
mod subject;

use serde::{Deserialize, Serialize};

use crate::trace::run_json::Instant;

pub use file::{LEDGER_FILE, Ledger, LineFault, append};
pub use score::{Score, Standing, Summary};
pub use subject::{Difference, Subject, is_same_value};

/// Which command predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Predictor {
    /// `gammachi whatif`: a later run answers only when the user says that it has the change.
    WhatIf,
    /// `gammachi scaling --predict`.
    Scaling,
    /// `gammachi model --predict`.
    Model,
}

impl Predictor {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::WhatIf => "whatif",
            Self::Scaling => "scaling",
            Self::Model => "model",
        }
    }
}

/// A prediction that was written down before the run that answers it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// Six hexadecimal digits, unlike those of the ledger's other promises.
    pub id: String,
    /// When.
    pub at: Instant,
    /// By which command.
    pub by: Predictor,
    /// What was asked, in words.
    pub question: String,
    /// The run, study or table that it was predicted from, seen from the ledger's folder.
    pub source: String,
    /// Of which runs it speaks.
    #[serde(flatten)]
    pub subject: Subject,
    /// The columns of a table of runs whose sum was predicted; `tau_s` is the elapsed time.
    pub quantity: Vec<String>,
    /// Their sum, seconds.
    pub seconds: f64,
    /// Lower end of its interval, seconds.
    pub lo_s: Option<f64>,
    /// Upper end.
    pub hi_s: Option<f64>,
    /// Part of the cases in which the interval holds.
    pub coverage: f64,
}

impl Promise {
    /// Whether it says the same as another one, made at another time.
    pub fn repeats(&self, other: &Self) -> bool {
        (self.seconds / other.seconds - 1.0).abs() < 1e-9
            && (self.by, &self.question, &self.source) == (other.by, &other.question, &other.source)
            && (&self.subject, &self.quantity) == (&other.subject, &other.quantity)
    }

    /// Whether a run that suits its subject answers it without a word of the user.
    pub fn is_recognised(&self) -> bool {
        self.by != Predictor::WhatIf && self.subject.is_certain()
    }
}

/// A run that was measured after a promise about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Id of the promise.
    pub promise: String,
    /// When it was noted.
    pub at: Instant,
    /// The run, seen from the ledger's folder.
    pub run: String,
    /// What was promised, as it was measured, seconds.
    pub seconds: f64,
    /// Whether the user named the run; else it suits the promise in all that is known.
    pub named: bool,
}
