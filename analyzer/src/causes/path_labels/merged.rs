//! Merges the labels of all ranks. Communicators of one shape count as one: the rows of a grid make
//! the same calls.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::causes::contexts::{Context, Contexts, LocalContext};
use crate::timeline::communicators::{CommunicatorTable, Members};
use crate::trace::Run;

use super::durations::Durations;
use super::label::{Group, OfSize, OnRanks, PathLabel, SizeClass};
use super::of_rank::{LabelSums, LocalLabel};
use super::sizes::{EventSums, Sizes};

/// What was found on a rank.
type OfRank = (Vec<LocalContext>, Vec<(LocalLabel, LabelSums)>);

/// A label over all ranks.
type Key = (u32, Option<Group>, bool);

/// Sums over all ranks so far.
#[derive(Default)]
struct Sums {
    all: EventSums,
    sizes: Sizes,
    durations: Durations,
    /// Most events of one rank, in all and of each size.
    max_count: u64,
    max_of_size: BTreeMap<u64, u64>,
    ticks_of_ranks: Vec<i64>,
    first_rank: (u64, i64),
}

pub(super) fn merged(
    run: &Run,
    communicators: &CommunicatorTable,
    of_ranks: Vec<OfRank>,
) -> Vec<PathLabel> {
    let hosts: HashMap<u32, &str> =
        run.ranks.iter().map(|of| (of.rank, of.file.header.host.as_str())).collect();
    let groups = communicators.entries().iter().map(|of| group(&of.groups, &hosts));
    let groups: Vec<Group> = groups.collect();
    let local: Vec<&[LocalContext]> = of_ranks.iter().map(|(of, _)| of.as_slice()).collect();
    let (contexts, numbers) = Contexts::merge(run, &local, &[]);
    let mut all: BTreeMap<Key, Sums> = BTreeMap::new();
    for (number, ((_, of_rank), numbers)) in of_ranks.into_iter().zip(numbers).enumerate() {
        // A rank may be in several communicators of one shape.
        let mut own: BTreeMap<Key, LabelSums> = BTreeMap::new();
        for (label, sums) in of_rank {
            let group = label.communicator.map(|number| groups[number as usize]);
            let key = (numbers[label.context as usize], group, label.first_use);
            match own.entry(key) {
                Entry::Vacant(first) => {
                    first.insert(sums);
                }
                Entry::Occupied(mut known) => {
                    known.get_mut().all.add(&sums.all);
                    known.get_mut().sizes.merge(&sums.sizes);
                    known.get_mut().durations.merge(&sums.durations);
                }
            }
        }
        for (key, sums) in own {
            let all = all.entry(key).or_default();
            all.add(&sums);
            if number == 0 {
                all.first_rank = (sums.all.count, sums.all.ticks);
            }
        }
    }
    let labels = all.into_iter().map(|((context, group, first_use), sums)| {
        sums.label(contexts.get(context).clone(), group, first_use)
    });
    let mut labels: Vec<PathLabel> = labels.collect();
    labels.sort_by_key(|label| Reverse((label.on_path.ticks, label.on_ranks.ticks)));
    labels
}

impl Sums {
    fn add(&mut self, of_rank: &LabelSums) {
        self.all.add(&of_rank.all);
        self.sizes.merge(&of_rank.sizes);
        self.durations.merge(&of_rank.durations);
        self.max_count = self.max_count.max(of_rank.all.count);
        for (bytes, sums) in of_rank.sizes.each().into_iter().flatten() {
            let most = self.max_of_size.entry(bytes).or_default();
            *most = (*most).max(sums.count);
        }
        self.ticks_of_ranks.push(of_rank.all.ticks);
    }

    fn label(mut self, context: Context, group: Option<Group>, first_use: bool) -> PathLabel {
        self.ticks_of_ranks.sort_unstable();
        let classes = self.sizes.classes().into_iter();
        let on_ranks = OnRanks {
            count: self.all.count,
            ticks: self.all.ticks,
            messages: self.all.messages,
            bytes: self.all.bytes,
            sizes: classes.map(|(from, (count, bytes))| SizeClass { from, count, bytes }).collect(),
            max_count: self.max_count,
            ticks_of_ranks: self.ticks_of_ranks,
            first_rank: self.first_rank,
            durations: self.durations,
        };
        let of_size = |(bytes, sums): (u64, &EventSums)| OfSize {
            bytes,
            on_path: sums.on_path,
            count: sums.count,
            ticks: sums.ticks,
            max_count: self.max_of_size.get(&bytes).copied().unwrap_or(0),
        };
        let by_size = self.sizes.each().into_iter().flatten().map(of_size).collect();
        PathLabel { context, group, first_use, on_path: self.all.on_path, on_ranks, by_size }
    }
}

/// The shape of a communicator.
fn group(groups: &[Members; 2], hosts: &HashMap<u32, &str>) -> Group {
    let runs = groups.iter().flat_map(Members::runs);
    let members = runs.flat_map(|(first, stride, count)| {
        let at = move |index| Some(i64::from(first?) + stride * i64::from(index));
        (0..count).map(at)
    });
    let members: Vec<Option<i64>> = members.collect();
    let mut distances = members.windows(2).map(|pair| Some(pair[1]? - pair[0]?));
    let first = distances.next().flatten();
    let is_even = distances.all(|distance| distance == first);
    let stride = first.filter(|_| is_even).and_then(|distance| u32::try_from(distance).ok());
    let mut on_hosts: HashMap<&str, u32> = HashMap::new();
    for rank in members.iter().flatten() {
        let host = u32::try_from(*rank).ok().and_then(|rank| hosts.get(&rank));
        *on_hosts.entry(host.copied().unwrap_or_default()).or_default() += 1;
    }
    let per_host = on_hosts.into_values().max().unwrap_or(0);
    Group { ranks: members.len() as u32, stride, per_host }
}
