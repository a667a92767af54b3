//! How libraries carry out collective operations, by size and number of members: what they do where nothing else was
//! asked of them. Beside the ways that stay the same at every size, these change where the libraries do.

use super::labels::{Kind, Pattern};
use super::library::Library;
use super::price::{Messages, Shape, Work};

impl Library {
    /// How the library carries out an operation; `None` where its rule is not known.
    pub(super) fn way(self, pattern: Pattern, shape: Shape, bytes: f64) -> Option<Work> {
        match pattern {
            Pattern::FromRoot => Some(self.broadcast(shape, bytes)),
            Pattern::Combine => Some(self.combine(shape, bytes)),
            Pattern::Collect => Some(self.collect(shape, bytes)),
            Pattern::Exchange => Some(self.exchange(shape, bytes / shape.members)),
            Pattern::Synchronise | Pattern::ToRoot => None,
        }
    }

    /// From each member a block of `bytes` to each other.
    fn exchange(self, shape: Shape, block: f64) -> Work {
        let q = shape.members;
        match self {
            Self::Mpich if block <= 256.0 && q >= 8.0 => shape.bruck(block),
            Self::Mpich if block <= 32_768.0 => shape.posted(block),
            Self::OpenMpi if block < 200.0 && q > 12.0 => shape.bruck(block),
            Self::OpenMpi if block < 3_000.0 => shape.posted(block),
            _ => shape.pairwise(block),
        }
    }

    /// What all have is combined to as much for all.
    fn combine(self, shape: Shape, bytes: f64) -> Work {
        match self {
            Self::Mpich if bytes > 2_048.0 && bytes / 8.0 >= shape.members => shape.halved(bytes),
            Self::OpenMpi if bytes >= 10_000.0 => shape.rings(bytes),
            _ => shape.doubled(bytes),
        }
    }

    /// What one member has goes to all.
    fn broadcast(self, shape: Shape, bytes: f64) -> Work {
        let q = shape.members;
        match self {
            Self::Mpich if bytes >= 12_288.0 && q >= 8.0 => {
                match bytes < 524_288.0 && shape.is_power() {
                    true => shape.scattered_and_doubled(bytes),
                    false => shape.scattered_around(bytes),
                }
            }
            Self::OpenMpi if bytes >= 370_728.0 => shape.chain(bytes, 131_072.0),
            Self::OpenMpi if bytes >= 2_048.0 => shape.split_tree(bytes, 1_024.0),
            _ => shape.tree(bytes),
        }
    }

    /// Everyone's block is put together for all.
    fn collect(self, shape: Shape, block: f64) -> Work {
        let total = block * shape.members;
        let (doubled, others) = match self {
            Self::Mpich => (524_288.0, 81_920.0),
            Self::OpenMpi => (50_000.0, 50_000.0),
        };
        let is_even = shape.members % 2.0 == 0.0;
        match self {
            _ if shape.is_power() && total < doubled => shape.blocks_doubled(block),
            _ if !shape.is_power() && total < others => shape.blocks_doubled(block),
            Self::OpenMpi if is_even => shape.neighbours(block),
            _ => shape.ring(block),
        }
    }
}

/// What libraries do, where their rules are known, as [`super::price::ways`].
pub(super) fn by_rule(
    library: Option<Library>,
    kind: Kind,
    bytes: f64,
    members: f64,
    per_host: f64,
) -> Vec<Work> {
    let Kind::Collective(pattern) = kind else { return Vec::new() };
    let shape = Shape { members: members.max(2.0), per_host };
    let libraries = library.map_or(Library::ALL.to_vec(), |known| vec![known]);
    libraries.into_iter().filter_map(|library| library.way(pattern, shape, bytes)).collect()
}

impl Shape {
    fn named(self, algorithm: &'static str, messages: Vec<Messages>) -> Work {
        Work { algorithm, ..self.work(messages) }
    }

    /// A round with each other member.
    fn pairwise(self, block: f64) -> Work {
        self.named("pairwise", self.all(block))
    }

    /// Messages to and from all others at once.
    fn posted(self, block: f64) -> Work {
        self.named(
            "posted at once",
            self.all(block).into_iter().map(|of| Messages { posted: true, ..of }).collect(),
        )
    }

    fn bruck(self, block: f64) -> Work {
        let passed = self.passed_on() * block * self.members / f64::from(self.rounds());
        self.named("Bruck", self.rounds_of(|_| passed))
    }

    fn doubled(self, bytes: f64) -> Work {
        self.named("recursive doubling", self.folded(self.rounds_of(|_| bytes), bytes))
    }

    fn halves(self, bytes: f64) -> Vec<Messages> {
        self.rounds_of(|round| bytes / 2f64.powi(round + 1))
    }

    fn halved(self, bytes: f64) -> Work {
        self.named(
            "Rabenseifner",
            self.folded([self.halves(bytes), self.halves(bytes)].concat(), bytes),
        )
    }

    fn rings(self, bytes: f64) -> Work {
        let part = self.around(bytes / self.members);
        self.named("rings", [part.clone(), part].concat())
    }

    fn tree(self, bytes: f64) -> Work {
        self.named("tree", self.rounds_of(|_| bytes))
    }

    fn scattered_and_doubled(self, bytes: f64) -> Work {
        self.named("scatter and doubling", [self.halves(bytes), self.halves(bytes)].concat())
    }

    fn scattered_around(self, bytes: f64) -> Work {
        self.named(
            "scatter and ring",
            [self.halves(bytes), self.around(bytes / self.members)].concat(),
        )
    }

    /// Segments through a chain of all members.
    fn chain(self, bytes: f64, segment: f64) -> Work {
        self.named("chain", self.segments(self.members - 1.0, bytes, segment))
    }

    /// Segments of each half through a binary tree.
    fn split_tree(self, bytes: f64, segment: f64) -> Work {
        self.named("split tree", self.segments(f64::from(self.rounds()), bytes / 2.0, segment))
    }

    fn segments(self, depth: f64, bytes: f64, segment: f64) -> Vec<Messages> {
        let (segment, count) = (segment.min(bytes), (bytes / segment).ceil().max(1.0));
        vec![self.each(depth + count - 1.0, segment, self.farthest())]
    }

    fn blocks_doubled(self, block: f64) -> Work {
        self.named("doubling blocks", self.doubling(block))
    }

    /// Half as many rounds as members, two blocks in each.
    fn neighbours(self, block: f64) -> Work {
        self.named("neighbours", vec![self.each(self.members / 2.0, 2.0 * block, self.farthest())])
    }

    fn ring(self, block: f64) -> Work {
        self.named("ring", self.around(block))
    }
}
