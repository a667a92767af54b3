//! Which functions take longer on a delaying rank than on the ranks that wait for it.
//!
//! Of each delay that costs much, the samples of the delaying rank are compared with those of the ranks that waited, in
//! the intervals and the context in which `causes` found it. If both took equally long in a function, each sample in it
//! is one of the delaying rank with a known probability, so its samples have a binomial distribution. Of all functions
//! of all these delays together, those are kept for which chance is refused by Holm's method: with a probability of
//! 99 % none of them takes equally long. Ranks that are late in turn are longer where each is late, by nothing but
//! noise: so a function must also take longer in all of what is selected.

use std::collections::BTreeMap;

use crate::causes::{Causes, SampledDelay, StackWeights, Weight};
use crate::metrics::Metrics;
use crate::metrics::code::{Code, CodeMetrics, CodeRow, RankCode, StackPlaces};
use crate::statistics::{holm, successes_by_chance};
use crate::trace::own_program::OwnProgram;

use super::finding::{LongerFunction, NOTABLE_CAUSE};
use super::why::Why;

/// Probability that a function is named although none takes longer.
pub(super) const ALPHA: f64 = 0.01;
/// Part of a delay that lies in a function at least if the delay is named after it.
const MAIN_PART: f64 = 0.5;
/// Functions from which every program starts: that most of its time lies in them says nothing.
const OUTERMOST: [&str; 9] = [
    "main",
    "MAIN__",
    "_QQmain",
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "<module>",
];

/// How many times as long a function takes on a delaying rank if that is no noise, and the part of that which must be
/// seen in all of what is selected.
const MUCH_LONGER: f64 = 2.0;
const LASTING_PART: f64 = 0.5;

/// By how much a function takes longer on a delaying rank.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Excess {
    /// Seconds of the delaying rank.
    seconds: f64,
    /// How many times as long it takes.
    times: f64,
    /// Their standard error.
    error_s: f64,
    /// The part of the delay.
    part: f64,
    is_significant: bool,
}

/// A function in which a delaying rank may take longer.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    function: u32,
    /// In it alone, and in it with what it calls.
    own: Excess,
    total: Excess,
    /// Samples of the delaying rank in it and what it calls.
    samples: f64,
    /// How many functions it has called, on average.
    depth: f64,
}

/// The functions of a delay.
#[derive(Debug)]
struct DelayFunctions {
    /// Line and context.
    delay: (u32, u32),
    candidates: Vec<Candidate>,
}

/// The functions that make ranks late.
#[derive(Debug)]
pub struct LongerFunctions<'a> {
    why: Why<'a>,
    code: Option<&'a CodeMetrics>,
    delays: Vec<DelayFunctions>,
}

/// What was sampled in a function, by side.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    own: [Weight; 2],
    total: [Weight; 2],
    depths: f64,
}

/// A candidate, and how likely chance alone makes its own and its total time so much longer.
type Compared = (Candidate, [f64; 2]);

impl<'a> LongerFunctions<'a> {
    pub fn new(why: Why<'a>, metrics: &'a Metrics) -> Self {
        let code = metrics.code.as_ref();
        let causes = why.causes;
        let least = NOTABLE_CAUSE * causes.waiting().max(1) as f64;
        let notable = causes.charges.causes.iter().filter(|(_, cost)| cost.total() as f64 >= least);
        let delays = notable.filter_map(|((line, context), _)| {
            let sampled = causes.reasons.sampled(*line, *context)?;
            let position = causes.lines.all[*line as usize].position;
            let period_s = code?.ranks[position].period_s;
            let candidates = candidates(causes, code?, (sampled, period_s));
            Some(((*line, *context), candidates))
        });
        let delays: Vec<(_, Vec<Compared>)> = delays.collect();
        let by_chance = |side: usize| {
            let all = delays.iter().flat_map(|(_, candidates)| candidates);
            holm(&all.map(|(_, by_chance)| by_chance[side]).collect::<Vec<f64>>(), ALPHA)
        };
        let mut refused = by_chance(0).into_iter().zip(by_chance(1));
        let delays = delays.into_iter().map(|(delay, candidates)| {
            let candidates = candidates.into_iter().zip(&mut refused);
            let position = causes.lines.all[delay.0 as usize].position;
            let candidates = candidates.map(|((mut of, _), (own, total))| {
                let lasts = |excess: &Excess, seconds_of: fn(&CodeRow) -> f64| {
                    code.is_some_and(|code| {
                        lasts((code, position), of.function, excess, seconds_of)
                    })
                };
                let own = own && lasts(&of.own, |row| row.self_s);
                let total = total && lasts(&of.total, |row| row.total_s);
                (of.own.is_significant, of.total.is_significant) = (own, total);
                of
            });
            DelayFunctions { delay, candidates: candidates.collect() }
        });
        let delays = delays.collect();
        Self { why, code, delays }
    }

