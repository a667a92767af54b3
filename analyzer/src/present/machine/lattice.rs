//! Renders the splits of a lattice ([`Lattice`]) as a table and a picture.

use crate::models::machine::{Lattice, Split};
use crate::present::figure::{Axis, Figure, Marks, Panel, Series};
use crate::present::quantity::{count, seconds, with_prefix};
use crate::present::table::Table;

pub const PICTURE: &str = "lattice-splits.svg";

pub fn screen(lattice: &Lattice) -> String {
    let mut table = Table::with_rows(&lattice.splits);
    table.left("split", |split| split.split.clone());
    table.left("local", |split| split.local.clone());
    table.right("messages", |split| count(split.messages));
    table.right("sent", |split| with_prefix(split.bytes as f64) + "B");
    table.right("exchange", |split| seconds(split.exchange_s.median));
    table.right("iteration", |split| seconds(split.iteration_s.median));
    table.right("predicted", |split| seconds(split.predicted_exchange_s));
    table.right("checksum", |split| split.checksum.clone());
    let mut lines = vec![format!(
        "LATTICE {} on {} ranks, {}, {} iterations",
        lattice.lattice, lattice.ranks, lattice.mpi, lattice.iterations
    )];
    lines.extend(table.lines());
    lines.push("messages and bytes sent per rank and iteration".into());
    lines.push(match (agree(lattice), lattice.checked) {
        (true, true) => "all splits give one result, that of the lattice without a split".into(),
        (true, false) => "all splits give one result".into(),
        (false, _) => "the splits give DIFFERENT results".into(),
    });
    lines.push(match (&lattice.suits, lattice.times_meaningful) {
        (Some(split), true) => format!("the measured network suits {split}"),
        _ => format!("times are MEANINGLESS: {}", why_meaningless(lattice)),
    });
    lines.join("\n") + "\n"
}

/// Messages and bytes of a rank under each split, and the times if they are meaningful.
pub fn figure(lattice: &Lattice) -> Figure {
    let names: Vec<(f64, String)> = (lattice.splits.iter().enumerate())
        .map(|(at, split)| (at as f64, split.split.clone()))
        .collect();
    let across = || {
        let end = names.len() as f64 - 0.5;
        Axis::linear("split of the lattice", "ranks").named(names.clone()).within(-0.5, end)
    };
    let bars = |of: fn(&Split) -> f64| {
        let bar = |(at, split): (usize, &Split)| (at as f64 - 0.3, at as f64 + 0.3, of(split));
        Series::new("", Marks::Bars(lattice.splits.iter().enumerate().map(bar).collect()))
    };
    let mut panels = vec![
        Panel::new(across(), Axis::linear("bytes sent per rank and iteration", "kB").from_zero())
            .with(bars(|split| split.bytes as f64 * 1e-3).with_look(0)),
        Panel::new(across(), Axis::linear("messages per rank and iteration", "").from_zero())
            .with(bars(|split| split.messages as f64).with_look(1)),
    ];
    let mut title = format!("Lattice {} on {} ranks", lattice.lattice, lattice.ranks);
    if lattice.times_meaningful {
        let points = |of: fn(&Split) -> f64| {
            let splits = lattice.splits.iter().enumerate();
            splits.map(|(at, split)| (at as f64, of(split) * 1e3)).collect::<Vec<_>>()
        };
        let ranges = lattice.splits.iter().enumerate().map(|(at, split)| {
            (at as f64, split.exchange_s.low * 1e3, split.exchange_s.high * 1e3)
        });
        panels.push(
            Panel::new(across(), Axis::linear("time per iteration", "ms").from_zero())
                .with(Series::points("exchange", points(|s| s.exchange_s.median)).with_look(0))
                .with(Series::new("", Marks::Ranges(ranges.collect())).with_look(0))
                .with(
                    Series::points("predicted exchange", points(|s| s.predicted_exchange_s))
                        .with_look(1),
                )
                .with(
                    Series::points("whole iteration", points(|s| s.iteration_s.median))
                        .with_look(2),
                ),
        );
    } else {
        title += ": times are meaningless and not drawn";
    }
    Figure::grid(title, panels, 2)
}

fn agree(lattice: &Lattice) -> bool {
    lattice.splits.windows(2).all(|pair| pair[0].checksum == pair[1].checksum)
}

fn why_meaningless(lattice: &Lattice) -> String {
    let oversubscribed =
        lattice.conditions.hosts.iter().find(|host| host.ranks.len() > host.processors as usize);
    oversubscribed.map_or("ranks share processors".into(), |host| {
        format!(
            "{} ranks share {} processors on {}; results, messages and bytes are right",
            host.ranks.len(),
            host.processors,
            host.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::machine::tests::machine;

    fn lattice(times_meaningful: bool) -> Lattice {
        let machine = machine();
        let mut conditions = machine.network.conditions.clone();
        if !times_meaningful {
            conditions.hosts[0].ranks = (0..16).collect();
        }
        let figure = &machine.network.classes[0].sizes[0].half_rtt_s;
        let split = |(split, messages): (&str, u64)| Split {
            split: split.into(),
            local: "4x4x4x4".into(),
            iteration_s: figure.clone(),
            exchange_s: figure.clone(),
            messages,
            bytes: messages * 2048,
            predicted_exchange_s: 1e-3,
            checksum: "00ff".into(),
        };
        let splits = [("16x1x1x1", 12), ("4x4x1x1", 24), ("4x2x2x1", 36), ("2x2x2x2", 48)];
        Lattice {
            mpi: "Open MPI v4.1.4".into(),
            ranks: 16,
            lattice: "16x16x16x16".into(),
            iterations: 10,
            splits: splits.map(split).into(),
            suits: times_meaningful.then(|| "4x4x1x1".into()),
            checked: true,
            times_meaningful,
            conditions,
        }
    }

    #[test]
    fn meaningless_times_are_marked_and_not_drawn() {
        let text = screen(&lattice(false));
        assert!(text.contains("MEANINGLESS: 16 ranks share 2 processors on n1"), "{text}");
        assert!(text.contains("all splits give one result, that of"), "{text}");
        assert_eq!(figure(&lattice(false)).panels.len(), 2);
        assert!(figure(&lattice(false)).svg().contains("meaningless"));
        let meaningful = figure(&lattice(true));
        assert_eq!(meaningful.panels.len(), 3);
        assert!(screen(&lattice(true)).contains("the measured network suits 4x4x1x1"));
        assert!(
            meaningful.svg().contains("predicted exchange") && meaningful.svg().contains("2x2x2x2")
        );
    }

    #[test]
    fn reports_different_results_and_rejects_other_documents() {
        let mut wrong = lattice(false);
        wrong.splits[2].checksum = "0".into();
        assert!(screen(&wrong).contains("DIFFERENT"));
        let text = serde_json::json!({ "kernel": "cannon" }).to_string();
        assert!(Lattice::parse(&text).unwrap_err().to_string().contains("cannon"));
        assert!(Lattice::parse("no document").is_err());
        let mut value = serde_json::to_value(lattice(true)).unwrap();
        value["kernel"] = "lattice".into();
        value["version"] = 1.into();
        let read = Lattice::parse(&format!("a launcher's line\n{value}\n")).unwrap();
        assert_eq!(read.splits.len(), 4);
    }
}
