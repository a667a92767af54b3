//! Reads the files beside a `.prv`: names of values from the `.pcf`, names of nodes from the
//! `.row`. Both may be missing.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::formats::paraver::names::{
    COLLECTIVE, FILES, ONE_SIDED, OTHER, POINT_TO_POINT, functions,
};

/// Names of values by event type.
pub type Names = HashMap<u32, HashMap<u64, String>>;

/// The file of the same trace with another suffix.
pub fn beside(file: &Path, ending: &str) -> PathBuf {
    let plain = match file.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
        true => file.with_extension(""),
        false => file.to_owned(),
    };
    plain.with_extension(ending)
}

fn text_of(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names of values: those of Extrae, replaced by those in the `.pcf`.
pub fn of_values(pcf: &Path) -> Names {
    let mut names = Names::new();
    for kind in [POINT_TO_POINT, COLLECTIVE, OTHER, ONE_SIDED, FILES] {
        let known = functions().map(|(name, number)| (u64::from(number), name));
        names.insert(kind, known.collect());
    }
    let (mut kinds, mut values) = (Vec::new(), false);
    for line in text_of(pcf).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["EVENT_TYPE"] => (kinds, values) = (Vec::new(), false),
            ["VALUES"] => values = true,
            [_, kind, ..] if !values => kinds.extend(kind.parse::<u32>().ok()),
            [value, ..] if values => {
                let Ok(number) = value.parse::<u64>() else { continue };
                let name = line.trim_start().trim_start_matches(value).trim().to_owned();
                for kind in &kinds {
                    names.entry(*kind).or_default().insert(number, name.clone());
                }
            }
            _ => {}
        }
    }
    names
}

/// Names of the nodes from the `.row`.
pub fn of_nodes(row: &Path) -> Vec<String> {
    let text = text_of(row);
    let mut lines = text.lines().skip_while(|line| !line.contains("LEVEL NODE SIZE"));
    lines.next();
    lines.take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}
