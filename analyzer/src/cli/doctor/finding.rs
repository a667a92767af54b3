//! What was found out about the machine.

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Nothing limits a measurement.
    Ok,
    /// Worth knowing when reading a measurement.
    Note,
    /// Something cannot be measured, or not well.
    Limit,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Group: `recorder`, `mpi`, `counter`, `storage`, `host`.
    pub group: &'static str,
    /// What was examined; together with the group it names the line in
    /// `docs/reference/doctor-json.md`.
    pub name: &'static str,
    /// How much it matters.
    pub mark: Mark,
    /// What was found, for people.
    pub value: String,
    /// What that means for a measurement.
    pub meaning: String,
    /// What was found, for machines.
    pub data: Map<String, Value>,
}

impl Finding {
    pub(super) fn new(
        name: &'static str,
        mark: Mark,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        let (value, meaning) = (value.into(), meaning.into());
        Self { group: "", name, mark, value, meaning, data: Map::new() }
    }

    pub(super) fn of_group(self, group: &'static str) -> Self {
        Self { group, ..self }
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }
}
