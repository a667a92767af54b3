//! The table at the end of a sweep: times and efficiency of each configuration.

use crate::models::observations::Spread;

use super::quantity::{percent, seconds};
use super::table::Table;

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Values of the key columns.
    pub key: Vec<String>,
    /// τ over the repetitions, seconds.
    pub tau_s: Spread,
    /// ε_p of the fastest repetition.
    pub efficiency: f64,
}

/// The table's lines, sorted by the keys.
pub fn study_table(keys: &[&str], mut rows: Vec<Row>) -> String {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    rows.sort_by(|a, b| {
        let pairs = a.key.iter().zip(&b.key);
        let orders = pairs.map(|(a, b)| number(a).total_cmp(&number(b)).then(a.cmp(b)));
        orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    let mut table = Table::default();
    for (index, name) in keys.iter().enumerate() {
        table.right(name, rows.iter().map(|row| row.key[index].clone()));
    }
    table.right("runs", rows.iter().map(|row| row.tau_s.number.to_string()));
    table.right("τ min", rows.iter().map(|row| seconds(row.tau_s.min)));
    table.right("median", rows.iter().map(|row| seconds(row.tau_s.median)));
    table.right("spread", rows.iter().map(|row| percent(row.tau_s.relative())));
    table.right("ε_p", rows.iter().map(|row| percent(row.efficiency)));
    table.lines().join("\n") + "\n"
}
