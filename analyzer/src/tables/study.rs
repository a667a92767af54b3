//! Tables of a study: its runs, and its configurations, each of which was run several times.

use std::cmp::Ordering;

use crate::models::observations::{CHI_MAX_S, CHI_MIN_S, CHI_S, FLOPS, GAMMA_THREADS, P, REP, RUN};
use crate::models::observations::{Observations, ObservationsError, SUM_GAMMA_S, TAU_S};

use super::table::{Cell, Table};

/// Parallel efficiency of each run. Where ranks have several threads, Σγ is the sum over these.
fn efficiencies(of: &Observations) -> Vec<Option<f64>> {
    let column = |name: &str| of.names().iter().position(|other| other == name);
    let number = |row: usize, name: &str| of.rows()[row].cells[column(name)?].parse::<f64>().ok();
    let efficiency = |row| {
        let threads = number(row, GAMMA_THREADS).unwrap_or(1.0);
        let time_s = number(row, P)? * threads * number(row, TAU_S)?;
        (time_s > 0.0).then_some(number(row, SUM_GAMMA_S)? / time_s)
    };
    (0..of.rows().len()).map(efficiency).collect()
}

/// A column's key and title, and the cell of a number in it.
fn figure(name: &str) -> (&'static str, &str, fn(f64) -> Cell) {
    let count: fn(f64) -> Cell = |value| Cell::Count(value as u64);
    match name {
        P => (P, "p", count),
        REP => (REP, "repetition", count),
        GAMMA_THREADS => (GAMMA_THREADS, "threads of Σγ", count),
        TAU_S => (TAU_S, "τ", Cell::Seconds),
        SUM_GAMMA_S => (SUM_GAMMA_S, "Σγ", Cell::Seconds),
        CHI_S => (CHI_S, "χ, mean", Cell::Seconds),
        CHI_MIN_S => (CHI_MIN_S, "χ, least", Cell::Seconds),
        CHI_MAX_S => (CHI_MAX_S, "χ, most", Cell::Seconds),
        FLOPS => (FLOPS, "flop", |value| Cell::Quantity(value, "")),
        RUN => (RUN, RUN, Cell::Given),
        parameter => ("parameter", parameter, Cell::Given),
    }
}

/// Runs, a row each: the columns of `gammachi export --to table`, and the efficiency.
pub fn runs(of: &Observations) -> Table {
    let mut table = Table::default();
    for (at, name) in of.names().iter().enumerate() {
        let (key, title, number) = figure(name);
        let cell = |text: &str| match text.parse() {
            Ok(value) if name != RUN => number(value),
            _ if text.is_empty() => Cell::Nothing,
            _ => Cell::Text(text.to_owned()),
        };
        table.add(key, title, of.rows().iter().map(|row| cell(&row.cells[at])));
    }
    let efficiencies = efficiencies(of).into_iter();
    table.add("efficiency", "ε_p", efficiencies.map(|of| Cell::or_nothing(of, Cell::Factor)));
    table
}

/// Configurations in order of their parameters, a row each: the times of their runs, and the
/// efficiency of the fastest one.
///
/// # Errors
/// A column that it needs is missing, or a cell of it is not a number.
pub fn configurations(of: &Observations) -> Result<Table, ObservationsError> {
    let mut keys = of.parameters();
    keys.push(P);
    let (tau_s, efficiencies) = (of.positive_numbers(TAU_S)?, efficiencies(of));
    let mut groups = of.groups(&keys)?;
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    groups.sort_by(|a, b| {
        let pairs = a.key.iter().zip(&b.key);
        let orders = pairs.map(|(a, b)| number(a).total_cmp(&number(b)).then(a.cmp(b)));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    let spreads = || groups.iter().map(|group| group.spread(&tau_s));
    let efficiency = groups.iter().map(|group| efficiencies[group.smallest(&tau_s)]);
    let given = |text: &str| text.parse().map_or(Cell::Text(text.to_owned()), Cell::Given);
    let mut table = Table::default();
    for (at, name) in keys.iter().enumerate() {
        table.add(figure(name).0, name, groups.iter().map(|group| given(&group.key[at])));
    }
    table.add("runs", "runs", spreads().map(|of| Cell::Count(of.number as u64)));
    table.add("tau_s", "τ min", spreads().map(|of| Cell::Seconds(of.min)));
    table.add("median_s", "median", spreads().map(|of| Cell::Seconds(of.median)));
    table.add("spread", "spread", spreads().map(|of| Cell::Share(of.relative())));
    table.add("efficiency", "ε_p", efficiency.map(|of| Cell::or_nothing(of, Cell::Share)));
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_is_of_all_threads_whose_time_is_summed() {
        let csv = "p,gamma_threads,tau_s,sum_gamma_s,N\n2,4,11,80,8\n2,4,10,72,8\n10,4,2,64,8\n";
        let of = Observations::from_csv("study", csv.as_bytes()).unwrap();
        let efficiency = |table: &Table| table.columns.last().unwrap().cells.clone();
        let all = efficiency(&runs(&of));
        assert_eq!(all[1..], [Cell::Factor(0.9), Cell::Factor(0.8)]);
        let table = configurations(&of).unwrap();
        assert_eq!(efficiency(&table), [Cell::Share(0.9), Cell::Share(0.8)]);
        let titles: Vec<&str> = table.columns.iter().map(|column| &*column.title).collect();
        assert_eq!(titles, ["N", "p", "runs", "τ min", "median", "spread", "ε_p"]);
    }
}
