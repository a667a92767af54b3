//! Strings by number, as formats refer to them.

use std::collections::HashMap;

/// Numbers strings from 0 in the order in which they first occur.
#[derive(Debug, Default)]
pub(crate) struct StringTable {
    strings: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl StringTable {
    /// The number of a string; a new one gets the next.
    pub fn number(&mut self, text: &str) -> u32 {
        self.insert(text).0
    }

    /// The number of a string, and whether the string is new.
    pub fn insert(&mut self, text: &str) -> (u32, bool) {
        if let Some(number) = self.find(text) {
            return (number, false);
        }
        let number = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        (number, true)
    }

    /// The number of a string that is in the table.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// All strings, in the order of their numbers.
    pub fn strings(&self) -> &[String] {
        &self.strings
    }

    /// The same, given away.
    pub fn into_strings(self) -> Vec<String> {
        self.strings
    }
}
