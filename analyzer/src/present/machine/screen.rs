//! Renders a measured machine for the terminal, and what changed since it was measured before.

use crate::models::machine::difference::Change;
use crate::models::machine::{BufferedSends, Machine, Measured, PairClass, Piece, SizeTimes};

use crate::present::quantity::{count, in_unit, percent, seconds, with_prefix};
use crate::present::table::Table;

/// Message sizes that the screen shows, if measured; the file holds all.
const SHOWN_BYTES: [u64; 8] = [1, 8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 4 << 20];

pub fn screen(machine: &Machine) -> String {
    let mut lines = vec![format!(
        "{}, {} ranks: {}",
        machine.network.mpi,
        machine.network.ranks,
        machine.launcher.join(" ")
    )];
    for host in machine.hosts() {
        let pinned = if host.pinned { "pinned" } else { "not pinned" };
        let kind = if host.virtual_machine { ", virtual machine" } else { "" };
        let load = host.load_1min.map_or("unknown".into(), |load| format!("{load:.2}"));
        lines.push(format!(
            "{}: {} ranks {pinned}, {} x {}{kind}, load {load} at the start",
            host.name,
            host.ranks.len(),
            host.processors,
            host.processor
        ));
    }
    lines.extend(machine.noise().iter().map(|reason| format!("NOISY  {reason}")));
    for class in &machine.network.classes {
        lines.push(String::new());
        lines.extend(class_lines(class));
    }
    lines.push(String::new());
    lines.extend(ceiling_lines(machine));
    lines.join("\n") + "\n"
}

fn class_lines(class: &PairClass) -> Vec<String> {
    let mut lines =
        vec![format!("NETWORK  {}, ranks {} and {}", class.class, class.ranks[0], class.ranks[1])];
    let shown: Vec<&SizeTimes> =
        class.sizes.iter().filter(|size| SHOWN_BYTES.contains(&size.bytes)).collect();
    let shown = if shown.is_empty() { class.sizes.iter().collect() } else { shown };
    let mut table = Table::with_rows(&shown);
    table.right("bytes", |size| size.bytes.to_string());
    table.right("RTT/2", |size| seconds(size.half_rtt_s.median));
    table.right("±", |size| uncertainty(&size.half_rtt_s));
    table.right("o_s", |size| seconds(size.send_overhead_s.median));
    table.right("o_r", |size| seconds(size.receive_overhead_s.median));
    table.right("gap", |size| seconds(size.gap_s.median));
    table.right("one way", |size| rate(&size.one_way_bytes_per_s));
    table.right("both ways", |size| rate(&size.both_ways_bytes_per_s));
    lines.extend(table.lines());

    lines.push(match class.eager_limit {
        limit if limit.at_least => format!("eager up to {} bytes, the largest tried", limit.bytes),
        limit if limit.bytes == 0 => "no message is sent eagerly".into(),
        limit => format!("eager up to {} bytes, rendezvous above", limit.bytes),
    });
    lines.push(match (class.latency.latency_s, &class.latency.reason) {
        (Some(latency), _) => format!("L = {} for {} bytes", seconds(latency), class.latency.bytes),
        (None, reason) => {
            format!(
                "L cannot be identified: {}",
                reason.as_deref().unwrap_or("no reason was given")
            )
        }
    });
    let named = [("RTT/2", &class.fits.half_rtt), ("gap g + (s-1)G", &class.fits.gap)];
    let pieces: Vec<(&str, &Piece)> = named
        .into_iter()
        .flat_map(|(name, pieces)| pieces.iter().map(move |piece| (name, piece)))
        .collect();
    let mut table = Table::with_rows(&pieces);
    table.left("piece of", |(name, _)| (*name).to_owned());
    table.right("from", |(_, piece)| piece.from_bytes.to_string());
    table.right("to bytes", |(_, piece)| piece.to_bytes.to_string());
    table.right("fixed", |(_, piece)| seconds(piece.fixed_s));
    table.right("per KiB", |(_, piece)| seconds(piece.per_byte_s * 1024.0));
    table.right("worst misfit", |(_, piece)| percent(piece.worst_misfit));
    lines.extend(table.lines());

    if !class.queues.is_empty() {
        let mut table = Table::with_rows(&class.queues);
        table.right("queues, bytes", |queue| queue.bytes.to_string());
        table.right("SQ + TQ", |queue| held(queue.receiver_outside_mpi));
        table.right("+ RQ", |queue| held(queue.receiver_in_mpi));
        lines.extend(table.lines());
    }
    lines
}

