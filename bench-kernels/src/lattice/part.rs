//! The sites of the lattice: one rank's part with its halos, and the whole lattice without a split.

use super::shape::Shape;
use crate::world::{Pending, World, bytes_of, bytes_of_mut};

/// Number of words of a site. With two directions each, they give the twelve exchanges.
pub const WORDS: usize = 6;
/// Tag of the first message; every message of an iteration has a tag of its own.
pub const FIRST_TAG: i32 = 51;

/// Initial value of a word.
fn initial(global: usize, word: usize) -> u64 {
    ((global * WORDS + word) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// New value of a word: three times its own, plus its neighbours' sum.
fn next(own: u64, neighbours: u64) -> u64 {
    own.wrapping_mul(3).wrapping_add(neighbours)
}

/// Contribution of a word to the checksum.
fn weight(global: usize, word: usize, value: u64) -> u64 {
    (value ^ initial(global, word))
        .rotate_left((global % 63) as u32)
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// One rank's part of the lattice, with a halo of one site in split dimensions.
pub struct Part {
    lattice: Shape,
    /// Number of ranks in each dimension.
    pub split: Shape,
    /// Number of this rank's sites in each dimension.
    pub local: Shape,
    origin: [usize; 4],
    place: [usize; 4],
    /// The sites, six words each.
    sites: Vec<[u64; WORDS]>,
    next: Vec<[u64; WORDS]>,
    /// For each dimension, the faces received from below and above, word by word.
    halo: [[Vec<u64>; 2]; 4],
    out: [[Vec<u64>; 2]; 4],
}

impl Part {
    /// A part in its initial state.
    pub fn new(world: &World, lattice: Shape, split: Shape) -> Self {
        let place = split.at(world.rank as usize);
        let local = Shape(std::array::from_fn(|d| lattice.0[d] / split.0[d]));
        let origin: [usize; 4] = std::array::from_fn(|d| place[d] * local.0[d]);
        let face = |d: usize| if split.0[d] > 1 { local.volume() / local.0[d] * WORDS } else { 0 };
        let faces = || std::array::from_fn(|d| [vec![0; face(d)], vec![0; face(d)]]);
        let mut part = Self {
            lattice,
            split,
            local,
            origin,
            place,
            sites: Vec::new(),
            next: vec![[0; WORDS]; local.volume()],
            halo: faces(),
            out: faces(),
        };
        let site = |at: usize| std::array::from_fn(|word| initial(part.global(at), word));
        part.sites = (0..local.volume()).map(site).collect();
        part
    }

    /// Index in the global lattice of a local site.
    fn global(&self, site: usize) -> usize {
        let at = self.local.at(site);
        self.lattice.index(std::array::from_fn(|d| self.origin[d] + at[d]))
    }

    /// The rank below or above in a dimension.
    fn neighbour(&self, dimension: usize, above: bool) -> i32 {
        let mut at = self.place;
        let ranks = self.split.0[dimension];
        at[dimension] = (at[dimension] + if above { 1 } else { ranks - 1 }) % ranks;
        self.split.index(at) as i32
    }

    /// Index of a site on its face of a dimension.
    fn on_face(&self, at: [usize; 4], dimension: usize) -> usize {
        let mut lengths = self.local.0;
        lengths[dimension] = 1;
        let mut at = at;
        at[dimension] = 0;
        Shape(lengths).index(at)
    }

    /// Number of bytes that this rank sends per iteration.
    pub fn bytes_sent(&self) -> u64 {
        self.out.iter().flatten().map(|face| 8 * face.len() as u64).sum()
    }

    /// Exchanges twelve messages in each direction for every split dimension, all under way at
    /// once.
    pub fn exchange(&mut self, world: &World) {
        for site in 0..self.local.volume() {
            let at = self.local.at(site);
            for dimension in (0..4).filter(|d| self.split.0[*d] > 1) {
                let face = self.local.volume() / self.local.0[dimension];
                let place = self.on_face(at, dimension);
                for (side, edge) in [0, self.local.0[dimension] - 1].into_iter().enumerate() {
                    if at[dimension] == edge {
                        for word in 0..WORDS {
                            self.out[dimension][side][word * face + place] = self.sites[site][word];
                        }
                    }
                }
            }
        }
        let neighbours: [[i32; 2]; 4] =
            std::array::from_fn(|d| [self.neighbour(d, false), self.neighbour(d, true)]);
        let mut pending = Pending::with_capacity(world, 2 * 2 * WORDS * 4);
        let tag = |dimension: usize, side: usize, word: usize| {
            FIRST_TAG + ((dimension * 2 + side) * WORDS + word) as i32
        };
        for (dimension, sides) in self.halo.iter_mut().enumerate() {
            for (side, halo) in sides.iter_mut().enumerate() {
                let face = halo.len() / WORDS;
                for (word, piece) in halo.chunks_exact_mut(face.max(1)).enumerate() {
                    // What arrives from below was the sender's upper face.
                    let tag = tag(dimension, 1 - side, word);
                    pending.receive(bytes_of_mut(piece), neighbours[dimension][side], tag);
                }
            }
        }
        for (dimension, sides) in self.out.iter().enumerate() {
            for (side, out) in sides.iter().enumerate() {
                let face = out.len() / WORDS;
                for (word, piece) in out.chunks_exact(face.max(1)).enumerate() {
                    pending.send(
                        bytes_of(piece),
                        neighbours[dimension][side],
                        tag(dimension, side, word),
                    );
                }
            }
        }
        pending.wait();
    }

    /// Makes one iteration, using the halos of the last exchange.
    pub fn update(&mut self) {
        for site in 0..self.local.volume() {
            let at = self.local.at(site);
            let mut sums = [0_u64; WORDS];
            for dimension in 0..4 {
                let length = self.local.0[dimension];
                for side in 0..2 {
                    let outside = at[dimension] == if side == 0 { 0 } else { length - 1 };
                    if outside && self.split.0[dimension] > 1 {
                        let face = self.local.volume() / length;
                        let place = self.on_face(at, dimension);
                        for (word, sum) in sums.iter_mut().enumerate() {
                            *sum =
                                sum.wrapping_add(self.halo[dimension][side][word * face + place]);
                        }
                    } else {
                        let mut neighbour = at;
                        neighbour[dimension] =
                            (at[dimension] + if side == 0 { length - 1 } else { 1 }) % length;
                        let values = self.sites[self.local.index(neighbour)];
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum = sum.wrapping_add(value);
                        }
                    }
                }
            }
            self.next[site] = std::array::from_fn(|word| next(self.sites[site][word], sums[word]));
        }
        std::mem::swap(&mut self.sites, &mut self.next);
    }

    /// Contribution of this rank's sites to the checksum.
    pub fn checksum(&self) -> u64 {
        let of_site = |(site, values): (usize, &[u64; WORDS])| {
            let global = self.global(site);
            values
                .iter()
                .enumerate()
                .fold(0_u64, |sum, (word, value)| sum.wrapping_add(weight(global, word, *value)))
        };
        self.sites.iter().enumerate().map(of_site).fold(0, u64::wrapping_add)
    }

    /// Size of one message in a dimension; 0 if it is not split.
    pub fn message_bytes(&self, dimension: usize) -> usize {
        self.out[dimension][0].len() / WORDS * 8
    }
}

/// The checksum of the lattice without a split after `iterations` iterations.
pub fn checksum_without_split(lattice: Shape, iterations: usize) -> u64 {
    let volume = lattice.volume();
    let mut sites: Vec<[u64; WORDS]> =
        (0..volume).map(|site| std::array::from_fn(|word| initial(site, word))).collect();
    for _ in 0..iterations {
        let old = sites.clone();
        for (site, values) in sites.iter_mut().enumerate() {
            let at = lattice.at(site);
            let mut sums = [0_u64; WORDS];
            for dimension in 0..4 {
                for step in [1, lattice.0[dimension] - 1] {
                    let mut neighbour = at;
                    neighbour[dimension] = (at[dimension] + step) % lattice.0[dimension];
                    for (sum, value) in sums.iter_mut().zip(old[lattice.index(neighbour)]) {
                        *sum = sum.wrapping_add(value);
                    }
                }
            }
            *values = std::array::from_fn(|word| next(values[word], sums[word]));
        }
    }
    let of_site = |(site, values): (usize, &[u64; WORDS])| {
        values
            .iter()
            .enumerate()
            .fold(0_u64, |sum, (word, value)| sum.wrapping_add(weight(site, word, *value)))
    };
    sites.iter().enumerate().map(of_site).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_detects_changed_word_and_iteration() {
        let lattice = Shape([2, 2, 2, 4]);
        assert_ne!(checksum_without_split(lattice, 1), checksum_without_split(lattice, 2));
        assert_ne!(weight(3, 2, 7), weight(3, 2, 8));
        assert_ne!(weight(3, 2, 7), weight(4, 2, 7));
    }
}
