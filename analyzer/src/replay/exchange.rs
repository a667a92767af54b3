//! Collective operations in which every member needs data of all others. They take place in rounds,
//! as many as the number of members has binary digits; in each round a member takes everything that
//! another has so far. The last member to enter finishes soon; the others finish when its data have
//! reached them.

use super::graph::{Collective, Graph, OpNumber};
use super::network::{Amount, Costs};

/// Passes in which the cost of a round is found.
const PASSES: usize = 3;

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

    fn posted(self, member: u32) -> OpNumber {
        self.graph.members[(self.collective.members.start + member) as usize].posted
    }

    /// When each member has finished the last round, and, round by round, whether each member's
    /// time was decided by its partner instead of its own previous round. `entered` gives the begin
    /// of a call; a round takes a member `own` after its previous one, and `arrival` after its
    /// partner's.
    fn table(
        self,
        [own, arrival]: [f64; 2],
        entered: impl Fn(OpNumber) -> f64,
    ) -> (Vec<f64>, Vec<bool>) {
        let (all, rounds) = (self.members(), self.count());
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

    /// The member whose begin decided a member's end, and in how many rounds data arrived on the
    /// way.
    fn decided_by(self, by_partner: &[bool], member: u32) -> (u32, u32) {
        let (mut at, mut arrivals) = (member, 0);
        for round in (0..self.count()).rev() {
            if by_partner[(round * self.members() + at) as usize] {
                at = self.partner(at, round);
                arrivals += 1;
            }
        }
        (at, arrivals)
    }

    /// What the recorded ends of members show of the cost of a round: for each of the given
    /// members, with their ends, how many rounds it needed and how long they took. Which member
    /// decided an end depends on the cost of a round itself, which is found in a few passes.
    pub fn observed(
        self,
        ends: &[(u32, f64)],
        entered: impl Fn(OpNumber) -> f64,
    ) -> Vec<(u32, f64)> {
        let begin = |member: u32| entered(self.posted(member));
        let last = (0..self.members()).map(begin).fold(f64::NEG_INFINITY, f64::max);
        let end = ends.iter().map(|(_, end)| *end).fold(f64::NEG_INFINITY, f64::max);
        let mut round_s = (end - last) / f64::from(self.count().max(1));
        let mut observed = Vec::new();
        for _ in 0..PASSES {
            let (_, by_partner) = self.table([0.0, round_s.max(0.0)], &entered);
            let of_member = |(member, end): &(u32, f64)| {
                let (origin, arrivals) = self.decided_by(&by_partner, *member);
                (arrivals, end - begin(origin))
            };
            observed = ends.iter().map(of_member).filter(|(arrivals, _)| *arrivals > 0).collect();
            let arrivals: u32 = observed.iter().map(|(arrivals, _)| arrivals).sum();
            let seconds: f64 = observed.iter().map(|(_, seconds)| seconds).sum();
            round_s = seconds / f64::from(arrivals.max(1));
        }
        observed
    }

    /// Cost of a round, without and with the arrival of another member's data.
    fn costs<T: Amount>(self, costs: &Costs<T>) -> [f64; 2] {
        [false, true].map(|arrives| costs.round(self.collective, arrives).value())
    }

    /// When each member has everything.
    pub fn ends(self, costs: &Costs, entered: impl Fn(OpNumber) -> f64) -> Vec<f64> {
        self.table(self.costs(costs), entered).0
    }

    /// The call whose begin decided a member's end, and the time in between.
    pub fn origin<T: Amount>(
        self,
        costs: &Costs<T>,
        member: u32,
        entered: impl Fn(OpNumber) -> f64,
    ) -> (OpNumber, T) {
        let (_, by_partner) = self.table(self.costs(costs), entered);
        let member = member - self.collective.members.start;
        let (origin, arrivals) = self.decided_by(&by_partner, member);
        let [own, arrival] = [false, true].map(|arrives| costs.round(self.collective, arrives));
        let time = arrival * f64::from(arrivals) + own * f64::from(self.count() - arrivals);
        (self.posted(origin), time)
    }
}