fn held(held: BufferedSends) -> String {
    let least = if held.at_least { "≥ " } else { "" };
    format!("{least}{} messages", count(held.messages))
}

fn uncertainty(figure: &Measured) -> String {
    match figure.relative_uncertainty() {
        large if large > 1.0 => "> 100 %".into(),
        share => percent(share),
    }
}

fn rate(rate: &Measured) -> String {
    in_unit(rate.median, 3, "B/s")
}

fn ceiling_lines(machine: &Machine) -> Vec<String> {
    let ceilings = &machine.ceilings;
    let mut table = Table::with_rows(&ceilings.ceilings);
    table.left("CEILING", |ceiling| ceiling.name.clone());
    table.right("rank 0 alone", |c| {
        c.alone.as_ref().map_or("-".into(), |alone| in_unit(alone.median, 3, &c.unit))
    });
    table.right("per rank, all at once", |c| in_unit(c.per_rank.median, 3, &c.unit));
    table.right("per host", |c| in_unit(c.per_host.median, 3, &c.unit));
    table.right("±", |c| uncertainty(&c.per_host));
    let mut lines = table.lines();
    let note =
        ceilings.instructions_note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    lines.push(format!("fma: {}{note}", ceilings.instructions));
    lines.push(match (&ceilings.blas.library, &ceilings.blas.note) {
        (Some(library), _) => format!("dgemm: order {}, {library}", ceilings.blas.n),
        (None, note) => format!("dgemm: not measured: {}", note.as_deref().unwrap_or("no library")),
    });
    lines.push(format!(
        "triad: {} bytes per element counted, {} moved where stores allocate; arrays of {}B",
        ceilings.triad.counted_bytes_per_element,
        ceilings.triad.moved_bytes_per_element,
        with_prefix(ceilings.triad.array_bytes as f64)
    ));
    lines
}

/// What changed since the previous file was measured.
pub fn change_lines(changes: &[Change], compared: usize) -> Vec<String> {
    if changes.is_empty() {
        return vec![format!("CHANGED  nothing beyond noise among {compared} figures")];
    }
    let mut table = Table::with_rows(changes);
    table.left("CHANGED", |change| change.what.clone());
    table.right("at bytes", |c| c.bytes.map_or("-".into(), |b| b.to_string()));
    table.right("before", |c| format!("{:.3e}", c.before));
    table.right("now", |c| format!("{:.3e}", c.now));
    table.right("by", |c| format!("{:+.0} %", c.relative() * 100.0));
    table.right("sizes", |c| format!("{} of {}", c.sizes.0, c.sizes.1));
    table.lines()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::machine::difference;
    use crate::models::machine::tests::machine;

    #[test]
    fn screen_shows_eager_limit_latency_queues_ceilings_and_noise() {
        let mut machine = machine();
        machine.network.conditions.reasons = vec!["16 ranks share 2 processors".into()];
        let text = screen(&machine);
        for words in [
            "eager up to 4096 bytes, rendezvous above",
            "L = 500 ns for 8 bytes",
            "40 messages",
            "≥ 4,096 messages",
            "40.0 Gflop/s",
            "NOISY  network: 16 ranks share 2 processors",
        ] {
            assert!(text.contains(words), "{words} is missing in\n{text}");
        }
        machine.network.classes[0].latency.latency_s = None;
        machine.network.classes[0].latency.reason = Some("too small".into());
        assert!(screen(&machine).contains("L cannot be identified: too small"));
    }

    #[test]
    fn each_change_is_a_line_and_no_change_is_stated() {
        let before = machine();
        let mut now = machine();
        let (none, compared) = difference::changes(&before, &now);
        assert_eq!(
            change_lines(&none, compared),
            ["CHANGED  nothing beyond noise among 51 figures"]
        );
        now.network.classes[0].eager_limit.bytes = 8192;
        let lines = change_lines(&difference::changes(&before, &now).0, compared);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].contains("eager_limit") && lines[1].contains("+100 %"), "{lines:?}");
    }
}
