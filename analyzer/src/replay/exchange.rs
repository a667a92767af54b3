//! Collective operations in which every member needs data of all others. They take place in rounds,
//! as many as the number of members has binary digits; in each round a member takes everything that
//! another has so far. The last member to enter finishes soon; the others finish when its data have
//! reached them.

use super::graph::{Collective, Graph, OpNumber};
use super::network::{Amount, Costs};

/// The rounds of a collective operation.
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

    /// The member whose data a member takes in a round: recursive doubling if the number of members
    /// is a power of two, else the member 2^round before it.
    fn partner(self, member: u32, round: u32) -> u32 {
        let all = self.members();
        match all.is_power_of_two() {
            true => member ^ (1 << round),
            false => (member + all - (1 << round) % all) % all,
        }
    }

    /// How many times the data of a member are passed on until another has them.
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

    /// When each member has finished the last round, and, round by round, whether each member's
    /// time was decided by its partner instead of its own previous round. `entered` gives the begin
    /// of a call.
    fn table<T: Amount>(
        self,
        costs: &Costs<T>,
        entered: impl Fn(OpNumber) -> f64,
    ) -> (Vec<f64>, Vec<bool>) {
        let (all, rounds) = (self.members(), self.count());
        let [own, arrival] =
            [false, true].map(|arrives| costs.round(self.collective, arrives).value());
        let mut now: Vec<f64> = (0..all).map(|member| entered(self.posted(member))).collect();
        let mut by_partner = Vec::with_capacity((all * rounds) as usize);
        for round in 0..rounds {
            let next = (0..all).map(|member| {
                let partner = self.partner(member, round);
                let mine = now[member as usize] + own;
                let other = now[partner as usize] + arrival;
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

    /// The call whose begin decided a member's end, and the time in between.
    pub fn origin<T: Amount>(
        self,
        costs: &Costs<T>,
        member: u32,
        entered: impl Fn(OpNumber) -> f64,
    ) -> (OpNumber, T) {
        let (_, by_partner) = self.table(costs, entered);
        let [own, arrival] = [false, true].map(|arrives| costs.round(self.collective, arrives));
        let mut at = member - self.collective.members.start;
        let mut time = T::ZERO;
        for round in (0..self.count()).rev() {
            if by_partner[(round * self.members() + at) as usize] {
                at = self.partner(at, round);
                time = time + arrival;
            } else {
                time = time + own;
            }
        }
        (self.posted(at), time)
    }
}
