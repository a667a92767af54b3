//! The message matrix as a picture: senders down, receivers across, darker for more.

use std::fmt::Write as _;

use super::super::quantity::{count, with_prefix};
use super::escaped;
use crate::metrics::{Matrix, Traffic};
use crate::trace::Run;

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Bytes.
    Bytes,
    /// Number of messages.
    Count,
}

/// Most places a side of the matrix has; beyond it hosts take the place of ranks.
pub const MOST_PLACES: usize = 128;

/// A matrix that fits a picture: of ranks, else of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// Names of the places.
    pub names: Vec<String>,
    /// What they are: `rank` or `host`.
    pub of: &'static str,
    /// The matrix by place.
    pub matrix: Matrix,
}

impl Places {
    /// Of a run's matrix; `None` where hosts are too many, too.
    pub fn new(run: &Run, matrix: &Matrix) -> Option<Self> {
        let ranks = run.world_size as usize;
        if ranks <= MOST_PLACES {
            let names = (0..ranks).map(|rank| rank.to_string()).collect();
            return Some(Self { names, of: "rank", matrix: matrix.clone() });
        }
        let (names, matrix) = matrix.by_host(run);
        (names.len() <= MOST_PLACES).then_some(Self { names, of: "host", matrix })
    }
}

/// From few to much, dark last; each step is told from the next in grey, too (viridis turned round).
const SHADES: [&str; 7] =
    ["#dce319", "#73d055", "#29af7f", "#238a8d", "#33638d", "#453781", "#481567"];
/// Edge of the picture, points.
const EDGE: f64 = 250.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 34.0;

/// The document; with `page` without ground and in the page's text colour.
pub fn svg(places: &Places, shown: Shown, page: bool) -> String {
    let value = |traffic: &Traffic| match shown {
        Shown::Bytes => traffic.bytes,
        Shown::Count => traffic.count,
    };
    let n = places.names.len().max(1);
    let cell = EDGE / n as f64;
    let values = || places.matrix.pairs.values().map(value).filter(|value| *value > 0);
    let (least, most) = (values().min().unwrap_or(1), values().max().unwrap_or(1));
    let span = (most as f64 / least as f64).log2();
    let shade = |value: u64| match span > 0.0 {
        true => ((value as f64 / least as f64).log2() / span * 6.999).floor() as usize,
        false => SHADES.len() - 1,
    };
    let mut paths = vec![String::new(); SHADES.len()];
    let mut words = String::new();
    for (&(from, to), traffic) in &places.matrix.pairs {
        let value = value(traffic);
        let (x, y) = (LEFT + f64::from(to) * cell, TOP + f64::from(from) * cell);
        if value == 0 || to as usize >= n || from as usize >= n {
            continue;
        }
        // Writing to a String does not fail.
        let _ = write!(paths[shade(value)], "M{x:.2} {y:.2}h{cell:.2}v{cell:.2}h-{cell:.2}z");
        if n <= 8 {
            let text = match shown {
                Shown::Bytes => with_prefix(value as f64) + "B",
                Shown::Count => count(value),
            };
            let fill = if shade(value) > 2 { "#fff" } else { "#000" };
            let (x, y) = (x + cell / 2.0, y + cell / 2.0 + 2.5);
            let size = (cell / 6.0).min(7.0);
            let _ = write!(
                words,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" text-anchor=\"middle\" \
                 fill=\"{fill}\">{}</text>",
                escaped(&text)
            );
        }
    }
    let ink = if page { "currentColor" } else { "#1a1a1a" };
    let what = if shown == Shown::Bytes { "bytes" } else { "messages" };
    let (width, height) = (LEFT + EDGE + 12.0, TOP + EDGE + 44.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"6.5\">\n<title>Message matrix, {what}</title>\n"
    );
    if !page {
        text.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    }
    for (path, colour) in paths.iter().zip(SHADES).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(text, "<path fill=\"{colour}\" d=\"{path}\"/>");
    }
    text.push_str(&words);
    let _ = writeln!(
        text,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{EDGE}\" height=\"{EDGE}\" fill=\"none\" stroke=\"{ink}\" \
         stroke-width=\"0.5\"/>"
    );
    let every = (n as f64 / 16.0).ceil() as usize;
    for (index, name) in places.names.iter().enumerate().step_by(every.max(1)) {
        let at = (index as f64 + 0.5) * cell;
        let name = escaped(&super::super::context::shortened(name));
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{ink}\">{name}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{ink}\">{name}</text>",
            LEFT + at,
            TOP - 4.0,
            LEFT - 4.0,
            TOP + at + 2.2,
        );
    }
    let middle = TOP + EDGE / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"14\" text-anchor=\"middle\" fill=\"{ink}\" font-size=\"7.5\">receiver \
         ({of})</text><text transform=\"translate(10 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         fill=\"{ink}\" font-size=\"7.5\">sender ({of})</text>",
        LEFT + EDGE / 2.0,
        of = places.of
    );
    legend(&mut text, (least, most), span, (shown, ink));
    text.push_str("</svg>\n");
    text
}

fn legend(text: &mut String, (least, most): (u64, u64), span: f64, (shown, ink): (Shown, &str)) {
    let step = EDGE / SHADES.len() as f64;
    let top = TOP + EDGE + 12.0;
    let name = |value: f64| match shown {
        Shown::Bytes => with_prefix(value) + "B",
        Shown::Count => count(value.round() as u64),
    };
    let first = if span > 0.0 { 0 } else { SHADES.len() - 1 };
    for (index, colour) in SHADES.iter().enumerate().skip(first) {
        let x = LEFT + index as f64 * step;
        let from = least as f64 * 2f64.powf(span * index as f64 / SHADES.len() as f64);
        let label = if span > 0.0 { from } else { most as f64 };
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{step:.1}\" height=\"8\" fill=\"{colour}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{ink}\">{}</text>",
            top + 16.0,
            escaped(&name(label))
        );
    }
    if span > 0.0 {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{ink}\" text-anchor=\"end\">to {}</text>",
            LEFT + EDGE,
            top + 26.0,
            escaped(&name(most as f64))
        );
    }
    text.push('\n');
}
