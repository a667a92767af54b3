//! Finds which of several selections contain a moment of a rank, by one binary search.

use std::collections::HashMap;

use super::resolve::Resolved;

/// Several selections on every rank.
#[derive(Debug)]
pub(super) struct SelectionIndex {
    ranks: Vec<OfRank>,
    /// The distinct sets of selections.
    sets: Vec<Vec<usize>>,
}

/// For one rank: from each moment on, the index of the set of selections that contain it.
#[derive(Debug)]
struct OfRank {
    from_ticks: Vec<u64>,
    sets: Vec<u32>,
}

impl SelectionIndex {
    /// Indexes selections of a run with this many ranks.
    pub fn new(ranks: usize, selections: &[&Resolved]) -> Self {
        let mut numbers: HashMap<Vec<usize>, u32> = HashMap::new();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        let mut number = |set: Vec<usize>| {
            let next = sets.len() as u32;
            *numbers.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                next
            })
        };
        let of_rank = |position: usize| {
            let mut changes: Vec<(u64, usize, bool)> = Vec::new();
            let mut inside: Vec<usize> = Vec::new();
            for (index, selection) in selections.iter().enumerate() {
                let rank = &selection.ranks[position];
                if rank.every_call {
                    inside.push(index);
                    continue;
                }
                for (begin, end) in &rank.stretches {
                    changes.push((*begin, index, true));
                    changes.push((*end, index, false));
                }
            }
            changes.sort_unstable();
            let (mut from_ticks, mut of_rank) = (vec![0], vec![number(inside.clone())]);
            for (at, index, enters) in changes {
                match (enters, inside.iter().position(|other| *other == index)) {
                    (true, None) => inside.push(index),
                    (false, Some(position)) => {
                        inside.remove(position);
                    }
                    _ => {}
                }
                inside.sort_unstable();
                if from_ticks.last() != Some(&at) {
                    from_ticks.push(at);
                    of_rank.push(0);
                }
                if let Some(last) = of_rank.last_mut() {
                    *last = number(inside.clone());
                }
            }
            OfRank { from_ticks, sets: of_rank }
        };
        let ranks = (0..ranks).map(of_rank).collect();
        Self { ranks, sets }
    }

    /// The selections that contain a moment of the rank at this position in the run.
    #[inline]
    pub fn at(&self, position: usize, ticks: u64) -> &[usize] {
        let Some(rank) = self.ranks.get(position) else { return &[] };
        let index = match rank.from_ticks.len() {
            1 => 0,
            _ => rank.from_ticks.partition_point(|from| *from <= ticks).saturating_sub(1),
        };
        &self.sets[rank.sets[index] as usize]
    }
}
