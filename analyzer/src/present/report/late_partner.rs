//! Renders tables 2 to 4 of Masuguchi et al. for the terminal, with the values of this run ([`LatePartner`]).

use crate::metrics::{CollectiveRow, LatePartner, MessageRow, OwnCost};
use crate::present::quantity::{nanoseconds, seconds, with_prefix};
use crate::present::table::Table;

/// All tables for which the run has data.
pub fn screen(tables: &LatePartner) -> String {
    let mut lines = Vec::new();
    for (case, title) in [
        ('A', "TABLE 2  blocking communication (A): receive posted late"),
        ('B', "TABLE 3  blocking communication (B): send issued late"),
    ] {
        let rows: Vec<&MessageRow> =
            tables.messages.iter().filter(|row| row.case == case).collect();
        if !rows.is_empty() {
            lines.push(title.to_owned());
            lines.extend(message_lines(case, &rows, tables.bound_s));
            lines.push(String::new());
        }
    }
    for (case, title) in [
        ('C', "TABLE 4  collective operations (C): all ranks at the same time"),
        ('D', "TABLE 4  collective operations (D): rank 0 late"),
    ] {
        let rows: Vec<&CollectiveRow> =
            tables.collectives.iter().filter(|row| row.case == case).collect();
        if !rows.is_empty() {
            lines.push(title.to_owned());
            lines.extend(collective_lines(&rows));
            lines.push(String::new());
        }
    }
    if !tables.messages.is_empty() {
        lines.push(match tables.bound_s {
            Some(bound) => format!(
                "minimum of each column's repetitions, as in Masuguchi et al.; times between ranks are known \
                 to ±{}: smaller differences are shown as -",
                nanoseconds(bound * 1e9)
            ),
            None => "clocks are not aligned: times between ranks are not shown".into(),
        });
        lines.push(own_cost(tables.own_cost.as_ref()));
        lines.push(
            "Masuguchi et al.: one word 142 µs (send) and 63 µs (receive), of which their recorder takes 1 and \
             2 µs"
                .into(),
        );
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// A line on the recorder's own cost.
fn own_cost(cost: Option<&OwnCost>) -> String {
    let quartiles = |ascending: &[f64]| {
        let at = |share: usize| seconds(ascending[(ascending.len() - 1) * share / 4]);
        format!("{} [{}, {}]", at(2), at(1), at(3))
    };
    match cost {
        Some(OwnCost { send_s, receive_s }) if !send_s.is_empty() && !receive_s.is_empty() => {
            format!(
                "recorder's own cost outside its two stamps: MPI_Send {}, MPI_Recv {} per call (median [quartiles] \
             over {} calls in a loop)",
                quartiles(send_s),
                quartiles(receive_s),
                send_s.len() + 1
            )
        }
        _ => "for this recorder's cost per call, run experiments/overhead/measure-overhead".into(),
    }
}

fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn message_lines(case: char, rows: &[&MessageRow], bound_s: Option<f64>) -> Vec<String> {
    let between = |values: &[f64]| match bound_s {
        // May be negative: the receive ended before its send did.
        Some(bound) if minimum(values).abs() > bound => seconds(minimum(values)),
        _ => "-".to_owned(),
    };
    let mut table = Table::default();
    table.right("bytes", rows.iter().map(|row| row.bytes.to_string()));
    table.right("MPI_Send", rows.iter().map(|row| seconds(minimum(&row.send_s))));
    table.right("MPI_Recv", rows.iter().map(|row| seconds(minimum(&row.receive_s))));
    table.right("diff", rows.iter().map(|row| between(&row.difference_s)));
    if case == 'B' {
        table.right("begin send to end recv", rows.iter().map(|row| between(&row.overhead_s)));
        table.right(
            "throughput",
            rows.iter().map(|row| match bound_s {
                Some(bound) if minimum(&row.overhead_s) > bound => {
                    with_prefix(row.bytes as f64 / minimum(&row.overhead_s)) + "B/s"
                }
                _ => "-".to_owned(),
            }),
        );
    }
    table.right("repetitions", rows.iter().map(|row| row.send_s.len().to_string()));
    table.lines()
}

fn collective_lines(rows: &[&CollectiveRow]) -> Vec<String> {
    let mut table = Table::default();
    table.left("operation", rows.iter().map(|row| row.function.clone()));
    table.right("bytes", rows.iter().map(|row| row.bytes.to_string()));
    table.right("loop", rows.iter().map(|row| row.number.to_string()));
    table.right("rank", rows.iter().map(|row| row.longest_rank.to_string()));
    table.right("longest call", rows.iter().map(|row| seconds(row.longest_s)));
    table.right("rank 0", rows.iter().map(|row| row.rank0_s.map_or("-".into(), seconds)));
    let mut lines = table.lines();
    let barriers = rows.iter().filter(|row| row.function == "MPI_Barrier");
    if let Some(best) = barriers.min_by(|a, b| a.longest_s.total_cmp(&b.longest_s)) {
        lines.push(format!(
            "shortest of the longest barriers: {} in loop {}",
            seconds(best.longest_s),
            best.number
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(bound_s: Option<f64>) -> LatePartner {
        let row = |case, bytes, send: f64, receive: f64, difference: f64| MessageRow {
            case,
            bytes,
            send_s: vec![send * 2.0, send],
            receive_s: vec![receive, receive * 2.0],
            difference_s: vec![difference, difference * 2.0],
            overhead_s: vec![send + difference, send + 2.0 * difference],
        };
        let barrier = |number, longest_s| CollectiveRow {
            case: 'C',
            function: "MPI_Barrier".into(),
            bytes: 0,
            number,
            longest_s,
            longest_rank: 2,
            rank0_s: Some(1e-6),
        };
        LatePartner {
            messages: vec![
                row('A', 8, 65e-6, 88e-6, -1e-3),
                row('B', 1024, 113e-6, 1.0005, 130e-6),
            ],
            collectives: vec![barrier(1, 1.75), barrier(2, 2.295e-3)],
            own_cost: Some(OwnCost {
                send_s: vec![11e-9, 12e-9, 13e-9, 14e-9, 500e-9],
                receive_s: vec![21e-9, 22e-9, 23e-9, 24e-9, 900e-9],
            }),
            bound_s,
        }
    }

    #[test]
    fn shows_minimum_of_repetitions_and_hides_differences_within_the_bound() {
        let text = screen(&tables(Some(1e-6)));
        let line =
            |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(line("8 ").contains("65.0 µs") && line("8 ").contains("-2.00 ms"), "{text}");
        let rough = screen(&tables(Some(1e-2)));
        assert!(rough.lines().any(|l| l.trim_start().starts_with("8 ") && l.contains("  -  ")));
        assert!(line("1024").contains("130 µs") && line("1024").contains("243 µs"), "{text}");
        assert!(text.contains("shortest of the longest barriers: 2.30 ms in loop 2"), "{text}");
        let own =
            "MPI_Send 13.0 ns [12.0 ns, 14.0 ns], MPI_Recv 23.0 ns [22.0 ns, 24.0 ns] per call";
        assert!(text.contains(own) && text.contains("over 6 calls"), "{text}");
        let old = LatePartner { own_cost: None, ..tables(Some(1e-6)) };
        assert!(screen(&old).contains("experiments/overhead/measure-overhead"));
        assert!(!screen(&tables(Some(1e-3))).contains("130 µs"));
        assert!(screen(&tables(None)).contains("clocks are not aligned"));
    }
}
