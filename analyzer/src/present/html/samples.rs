//! The samples of the program's code, as `samples.js` reads them. docs/reference/samples.md explains the keys.

use std::collections::HashMap;

use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::metrics::code::{BinnedPaths, Code, CodeMetrics, PathFrame, PathLimits};
use crate::plain_text::printable;
use crate::present::cell;
use crate::tables::code::{name, place};
use crate::trace::Run;
use crate::trace::own_program::OwnProgram;

use super::packed::base64;

/// What a page holds: some 300 kB.
pub(super) const PAGE_LIMITS: PathLimits = PathLimits { nodes: 4_000, cells: 80_000 };
/// What an answer of the viewer holds.
pub(super) const VIEW_LIMITS: PathLimits = PathLimits { nodes: 20_000, cells: 400_000 };

/// In place of a function's index.
const CUT_STACKS: i64 = -1;
const MERGED: i64 = -2;

/// Where a function is.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Program = 0,
    Library = 1,
    Unknown = 2,
}

#[derive(Debug, Serialize)]
pub(super) struct Samples {
    from_s: f64,
    to_s: f64,
    bins: u32,
    /// Number, name, place and origin.
    functions: Vec<(u32, String, String, u8)>,
    /// Of each path: its caller's or −1.
    callers: Vec<i64>,
    /// Of each path: the index of its function, or [`CUT_STACKS`] or [`MERGED`].
    frames: Vec<i64>,
    /// Path, and how many are merged in it.
    merged: Vec<(usize, u32)>,
    /// Rank, number of the thread, seconds of a sample.
    threads: Vec<(u32, Option<u32>, f64)>,
    /// Of each thread the number of its cells, then the cells; see [`packed`].
    cells: String,
    /// Rank, seconds in the kernel, and seconds of lost samples: of the whole selection.
    ranks: Vec<(u32, f64, f64)>,
}

impl Samples {
    pub fn new(run: &Run, code: &CodeMetrics, paths: &BinnedPaths) -> Self {
        let programs = programs(run);
        let (mut functions, mut indices) = (Vec::new(), HashMap::new());
        let mut index = |of: u32| {
            *indices.entry(of).or_insert_with(|| {
                let what = Code::Function(of);
                let text = |cell| printable(&cell::text(&cell));
                let (name, place) = (text(name(code, what)), text(place(code, what)));
                let function = &code.functions[of as usize];
                let is_own = || programs.iter().any(|program| program.contains(&function.module));
                let origin = match function.name {
                    None => Origin::Unknown,
                    Some(_) if is_own() => Origin::Program,
                    Some(_) => Origin::Library,
                };
                functions.push((of, name, place, origin as u8));
                functions.len() as i64 - 1
            })
        };
        let (mut callers, mut frames, mut merged) = (Vec::new(), Vec::new(), Vec::new());
        for (number, node) in paths.nodes.iter().enumerate() {
            callers.push(node.caller.map_or(-1, i64::from));
            frames.push(match node.frame {
                PathFrame::Function(of) => index(of),
                PathFrame::CutStacks => CUT_STACKS,
                PathFrame::Merged(paths) => {
                    merged.push((number, paths));
                    MERGED
                }
            });
        }
        let threads = paths.threads.iter().map(|of| (of.rank, of.thread, of.period_s));
        let threads = threads.collect();
        let ranks = code.ranks.iter().map(|rank| {
            let seconds = |code| {
                let row = rank.rows.iter().find(|row| row.code == code);
                row.map_or(0.0, |row| row.self_s)
            };
            (rank.rank, seconds(Code::Kernel), seconds(Code::Lost))
        });
        let ranks = ranks.collect();
        let (from_s, to_s, bins, cells) = (paths.from_s, paths.to_s, paths.bins, packed(paths));
        Self { from_s, to_s, bins, functions, callers, frames, merged, threads, cells, ranks }
    }
}

/// The programs of a run, each once.
fn programs(run: &Run) -> Vec<OwnProgram> {
    let mut seen = FxHashSet::default();
    let headers = run.ranks.iter().map(|rank| &rank.file.header);
    let each = headers.filter(|header| seen.insert((&header.program, &header.directory)));
    each.map(OwnProgram::new).collect()
}

