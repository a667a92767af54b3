//! The samples of a run's code.

use std::collections::BTreeMap;

use trace_format::header::{Sampling, SamplingSource};

use super::super::sampled::{Sampled, SampledCode, SampledKind, SampledRow};
use crate::metrics::code::{Code, CodeMetrics};
use crate::trace::Run;

/// Maximum number of functions with figures of their own.
const MAX_FUNCTIONS: usize = 128;

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// What of a row is kept; `None` for time that other rows have, too.
fn what(code: &CodeMetrics, of: Code) -> Option<Sampled> {
    let kind = match of {
        Code::Function(_) => SampledKind::Function,
        Code::Kernel => SampledKind::Kernel,
        Code::Lost => SampledKind::Lost,
        Code::CutStacks => return None,
    };
    let Code::Function(number) = of else { return Some(Sampled { kind, ..Sampled::default() }) };
    let function = &code.functions[number as usize];
    Some(Sampled {
        kind,
        function: function.name.clone(),
        module: file_name(&function.module),
        file: function.file.as_deref().map(file_name),
        line: code.lines[number as usize],
    })
}

/// Own time of functions by group of ranks.
pub(super) fn sampled(run: &Run, code: &CodeMetrics, ranks_per_group: u32) -> SampledCode {
    let groups = run.ranks.len().div_ceil(ranks_per_group as usize);
    let all = run.ranks.iter().filter_map(|rank| rank.file.sampling());
    let all: Vec<&Sampling> =
        all.filter(|of| of.rate_hz > 0 && of.unavailable.is_empty()).collect();
    let ns = |seconds: f64| (seconds * 1e9).round() as i64;
    let mut sums: BTreeMap<Code, Vec<i64>> = BTreeMap::new();
    for (position, rank) in code.ranks.iter().enumerate() {
        for row in &rank.rows {
            let of_groups = sums.entry(row.code).or_insert_with(|| vec![0; groups]);
            of_groups[position / ranks_per_group as usize] += ns(row.self_s);
        }
    }
    let mut rows: Vec<SampledRow> = Vec::new();
    let mut rest = vec![0; groups];
    for row in code.all.iter().filter(|row| row.self_s > 0.0) {
        let Some(what) = what(code, row.code) else { continue };
        let by_ranks = sums.remove(&row.code).unwrap_or_default();
        match what.kind == SampledKind::Function && rows.len() >= MAX_FUNCTIONS {
            true => rest.iter_mut().zip(by_ranks).for_each(|(sum, ns)| *sum += ns),
            false => rows.push(SampledRow { what, by_ranks }),
        }
    }
    if rest.iter().any(|ns| *ns > 0) {
        let what = Sampled { kind: SampledKind::Rest, ..Sampled::default() };
        rows.push(SampledRow { what, by_ranks: rest });
    }
    SampledCode {
        period_ns: all.iter().map(|of| ns(1.0 / f64::from(of.rate_hz))).max().unwrap_or(0),
        at_ticks: all.iter().any(|of| of.source == SamplingSource::CpuTimer),
        ranks: all.len() as u32,
        rows,
    }
}
