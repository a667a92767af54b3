//! Words for places, counts, machines and the differences between runs.

use crate::comparison::beside::{FilePlace, TeamPlace, What};
use crate::comparison::counts::{Change, CountKind};
use crate::comparison::guard::Verdict;
use crate::comparison::place::{CodeLocation, Site};
use crate::comparison::record::{Kind, RunRecord};
use crate::comparison::sampled::{Sampled, SampledKind};
use crate::comparison::statistics::Estimate;
use crate::comparison::subject::{Difference, Mixed};
use crate::present::quantity::{self, count, percent, significant};
use crate::shell_word::shell_word;

/// `jacobi.c:61`, or the parts of it that are known.
fn short(site: &Site) -> String {
    match (&site.file, site.line, &site.within) {
        (Some(file), Some(line), _) => format!("{file}:{line}"),
        (.., Some(within)) => within.clone(),
        (Some(file), None, None) => file.clone(),
        _ if site.module.is_empty() => site.function.clone(),
        // Without names, the call's number among those of this function.
        _ => format!("{} #{} of {}", site.function, site.number + 1, site.module),
    }
}

/// `MPI_Recv jacobi.c:61`.
fn call(site: &Site) -> String {
    match short(site) {
        place if place.starts_with(&site.function) => place,
        place => format!("{} {place}", site.function),
    }
}

/// A place in a table.
pub(super) fn spot(spot: &CodeLocation) -> String {
    match spot {
        CodeLocation::None => "-".to_owned(),
        CodeLocation::Elsewhere => "elsewhere".to_owned(),
        CodeLocation::Region(name) => format!("region {name}"),
        CodeLocation::Between(None, None) => "the whole run".to_owned(),
        CodeLocation::Between(None, Some(to)) => format!("before {}", call(to)),
        CodeLocation::Between(Some(from), None) => format!("after {}", call(from)),
        CodeLocation::Between(Some(from), Some(to)) => format!("{} to {}", call(from), call(to)),
        CodeLocation::Inside(site) => call(site),
        CodeLocation::Around(site) => format!("around {}", call(site)),
    }
}

/// A place in a sentence.
pub(super) fn at(place: &CodeLocation) -> String {
    match place {
        CodeLocation::Region(_) => format!("in {}", spot(place)),
        CodeLocation::Between(Some(from), Some(to)) => {
            format!("between {} and {}", call(from), call(to))
        }
        CodeLocation::Inside(_) => format!("in {}", spot(place)),
        CodeLocation::Elsewhere => "outside the larger places".to_owned(),
        CodeLocation::None => String::new(),
        _ => spot(place),
    }
}

/// What time was sampled in.
pub(super) fn sampled(of: &Sampled) -> String {
    let name = match of.kind {
        SampledKind::Function => of.function.as_deref().unwrap_or("unknown function"),
        SampledKind::Rest => "(functions with less time)",
        SampledKind::Kernel => "(kernel, or signals held off)",
        SampledKind::Lost => "(samples lost)",
    };
    name.to_owned()
}

/// `residual_norm (jacobi.c:36)`.
pub(super) fn function(of: &Sampled) -> String {
    let place = match (&of.file, of.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => of.module.clone(),
    };
    match place.is_empty() {
        true => sampled(of),
        false => format!("{} ({place})", sampled(of)),
    }
}

pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Computing => "computing",
        Kind::Waiting => "waiting",
        Kind::Transfer => "transfer",
        Kind::Other => "other",
        Kind::Recorder => "recorder",
        Kind::StartAndEnd => "start and end",
    }
}

/// A state of waiting, given by its name in documents.
pub(super) fn state(key: &str) -> String {
    match key {
        "wait_at_nxn" => "wait at N x N".to_owned(),
        "one_sided" => "one-sided wait".to_owned(),
        "lock" => "wait for lock".to_owned(),
        "late_sender_wrong_order" => "late sender, wrong order".to_owned(),
        other => other.replace('_', " "),
    }
}

pub(super) fn what(of: &CountKind) -> String {
    match of {
        CountKind::Partners { .. } => "pairs of ranks that exchange messages".to_owned(),
        CountKind::BetweenHosts => "messages between hosts".to_owned(),
        CountKind::Calls(function) => format!("calls of {function}"),
        CountKind::CallsAt(place) => format!("calls at {}", spot(place)),
        CountKind::Messages => "messages".to_owned(),
        CountKind::MessageBytes => "bytes of messages".to_owned(),
        CountKind::Sizes(0) => "messages of 0 bytes".to_owned(),
        CountKind::Sizes(1) => "messages of 1 byte".to_owned(),
        CountKind::Sizes(from) => {
            format!("messages of {} to {} bytes", count(*from), count(2 * from - 1))
        }
        CountKind::Collectives(key) => collective(key),
        CountKind::Bytes(function) => format!("bytes of {function}"),
        CountKind::PollLines(function) => format!("lines that call {function}"),
        CountKind::Region(name) => format!("occurrences of region {name}"),
        CountKind::Iterations => "iterations".to_owned(),
        CountKind::ParallelRegion(place) => format!("parallel regions {}", team(place)),
        CountKind::FileCalls(kind) => format!("calls that {kind} files"),
        CountKind::FileBytes(kind) => format!("bytes of calls that {kind} files"),
    }
}

