//! Corrects timelines on which receives end before their sends begin.
//! [`crate::analysis::Analysis::causal_timeline`] finds the messages.
//!
//! This is the controlled logical clock of Rabenseifner 1997, with the backward amortisation of
//! Becker et al., for point-to-point messages only:
//!
//! 1. Forward, in causal order: a receive that ends before its send begins is moved to [`MARGIN_S`]
//!    after that begin, together with what follows on its rank. The shift then wears off: later
//!    intervals are shortened by [`AMORTISATION`] until the original time is reached again.
//! 2. Backward: what precedes such a jump on the rank is also moved later, by an amount that rises
//!    at the same rate, so that the jump does not stretch a single interval. It is moved no further
//!    than its own sends allow.
//!
//! Times only move later. Memory: 64 bytes per message, and what the moved ranks' clocks need.

use std::collections::HashMap;

use super::global::{CausalCorrection, GlobalTimeline};
use super::rank_clock::{ClockPiece, RankClock};

/// A moved receive ends this much later than its send begins, seconds.
pub const MARGIN_S: f64 = 1e-9;
/// Largest part of their length by which intervals are shortened or stretched, unless more is
/// inevitable.
pub const AMORTISATION: f64 = 0.01;

/// A message whose receive ended.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Positions of the ranks in the run.
    pub ranks: (usize, usize),
    /// Counters at the begin of the send and at the end of the receive.
    pub ticks: (u64, u64),
    /// The same in global seconds, as corrected so far.
    pub seconds: (f64, f64),
}

impl Link {
    fn is_early(&self) -> bool {
        self.seconds.1 < self.seconds.0
    }
}

#[derive(Debug, Clone, Copy)]
struct Point {
    ticks: u64,
    seconds: f64,
    /// What is added to `seconds`.
    shift: f64,
    link: usize,
    is_send: bool,
}

impl GlobalTimeline {
    /// Returns a copy in which none of these messages arrives before it is sent.
    /// [`GlobalTimeline::causal`] summarises the changes.
    #[must_use]
    pub fn corrected(&self, mut links: Vec<Link>) -> Self {
        let mut correction = CausalCorrection {
            messages: links.len() as u64,
            early_before: links.iter().filter(|link| link.is_early()).count() as u64,
            ..CausalCorrection::default()
        };
        let mut corrected = self.clone();
        if correction.early_before > 0 {
            let mut ranks = points(&links, self.ranks.len());
            let jumps = forward(&mut ranks, &mut links, &mut correction);
            backward(&mut ranks, &mut links, &jumps);
            for (points, rank) in ranks.iter().zip(&mut corrected.ranks) {
                let largest = points.iter().map(|point| point.shift).fold(0.0, f64::max);
                correction.largest_shift_ns = correction.largest_shift_ns.max(largest * 1e9);
                if largest > 0.0 {
                    correction.changed_ranks += 1;
                    rank.clock.pieces = shifted(&rank.clock, points);
                }
            }
            correction.early_after = links
                .iter()
                .filter(|link| {
                    let at = |rank: usize, ticks| corrected.ranks[rank].clock.seconds(ticks);
                    at(link.ranks.1, link.ticks.1) < at(link.ranks.0, link.ticks.0)
                })
                .count() as u64;
        }
        corrected.causal = Some(correction);
        corrected
    }
}

/// Sends and receives of each rank in the order of its counter.
fn points(links: &[Link], count: usize) -> Vec<Vec<Point>> {
    let mut ranks: Vec<Vec<Point>> = vec![Vec::new(); count];
    for (index, link) in links.iter().enumerate() {
        let point =
            |ticks, seconds, is_send| Point { ticks, seconds, shift: 0.0, link: index, is_send };
        ranks[link.ranks.0].push(point(link.ticks.0, link.seconds.0, true));
        ranks[link.ranks.1].push(point(link.ticks.1, link.seconds.1, false));
    }
    for points in &mut ranks {
        points.sort_by_key(|point| (point.ticks, !point.is_send));
    }
    ranks
}

/// A receive that was moved because of its own message: rank, index of its point, distance in
/// seconds.
type Jump = (usize, usize, f64);

fn forward(
    ranks: &mut [Vec<Point>],
    links: &mut [Link],
    correction: &mut CausalCorrection,
) -> Vec<Jump> {
    let mut jumps = Vec::new();
    let mut at = vec![0usize; ranks.len()];
    let mut sent = vec![false; links.len()];
    let mut waiting: HashMap<usize, usize> = HashMap::new();
    let mut ready: Vec<usize> = (0..ranks.len()).rev().collect();
    loop {
        let Some(rank) = ready.pop() else {
            // The ranks wait for each other in a cycle, which only the matching of a damaged trace
            // can cause. The earliest receive stays where it is.
            let head =
                |(link, rank): (&usize, &usize)| (ranks[*rank][at[*rank]].seconds, *link, *rank);
            let earliest = waiting.iter().map(head).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, link, rank)) = earliest else { return jumps };
            waiting.remove(&link);
            sent[link] = true;
            ready.push(rank);
            continue;
        };
        while let Some(&point) = ranks[rank].get(at[rank]) {
            if !point.is_send && !sent[point.link] {
                waiting.insert(point.link, rank);
                break;
            }
            let mut shift = match at[rank].checked_sub(1).map(|before| ranks[rank][before]) {
                Some(before) => {
                    let worn_off = AMORTISATION * (point.seconds - before.seconds);
                    (before.shift - worn_off).max(0.0)
                }
                None => 0.0,
            };
            let link = &mut links[point.link];
            if point.is_send {
                link.seconds.0 = point.seconds + shift;
                sent[point.link] = true;
                ready.extend(waiting.remove(&point.link));
            } else {
                let missing = link.seconds.0 + MARGIN_S - (point.seconds + shift);
                // Receives that are only closer than the margin stay where they are.
                if missing > MARGIN_S {
                    shift += missing;
                    jumps.push((rank, at[rank], missing));
                    correction.moved_receives += 1;
                    correction.largest_jump_ns = correction.largest_jump_ns.max(missing * 1e9);
                }
                link.seconds.1 = point.seconds + shift;
            }
            ranks[rank][at[rank]].shift = shift;
            at[rank] += 1;
        }
    }
}

