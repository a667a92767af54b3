//! Algorithms of collective operations as MPI libraries implement them (Thakur, Rabenseifner and
//! Gropp 2005), as rounds of messages; and the longest path through the rounds on given hosts,
//! whose ranks share a link.

use super::movement::{Movement, Needs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Algorithm {
    /// Binomial tree: all data in each round.
    Tree,
    /// Binomial tree in which each member passes on the parts of its subtree.
    TreeOfParts,
    /// Recursive doubling: all data in each round.
    Doubling,
    /// Recursive doubling: all parts that a member has so far.
    DoublingOfParts,
    /// Recursive halving, then doubling (Rabenseifner).
    Halving,
    /// The root scatters along a tree; recursive doubling gathers.
    ScatterDoubling,
    /// The root scatters along a tree; a ring gathers (van de Geijn).
    ScatterRing,
    /// Parts travel once around a ring.
    Ring,
    /// Parts travel twice around a ring: reduced, then gathered.
    RingTwice,
    /// Half of all data in each of few rounds (Bruck).
    Bruck,
    /// One partner after another.
    Pairwise,
    /// All partners at once.
    AtOnce,
    /// The root exchanges parts with all others at once.
    RootAtOnce,
    /// The root's data travel along a chain, in few large segments.
    Chain,
    /// The root's data travel along a chain, in many small segments.
    FineChain,
}

pub(super) const ALGORITHMS: usize = 15;

/// Largest data that is sent whole in each round, if the run does not show the algorithm; bytes
/// (MPICH's limit of a short broadcast).
const SHORT_BYTES: f64 = 12_288.0;

/// Largest data that recursive doubling gathers, if the run does not show the algorithm; bytes
/// (MPICH's limit of a long allgather).
const LONG_BYTES: f64 = 524_288.0;

/// MPI libraries use Bruck's algorithm up to this many bytes per pair.
const MAX_BRUCK_BYTES: f64 = 256.0;

/// Segments of a chain: libraries take segments of 4 to 128 KiB for data of about a megabyte.
const SEGMENTS: f64 = 4.0;
const FINE_SEGMENTS: f64 = 32.0;

/// Maximum number of rounds with different distances that are counted out; of more, a sample.
const MAX_DISTANCES: usize = 64;

/// The longest path through a collective operation. Arrays: within hosts, between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Path {
    /// Number of messages that a member sends or receives.
    pub overheads: f64,
    pub latencies: [f64; 2],
    /// Bytes on one side of all messages, as a share of the operation's bytes.
    pub copied: f64,
    /// Bytes that links transfer, as a share of the operation's bytes: with k messages at a time on
    /// a host's link, k times those of one message.
    pub bytes: [f64; 2],
}

/// Who sends to whom in a round.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    /// Members whose numbers are multiples of twice the distance, to the member at the distance.
    Tree,
    /// Pairs exchange: numbers differ in one binary digit.
    Exchange,
    /// Each member to the one at the distance.
    Shift,
}

/// Equal rounds of an algorithm.
#[derive(Debug, Clone, Copy)]
struct Round {
    pattern: Pattern,
    distance: usize,
    /// Share of the operation's bytes in a message.
    share: f64,
    times: f64,
}

/// Which algorithms an operation may use, from small to large data.
pub(super) fn candidates(needs: Needs, movement: Movement) -> &'static [Algorithm] {
    use Algorithm::*;
    match (movement, needs) {
        (Movement::Nothing | Movement::Meeting, _) | (Movement::Same, Needs::Lower) => &[Doubling],
        (Movement::Same, Needs::Everybody | Needs::All) => &[Doubling, Halving, RingTwice],
        (Movement::Same, Needs::Root | Needs::AtRoot) => {
            &[Tree, ScatterDoubling, ScatterRing, Chain, FineChain]
        }
        (Movement::Parts, Needs::Root | Needs::AtRoot) => &[TreeOfParts, RootAtOnce],
        (Movement::Parts, _) => &[DoublingOfParts, Ring],
        (Movement::Pairs, _) => &[Bruck, Pairwise, AtOnce],
    }
}

/// The algorithm that is assumed if the run does not show it.
pub(super) fn usual((needs, movement): (Needs, Movement), bytes: f64, members: usize) -> Algorithm {
    let is_large = match movement {
        Movement::Nothing | Movement::Meeting => false,
        Movement::Same => bytes > SHORT_BYTES,
        Movement::Parts => bytes > LONG_BYTES && !matches!(needs, Needs::Root | Needs::AtRoot),
        Movement::Pairs => bytes > MAX_BRUCK_BYTES * members as f64,
    };
    let candidates = candidates(needs, movement);
    candidates[usize::from(is_large && candidates.len() > 1)]
}

