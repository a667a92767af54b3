//! Joins places that one side divides differently.
//!
//! A call that only one side makes divides the computing around it: before, `a` to `b`; after, `a`
//! to the new call and from there to `b`. Compared place by place, the first would be gone and the
//! others new, although the program computes the same. So such computing is compared as a whole. The
//! same holds where calls changed their order.

use std::collections::{BTreeMap, BTreeSet};

use super::place::{CodeLocation, Place, Site};
use super::record::{Kind, Part, RunRecord};

/// Sets of places that are compared as one.
#[derive(Debug, Default)]
struct Sets {
    parents: BTreeMap<CodeLocation, CodeLocation>,
}

impl Sets {
    fn root(&self, spot: &CodeLocation) -> CodeLocation {
        let mut spot = spot;
        while let Some(parent) = self.parents.get(spot) {
            spot = parent;
        }
        spot.clone()
    }

    fn join(&mut self, one: &CodeLocation, other: &CodeLocation) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.parents.insert(one, other);
        }
    }
}

/// What one side computes.
#[derive(Debug, Default)]
struct SideTimes {
    sites: BTreeSet<Site>,
    /// Nanoseconds by place between two calls.
    places: BTreeMap<CodeLocation, i64>,
}

impl SideTimes {
    fn new(records: &[RunRecord]) -> Self {
        let mut this = Self::default();
        for record in records {
            this.sites.extend(record.sites.iter().map(Site::key));
            for part in record.parts.iter().filter(|part| part.kind == Kind::Computing) {
                if let spot @ CodeLocation::Between(..) =
                    CodeLocation::key(&part.place, &record.sites)
                {
                    *this.places.entry(spot).or_default() += part.ns;
                }
            }
        }
        this
    }
}

/// The calls that a place lies between.
fn ends(spot: &CodeLocation) -> Option<[&Option<Site>; 2]> {
    match spot {
        CodeLocation::Between(from, to) => Some([from, to]),
        _ => None,
    }
}

/// Both sides, whose call sites are aligned.
struct Sides([SideTimes; 2]);

impl Sides {
    fn has_both(&self, site: &Site) -> bool {
        self.0.iter().all(|side| side.sites.contains(site))
    }

    /// A call site that one side alone has.
    fn one_sided<'s>(&self, end: &'s Option<Site>) -> Option<&'s Site> {
        end.as_ref().filter(|site| !self.has_both(site))
    }

    fn places(&self) -> impl Iterator<Item = &CodeLocation> {
        self.0.iter().flat_map(|side| side.places.keys())
    }

    /// Joins what is around the calls of one side alone with what lies between the same calls on the
    /// other side.
    fn join_around_calls(&self, sets: &mut Sets) {
        for spot in self.places() {
            let Some(ends) = ends(spot) else { continue };
            for site in ends.iter().filter_map(|end| self.one_sided(end)) {
                sets.join(spot, &CodeLocation::Around(site.clone()));
            }
        }
        let mut around: BTreeMap<CodeLocation, [BTreeSet<Option<Site>>; 2]> = BTreeMap::new();
        for spot in self.places() {
            let Some([from, to]) = ends(spot) else { continue };
            let [is_from_new, is_to_new] = [from, to].map(|end| self.one_sided(end).is_some());
            if is_from_new || is_to_new {
                let outer = around.entry(sets.root(spot)).or_default();
                outer[0].extend((!is_from_new).then(|| from.clone()));
                outer[1].extend((!is_to_new).then(|| to.clone()));
            }
        }
        // Calls that are all on one side alone meet no call of the other side: all of this is one.
        let isolated = around.iter().filter(|(_, ends)| ends.iter().all(BTreeSet::is_empty));
        let isolated: Vec<&CodeLocation> = isolated.map(|(set, _)| set).collect();
        isolated.windows(2).for_each(|sets_of_two| sets.join(sets_of_two[0], sets_of_two[1]));
        for (set, [froms, tos]) in &around {
            for from in froms {
                tos.iter().for_each(|to| {
                    sets.join(&CodeLocation::Between(from.clone(), to.clone()), set)
                });
            }
            // The other end is among the places that are too small to be listed.
            let is_open = froms.is_empty() || tos.is_empty();
            for spot in self.places().filter(|_| is_open) {
                let shares =
                    ends(spot).is_some_and(|[from, to]| froms.contains(from) || tos.contains(to));
                if shares {
                    sets.join(spot, set);
                }
            }
        }
    }

    /// Joins a place that is gone with a new one that begins or ends with the same call.
    fn join_reordered(&self, sets: &mut Sets) {
        let alone = |side: usize| {
            let other = &self.0[1 - side].places;
            self.0[side].places.keys().filter(|spot| !other.contains_key(*spot))
        };
        for gone in alone(0) {
            for new in alone(1) {
                if let (Some(one), Some(two)) = (ends(gone), ends(new))
                    && (one[0] == two[0] || one[1] == two[1])
                {
                    sets.join(gone, new);
                }
            }
        }
    }

    /// The place that stands for each of those that are joined.
    fn joined(&self) -> BTreeMap<CodeLocation, CodeLocation> {
        let mut sets = Sets::default();
        self.join_around_calls(&mut sets);
        self.join_reordered(&mut sets);
        let mut members: BTreeMap<CodeLocation, BTreeSet<CodeLocation>> = BTreeMap::new();
        let all: BTreeSet<&CodeLocation> = self.places().chain(sets.parents.keys()).collect();
        for spot in all.into_iter().filter(|spot| ends(spot).is_some()) {
            members.entry(sets.root(spot)).or_default().insert(spot.clone());
        }
        let sets = members.into_values().filter(|set| set.len() > 1);
        sets.flat_map(|set| {
            let name = self.name(&set);
            set.into_iter().map(move |spot| (spot, name.clone()))
        })
        .collect()
    }

    /// The name of a joined place: the two calls that both sides make around it, else the call
    /// around which most of its time is.
    fn name(&self, set: &BTreeSet<CodeLocation>) -> CodeLocation {
        let is_common = |spot: &&CodeLocation| {
            ends(spot).is_some_and(|ends| ends.iter().all(|end| self.one_sided(end).is_none()))
        };
        let common: Vec<&CodeLocation> = set.iter().filter(is_common).collect();
        if let [only] = common[..] {
            return only.clone();
        }
        let mut near: BTreeMap<(bool, &Site), i64> = BTreeMap::new();
        for spot in set {
            let ns: i64 = self.0.iter().filter_map(|side| side.places.get(spot)).sum();
            for site in ends(spot).into_iter().flatten().flatten() {
                *near.entry((!self.has_both(site), site)).or_default() += ns;
            }
        }
        let most = near.into_iter().max_by_key(|((is_new, _), ns)| (*is_new, *ns));
        most.map_or(CodeLocation::Elsewhere, |((_, site), _)| CodeLocation::Around(site.clone()))
    }
}