    /// The innermost function with most of what a line does longer in a context, one of the program itself if there is
    /// one.
    pub(super) fn main(&self, line: u32, context: u32) -> Option<LongerFunction> {
        let code = self.code?;
        let of = self.delays.iter().find(|of| of.delay == (line, context))?;
        let position = self.why.causes.lines.all[line as usize].position;
        let own_program = OwnProgram::new(&self.why.run.ranks[position].file.header);
        let is_main = |of: &&Candidate| of.total.is_significant && of.total.part >= MAIN_PART;
        let says_something = |of: &&Candidate| {
            let name = code.functions[of.function as usize].name.as_deref();
            let alone = of.own.is_significant && of.own.part >= MAIN_PART;
            name.is_some_and(|name| alone || !OUTERMOST.contains(&name))
        };
        let is_elsewhere =
            |of: &Candidate| !own_program.contains(&code.functions[of.function as usize].module);
        let found = of.candidates.iter().filter(is_main).filter(says_something);
        let innermost = found.min_by(|a, b| {
            let order = is_elsewhere(a).cmp(&is_elsewhere(b));
            order.then(a.samples.total_cmp(&b.samples)).then(a.depth.total_cmp(&b.depth))
        })?;
        let function = &code.functions[innermost.function as usize];
        Some(LongerFunction {
            function: function.name.clone()?,
            module: function.module.clone(),
            file: function.file.clone(),
            line: code.lines[innermost.function as usize],
            longer_s: innermost.total.seconds,
            error_s: innermost.total.error_s,
            part: innermost.total.part,
        })
    }

    /// Seconds of waiting that functions cause by taking longer themselves, without what they call: each second is that of
    /// one function at most.
    pub fn costs_s(&self) -> BTreeMap<u32, f64> {
        let mut costs: BTreeMap<u32, f64> = BTreeMap::new();
        for DelayFunctions { delay, candidates } in &self.delays {
            let cost_s = self.why.seconds(self.why.causes.charges.causes[delay].total());
            let longer = || candidates.iter().filter(|of| of.own.is_significant);
            let all: f64 = longer().map(|of| of.own.part).sum();
            for of in longer() {
                *costs.entry(of.function).or_default() += cost_s * of.own.part / all.max(1.0);
            }
        }
        costs
    }
}

/// The functions of a delay, each with the probabilities that chance makes it so much longer: it alone, and with what it
/// calls.
fn candidates(
    causes: &Causes,
    code: &CodeMetrics,
    (sampled, period_s): (&SampledDelay, f64),
) -> Vec<Compared> {
    let mut functions = vec![Sampled::default(); code.functions.len()];
    let mut all = [Weight::default(), Weight::default()];
    for (side, stacks) in [&sampled.delaying, &sampled.waiting].into_iter().enumerate() {
        add_side(causes, code, (side, stacks), (&mut functions, &mut all[side]));
    }
    let delay_s = causes.clock.seconds(sampled.ticks);
    // What a sample stands for on average, on each side: seconds, as often as it counts.
    let [of_delaying, of_waiting] =
        all.map(|of| if of.sum > 0.0 { of.squares / of.sum } else { 0.0 });
    if of_delaying <= 0.0 || delay_s <= 0.0 {
        return Vec::new();
    }
    let often = of_delaying / period_s;
    let of_waiting = if of_waiting > 0.0 { of_waiting } else { of_delaying };
    let share = of_waiting / (of_delaying + of_waiting);
    let excess = |[delaying, waiting]: [Weight; 2]| {
        let longer_s = delaying.sum - waiting.sum;
        let excess = Excess {
            seconds: longer_s / often,
            times: delaying.sum / waiting.sum,
            error_s: (delaying.squares + waiting.squares).sqrt() / often,
            part: (longer_s / delay_s).clamp(0.0, 1.0),
            is_significant: false,
        };
        let by_chance =
            successes_by_chance(delaying.sum / of_delaying, waiting.sum / of_waiting, share);
        (excess, by_chance)
    };
    let candidate = |(function, of): (u32, Sampled)| {
        let (own, own_by_chance) = excess(of.own);
        let (total, by_chance) = excess(of.total);
        let samples = of.total[0].sum;
        let depth = of.depths / samples.max(f64::MIN_POSITIVE);
        (Candidate { function, own, total, samples, depth }, [own_by_chance, by_chance])
    };
    let on_delaying = (0..).zip(functions).filter(|(_, of)| of.total[0].sum > 0.0);
    on_delaying.map(candidate).collect()
}

