//! Short descriptions of what ran where, from the headers of the rank files.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

use crate::plain_text::printable;
use crate::trace::Run;

/// Maximum length of a list of arguments or numbers in a line, in characters.
const MAX_CHARACTERS: usize = 48;

/// The program's name, or the names of all programs. Traces of other tools may have none.
pub(super) fn program(run: &Run) -> String {
    let name = |path: &str| match path.rsplit('/').next().unwrap_or(path) {
        "" => "unknown program".to_owned(),
        name => name.to_owned(),
    };
    let names: BTreeSet<String> =
        run.ranks.iter().map(|rank| name(&rank.file.header.program)).collect();
    names.into_iter().collect::<Vec<_>>().join(" : ")
}

/// Program with its parameters or, without parameters, with its arguments.
pub(super) fn program_line(run: &Run) -> String {
    let parameters = run.parameters();
    let details: Vec<String> = match parameters.is_empty() {
        false => parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect(),
        true => {
            let arguments = run.ranks.first().map(|rank| &rank.file.header.arguments);
            arguments.into_iter().flatten().skip(1).map(|argument| printable(argument)).collect()
        }
    };
    let details = shortened(&details.join(" "));
    if details.is_empty() { program(run) } else { format!("{}  {details}", program(run)) }
}

/// Name and version of the MPI library, taken from its long version text; says so if the program uses the standard ABI.
pub(super) fn mpi_library(run: &Run) -> String {
    let Some(header) = run.ranks.first().map(|rank| &rank.file.header) else {
        return "unknown MPI".into();
    };
    let first = header.mpi_library.split([',', '\n']).next().unwrap_or_default();
    let words = first.replace("Version:", "").replace(" v", " ").replace(['\t', '\0'], " ");
    let words = words.replace("Intel(R) MPI Library", "Intel MPI").replace("for Linux* OS", "");
    let short = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = if short.is_empty() { "unknown MPI".into() } else { shortened(&printable(&short)) };
    match header.mpi_family.as_str() {
        "abi" => format!("{name}, standard ABI"),
        _ => name,
    }
}

/// Hosts, ranks and cores.
pub(super) fn placement(run: &Run) -> String {
    let mut hosts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for rank in &run.ranks {
        let header = &rank.file.header;
        *hosts.entry((&header.host, &header.boot_id)).or_default() += 1;
    }
    let mut ranks = plural(run.world_size as usize, "rank");
    if !run.missing.is_empty() {
        ranks.push_str(&format!(" ({} with a file)", run.ranks.len()));
    }
    let hosts = plural(hosts.len(), "host");
    let cores = if run.ranks.len() <= 16 { cores(run) } else { String::new() };
    format!("{hosts}, {ranks}{cores}")
}

fn cores(run: &Run) -> String {
    let affinities = run.ranks.iter().map(|rank| &rank.file.header.affinity);
    let cores: BTreeSet<u32> = affinities.flatten().copied().collect();
    if cores.is_empty() {
        return String::new();
    }
    let word = if cores.len() == 1 { "core" } else { "cores" };
    format!(" on {word} {}", number_list(cores))
}

/// Numbers, consecutive ones as a range: `0-3,8`.
pub(crate) fn number_list(numbers: impl IntoIterator<Item = u32>) -> String {
    shortened(&all_numbers(numbers))
}

/// The same, however long it is.
pub(super) fn all_numbers(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    joined(runs)
}

/// Ranges of numbers, given by first and last: `0-3,8`.
pub(crate) fn range_list(runs: impl IntoIterator<Item = (u32, u32)>) -> String {
    shortened(&joined(runs))
}

fn joined(runs: impl IntoIterator<Item = (u32, u32)>) -> String {
    let text = |(first, last): (u32, u32)| match last - first {
        0 => format!("{first}"),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// A count with its noun in the right number.
pub(super) fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", super::quantity::count(count as u64))
}

/// A text cut to the maximum length of a list in a line.
pub(super) fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_CHARACTERS - 1).collect();
    format!("{start}…")
}

/// The entries that a list leaves out.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Omitted {
    /// Number of entries.
    pub count: usize,
    /// Their total length, seconds.
    pub seconds: f64,
}

/// `rank 2`, with its thread unless that is the first.
pub(super) fn thread(rank: u32, number: u32) -> String {
    match number {
        0 => format!("rank {rank}"),
        number => format!("rank {rank}, thread {number}"),
    }
}
