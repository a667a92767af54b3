//! Algorithms of collective operations, by the names that libraries give them.

use super::shape::Shape;
use super::work::{ALL, Messages, Work};

fn posted(messages: Vec<Messages>, at_once: f64) -> Vec<Messages> {
    messages.into_iter().map(|of| Messages { at_once, ..of }).collect()
}

impl Shape {
    /// A round with each other member.
    pub fn pairwise(self, block: f64) -> Work {
        self.named("pairwise", self.all(block))
    }

    /// Messages to and from so many others at once.
    pub fn posted(self, block: f64, at_once: f64) -> Work {
        self.named("posted at once", posted(self.all(block), at_once))
    }

    pub fn bruck(self, block: f64) -> Work {
        let passed = self.passed_on() * block * self.members / f64::from(self.rounds());
        self.named("Bruck", self.shifts(|_| passed))
    }

    pub fn dissemination(self) -> Work {
        self.named("dissemination", self.shifts(|_| 0.0))
    }

    pub fn doubled(self, bytes: f64) -> Work {
        self.named("recursive doubling", self.folded(self.doubling(|_| bytes), bytes))
    }

    pub fn rabenseifner(self, bytes: f64) -> Work {
        self.named(
            "Rabenseifner",
            self.folded([self.halves(bytes), self.halves(bytes)].concat(), bytes),
        )
    }

    pub fn halved(self, bytes: f64) -> Work {
        self.named("recursive halving", self.folded(self.halves(bytes), bytes))
    }

    /// Parts go round twice: to be combined, and to all.
    pub fn rings(self, bytes: f64) -> Work {
        let part = self.around(bytes / self.members);
        self.named("ring", [part.clone(), part].concat())
    }

    pub fn binomial(self, bytes: f64) -> Work {
        self.named("binomial tree", self.tree(bytes))
    }

    /// Each member sends to three others in a round, as long as there are so many.
    pub fn knomial(self, bytes: f64) -> Work {
        let rounds = (self.members.log2() / 2.0).ceil() as i32;
        let round = |round: i32| {
            let distance = 4f64.powi(round);
            let children = ((self.members / distance).ceil() - 1.0).min(3.0);
            match distance < self.per_host {
                true => self.near(children, bytes),
                false => self.far(children, bytes, 1.0),
            }
        };
        self.named("4-nomial tree", posted((0..rounds).map(round).collect(), 3.0))
    }

    /// Each member sends to two others; the deepest decide.
    pub fn binary(self, bytes: f64) -> Work {
        let depth = self.members.log2().floor();
        let near = self.per_host.min(self.members).log2().floor().min(depth);
        let levels = vec![self.near(2.0 * near, bytes), self.far(2.0 * (depth - near), bytes, 1.0)];
        self.named("binary tree", posted(levels, 2.0))
    }

    /// Each half through one half of a binary tree; then members exchange halves.
    pub fn split_binary(self, bytes: f64) -> Work {
        let tree = self.binary(bytes / 2.0).messages;
        let swap = vec![self.far(1.0, bytes / 2.0, self.per_host)];
        self.named("split binary tree", [tree, swap].concat())
    }

    /// From the root to everyone, or back, without help of others.
    pub fn linear(self, bytes: f64) -> Work {
        self.named("linear", posted(self.fan(bytes), ALL))
    }

    /// From one member to the next, along so many chains.
    pub fn chains(self, bytes: f64, chains: f64) -> Work {
        let depth = ((self.members - 1.0) / chains).ceil();
        let near = (self.per_host.min(self.members) - 1.0).min(depth);
        let name = if chains > 1.0 { "chain" } else { "pipeline" };
        self.named(name, vec![self.near(near, bytes), self.far(depth - near, bytes, 1.0)])
    }

    pub fn scattered_and_doubled(self, bytes: f64) -> Work {
        self.named("scatter and doubling", [self.halves(bytes), self.halves(bytes)].concat())
    }

    pub fn scattered_around(self, bytes: f64) -> Work {
        self.named(
            "scatter and ring",
            [self.halves(bytes), self.around(bytes / self.members)].concat(),
        )
    }

    pub fn blocks_doubled(self, block: f64) -> Work {
        self.named("doubling blocks", self.blocks(block))
    }

    /// Half as many rounds as members, two blocks in each, with the member before and the one after in turn: at the
    /// border of a host every other round leaves it.
    pub fn neighbours(self, block: f64) -> Work {
        let far = if self.per_host > 1.0 { 0.5 } else { 1.0 } * self.members / 2.0;
        let near = self.members / 2.0 - far;
        self.named(
            "neighbour exchange",
            vec![self.near(near, 2.0 * block), self.far(far, 2.0 * block, 1.0)],
        )
    }

    pub fn ring(self, block: f64) -> Work {
        self.named("ring", self.around(block))
    }
}