impl Algorithm {
    /// All algorithms, in order.
    pub const ALL: [Self; ALGORITHMS] = [
        Self::Tree,
        Self::TreeOfParts,
        Self::Doubling,
        Self::DoublingOfParts,
        Self::Halving,
        Self::ScatterDoubling,
        Self::ScatterRing,
        Self::Ring,
        Self::RingTwice,
        Self::Bruck,
        Self::Pairwise,
        Self::AtOnce,
        Self::RootAtOnce,
        Self::Chain,
        Self::FineChain,
    ];

    /// Its rounds among a number of members.
    fn rounds(self, members: usize) -> Vec<Round> {
        use Pattern::{Exchange, Shift, Tree};
        let all = members as f64;
        let doubling = |pattern: Pattern, share: &dyn Fn(usize) -> f64| -> Vec<Round> {
            let count = members.next_power_of_two().trailing_zeros();
            let distances = (0..count).map(|round| 1usize << round);
            let round = |distance| Round { pattern, distance, share: share(distance), times: 1.0 };
            distances.map(round).collect()
        };
        // Parts behind the distance, as far as there are members.
        let parts = |distance: usize| distance.min(members - distance) as f64 / all;
        let ring = |times: f64| Round {
            pattern: Shift,
            distance: 1,
            share: 1.0 / all,
            times: times * (all - 1.0),
        };
        match self {
            Self::Tree => doubling(Tree, &|_| 1.0),
            Self::TreeOfParts => doubling(Tree, &parts),
            Self::Doubling => doubling(Exchange, &|_| 1.0),
            Self::DoublingOfParts => doubling(Exchange, &parts),
            Self::Halving => [doubling(Exchange, &parts), doubling(Exchange, &parts)].concat(),
            Self::ScatterDoubling => [doubling(Tree, &parts), doubling(Exchange, &parts)].concat(),
            Self::ScatterRing => [doubling(Tree, &parts), vec![ring(1.0)]].concat(),
            Self::Ring => vec![ring(1.0)],
            Self::RingTwice => vec![ring(2.0)],
            Self::Bruck => doubling(Shift, &|_| 0.5),
            Self::Pairwise => {
                let count = (members - 1).min(MAX_DISTANCES);
                let times = (all - 1.0) / count as f64;
                let distance = |number: usize| 1 + number * (members - 1) / count;
                let round = |number| Round {
                    pattern: Shift,
                    distance: distance(number),
                    share: 1.0 / all,
                    times,
                };
                (0..count).map(round).collect()
            }
            Self::AtOnce | Self::RootAtOnce | Self::Chain | Self::FineChain => Vec::new(),
        }
    }

    /// How long the root of an operation that distributes its data is busy, as a share of the
    /// operation; `None` if it only sends, and is done when its messages are taken.
    pub fn busy_root(self, members: usize) -> Option<f64> {
        let chain = |segments: f64| Some(segments / (members as f64 - 2.0 + segments));
        match self {
            Self::Tree | Self::TreeOfParts | Self::RootAtOnce => None,
            Self::Chain => chain(SEGMENTS),
            Self::FineChain => chain(FINE_SEGMENTS),
            _ => Some(1.0),
        }
    }

    /// The longest path if the members are on these hosts.
    pub fn path(self, hosts: &[u32]) -> Path {
        if hosts.len() < 2 {
            return Path::default();
        }
        let hosts = Hosts::new(hosts);
        match self {
            Self::AtOnce => hosts.at_once(),
            Self::RootAtOnce => hosts.root_at_once(),
            Self::Chain => hosts.chain(SEGMENTS),
            Self::FineChain => hosts.chain(FINE_SEGMENTS),
            _ => {
                let mut path = Path::default();
                for round in self.rounds(hosts.of.len()) {
                    let sharing = hosts.sharing(round);
                    let hop = usize::from(sharing > 0);
                    path.overheads += 2.0 * round.times;
                    path.latencies[hop] += round.times;
                    path.copied += round.share * round.times;
                    path.bytes[hop] += round.share * round.times * f64::from(sharing.max(1));
                }
                path
            }
        }
    }
}

/// The hosts of the members of a communicator.
struct Hosts {
    /// Host of each member, numbered from 0 on.
    of: Vec<usize>,
    /// Number of members on each host.
    members: Vec<usize>,
}

impl Hosts {
    fn new(hosts: &[u32]) -> Self {
        let mut known = hosts.to_vec();
        known.sort_unstable();
        known.dedup();
        let mut members = vec![0; known.len()];
        let number = |host: &u32| {
            let number = known.binary_search(host).unwrap_or(0);
            members[number] += 1;
            number
        };
        let of = hosts.iter().map(number).collect();
        Self { of, members }
    }

