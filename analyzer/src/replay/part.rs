//! Replays a part of a run: what lies outside happens when it was recorded, what lies inside as the
//! conditions of the replay say.
//!
//! Each rank enters the part when it was recorded to, and its time there counts up to where it
//! leaves the part in the replay. So no call ends later on an ideal network than it did, and no rank
//! is in the part for less time than it computes there.
//!
//! A part that ends at a time ends inside calls. What such a call needs comes after the part, where
//! no rank computes in the replay: it is there as soon as the others have done what they did in the
//! part. Else a call that waits at the end would make each part last as long as it was recorded to.

use crate::causes::Part;

use super::graph::{Graph, GraphLine, Recorded};

/// The bounds of a part of a run.
#[derive(Debug)]
pub(super) struct Bounds {
    /// By line its stretches that have time in the part, ascending, seconds; with their numbers.
    of_lines: Vec<Vec<(usize, (f64, f64))>>,
    /// Whether it ends inside calls.
    is_cut_by_time: bool,
}

/// How an operation lies in the part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pin {
    /// When it is entered, if outside the part.
    pub entered: Option<f64>,
    /// When it is left, if outside the part.
    pub left: Option<f64>,
    /// The stretch that begins inside it: it is not left before.
    pub begins: Option<f64>,
    /// The stretch that ends inside it: its number and end.
    pub ends: Option<(usize, f64)>,
    /// It comes after a part that ends at a time: nothing is computed before it.
    pub is_after: bool,
}

impl Bounds {
    /// The bounds of a part in the graph of its run.
    pub fn new(graph: &Graph, part: &Part) -> Self {
        let (ticks_per_s, begin) = graph.axis;
        let seconds = |at: i64| (at - begin) as f64 / ticks_per_s;
        let of_line = |line: &GraphLine| {
            let last = graph.recorded[line.ops.end as usize - 1].left_s;
            let stretches = part.stretches(line.position).iter().enumerate();
            let stretches = stretches.map(|(number, (from, to))| {
                (number, (seconds(*from).max(line.begin_s), seconds(*to).min(last)))
            });
            stretches.filter(|(_, (from, to))| from < to).collect()
        };
        let of_lines = graph.lines.iter().map(of_line).collect();
        Self { of_lines, is_cut_by_time: part.is_cut_by_time() }
    }

    /// How an operation of a line lies in the part.
    pub fn pin(&self, line: u32, recorded: Recorded) -> Pin {
        let stretches = &self.of_lines[line as usize];
        let Recorded { entered_s, left_s } = recorded;
        let up_to = |at: f64| stretches.partition_point(|(_, (_, end))| *end < at);
        // A call that begins where a stretch ends comes after it; a cut is the end of the stretch.
        let takes_time = entered_s < left_s;
        let first = match takes_time {
            true => stretches.partition_point(|(_, (_, end))| *end <= entered_s),
            false => up_to(entered_s),
        };
        let last = up_to(left_s);
        let is_inside =
            |number: usize, at: f64| stretches.get(number).is_some_and(|(_, (from, _))| *from < at);
        let begins = stretches.get(last).map(|(_, (from, _))| *from);
        // Of several that end inside one call, the last counts.
        let ended = stretches[first..].iter().take_while(|(_, (_, end))| *end <= left_s).last();
        let is_last = |number: usize| self.is_cut_by_time && number == stretches.len();
        let is_after = is_last(first) && !stretches.is_empty();
        let goes_on = is_last(last) && !stretches.is_empty();
        Pin {
            entered: (!is_after && !is_inside(first, entered_s)).then_some(entered_s),
            left: (!goes_on && !is_inside(last, left_s)).then_some(left_s),
            is_after,
            begins: begins.filter(|from| entered_s <= *from && *from < left_s),
            ends: ended.map(|(number, (_, end))| (*number, *end)),
        }
    }
}

/// When each line left each stretch of the part, seconds.
#[derive(Debug, Default)]
pub(super) struct Ends(Vec<(u32, usize, f64)>);

impl Ends {
    pub fn add(&mut self, (line, is_call): (u32, bool), pin: &Pin, (entered, left): (f64, f64)) {
        let Some((stretch, end)) = pin.ends else { return };
        // A call in which the part ends counts up to there.
        self.0.push((line, stretch, if is_call { left.min(end).max(entered) } else { left }));
    }

    /// The length of the part, seconds.
    pub fn length(&self, graph: &Graph, part: &Part) -> f64 {
        let (ticks_per_s, begin) = graph.axis;
        let mut of_ranks = std::collections::BTreeMap::new();
        for (line, stretch, end) in &self.0 {
            let position = graph.lines[*line as usize].position;
            let at = begin + (end * ticks_per_s).round() as i64;
            let latest = of_ranks.entry((position, *stretch)).or_insert(at);
            *latest = at.max(*latest);
        }
        let end_of = |position, stretch, end| *of_ranks.get(&(position, stretch)).unwrap_or(&end);
        part.length(end_of) as f64 / ticks_per_s
    }
}