/// Whole numbers, seven bits a byte, the lowest first, the highest bit set if more follow. Of each thread the number of
/// its cells, then for each: twice the bins since the one before, plus 1 if there are several samples; the path; the
/// number of samples if there are several.
fn packed(paths: &BinnedPaths) -> String {
    let mut bytes = Vec::new();
    let mut put = |mut value: u32| {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    for thread in &paths.threads {
        put(thread.samples.len() as u32);
        let mut bin = 0;
        for cell in &thread.samples {
            put((cell.bin - bin) << 1 | u32::from(cell.count > 1));
            put(cell.node);
            if cell.count > 1 {
                put(cell.count);
            }
            bin = cell.bin;
        }
    }
    base64(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::code::SampledPaths;
    use crate::metrics::{Bound, Metrics, Selection};
    use crate::synthetic_code::{LIBRARY, sampled};
    use crate::synthetic_trace::RunDirectory;
    use crate::timeline::GlobalTimeline;

    /// Reads what [`packed`] wrote: of each thread the bin, path and samples of its cells.
    fn unpacked(text: &str, threads: usize) -> Vec<Vec<[u32; 3]>> {
        const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let value = |digit: char| DIGITS.find(digit).expect("a digit") as u32;
        let (mut bytes, mut bits, mut word) = (Vec::new(), 0, 0u32);
        for digit in text.chars().filter(|digit| *digit != '=') {
            (word, bits) = (word << 6 | value(digit), bits + 6);
            if bits >= 8 {
                bits -= 8;
                bytes.push((word >> bits) as u8);
            }
        }
        let mut bytes = bytes.into_iter();
        let mut take = || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = bytes.next().expect("another byte");
                value |= u32::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        let thread = |_| {
            let (count, mut bin) = (take(), 0);
            let cells = (0..count).map(|_| {
                let word = take();
                bin += word >> 1;
                [bin, take(), if word & 1 == 1 { take() } else { 1 }]
            });
            cells.collect()
        };
        (0..threads).map(thread).collect()
    }

    /// Self and total seconds of each function on each rank, summed over the paths that a page holds.
    fn sums(of: &Samples) -> HashMap<(u32, u32), (f64, f64)> {
        let mut sums: HashMap<(u32, u32), (f64, f64)> = HashMap::new();
        let cells = unpacked(&of.cells, of.threads.len());
        for ((rank, _, period_s), cells) in of.threads.iter().zip(cells) {
            for [bin, node, count] in cells {
                assert!(bin < of.bins);
                let seconds = f64::from(count) * period_s;
                let (mut at, mut seen) = (i64::from(node), FxHashSet::default());
                while at >= 0 {
                    if let Ok(function) = usize::try_from(of.frames[at as usize]) {
                        let function = of.functions[function].0;
                        let sum = sums.entry((*rank, function)).or_default();
                        sum.0 += if at == i64::from(node) { seconds } else { 0.0 };
                        sum.1 += if seen.insert(function) { seconds } else { 0.0 };
                    }
                    at = of.callers[at as usize];
                }
            }
        }
        sums
    }

    #[test]
    fn paths_have_the_times_of_the_functions_in_every_selection() {
        let Some(library) = &*LIBRARY else { return };
        let turns = |first| vec![[first, 20_000_000, 30_000_000, 50_000_000]; 40];
        let directory =
            RunDirectory::with_ranks(&sampled(library, 3, &[turns(0), turns(60_000_000)]));
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let ends = timeline.ranks.iter().map(|rank| rank.end_s());
        let length_s = ends.fold(0.0, f64::max);
        let part = Selection::Window { from: Bound::Seconds(1.0), to: Bound::Seconds(2.5) };
        for selection in [Selection::Whole, part] {
            let metrics = Metrics::new(&run, &timeline, &selection).unwrap();
            let code = metrics.code.as_ref().expect("sampled code");
            let time = (0.0, length_s);
            let paths = SampledPaths::new(&run, &timeline, code, &metrics.stretches, length_s);
            for limits in [PAGE_LIMITS, PathLimits { cells: 20, ..PAGE_LIMITS }] {
                let sums = sums(&Samples::new(&run, code, &paths.between(time, limits)));
                let rows =
                    code.ranks.iter().flat_map(|of| of.rows.iter().map(|row| (of.rank, row)));
                let mut functions = 0;
                for (rank, row) in rows {
                    let Code::Function(function) = row.code else { continue };
                    let (own, total) = sums[&(rank, function)];
                    assert!((own - row.self_s).abs() < 1e-9, "{selection} {own} {row:?}");
                    assert!((total - row.total_s).abs() < 1e-9, "{selection} {total} {row:?}");
                    functions += 1;
                }
                assert_eq!((functions, sums.len()), (7, 7), "{selection}");
            }
        }
    }

    /// 64 ranks of 1,500 samples each, in 500 call paths of twelve functions, 40 functions each.
    #[test]
    fn a_page_of_many_samples_and_paths_stays_small() {
        let Some(library) = &*LIBRARY else { return };
        let mut ranks = sampled(library, 3, &vec![vec![[50_000_000; 4]; 40]; 64]);
        for (rank, seed) in ranks.iter_mut().zip(0..) {
            let mut random = fastrand::Rng::with_seed(7);
            let mut address = || 0x30000 + random.u64(0..0x1000) * 0x100;
            let paths = (0..500).map(|_| (0..12).map(|_| address()).collect()).collect();
            let inner: Vec<u64> = (0..40).map(|_| address()).collect();
            let mut random = fastrand::Rng::with_seed(seed);
            let thread = &mut rank.sampled[0];
            let samples = (0..1_500).map(|at| trace_format::reader::Sample {
                ticks: thread.begin + at * 5_000_000,
                address: inner[random.usize(0..40)],
                // Some paths have most samples.
                path: Some((random.f64().powi(4) * 500.0) as u32),
                complete: true,
            });
            (thread.samples, thread.paths) = (samples.collect(), paths);
        }
        let directory = RunDirectory::with_ranks(&ranks);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
        let code = metrics.code.as_ref().expect("sampled code");
        let time = (0.0, timeline.ranks[0].end_s());
        let paths = SampledPaths::new(&run, &timeline, code, &metrics.stretches, time.1);
        let found = paths.between(time, PAGE_LIMITS);
        let text = serde_json::to_string(&Samples::new(&run, code, &found)).unwrap();
        assert!(text.len() < 400_000 && found.bins >= 16, "{} {}", text.len(), found.bins);
        let rows = code.all.iter().map(|row| row.self_s).sum::<f64>();
        let sums = sums(&Samples::new(&run, code, &found));
        let merged: f64 = sums.values().map(|(own, _)| own).sum();
        assert!(rows > 96_000.0 / 99.0 * 0.99 && merged <= rows + 1e-6, "{rows} {merged}");
    }
}