/// Renames the places of a record, and adds up those that get the same name.
struct Renaming<'a> {
    record: &'a mut RunRecord,
    /// Positions of the call sites by key.
    positions: BTreeMap<Site, u32>,
    /// Call sites of all records by key, with their lines.
    shown: &'a BTreeMap<Site, Site>,
}

impl Renaming<'_> {
    fn position(&mut self, key: &Site) -> u32 {
        let sites = &mut self.record.sites;
        let shown = self.shown.get(key).unwrap_or(key);
        *self.positions.entry(key.clone()).or_insert_with(|| {
            sites.push(shown.clone());
            sites.len() as u32 - 1
        })
    }

    fn place(&mut self, spot: &CodeLocation) -> Place {
        match spot {
            CodeLocation::Between(from, to) => {
                let from = from.as_ref().map(|site| self.position(site));
                Place::Between(from, to.as_ref().map(|site| self.position(site)))
            }
            CodeLocation::Around(site) => Place::Around(self.position(site)),
            _ => Place::Elsewhere,
        }
    }

    fn apply(&mut self, joined: &BTreeMap<CodeLocation, CodeLocation>) {
        let mut sums: BTreeMap<Place, Part> = BTreeMap::new();
        let mut parts = Vec::new();
        for mut part in std::mem::take(&mut self.record.parts) {
            let name = joined.get(&CodeLocation::key(&part.place, &self.record.sites));
            let Some(name) = name.filter(|_| part.kind == Kind::Computing) else {
                parts.push(part);
                continue;
            };
            part.place = self.place(name);
            match sums.get_mut(&part.place) {
                Some(sum) => {
                    sum.ns += part.ns;
                    let ranks = sum.by_ranks.iter_mut().zip(&part.by_ranks);
                    ranks.for_each(|(sum, ns)| *sum += ns);
                }
                None => drop(sums.insert(part.place.clone(), part)),
            }
        }
        parts.extend(sums.into_values());
        self.record.parts = parts;
        // Of a joined place, not all members have figures by iteration, and the slowest ranks'
        // times do not add up.
        let sites = &self.record.sites;
        if let Some(of) = &mut self.record.iterations {
            of.places
                .retain(|series| !joined.contains_key(&CodeLocation::key(&series.place, sites)));
        }
    }
}

/// Joins the places of runs whose call sites are aligned.
pub fn join(before: &mut [RunRecord], after: &mut [RunRecord]) {
    let joined = Sides([SideTimes::new(before), SideTimes::new(after)]).joined();
    if joined.is_empty() {
        return;
    }
    let all = || after.iter().chain(before.iter());
    let mut shown: BTreeMap<Site, Site> = BTreeMap::new();
    for site in all().flat_map(|record| &record.sites) {
        shown.entry(site.key()).or_insert_with(|| site.clone());
    }
    for record in before.iter_mut().chain(after) {
        let positions =
            record.sites.iter().enumerate().map(|(at, site)| (site.key(), at as u32)).collect();
        Renaming { record, positions, shown: &shown }.apply(&joined);
    }
}
