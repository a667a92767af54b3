//! Ranks that lose time in ways that a diagnosis names, and ranks that nearly do.

use trace_format::header::{Definition, Phase};

use crate::synthetic_messages::{Attributes, completed, on_world};
use crate::synthetic_trace::SyntheticRank;

/// When the ranks begin, ns.
const BEGIN: u64 = 1_000_000;
/// How often they do the same.
pub const TURNS: u64 = 30;

/// Ranks on these hosts, whose turns take so many ns; finalize adds the end.
fn ranks(hosts: &[&str], turn: u64) -> (Vec<SyntheticRank>, u64) {
    let end = BEGIN + TURNS * turn;
    let count = hosts.len() as u32;
    let of_host = |(rank, host): (u32, &&str)| {
        let mut made = SyntheticRank::level_1(rank, count, end);
        if *host != hosts[0] {
            (made.header.host, made.header.boot_id) = ((*host).into(), format!("boot-{host}"));
            for definition in &mut made.definitions {
                if let Definition::ClockExchange(exchange) = definition {
                    (exchange.same_host, exchange.bound_ticks) = (false, 10);
                }
            }
        }
        made
    };
    ((0..).zip(hosts).map(of_host).collect(), end)
}

fn finalized(mut ranks: Vec<SyntheticRank>, end: u64) -> Vec<SyntheticRank> {
    for rank in &mut ranks {
        rank.finalize(end, end + 10);
    }
    ranks
}

/// Two ranks that begin to exchange, compute, and complete the exchange.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub hosts: [&'static str; 2],
    /// Bytes of each message.
    pub bytes: u32,
    /// Computation between begin and completion, ns.
    pub computed: u64,
    /// What the completion takes, ns.
    pub waited: u64,
    /// What a blocking exchange of as many bytes takes, ns; 0: there is none.
    pub blocking: u64,
    /// Whether the ranks test during the computation.
    pub tests: bool,
}

impl Exchange {
    pub fn ranks(self) -> Vec<SyntheticRank> {
        let Self { hosts, bytes, computed, waited, blocking, tests } = self;
        let (begins, rest) = (2_000, 40_000);
        let (mut ranks, end) = ranks(&hosts, begins + computed + waited + blocking + rest);
        for turn in 0..TURNS {
            let begin = BEGIN + turn * (begins + computed + waited + blocking + rest);
            for (number, rank) in ranks.iter_mut().enumerate() {
                let other = 1 - number as i32;
                let message = on_world(other, 7, bytes);
                rank.call_with("MPI_Irecv", begin, begin + 1_000, message.request(1));
                rank.call_with("MPI_Isend", begin + 1_000, begin + 2_000, message.request(2));
                let (from, to) = (begin + begins, begin + begins + computed);
                if tests {
                    rank.polls("MPI_Testall", from + computed / 4, from + computed / 2, 10, 9_000);
                }
                let both = [1, 2].map(|request| completed(request, other, 7, bytes));
                rank.several("MPI_Waitall", to, to + waited, &both);
                if blocking > 0 {
                    let (from, to) = (to + waited + rest / 2, to + waited + rest / 2 + blocking);
                    let (name, late) =
                        if number == 0 { ("MPI_Recv", 0) } else { ("MPI_Ssend", 500) };
                    rank.call_with(name, from + late, to, on_world(other, 8, bytes));
                }
            }
        }
        finalized(ranks, end)
    }
}

/// Three ranks that meet again and again, before which each is so long (ns) in a function of MPI, or outside if that is
/// empty.
pub fn meets_after(function: &str, long: [u64; 3]) -> Vec<SyntheticRank> {
    let longest = long.into_iter().max().unwrap_or(0);
    let turn = longest + 30_000;
    let (mut ranks, end) = ranks(&["n0"; 3], turn);
    for at in (0..TURNS).map(|number| BEGIN + number * turn) {
        for (rank, long) in ranks.iter_mut().zip(long) {
            let from = at + 10_000;
            if !function.is_empty() && long > 0 {
                rank.call_with(
                    function,
                    from,
                    from + long,
                    Attributes { bytes: 4096, ..Attributes::default() },
                );
            }
            rank.call_with("MPI_Barrier", from + long + 100, at + turn - 10_000, on_world(0, 0, 0));
        }
    }
    finalized(ranks, end)
}

/// Adds for how long each rank was on a core, ns; none waited for one.
pub fn on_a_core(ranks: &mut [SyntheticRank], long: impl Fn(usize) -> u64) {
    for (number, rank) in ranks.iter_mut().enumerate() {
        let ran = long(number);
        rank.thread_usage(0, Phase::Init, 0, 0, 0).thread_usage(0, Phase::Finalize, ran, 0, 0);
        rank.process_usage(Phase::Init, 0, 0).process_usage(Phase::Finalize, ran, 0);
    }
}

/// Four ranks on these hosts: 0 and 1, and 2 and 3, exchange many bytes, 0 and 2, and 1 and 3, fewer. Far messages take
/// much longer than near ones.
pub fn neighbours_on(hosts: [&'static str; 4], bytes: u32) -> Vec<SyntheticRank> {
    let takes = |[from, to]: [usize; 2], bytes: u32| match hosts[from] == hosts[to] {
        true => 2_000 + u64::from(bytes) / 10,
        false => 20_000 + 5 * u64::from(bytes),
    };
    let (neighbours, others) = ([[0, 1], [2, 3]], [[0, 2], [1, 3]]);
    let steps = [(neighbours, bytes), (neighbours, 800), (others, 800), (others, 8_000)];
    let work = 30_000;
    let long = |(pairs, bytes): ([[usize; 2]; 2], u32)| {
        work + 500 + takes(pairs[0], bytes).max(takes(pairs[1], bytes))
    };
    let (mut ranks, end) = ranks(&hosts, steps.into_iter().map(long).sum());
    let mut now = BEGIN;
    for step in (0..TURNS).flat_map(|_| steps) {
        let (pairs, bytes) = step;
        for [from, to] in pairs {
            let (posted, sent) = (now + work, now + work + 500);
            let end = sent + takes([from, to], bytes);
            ranks[to].call_with("MPI_Recv", posted, end, on_world(from as i32, 5, bytes));
            ranks[from].call_with("MPI_Ssend", sent, end, on_world(to as i32, 5, bytes));
        }
        now += long(step);
    }
    finalized(ranks, end)
}