fn backward(ranks: &mut [Vec<Point>], links: &mut [Link], jumps: &[Jump]) {
    for &(rank, index, distance) in jumps {
        let at_s = ranks[rank][index].seconds;
        let window_s = distance / AMORTISATION;
        let mut most = distance;
        for point in ranks[rank][..index].iter_mut().rev() {
            let ramp = distance - AMORTISATION * (at_s - point.seconds);
            let link = &mut links[point.link];
            if at_s - point.seconds >= window_s {
                break;
            }
            if point.is_send {
                most = most.min(link.seconds.1 - MARGIN_S - link.seconds.0).max(0.0);
            }
            let added = ramp.min(most).max(0.0);
            most = added;
            point.shift += added;
            match point.is_send {
                true => link.seconds.0 += added,
                false => link.seconds.1 += added,
            }
            if added == 0.0 {
                break;
            }
        }
    }
}

/// The clock's pieces with the shifts of the points added, linear between them.
fn shifted(clock: &RankClock, points: &[Point]) -> Vec<ClockPiece> {
    // Counter and shift, ascending; outside them the shift is 0.
    let mut knots: Vec<(u64, f64)> = Vec::new();
    let mut before: Option<Point> = None;
    let ends = points.iter().map(Some).chain([None]);
    for point in ends {
        let gap_s = match (before, point) {
            (Some(before), Some(point)) => point.seconds - before.seconds,
            _ => f64::INFINITY,
        };
        if let Some(before) = before {
            let worn_off_s = before.shift / AMORTISATION;
            if before.shift > 0.0 && worn_off_s < gap_s {
                knots.push((clock.ticks_at(before.seconds + worn_off_s), 0.0));
            }
        }
        let Some(point) = point else { break };
        let from_s = before.map_or(0.0, |b| (b.shift - AMORTISATION * gap_s).max(0.0));
        let rises_s = (point.shift - from_s) / AMORTISATION;
        if rises_s > 0.0 && rises_s < gap_s {
            // There is room before the jump: the shift rises at the rate at which it wears off.
            let start = point.seconds - rises_s;
            let shift =
                before.map_or(0.0, |b| (b.shift - AMORTISATION * (start - b.seconds)).max(0.0));
            knots.push((clock.ticks_at(start), shift));
        }
        knots.push((point.ticks, point.shift));
        before = Some(*point);
    }
    pieces_with(clock, &simplified(knots))
}

/// Sorts the knots, joins those at the same moment, and removes those between two equal neighbours.
fn simplified(mut knots: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    knots.sort_by_key(|(ticks, _)| *ticks);
    let mut unique: Vec<(u64, f64)> = Vec::with_capacity(knots.len());
    for knot in knots {
        match unique.last_mut() {
            Some(last) if last.0 == knot.0 => last.1 = last.1.max(knot.1),
            _ => unique.push(knot),
        }
        if let [.., a, b, c] = unique[..]
            && a.1 == b.1
            && b.1 == c.1
        {
            let last = unique.len() - 1;
            unique.swap_remove(last - 1);
        }
    }
    unique
}

fn pieces_with(clock: &RankClock, knots: &[(u64, f64)]) -> Vec<ClockPiece> {
    let shift_at = |ticks: u64| {
        let next = knots.partition_point(|(at, _)| *at <= ticks);
        match (next.checked_sub(1).map(|last| knots[last]), knots.get(next)) {
            (Some((a, low)), Some(&(b, high))) => {
                low + (high - low) * (ticks - a) as f64 / (b - a) as f64
            }
            (Some((_, last)), None) => last,
            (None, Some(&(_, first))) => first,
            (None, None) => 0.0,
        }
    };
    let mut at: Vec<u64> = knots.iter().map(|(ticks, _)| *ticks).collect();
    at.extend(clock.pieces.iter().map(|piece| piece.begin_ticks));
    at.sort_unstable();
    at.dedup();
    let rate_at = |ticks: u64| {
        let next = clock.pieces.partition_point(|piece| piece.begin_ticks <= ticks).max(1);
        clock.pieces[next - 1].seconds_per_tick
    };
    let time = |ticks: u64| clock.seconds(ticks) + shift_at(ticks);
    let mut pieces: Vec<ClockPiece> = Vec::with_capacity(at.len() + 1);
    // Times before the first knot keep their rate.
    if at[0] > 0 {
        let before = at[0] - 1;
        pieces.push(ClockPiece {
            begin_ticks: before,
            begin_s: time(at[0]) - rate_at(before),
            seconds_per_tick: rate_at(before),
        });
    }
    for (index, &ticks) in at.iter().enumerate() {
        let rate = match at.get(index + 1) {
            Some(&next) => (time(next) - time(ticks)) / (next - ticks) as f64,
            None => rate_at(ticks),
        };
        pieces.push(ClockPiece {
            begin_ticks: ticks,
            begin_s: time(ticks),
            seconds_per_tick: rate,
        });
    }
    pieces
}
