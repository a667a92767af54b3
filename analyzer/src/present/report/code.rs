//! Functions of the program, for the screen and the document.

use serde::Serialize;

use crate::diagnosis::{CodePart, Diagnosis, PartKind};
use crate::metrics::code::{Code, CodeMetrics, CodeRow, LineRow};
use crate::present::table;
use crate::tables::code::CodeTable;
use crate::tables::code_parts;

/// Maximum number of rows shown.
const MAX_ROWS: usize = 10;
/// Share of all samples below which a function has no row.
const NEGLIGIBLE_SHARE: f64 = 0.001;

/// The functions with most time, of a rank or of all.
pub(in crate::present) fn lines(diagnosis: &Diagnosis, rank: Option<u32>) -> Vec<String> {
    let Some(table) = CodeTable::new(diagnosis) else { return Vec::new() };
    let rows = table.rows(rank);
    let all_s: f64 = rows.iter().map(|row| row.self_s).sum();
    let is_notable = |row: &&CodeRow| row.self_s >= NEGLIGIBLE_SHARE * all_s && row.self_s > 0.0;
    // Rows are ordered by time.
    let notable = rows.iter().take_while(is_notable).count();
    let shown = &rows[..notable.min(MAX_ROWS)];
    let mut lines = table::brief_lines(&table.table(rank, shown));
    lines.extend(table::more(rows.len() - shown.len(), "row"));
    lines
}

/// Maximum number of functions shown of a part of the run, and of parts of a kind.
const MAX_OF_PART: usize = 3;
const MAX_PARTS: usize = 5;

/// The main functions of regions, phases, groups of iterations and threads.
pub(super) fn part_lines(diagnosis: &Diagnosis) -> Vec<String> {
    let parts = CodePart::all(&diagnosis.of);
    let table = code_parts::overview(&diagnosis.of, &parts, MAX_OF_PART, MAX_PARTS);
    table::brief_lines(&table)
}

/// Time of a function, from samples of the code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CodeDocument<'a> {
    /// Rank in MPI_COMM_WORLD; null: all ranks.
    rank: Option<u32>,
    /// `function`; `cut_stacks`: functions whose callers are not all known, so that these lack the time; `kernel`: no
    /// samples there or with signals held off, also inside MPI; `lost`: samples for which there was no room.
    kind: &'static str,
    /// Name; null: unknown, or no function.
    function: Option<&'a str>,
    /// Program or library; null: unknown code, or no function.
    module: Option<&'a str>,
    /// Source file, with debug information.
    file: Option<&'a str>,
    /// The line in it with most time.
    line: Option<u32>,
    /// CPU time in the function itself, outside MPI.
    self_s: f64,
    /// In it and what it calls; recursion counts once.
    total_s: f64,
    /// Standard error of `self_s` (binomial).
    error_s: f64,
    /// Waiting that it causes by taking longer itself on delaying ranks, where that is certain; null: none, or the row
    /// is of one rank or a part.
    cost_s: Option<f64>,
}

impl<'a> CodeDocument<'a> {
    /// The rows of all ranks, then those of each; none if the code was not sampled.
    pub fn all(diagnosis: &Diagnosis<'a>) -> Vec<Self> {
        let Some(table) = CodeTable::new(diagnosis) else { return Vec::new() };
        let ranks = table.code.ranks.iter().map(|of| Some(of.rank));
        let ranks = [None].into_iter().chain(ranks);
        let of_rank = |rank| table.rows(rank).iter().map(move |row| (rank, row));
        ranks.flat_map(of_rank).map(|(rank, row)| Self::new(&table, rank, row)).collect()
    }