    /// The largest number of messages at a time on a link of a host, in one direction; 0 if all
    /// stay within hosts.
    fn sharing(&self, round: Round) -> u32 {
        let (of, distance) = (&self.of, round.distance);
        if self.members.len() == 1 {
            return 0;
        }
        let (mut out, mut into) = (vec![0; self.members.len()], vec![0; self.members.len()]);
        for from in 0..of.len() {
            let to = match round.pattern {
                Pattern::Tree if from % (2 * distance) != 0 => continue,
                Pattern::Tree => from + distance,
                Pattern::Exchange => from ^ distance,
                Pattern::Shift => (from + distance) % of.len(),
            };
            if to < of.len() && of[from] != of[to] {
                out[of[from]] += 1;
                into[of[to]] += 1;
            }
        }
        out.into_iter().chain(into).max().unwrap_or(0)
    }

    /// Each member exchanges with all others at once.
    fn at_once(&self) -> Path {
        let all = self.of.len() as f64;
        let on_link = |members: &usize| *members as f64 * (all - *members as f64) / all;
        let between = self.members.iter().map(on_link).fold(0.0, f64::max);
        let most = self.members.iter().copied().max().unwrap_or(1) as f64;
        Path {
            overheads: 2.0 * (all - 1.0),
            latencies: if between > 0.0 { [0.0, 1.0] } else { [1.0, 0.0] },
            copied: (all - 1.0) / all,
            bytes: if between > 0.0 { [0.0, between] } else { [(most - 1.0) / all, 0.0] },
        }
    }

    /// The root's data travel from member to member, in segments, of which each follows the one
    /// before it.
    fn chain(&self, segments: f64) -> Path {
        let all = self.of.len() as f64;
        let share = 1.0 / segments;
        let round = Round { pattern: Pattern::Shift, distance: 1, share, times: 1.0 };
        let sharing = self.sharing(round);
        let (links, hop) = (all - 1.0, usize::from(sharing > 0));
        let mut path = Path {
            overheads: 2.0 * (links + segments - 1.0),
            copied: share * (links + segments - 1.0),
            ..Path::default()
        };
        path.latencies[hop] = links;
        path.bytes[hop] = path.copied * f64::from(sharing.max(1));
        path
    }

    /// The root, the first member, exchanges with all others at once.
    fn root_at_once(&self) -> Path {
        let all = self.of.len() as f64;
        let here = self.members[self.of[0]] as f64;
        let (within, between) = ((here - 1.0) / all, (all - here) / all);
        Path {
            overheads: all,
            latencies: if between > 0.0 { [0.0, 1.0] } else { [1.0, 0.0] },
            copied: (all - 1.0) / all,
            bytes: if between > 0.0 { [0.0, between] } else { [within, 0.0] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_literature() {
        let path = |algorithm: Algorithm| {
            let Path { latencies, bytes, .. } = algorithm.path(&[0; 8]);
            (latencies[0], bytes[0])
        };
        assert_eq!(path(Algorithm::Doubling), (3.0, 3.0));
        assert_eq!(path(Algorithm::TreeOfParts), (3.0, 0.875));
        assert_eq!(path(Algorithm::Halving), (6.0, 1.75));
        assert_eq!(path(Algorithm::ScatterRing), (10.0, 1.75));
        assert_eq!(path(Algorithm::RingTwice), (14.0, 1.75));
        assert_eq!(path(Algorithm::Bruck), (3.0, 1.5));
        assert_eq!(path(Algorithm::Pairwise), (7.0, 0.875));
        assert_eq!(path(Algorithm::AtOnce), (1.0, 0.875));
        // Seven members pass on the first of four segments; three more follow.
        assert_eq!(path(Algorithm::Chain), (7.0, 2.5));
        assert_eq!(Algorithm::Chain.busy_root(8), Some(0.4));
    }

    #[test]
    fn ranks_of_a_host_share_its_link() {
        let (blocks, cyclic) = ([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]);
        let between = |algorithm: Algorithm, hosts: &[u32]| {
            let Path { latencies, bytes, .. } = algorithm.path(hosts);
            (latencies[1], bytes[1])
        };
        // In blocks the ring leaves each host once, else all members leave in every round.
        assert_eq!(between(Algorithm::Ring, &blocks), (7.0, 0.875));
        assert_eq!(between(Algorithm::Ring, &cyclic), (7.0, 3.5));
        // Of three rounds of exchanges, one crosses, with all members; of the tree, one message.
        assert_eq!(between(Algorithm::Doubling, &blocks), (1.0, 4.0));
        assert_eq!(between(Algorithm::Tree, &blocks), (1.0, 1.0));
        assert_eq!(between(Algorithm::Tree, &cyclic), (1.0, 4.0));
        assert_eq!(between(Algorithm::AtOnce, &blocks), (1.0, 2.0));
    }

    #[test]
    fn samples_distances_of_large_communicators() {
        let hosts: Vec<u32> = (0..1_000).collect();
        let path = Algorithm::Pairwise.path(&hosts);
        assert!((path.latencies[1] - 999.0).abs() < 1e-6 && (path.bytes[1] - 0.999).abs() < 1e-9);
    }
}
