//! What does not vary from run to run, if the program does not: calls, bytes, messages, partners. It is compared
//! first, for it needs no statistics.

use std::collections::{BTreeMap, BTreeSet};

use super::place::Spot;
use super::record::RunRecord;

/// Something that is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Pairs of ranks that exchange messages are others.
    Partners {
        /// Whether the pattern is the same but for the order of the ranks.
        reordered: bool,
    },
    /// Messages between hosts.
    BetweenHosts,
    /// Calls of a function.
    Calls(String),
    /// Calls of a function from a site.
    CallsAt(Spot),
    /// Messages.
    Messages,
    /// Bytes of all messages.
    MessageBytes,
    /// Messages from a size on, below twice of it.
    Sizes(u64),
    /// Operations of a function on communicators of so many ranks with so many bytes: `MPI_Allreduce/4/8`.
    Collectives(String),
    /// Bytes of a function.
    Bytes(String),
    /// Occurrences of a region.
    Region(String),
    /// Iterations of the longest loop.
    Iterations,
}

/// A count that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is counted.
    pub what: What,
    /// In each of the runs before.
    pub before: u64,
    /// In each of those after.
    pub after: u64,
}

/// All counts of a run but for partners.
fn counted(record: &RunRecord) -> BTreeMap<What, u64> {
    let counts = &record.counts;
    let mut all = BTreeMap::new();
    let mut add = |what: What, count: u64| *all.entry(what).or_insert(0) += count;
    for (function, count) in &counts.calls {
        add(What::Calls(function.clone()), *count);
    }
    for (function, bytes) in &counts.bytes {
        add(What::Bytes(function.clone()), *bytes);
    }
    for (site, count) in &counts.sites {
        let spot = Spot::key(&super::place::Place::Inside(*site), &record.sites);
        add(What::CallsAt(spot), *count);
    }
    counts.messages.iter().for_each(|count| add(What::Messages, *count));
    counts.message_bytes.iter().for_each(|bytes| add(What::MessageBytes, *bytes));
    for (from, count) in &counts.sizes {
        add(What::Sizes(*from), *count);
    }
    for (which, count) in &counts.collectives {
        add(What::Collectives(which.clone()), *count);
    }
    for (name, count) in &counts.regions {
        add(What::Region(name.clone()), *count);
    }
    if let Some(of) = &record.iterations {
        add(What::Iterations, of.count);
    }
    if let Some(partners) = record.partners.as_ref().filter(|_| record.machine.host_count > 1) {
        add(What::BetweenHosts, partners.between_hosts);
    }
    all
}

/// The value of each count of a side where all of its runs agree; `None` where they do not.
fn agreed(side: &[RunRecord]) -> BTreeMap<What, Option<u64>> {
    let runs: Vec<BTreeMap<What, u64>> = side.iter().map(counted).collect();
    let names: BTreeSet<&What> = runs.iter().flat_map(BTreeMap::keys).collect();
    let value = |what: &What| {
        let mut values = runs.iter().map(|run| run.get(what).copied().unwrap_or(0));
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    };
    names.into_iter().map(|what| (what.clone(), value(what))).collect()
}

/// Whether messages are known in all runs: without, nothing is said of them.
fn knows_messages(records: &[RunRecord]) -> bool {
    records.iter().all(|record| record.partners.is_some())
}

/// What differs, and how many counts are not compared because they vary among the runs of a side.
pub fn changes(before: &[RunRecord], after: &[RunRecord]) -> (Vec<Change>, usize) {
    let (b, a) = (agreed(before), agreed(after));
    let mut found = partners(before, after);
    let names: BTreeSet<&What> = b.keys().chain(a.keys()).collect();
    let mut varying = 0;
    let has_messages = knows_messages(before) && knows_messages(after);
    for what in names {
        let of_messages = matches!(
            what,
            What::Messages
                | What::MessageBytes
                | What::Sizes(_)
                | What::Collectives(_)
                | What::BetweenHosts
        );
        if of_messages && !has_messages {
            continue;
        }
        // What one side has never is none there.
        let value = |side: &BTreeMap<What, Option<u64>>| side.get(what).copied().unwrap_or(Some(0));
        match (value(&b), value(&a)) {
            (Some(before), Some(after)) if before != after => {
                found.push(Change { what: what.clone(), before, after });
            }
            (Some(_), Some(_)) => {}
            _ => varying += 1,
        }
    }
    // A build that inlines otherwise moves calls from site to site: what counts is how many there are.
    let functions: BTreeSet<String> = found
        .iter()
        .filter_map(|change| match &change.what {
            What::Calls(function) => Some(function.clone()),
            _ => None,
        })
        .collect();
    found.retain(|change| match &change.what {
        What::CallsAt(Spot::Inside(site)) => functions.contains(&site.function),
        _ => true,
    });
    (found, varying)
}

/// Whether the pairs of ranks are others.
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
    // Other counts between the same pairs are told as counts of messages.
    let other_pairs = a.pairs != b.pairs || pairs(&a) != pairs(&b) || a.is_reordered(&b);
    match a.digest != b.digest && other_pairs {
        true => {
            let what = What::Partners { reordered: a.is_reordered(&b) };
            vec![Change { what, before: b.pairs, after: a.pairs }]
        }
        false => Vec::new(),
    }
}