    /// The rows of the threads of ranks of which several were sampled.
    pub fn of_threads(diagnosis: &Diagnosis<'a>) -> Vec<ThreadDocument<'a>> {
        let Some(table) = CodeTable::new(diagnosis) else { return Vec::new() };
        let threads = table.code.ranks.iter();
        let threads = threads.flat_map(|of| of.threads.iter().map(|thread| (of.rank, thread)));
        let rows = threads.flat_map(|(rank, (thread, rows))| {
            let rows = rows.iter().map(move |row| (rank, row));
            rows.map(|(rank, row)| (*thread, Self::new(&table, Some(rank), row)))
        });
        rows.map(|(thread, row)| ThreadDocument { thread, row }).collect()
    }

    fn new(table: &CodeTable<'a>, rank: Option<u32>, row: &CodeRow) -> Self {
        let (kind, function) = match row.code {
            Code::Function(of) => ("function", Some(of as usize)),
            Code::CutStacks => ("cut_stacks", None),
            Code::Kernel => ("kernel", None),
            Code::Lost => ("lost", None),
        };
        let code = table.code;
        let known = function.map(|of| &code.functions[of]);
        Self {
            rank,
            kind,
            function: known.and_then(|of| of.name.as_deref()),
            module: known.map(|of| of.module.as_str()).filter(|module| !module.is_empty()),
            file: known.and_then(|of| of.file.as_deref()),
            line: function.and_then(|of| code.lines[of]),
            self_s: row.self_s,
            total_s: row.total_s,
            error_s: row.error_s,
            cost_s: table.cost_s(row).filter(|_| rank.is_none()),
        }
    }
}

/// Own time of a line of a function on all ranks, from samples of the code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LineDocument<'a> {
    /// Name of the function; null: unknown.
    function: Option<&'a str>,
    /// Program or library; null: unknown code.
    module: Option<&'a str>,
    /// Source file, with debug information.
    file: Option<&'a str>,
    /// Null: not known.
    line: Option<u32>,
    /// CPU time in the line itself, outside MPI.
    self_s: f64,
    /// Standard error of `self_s` (binomial).
    error_s: f64,
}

impl<'a> LineDocument<'a> {
    /// Most time first; none if the code was not sampled.
    pub fn all(diagnosis: &Diagnosis<'a>) -> Vec<Self> {
        let code = diagnosis.of.metrics.code.as_ref();
        let rows =
            code.into_iter().flat_map(|code| code.by_line.iter().map(move |row| (code, row)));
        let line = |(code, row): (&'a CodeMetrics, &LineRow)| {
            let function = &code.functions[row.function as usize];
            Self {
                function: function.name.as_deref(),
                module: Some(function.module.as_str()).filter(|module| !module.is_empty()),
                file: function.file.as_deref(),
                line: row.line,
                self_s: row.self_s,
                error_s: row.error_s,
            }
        };
        rows.map(line).collect()
    }
}

/// Time of a function in a part of the run, on all ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PartDocument<'a> {
    /// `region`, `phase`; `slow_iterations` of a phase and its `other_iterations`.
    part: &'static str,
    /// Name of the region.
    region: Option<&'a str>,
    /// Index in `causes.phases`.
    phase: Option<usize>,
    /// Occurrences of the region, over all threads; number of iterations.
    times: Option<u64>,
    /// `total_s` divided by the iterations; null: of a region.
    each_s: Option<f64>,
    /// By how much `each_s` is longer in slow iterations than in others, where chance is refused; null: elsewhere.
    longer_s: Option<f64>,
    /// Standard error of `longer_s`.
    longer_error_s: Option<f64>,
    #[serde(flatten)]
    row: CodeDocument<'a>,
}

impl<'a> PartDocument<'a> {
    /// Regions, then phases, the longest first; none if the code was not sampled.
    pub fn all(diagnosis: &Diagnosis<'a>) -> Vec<Self> {
        let Some(table) = CodeTable::new(diagnosis) else { return Vec::new() };
        let parts = CodePart::all(&diagnosis.of);
        let of_part = |part: &CodePart<'a>| {
            let (kind, region, phase) = match part.kind {
                PartKind::Region(name) => ("region", Some(name), None),
                PartKind::Phase(number) => ("phase", None, Some(number)),
                PartKind::SlowIterations(number) => ("slow_iterations", None, Some(number)),
                PartKind::OtherIterations(number) => ("other_iterations", None, Some(number)),
                // `code_threads` has those of each rank.
                PartKind::Threads(_) => return Vec::new(),
            };
            let row = |row: &CodeRow| {
                let longer = part.longer.get(&row.code);
                Self {
                    part: kind,
                    region,
                    phase,
                    times: part.times,
                    each_s: part.each_s(row),
                    longer_s: longer.map(|of| of.seconds),
                    longer_error_s: longer.map(|of| of.error_s),
                    row: CodeDocument { cost_s: None, ..CodeDocument::new(&table, None, row) },
                }
            };
            part.rows.iter().map(row).collect()
        };
        parts.iter().flat_map(of_part).collect()
    }
}

/// Time of a function on a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ThreadDocument<'a> {
    /// Number of the thread in the rank's file; null: it never called MPI.
    thread: Option<u32>,
    #[serde(flatten)]
    row: CodeDocument<'a>,
}
