//! Compares what does not vary from run to run unless the program changes: calls, bytes, messages,
//! partners. This comes first, because it needs no statistics.

use std::collections::{BTreeMap, BTreeSet};

use super::beside::{self, TeamPlace};
use super::place::CodeLocation;
use super::record::RunRecord;

/// Something that is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountKind {
    /// The pairs of ranks that exchange messages.
    Partners {
        /// Whether the pattern is the same except for the order of the ranks.
        reordered: bool,
    },
    /// Messages between hosts.
    BetweenHosts,
    /// Calls of a function.
    Calls(String),
    /// Calls of a function from a call site.
    CallsAt(CodeLocation),
    Messages,
    MessageBytes,
    /// Messages from a size up to twice that size.
    Sizes(u64),
    /// Collective operations by function, size of the communicator and bytes: `MPI_Allreduce/4/8`.
    Collectives(String),
    /// Bytes of a function.
    Bytes(String),
    /// Lines that call a function whose calls vary: tests and probes.
    PollLines(String),
    /// Occurrences of a region.
    Region(String),
    /// Iterations of the longest loop.
    Iterations,
    /// Times that parallel regions of a place were entered.
    ParallelRegion(TeamPlace),
    /// Calls on files that do this: `open`, `read`, `write`.
    FileCalls(&'static str),
    /// Bytes that these move.
    FileBytes(&'static str),
}

/// A count that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: CountKind,
    /// The count in each run before.
    pub before: u64,
    /// The count in each run after.
    pub after: u64,
}

/// All counts of a run except partners.
fn counts_of(record: &RunRecord) -> BTreeMap<CountKind, u64> {
    let counts = &record.counts;
    let mut all = BTreeMap::new();
    let mut add = |what: CountKind, count: u64| *all.entry(what).or_insert(0) += count;
    for (function, count) in &counts.calls {
        add(CountKind::Calls(function.clone()), *count);
    }
    for (function, bytes) in &counts.bytes {
        add(CountKind::Bytes(function.clone()), *bytes);
    }
    for (site, count) in &counts.sites {
        let spot = CodeLocation::key(&super::place::Place::Inside(*site), &record.sites);
        add(CountKind::CallsAt(spot), *count);
    }
    for (function, lines) in poll_lines(record) {
        add(CountKind::PollLines(function.to_owned()), lines);
    }
    counts.messages.iter().for_each(|count| add(CountKind::Messages, *count));
    counts.message_bytes.iter().for_each(|bytes| add(CountKind::MessageBytes, *bytes));
    for (from, count) in &counts.sizes {
        add(CountKind::Sizes(*from), *count);
    }
    for (which, count) in &counts.collectives {
        add(CountKind::Collectives(which.clone()), *count);
    }
    for (name, count) in &counts.regions {
        add(CountKind::Region(name.clone()), *count);
    }
    if let Some(of) = &record.iterations {
        add(CountKind::Iterations, of.count);
    }
    for (place, count) in beside::counts_of(record) {
        add(CountKind::ParallelRegion(place), count);
    }
    if let Some(of) = &record.files {
        add(CountKind::FileCalls("open"), of.opens);
        add(CountKind::FileCalls("read"), of.reads);
        add(CountKind::FileCalls("write"), of.writes);
        add(CountKind::FileBytes("read"), of.read_bytes);
        add(CountKind::FileBytes("write"), of.written_bytes);
    }
    if let Some(partners) = record.partners.as_ref().filter(|_| record.machine.host_count > 1) {
        add(CountKind::BetweenHosts, partners.between_hosts);
    }
    all
}

/// The number of lines from which each function is called that tests or probes; 1 if lines are
/// unknown. Builds inline such calls more or less often.
fn poll_lines(record: &RunRecord) -> BTreeMap<&str, u64> {
    let mut lines: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for site in record.sites.iter().filter(|site| is_poll(&site.function)) {
        let line = site.line.map(|line| (&site.file, line));
        lines.entry(&site.function).or_default().insert(line);
    }
    lines.into_iter().map(|(function, lines)| (function, lines.len() as u64)).collect()
}

