//! Names by number, as the data of timelines refers to them.

use std::collections::HashMap;

use crate::metrics::activity::Kind;

/// The name under which the recorder's own time appears among the functions.
pub(super) const TOOL_NAME: &str = "recorder";

/// Numbers names in the order in which they first occur.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl NameTable {
    /// The number of a name; a new name gets the next one.
    pub fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The number of a name that is in the table.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// All names, in the order of their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The same, given away.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The kind of each of these functions.
    pub fn kinds(&self) -> Vec<usize> {
        let kind = |name: &String| match name.as_str() {
            TOOL_NAME => Kind::Tool,
            name => Kind::of_function(name),
        };
        self.names.iter().map(|name| kind(name) as usize).collect()
    }
}
