//! CODE: functions of the program and their time, from samples.

use std::collections::BTreeMap;

use crate::diagnosis::{Diagnosis, Figures, LongerFunctions};
use crate::metrics::code::{Code, CodeMetrics, CodeRow, LineRow};

use super::table::{Cell, Table};

/// What is shown of functions, and what they cost.
pub struct CodeTable<'a> {
    pub code: &'a CodeMetrics,
    /// Waiting that functions cause, by number; empty if delays are not known, or say nothing.
    costs_s: BTreeMap<u32, f64>,
}

impl<'a> CodeTable<'a> {
    /// `None` if the code was not sampled.
    pub fn new(diagnosis: &Diagnosis<'a>) -> Option<Self> {
        let metrics = diagnosis.of.metrics;
        let code = metrics.code.as_ref()?;
        let why =
            diagnosis.of.why().filter(|_| diagnosis.invalidated_by(Figures::Delays).is_none());
        let costs_s = why.map(|why| LongerFunctions::new(why, metrics).costs_s());
        Some(Self { code, costs_s: costs_s.unwrap_or_default() })
    }

    /// Seconds of all samples of a rank, or of all, also of lost ones.
    fn sampled_s(&self, rank: Option<u32>) -> f64 {
        let sampled = self.rows(rank).iter().filter(|row| row.code != Code::Kernel);
        sampled.map(|row| row.self_s).sum()
    }

    /// The rows of a rank, or of all.
    pub fn rows(&self, rank: Option<u32>) -> &'a [CodeRow] {
        let of_rank = |rank| self.code.ranks.iter().find(|of| of.rank == rank);
        rank.map_or(&self.code.all[..], |rank| of_rank(rank).map_or(&[], |of| &of.rows))
    }

    /// Seconds of waiting that a row causes.
    pub fn cost_s(&self, row: &CodeRow) -> Option<f64> {
        match row.code {
            Code::Function(function) => self.costs_s.get(&function).copied(),
            _ => None,
        }
    }

    /// Functions of a rank, or of all, a row each.
    pub fn table(&self, rank: Option<u32>, rows: &[CodeRow]) -> Table {
        let all = || rows.iter();
        let sampled_s = self.sampled_s(rank);
        let mut table = Table::default();
        table.add("function", "function", all().map(|row| name(self.code, row.code)));
        table.add("place", "where", all().map(|row| place(self.code, row.code)));
        table.add("self_s", "self", all().map(|row| Cell::Seconds(row.self_s)));
        table.detail("error_s", "±", all().map(|row| Cell::Seconds(row.error_s)));
        table.add("total_s", "total", all().map(|row| Cell::Seconds(row.total_s)));
        let share = |row: &CodeRow| match row.code {
            Code::Kernel => Cell::Nothing,
            _ => Cell::share(row.self_s, sampled_s),
        };
        table.add("share", "of computing", all().map(share));
        let sampled = self.code.ranks.iter().filter(|rank| !rank.rows.is_empty());
        if sampled.count() > 1 {
            let spreads: Vec<Spread> = all().map(|row| self.spread(row.code)).collect();
            table.add("min_s", "min", spreads.iter().map(|of| Cell::Seconds(of.min_s)));
            table.add("max_s", "max", spreads.iter().map(|of| Cell::Seconds(of.max_s)));
            table.add(
                "max_rank",
                "on rank",
                spreads.iter().map(|of| Cell::Count(of.max_rank.into())),
            );
        }
        if all().any(|row| self.cost_s(row).is_some()) {
            let cost = |row| Cell::or_nothing(self.cost_s(row), Cell::Seconds);
            table.add("cost_s", "costs others", all().map(cost));
        }
        table
    }

    /// Lines with own time, a row each.
    pub fn lines(&self, rows: &[LineRow]) -> Table {
        let all = || rows.iter();
        let sampled_s = self.sampled_s(None);
        let mut table = Table::default();
        table.add(
            "function",
            "function",
            all().map(|row| name(self.code, Code::Function(row.function))),
        );
        table.add("place", "where", all().map(|row| line(self.code, row.function, row.line)));
        table.add(
            "line",
            "line",
            all().map(|row| Cell::or_nothing(row.line, |line| Cell::Count(line.into()))),
        );
        table.add("self_s", "self", all().map(|row| Cell::Seconds(row.self_s)));
        table.add("error_s", "±", all().map(|row| Cell::Seconds(row.error_s)));
        table.add("share", "of computing", all().map(|row| Cell::share(row.self_s, sampled_s)));
        table
    }

    /// The time in something on the sampled ranks.
    fn spread(&self, code: Code) -> Spread {
        let sampled = self.code.ranks.iter().filter(|rank| !rank.rows.is_empty());
        let of_rank = sampled.map(|rank| {
            let row = rank.rows.iter().find(|row| row.code == code);
            (rank.rank, row.map_or(0.0, |row| row.self_s))
        });
        let nothing = Spread { min_s: f64::INFINITY, max_s: f64::NEG_INFINITY, max_rank: 0 };
        of_rank.fold(nothing, |of, (rank, seconds)| Spread {
            min_s: of.min_s.min(seconds),
            max_s: of.max_s.max(seconds),
            max_rank: if seconds > of.max_s { rank } else { of.max_rank },
        })
    }
}

/// The name of what time was spent in.
pub fn name(code: &CodeMetrics, of: Code) -> Cell {
    let name = match of {
        Code::Function(of) => {
            code.functions[of as usize].name.as_deref().unwrap_or("unknown function")
        }
        Code::CutStacks => "(callers not known)",
        Code::Kernel => "(kernel, or signals held off)",
        Code::Lost => "(samples lost)",
    };
    Cell::Text(name.to_owned())
}

/// Where it is in the program.
pub fn place(code: &CodeMetrics, of: Code) -> Cell {
    let Code::Function(of) = of else { return Cell::Nothing };
    line(code, of, code.lines[of as usize])
}

fn line(code: &CodeMetrics, function: u32, line: Option<u32>) -> Cell {
    let function = &code.functions[function as usize];
    let file = function.file.clone();
    match file.is_none() && function.module.is_empty() {
        true => Cell::Unknown,
        false => Cell::Source { module: function.module.clone(), file, line },
    }
}

/// The least and the most seconds of a rank.
#[derive(Debug, Clone, Copy)]
struct Spread {
    min_s: f64,
    max_s: f64,
    max_rank: u32,
}
