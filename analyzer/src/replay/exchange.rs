//! Collective operations in which everybody needs everybody: in as many rounds as the members' number has binary
//! digits each takes what another has so far. Who comes last goes on soon, the others when its part has come round.

use super::graph::{Collective, Graph, OpNumber};
use super::network::{Amount, Costs};

/// How the members of one go together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds<'r, 'a> {
    graph: &'r Graph<'a>,
    collective: &'r Collective,
}

impl<'r, 'a> Rounds<'r, 'a> {
    pub fn new(graph: &'r Graph<'a>, collective: &'r Collective) -> Self {
        Self { graph, collective }
    }

    fn members(self) -> u32 {
        self.collective.members.end - self.collective.members.start
    }

    pub fn count(self) -> u32 {
        self.members().next_power_of_two().trailing_zeros()
    }

    /// Whose data a member takes in a round: doubled pairs where their number is a power of two, else those of the one
    /// so far before it.
    fn partner(self, member: u32, round: u32) -> u32 {
        let all = self.members();
        match all.is_power_of_two() {
            true => member ^ (1 << round),
            false => (member + all - (1 << round) % all) % all,
        }
    }

    /// How many times a member's part is passed on until another has it.
    pub fn hops(self, from: u32, to: u32) -> u32 {
        let (first, all) = (self.collective.members.start, self.members());
        let (from, to) = (from - first, to - first);
        match all.is_power_of_two() {
            true => (from ^ to).count_ones(),
            false => ((to + all - from) % all).count_ones(),
        }
    }

    fn posted(self, member: u32) -> OpNumber {
        self.graph.members[(self.collective.members.start + member) as usize].posted
    }

    fn line(self, member: u32) -> u32 {
        self.graph.members[(self.collective.members.start + member) as usize].line
    }

    /// What each member has to itself behind every round, by member, the last round last; and what it was
    /// decided by: its own round before, or its partner's. `entered` gives when a call begins.
    fn table<T: Amount>(
        self,
        costs: &Costs<T>,
        entered: impl Fn(OpNumber) -> f64,
    ) -> (Vec<f64>, Vec<bool>) {
        let (all, rounds) = (self.members(), self.count());
        let own = costs.round(self.collective, None).value();
        let ways = costs.ways(self.collective).map(T::value);
        let mut now: Vec<f64> = (0..all).map(|member| entered(self.posted(member))).collect();
        let mut by_partner = Vec::with_capacity((all * rounds) as usize);
        for round in 0..rounds {
            let next = (0..all).map(|member| {
                let partner = self.partner(member, round);
                let hop = costs.placement.hop([self.line(member), self.line(partner)]);
                let mine = now[member as usize] + own;
                let other = now[partner as usize] + ways[hop as usize];
                by_partner.push(other > mine);
                mine.max(other)
            });
            now = next.collect();
        }
        (now, by_partner)
    }

    /// When each member has everything.
    pub fn ends(self, costs: &Costs, entered: impl Fn(OpNumber) -> f64) -> Vec<f64> {
        self.table(costs, entered).0
    }

    /// From whose begin on a member's end was decided, and what lies between.
    pub fn origin<T: Amount>(
        self,
        costs: &Costs<T>,
        member: u32,
        entered: impl Fn(OpNumber) -> f64,
    ) -> (OpNumber, T) {
        let (_, by_partner) = self.table(costs, entered);
        let own = costs.round(self.collective, None);
        let ways = costs.ways(self.collective);
        let mut at = member - self.collective.members.start;
        let mut time = T::ZERO;
        for round in (0..self.count()).rev() {
            if by_partner[(round * self.members() + at) as usize] {
                let partner = self.partner(at, round);
                time =
                    time + ways[costs.placement.hop([self.line(at), self.line(partner)]) as usize];
                at = partner;
            } else {
                time = time + own;
            }
        }
        (self.posted(at), time)
    }
}
