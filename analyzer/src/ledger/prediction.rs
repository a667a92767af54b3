//! A prediction that was recorded, and its answer.

use serde::{Deserialize, Serialize};

use crate::trace::run_json::Instant;

use super::subject::Subject;

/// The command that made a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Predictor {
    /// `gammachi whatif`: a later run answers it only if the user says that it has the change.
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

/// A prediction that was recorded before the run that answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Six hexadecimal digits, unique in the ledger.
    pub id: String,
    /// When it was made.
    pub at: Instant,
    /// The command that made it.
    pub by: Predictor,
    /// What was asked, in words.
    pub question: String,
    /// The run, study or table that the prediction is based on, relative to the ledger's folder.
    pub source: String,
    /// The runs that it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// The columns of a table of runs whose sum is predicted; `tau_s` is the elapsed time.
    pub quantity: Vec<String>,
    /// The predicted sum, seconds.
    pub seconds: f64,
    /// Lower end of the prediction interval, seconds.
    pub lo_s: Option<f64>,
    /// Upper end of the prediction interval, seconds.
    pub hi_s: Option<f64>,
    /// Probability with which the interval is meant to hold.
    pub coverage: f64,
}

impl Prediction {
    /// Whether it predicts the same as another prediction, made at another time.
    pub fn repeats(&self, other: &Self) -> bool {
        (self.seconds / other.seconds - 1.0).abs() < 1e-9
            && (self.by, &self.question, &self.source) == (other.by, &other.question, &other.source)
            && (&self.subject, &self.quantity) == (&other.subject, &other.quantity)
    }

    /// Whether a run that matches its subject answers it without being named by the user.
    pub fn is_recognised(&self) -> bool {
        self.by != Predictor::WhatIf && self.subject.is_certain()
    }
}

/// A run that was measured after a prediction about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// Id of the prediction.
    pub prediction: String,
    /// When the answer was recorded.
    pub at: Instant,
    /// The run, relative to the ledger's folder.
    pub run: String,
    /// The measured value of the predicted quantity, seconds.
    pub seconds: f64,
    /// Whether the user named the run; otherwise it matches the prediction in everything that is
    /// known.
    pub named: bool,
}
