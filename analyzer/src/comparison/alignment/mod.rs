//! Matches the call sites of several builds of a program: by function, order and neighbours.
//!
//! Lines and addresses move with every build, and files, functions and libraries are renamed. So
//! sites are matched in rounds, from what is most alike to what is least: calls from one function
//! of one file, from functions of one name, from one file, from one library, and the rest. In each
//! round the calls of both builds, in their order in the program, are aligned as two sequences.

mod sequence;

use std::collections::{BTreeMap, BTreeSet};

use super::place::{Place, Site};
use super::record::RunRecord;

/// Score of two calls of one MPI function. A further pair outweighs what speaks for another one.
const SAME_FUNCTION: u32 = 5;
/// Additional score of sites that are called equally often.
const SAME_CALLS: u32 = 2;
/// Additional score of sites with a call of the same function before them, and of one behind them.
const SAME_NEIGHBOUR: u32 = 1;
/// Additional score of the same line of the same build, which is certain.
const SAME_LINE: u32 = 1_000;
/// Most pairs that are considered in one alignment; beyond, sites are matched by their numbers.
const MAX_PAIRS: usize = 4_000_000;

/// A call site with what it can be recognised by.
#[derive(Debug, Clone)]
struct KnownSite {
    site: Site,
    build_id: String,
    /// How often it is called; unknown for tests and probes.
    calls: Option<u64>,
    /// MPI functions that are called directly before it, and directly behind it.
    neighbours: [BTreeSet<String>; 2],
}

impl KnownSite {
    fn all_of(record: &RunRecord) -> Vec<Self> {
        let known = |site: &Site| Self {
            site: site.clone(),
            build_id: record.build_id.clone(),
            calls: None,
            neighbours: Default::default(),
        };
        let mut all: Vec<Self> = record.sites.iter().map(known).collect();
        for (site, calls) in &record.counts.sites {
            all[*site as usize].calls = Some(*calls);
        }
        for part in &record.parts {
            if let Place::Between(Some(from), Some(to)) = part.place {
                let [before, behind] =
                    [from, to].map(|at| record.sites[at as usize].function.clone());
                all[from as usize].neighbours[1].insert(behind);
                all[to as usize].neighbours[0].insert(before);
            }
        }
        all
    }

    /// How much speaks for both being the same; `None` if they are not. What shares no name is the
    /// same only if calls or neighbours agree, too.
    fn score(&self, other: &Self, round: Round) -> Option<u32> {
        let (one, two) = (&self.site, &other.site);
        if one.function != two.function {
            return None;
        }
        let mut evidence = 0;
        if self.calls.is_some() && self.calls == other.calls {
            evidence += SAME_CALLS;
        }
        for (one, two) in self.neighbours.iter().zip(&other.neighbours) {
            evidence += if one.is_disjoint(two) { 0 } else { SAME_NEIGHBOUR };
        }
        if round.needs_evidence() && evidence == 0 {
            return None;
        }
        let same_build = !self.build_id.is_empty() && self.build_id == other.build_id;
        let same_line = same_build && one.line.is_some() && one.line == two.line;
        let certain = if same_line && one.file == two.file { SAME_LINE } else { 0 };
        Some(SAME_FUNCTION + evidence + certain)
    }
}

/// What two sites must share to be matched in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    FunctionAndFile,
    Function,
    File,
    Module,
    Nothing,
}

impl Round {
    const ALL: [Self; 5] =
        [Self::FunctionAndFile, Self::Function, Self::File, Self::Module, Self::Nothing];

    fn needs_evidence(self) -> bool {
        matches!(self, Self::File | Self::Module | Self::Nothing)
    }

    /// What sites that belong together have in common; `None` for a site without it.
    fn scope(self, site: &Site) -> Option<[Option<&str>; 2]> {
        let (within, file) = (site.within.as_deref(), site.file.as_deref());
        match self {
            Self::FunctionAndFile if within.is_none() && file.is_none() => {
                Some([None, Some(&site.module)])
            }
            Self::FunctionAndFile => Some([within, file]),
            Self::Function => within.map(|within| [Some(within), None]),
            Self::File => file.map(|file| [None, Some(file)]),
            Self::Module => Some([None, Some(&site.module)]),
            Self::Nothing => Some([None, None]),
        }
    }
}

/// Positions of the sites of each scope that are not matched yet, in their order in the program.
fn scopes(
    sites: &[KnownSite],
    is_free: impl Fn(usize) -> bool,
    round: Round,
) -> BTreeMap<[Option<&str>; 2], Vec<usize>> {
    let mut scopes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for at in (0..sites.len()).filter(|at| is_free(*at)) {
        if let Some(scope) = round.scope(&sites[at].site) {
            scopes.entry(scope).or_default().push(at);
        }
    }
    for scope in scopes.values_mut() {
        scope.sort_by_key(|at| {
            let site = &sites[*at].site;
            (&site.file, site.line, &site.function, site.number)
        });
    }
    scopes
}

/// For each site the position of the same one among `others`.
fn matched(own: &[KnownSite], others: &[KnownSite]) -> Vec<Option<usize>> {
    let mut found = vec![None; own.len()];
    let mut taken = vec![false; others.len()];
    for round in Round::ALL {
        let theirs = scopes(others, |at| !taken[at], round);
        let ours = scopes(own, |at| found[at].is_none(), round);
        for (scope, ours) in ours {
            let Some(theirs) = theirs.get(&scope) else { continue };
            let score = |i: usize, j: usize| own[ours[i]].score(&others[theirs[j]], round);
            let pairs = match ours.len() * theirs.len() <= MAX_PAIRS {
                true => sequence::pairs((ours.len(), theirs.len()), score),
                false => by_number((own, &ours), (others, theirs)),
            };
            for (i, j) in pairs {
                found[ours[i]] = Some(theirs[j]);
                taken[theirs[j]] = true;
            }
        }
    }
    found
}

/// Pairs of sites with the same function and number.
fn by_number(
    (own, ours): (&[KnownSite], &[usize]),
    (others, theirs): (&[KnownSite], &[usize]),
) -> Vec<(usize, usize)> {
    let key = |known: &KnownSite| (known.site.function.clone(), known.site.number);
    let numbered: BTreeMap<_, usize> =
        theirs.iter().enumerate().map(|(j, at)| (key(&others[*at]), j)).collect();
    let mut taken = BTreeSet::new();
    let pairs = ours.iter().enumerate().filter_map(|(i, at)| {
        let j = *numbered.get(&key(&own[*at]))?;
        taken.insert(j).then_some((i, j))
    });
    pairs.collect()
}

/// Gives the same call sites the same names and numbers in all records: those that they have in the
/// first record that has them. Different sites of a record stay different.
pub fn align<'r>(records: impl IntoIterator<Item = &'r mut RunRecord>) {
    let mut all: Vec<KnownSite> = Vec::new();
    let mut keys: BTreeSet<Site> = BTreeSet::new();
    for record in records {
        let own = KnownSite::all_of(record);
        let found = matched(&own, &all);
        for ((site, mut known), found) in record.sites.iter_mut().zip(own).zip(found) {
            if let Some(at) = found {
                *site = all[at].site.clone();
                continue;
            }
            while !keys.insert(known.site.key()) {
                known.site.number += 1;
            }
            *site = known.site.clone();
            all.push(known);
        }
    }
}