/// Where parallel regions begin.
pub(super) fn team(place: &TeamPlace) -> String {
    match (&place.file, place.line, &place.function) {
        (Some(file), Some(line), _) => format!("at {file}:{line}"),
        (_, _, Some(function)) => match place.number {
            0 => format!("in {function}"),
            number => format!("in {function} (number {})", number + 1),
        },
        _ => "of unknown code".to_owned(),
    }
}

/// A time of parallel regions or calls on files.
pub(super) fn beside(of: &What) -> String {
    match of {
        What::Region(place) => format!("parallel region {}", team(place)),
        What::Idle(place) => format!("threads without work {}", team(place)),
        What::Files => "calls on files".to_owned(),
        What::File(FilePlace::Named(name)) => format!("calls on {name}"),
        What::File(FilePlace::Numbered(number)) => format!("calls on file {number}"),
    }
}

/// `MPI_Allreduce/4/8` in words.
fn collective(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').collect();
    match parts[..] {
        [function, ranks, bytes] => {
            let from: u64 = bytes.parse().unwrap_or(0);
            let bytes = match from {
                0 | 1 => format!("{from} bytes"),
                _ => format!("{} to {} bytes", count(from), count(2 * from - 1)),
            };
            format!("{function} of {ranks} ranks and {bytes}")
        }
        _ => key.to_owned(),
    }
}

/// A count that differs, as a row: before and after.
pub(super) fn values(of: &Change) -> [String; 2] {
    match of.what {
        CountKind::Partners { reordered: true } => {
            [count(of.before), "the same pattern, ranks in another order".to_owned()]
        }
        CountKind::Partners { .. } if of.before == of.after => {
            [count(of.before), format!("{}, others", count(of.after))]
        }
        _ => [count(of.before), count(of.after)],
    }
}

pub(super) fn verdict(of: Verdict) -> &'static str {
    match of {
        Verdict::Fine => "fine",
        Verdict::Regressed => "slower",
        Verdict::CannotTell => "cannot tell",
    }
}

/// Seconds with a sign.
pub(super) fn signed(ns: f64) -> String {
    quantity::signed(ns * 1e-9)
}

/// From here on an interval of a relative difference says nothing.
const WIDEST: f64 = 10.0;

/// `3.1 % slower (2.2 to 4.0)`, or less if less is known.
pub(super) fn change(of: &Estimate) -> String {
    let relative = of.relative();
    if percent(relative.abs()) == "0 %" && of.interval.is_none() {
        return "as fast".to_owned();
    }
    let word = if relative > 0.0 { "slower" } else { "faster" };
    let size = percent(relative.abs());
    match of.relative_interval().filter(|(lo, hi)| *lo > -1.0 && *hi < WIDEST) {
        Some((lo, hi)) => {
            let (lo, hi) = if relative > 0.0 { (lo, hi) } else { (-hi, -lo) };
            format!("{size} {word} ({} to {})", percentage(lo), percentage(hi))
        }
        None => format!("{size} {word}"),
    }
}

/// A share in percent, without the percent sign.
pub(super) fn percentage(part: f64) -> String {
    let text = significant(100.0 * part, 2);
    if text == "-0" { "0".to_owned() } else { text }
}

/// The interval of a difference, divided by `over`.
pub(super) fn interval(of: &Estimate, over: f64) -> String {
    match of.interval {
        Some((lo, hi)) => format!("{} to {}", signed(lo / over), signed(hi / over)),
        None => "not known".to_owned(),
    }
}

/// A list of what runs differ in.
pub fn differences(of: &[Difference]) -> String {
    let words = of.iter().map(|difference| match difference {
        Difference::Program => "program",
        Difference::Ranks => "rank count",
        Difference::Parameters => "parameters or arguments",
        Difference::Recording => "detail level, or what counts as computation",
        Difference::Machine => "machine",
        Difference::Build => "build of the program",
        Difference::Mpi => "MPI library",
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Why the runs of one side cannot be compared as one.
pub fn mixed(of: &Mixed) -> String {
    let (one, other) = (&of.one, &of.other);
    let what = differences(&of.what);
    let choice = match (&of.machine, of.what.contains(&Difference::Machine)) {
        (Some(machine), _) => format!("choose with --only, such as --only {}", shell_word(machine)),
        (None, true) => "name only those of one machine".to_owned(),
        (None, false) => "choose with --only, such as --only p=4".to_owned(),
    };
    format!("{one} and {other} differ in {what}; all runs of a side must be of one kind ({choice})")
}

/// Program with its parameters.
pub(super) fn program(record: &RunRecord) -> String {
    let params = record.work();
    let mut words: Vec<String> = params.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() {
        words.clone_from(&record.arguments);
    }
    words.insert(0, record.program.clone());
    crate::present::context::shortened(&words.join(" "))
}

/// The machine in a few words.
pub(super) fn machine(record: &RunRecord) -> String {
    let of = &record.machine;
    let cores = match of.cores_per_host {
        (a, b) if a == b => count(a.into()),
        (a, b) => format!("{a} to {b}"),
    };
    let hosts = crate::present::context::plural(of.host_count as usize, "host");
    let model = match of.processors.is_empty() {
        true => String::new(),
        false => format!("{}, ", of.processors.join(", ")),
    };
    format!("{hosts}, {cores} cores each, {model}counter {} MHz", of.counter_mhz)
}
