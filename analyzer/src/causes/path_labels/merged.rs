//! Merges the labels of all ranks. Communicators of one shape count as one: the rows of a grid make
//! the same calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::causes::contexts::{Contexts, LocalContext};
use crate::timeline::communicators::{CommunicatorTable, Members};
use crate::trace::Run;

use super::label::{Group, OnPath, OnRanks, PathLabel, SizeClass};
use super::of_rank::{LabelSums, LocalLabel};

/// What was found on a rank.
type OfRank = (Vec<LocalContext>, Vec<(LocalLabel, LabelSums)>);

/// A label over all ranks.
type Key = (u32, Option<Group>, bool);

/// Sums over all ranks so far.
#[derive(Default)]
struct Sums {
    on_path: OnPath,
    on_ranks: OnRanks,
    sizes: BTreeMap<u64, (u64, u64)>,
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
    for ((_, of_rank), numbers) in of_ranks.into_iter().zip(numbers) {
        // A rank may be in several communicators of one shape.
        let mut own: BTreeMap<Key, (u64, i64)> = BTreeMap::new();
        for (label, sums) in of_rank {
            let group = label.communicator.map(|number| groups[number as usize]);
            let key = (numbers[label.context as usize], group, label.first_use);
            let of_label = all.entry(key).or_default();
            of_label.add(&sums);
            let of_rank = own.entry(key).or_default();
            *of_rank = (of_rank.0 + sums.count, of_rank.1 + sums.ticks);
        }
        for (key, (count, ticks)) in own {
            let of_label = &mut all.entry(key).or_default().on_ranks;
            of_label.max_count = of_label.max_count.max(count);
            of_label.ticks_of_ranks.push(ticks);
        }
    }
    let labels = all.into_iter().map(
        |((context, group, first_use), Sums { on_path, mut on_ranks, sizes })| {
            on_ranks.ticks_of_ranks.sort_unstable();
            let sizes = sizes.into_iter();
            on_ranks.sizes =
                sizes.map(|(from, (count, bytes))| SizeClass { from, count, bytes }).collect();
            PathLabel {
                context: contexts.get(context).clone(),
                group,
                first_use,
                on_path,
                on_ranks,
            }
        },
    );
    let mut labels: Vec<PathLabel> = labels.collect();
    labels.sort_by_key(|label| Reverse((label.on_path.ticks, label.on_ranks.ticks)));
    labels
}

impl Sums {
    fn add(&mut self, of: &LabelSums) {
        let path = &mut self.on_path;
        path.count += of.on_path.count;
        path.ticks += of.on_path.ticks;
        path.messages += of.on_path.messages;
        path.bytes += of.on_path.bytes;
        let ranks = &mut self.on_ranks;
        ranks.count += of.count;
        ranks.ticks += of.ticks;
        ranks.messages += of.messages;
        ranks.bytes += of.bytes;
        for (from, (count, bytes)) in &of.sizes {
            let size = self.sizes.entry(*from).or_default();
            *size = (size.0 + count, size.1 + bytes);
        }
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