/// Whether a function takes longer on a rank than on the others in all of what is selected, too.
fn lasts(
    (code, position): (&CodeMetrics, usize),
    function: u32,
    excess: &Excess,
    seconds_of: fn(&CodeRow) -> f64,
) -> bool {
    let of_rank = |rank: &RankCode| {
        let row = rank.rows.iter().find(|row| row.code == Code::Function(function));
        row.map_or(0.0, seconds_of)
    };
    let others =
        (0..).zip(&code.ranks).filter(|(at, rank)| *at != position && !rank.rows.is_empty());
    let others: Vec<f64> = others.map(|(_, rank)| of_rank(rank)).collect();
    if others.is_empty() {
        return false;
    }
    let (own_s, others_s) = (of_rank(&code.ranks[position]), others.iter().sum::<f64>());
    let period_s = code.ranks[position].period_s;
    let ranks = others.len() as f64 + 1.0;
    let by_chance = successes_by_chance(own_s / period_s, others_s / period_s, 1.0 / ranks);
    let lasting_s = own_s - others_s / (ranks - 1.0);
    // Any of the ranks could have been the delaying one.
    by_chance * ranks <= ALPHA
        || excess.times >= MUCH_LONGER && lasting_s >= LASTING_PART * excess.seconds
}

/// Adds the seconds of the stacks of one side to the functions on them, and to all.
fn add_side(
    causes: &Causes,
    code: &CodeMetrics,
    (side, stacks): (usize, &StackWeights),
    (functions, all): (&mut [Sampled], &mut Weight),
) {
    // By rank and path, with the functions that the callers have called. Stacks are far more than paths.
    let mut paths: BTreeMap<(usize, u32), (Weight, f64)> = BTreeMap::new();
    for ((line, number), weight) in stacks {
        let position = causes.lines.all[*line as usize].position;
        let RankCode { stacks, period_s, .. } = &code.ranks[position];
        let (sum, squares) = (weight.sum * period_s, weight.squares * period_s * period_s);
        let seconds = Weight { sum, squares };
        all.add(seconds);
        let StackPlaces { inner, path, .. } = &stacks.stacks[*number as usize];
        if let Some((innermost, _)) = inner.first() {
            functions[*innermost as usize].own[side].add(seconds);
        }
        for (depth, function) in stacks.only_inner(*number).enumerate() {
            functions[function as usize].add(side, seconds, depth as f64 * sum);
        }
        if let Some(path) = path {
            let of_path = paths.entry((position, *path)).or_default();
            of_path.0.add(seconds);
            of_path.1 += inner.len() as f64 * sum;
        }
    }
    for ((position, path), (seconds, inner)) in paths {
        let path = &code.ranks[position].stacks.paths[path as usize];
        for function in path.functions() {
            let above = path.callers.iter().position(|(of, _)| of == function).unwrap_or(0);
            let depths = inner + above as f64 * seconds.sum;
            functions[*function as usize].add(side, seconds, depths);
        }
    }
}

impl Sampled {
    /// Adds time in it or in what it calls; `depths` is how many functions it has called, times the seconds.
    fn add(&mut self, side: usize, seconds: Weight, depths: f64) {
        self.total[side].add(seconds);
        self.depths += if side == 0 { depths } else { 0.0 };
    }
}