/// Whether the number of calls depends on chance: the function asks until something has happened,
/// or takes what has happened so far.
pub(super) fn is_poll(function: &str) -> bool {
    let name = function.trim_start_matches('P');
    ["MPI_Test", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status", "MPI_Waitsome"]
        .iter()
        .any(|poll| name.starts_with(poll))
}

/// The value of each count of a side if all of its runs agree; `None` if they do not.
fn agreed(side: &[RunRecord]) -> BTreeMap<CountKind, Option<u64>> {
    let runs: Vec<BTreeMap<CountKind, u64>> = side.iter().map(counts_of).collect();
    let names: BTreeSet<&CountKind> = runs.iter().flat_map(BTreeMap::keys).collect();
    let value = |what: &CountKind| {
        let mut values = runs.iter().map(|run| run.get(what).copied().unwrap_or(0));
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    };
    names.into_iter().map(|what| (what.clone(), value(what))).collect()
}

/// Whether bytes are known in all runs: at level 0 they are not recorded.
fn knows_bytes(records: &[RunRecord]) -> bool {
    records.iter().all(|record| record.level > 0)
}

/// Whether messages are known in all runs; otherwise they are not compared.
fn knows_messages(records: &[RunRecord]) -> bool {
    records.iter().all(|record| record.partners.is_some())
}

/// Whether a loop was found in all runs. If not, its iterations are unknown, not 0.
fn knows_iterations(records: &[RunRecord]) -> bool {
    records.iter().all(|record| record.iterations.is_some())
}

/// The counts that differ, and those that are not compared because they vary among the runs of a
/// side.
pub fn changes(before: &[RunRecord], after: &[RunRecord]) -> (Vec<Change>, Vec<CountKind>) {
    let (b, a) = (agreed(before), agreed(after));
    let mut found = partners(before, after);
    let names: BTreeSet<&CountKind> = b.keys().chain(a.keys()).collect();
    let mut varying = Vec::new();
    let has_messages = knows_messages(before) && knows_messages(after);
    let has_bytes = knows_bytes(before) && knows_bytes(after);
    let all = || before.iter().chain(after);
    let has_teams = all().all(|record| record.parallel_regions.is_some());
    let has_files = all().all(|record| record.files.is_some());
    let has_iterations = knows_iterations(before) && knows_iterations(after);
    for what in names {
        let of_messages = matches!(
            what,
            CountKind::Messages
                | CountKind::MessageBytes
                | CountKind::Sizes(_)
                | CountKind::Collectives(_)
                | CountKind::BetweenHosts
        );
        let of_bytes = matches!(what, CountKind::Bytes(_));
        let of_iterations = matches!(what, CountKind::Iterations);
        let of_teams = matches!(what, CountKind::ParallelRegion(_));
        let of_files = matches!(what, CountKind::FileCalls(_) | CountKind::FileBytes(_));
        if of_messages && !has_messages
            || of_teams && !has_teams
            || of_files && !has_files
            || of_bytes && !has_bytes
            || of_iterations && !has_iterations
        {
            continue;
        }
        // A count that is missing on one side is 0 there.
        let value =
            |side: &BTreeMap<CountKind, Option<u64>>| side.get(what).copied().unwrap_or(Some(0));
        match (value(&b), value(&a)) {
            (Some(before), Some(after)) if before != after => {
                found.push(Change { what: what.clone(), before, after });
            }
            (Some(_), Some(_)) => {}
            _ => varying.push(what.clone()),
        }
    }
    // A build that inlines differently moves calls from site to site; what matters is their number.
    let functions: BTreeSet<String> = found
        .iter()
        .filter_map(|change| match &change.what {
            CountKind::Calls(function) => Some(function.clone()),
            _ => None,
        })
        .collect();
    found.retain(|change| match &change.what {
        CountKind::CallsAt(CodeLocation::Inside(site)) => functions.contains(&site.function),
        _ => true,
    });
    for change in &mut found {
        if let CountKind::CallsAt(spot) = &mut change.what {
            *spot =
                with_line(spot, after).or_else(|| with_line(spot, before)).unwrap_or(spot.clone());
        }
    }
    (found, varying)
}

/// A call site with its line in a run that has it.
fn with_line(spot: &CodeLocation, side: &[RunRecord]) -> Option<CodeLocation> {
    side.iter().find_map(|record| {
        let places = record.counts.sites.iter().map(|(site, _)| super::place::Place::Inside(*site));
        let mut same = places.filter(|place| CodeLocation::key(place, &record.sites) == *spot);
        same.next().map(|place| CodeLocation::for_display(&place, &record.sites))
    })
}

/// Whether the pairs of ranks differ.
fn partners(before: &[RunRecord], after: &[RunRecord]) -> Vec<Change> {
    let of = |side: &[RunRecord]| {
        let first = side.first()?.partners.clone()?;
        let same =
            |other: &RunRecord| other.partners.as_ref().is_some_and(|p| p.digest == first.digest);
        side.iter().all(same).then_some(first)
    };
    let (Some(b), Some(a)) = (of(before), of(after)) else { return Vec::new() };
    let pairs = |of: &super::partners::Partners| -> BTreeSet<(u32, u32)> {
        of.heaviest.iter().map(|(from, to, _)| (*from, *to)).collect()
    };
    // Different counts between the same pairs are reported as counts of messages.
    let other_pairs = a.pairs != b.pairs || pairs(&a) != pairs(&b) || a.is_reordered(&b);
    match a.digest != b.digest && other_pairs {
        true => {
            let what = CountKind::Partners { reordered: a.is_reordered(&b) };
            vec![Change { what, before: b.pairs, after: a.pairs }]
        }
        false => Vec::new(),
    }
}
