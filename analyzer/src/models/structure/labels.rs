//! What a run did, by label, as far as predictions use it.

use super::library::Library;

/// What an event is, and so how its time is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The program's own code.
    Computation,
    /// Messages: sends, receives and their completions.
    Messages,
    /// A collective operation.
    Collective(Pattern),
    /// Anything else: other calls, the recorder.
    Other,
}

/// Where a collective operation moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Nothing is moved.
    Synchronise,
    /// From one member to all.
    FromRoot,
    /// Of all members, combined to as much as each of them has.
    Combine,
    /// The same, for one of them.
    CombineAtRoot,
    /// The same, of which each gets a part.
    CombineParts,
    /// Of all members, put together for all to as much as all of them have.
    Collect,
    /// The same, where members may have more than others.
    CollectUneven,
    /// Of all members, put together for one of them, or from one to each its own.
    ToRoot,
    /// From every member to every other.
    Exchange,
    /// The same, where some may get more than others.
    ExchangeUneven,
}

/// The communicator of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// Mean number of members.
    pub ranks: f64,
    /// Most members on one host.
    pub per_host: f64,
}

/// Which ranks a communicator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// There is none, or it has all ranks.
    #[default]
    All,
    /// A part, of ranks that follow each other.
    Neighbours,
    /// Another part.
    Apart,
}

/// What labels of different runs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'l> {
    pub name: &'l str,
    pub first_use: bool,
    pub spread: Spread,
    /// Which of several sizes, the smallest first.
    pub size: Option<usize>,
}

/// Everything with one label in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Says where in the program it is; labels of different runs with one name are one.
    pub name: String,
    pub kind: Kind,
    /// First calls of their function on their communicator.
    pub first_use: bool,
    /// Events on the critical path, and their time there.
    pub count: f64,
    pub seconds: f64,
    /// Of one event on the path, on average.
    pub messages: f64,
    pub bytes: f64,
    pub group: Option<Group>,
    /// Members and hosts of communicators, which are kept apart where they differ in kind.
    pub spread: Spread,
    /// Bytes that all ranks' events send.
    pub all_bytes: f64,
    /// Events of all ranks, their time without waits, and most events of one rank.
    pub all_count: f64,
    pub all_seconds: f64,
    pub max_count: f64,
    /// Number of ranks with such events.
    pub ranks: f64,
    /// Of computation: seconds of events of all ranks and how many take so long, the shortest first.
    pub stretches: Vec<(f64, f64)>,
    /// Which of several sizes of one label these are.
    pub size: Option<usize>,
    /// Events of each size, the smallest first; empty where sizes are not told apart.
    pub by_size: Vec<Self>,
}

impl Label {
    pub fn key(&self) -> Key<'_> {
        Key { name: &self.name, first_use: self.first_use, spread: self.spread, size: self.size }
    }

    /// Bytes of an event, on average over all ranks.
    pub fn each_bytes(&self) -> f64 {
        self.all_bytes / self.all_count.max(1.0)
    }

    /// Bytes of a call of a collective operation: what each member contributes, or the root.
    pub fn bytes_of_operation(&self) -> f64 {
        let each = self.each_bytes();
        match (self.kind, self.group) {
            (Kind::Collective(Pattern::FromRoot), Some(group)) => each * group.ranks,
            (Kind::Collective(_), _) => each,
            _ => self.bytes,
        }
    }

    /// The same as the mean of all ranks' calls, which needs no path.
    pub fn mean_bytes(&self) -> f64 {
        match self.kind {
            Kind::Collective(_) => self.bytes_of_operation(),
            _ => self.each_bytes(),
        }
    }

    /// Adds what has the same label, as calls on communicators of other sizes.
    pub fn join(&mut self, other: &Self) {
        self.join_sizes(other);
        let count = self.count + other.count;
        let mean = |own: f64, others: f64| match count > 0.0 {
            true => (own * self.count + others * other.count) / count,
            false => own,
        };
        self.messages = mean(self.messages, other.messages);
        self.bytes = mean(self.bytes, other.bytes);
        self.group = self.group.zip(other.group).map(|(own, others)| Group {
            ranks: mean(own.ranks, others.ranks),
            per_host: own.per_host.max(others.per_host),
        });
        self.count = count;
        self.seconds += other.seconds;
        self.all_count += other.all_count;
        self.all_bytes += other.all_bytes;
        self.all_seconds += other.all_seconds;
        self.max_count = self.max_count.max(other.max_count);
        self.ranks = self.ranks.max(other.ranks);
        self.stretches.extend(&other.stretches);
        self.stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

impl Label {
    /// Events of the other, by size, become part of these.
    fn join_sizes(&mut self, other: &Self) {
        if other.by_size.is_empty() {
            self.by_size.clear();
        }
        if self.by_size.is_empty() {
            return;
        }
        for of in &other.by_size {
            match self.by_size.iter_mut().find(|own| own.each_bytes() == of.each_bytes()) {
                Some(own) => own.join(of),
                None => self.by_size.push(of.clone()),
            }
        }
        self.by_size.sort_by(|a, b| a.each_bytes().total_cmp(&b.each_bytes()));
    }
}

/// All calls at one place of the program in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceCounts {
    /// Says where it is; places of different runs with one name are one.
    pub name: String,
    /// Calls of all ranks.
    pub calls: f64,
    /// Bytes that these name, to MPI_PROC_NULL as well; 0 for completions, whose bytes belong to what they complete.
    pub bytes: f64,
}

/// What the first rank does, which serves the others in some programs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FirstRank {
    /// Its time without waits.
    pub busy_s: f64,
    pub calls: f64,
    pub mean_calls_of_others: f64,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLabels {
    /// Number of ranks.
    pub p: u32,
    /// Elapsed time.
    pub tau_s: f64,
    /// Most ranks on one host.
    pub per_host: u32,
    /// The MPI library, if its rules are known.
    pub library: Option<Library>,
    /// Share of the ranks' time in waits that are shorter than the error of their clocks.
    pub uncertain: f64,
    /// Whether its times say nothing, because its ranks may have shared cores.
    pub counts_only: bool,
    pub first_rank: FirstRank,
    pub labels: Vec<Label>,
    /// All ranks' calls.
    pub places: Vec<PlaceCounts>,
}

/// Ranks on a host, as laws use it. Where every run was on one host, it is not known how many a host takes.
pub(super) fn ranks_per_host(runs: &[&RunLabels]) -> f64 {
    match runs.iter().all(|run| run.per_host == run.p) {
        true => f64::MAX,
        false => runs.iter().map(|run| f64::from(run.per_host)).fold(1.0, f64::max),
    }
}

impl RunLabels {
    /// The label with a key, if the run has it.
    pub fn label(&self, key: Key) -> Option<&Label> {
        self.labels.iter().find(|label| label.key() == key)
    }
}
