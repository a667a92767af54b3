//! Draws the message matrix: a row for each sender, a column for each receiver, darker for more.

use std::fmt::Write as _;

use crate::metrics::{Matrix, Traffic};
use crate::trace::Run;

use super::super::quantity::{count, with_prefix};
use super::super::svg::{BACKGROUND, INK, begin, escaped};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue {
    Bytes,
    Count,
}

/// Maximum number of rows and columns; with more ranks, the matrix is by host.
pub const MAX_SIDE: usize = 128;

/// A matrix that fits a picture: by rank, or by host if there are too many ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledMatrix {
    pub names: Vec<String>,
    /// What rows and columns are: `rank` or `host`.
    pub of: &'static str,
    pub matrix: Matrix,
}

impl LabelledMatrix {
    /// A run's matrix; `None` if there are too many hosts as well.
    pub fn new(run: &Run, matrix: &Matrix) -> Option<Self> {
        let ranks = run.world_size as usize;
        if ranks <= MAX_SIDE {
            let names = (0..ranks).map(|rank| rank.to_string()).collect();
            return Some(Self { names, of: "rank", matrix: matrix.clone() });
        }
        let (names, matrix) = matrix.by_host(run);
        (names.len() <= MAX_SIDE).then_some(Self { names, of: "host", matrix })
    }
}

/// Shades from little to much traffic, light to dark: viridis reversed, whose steps also differ in grey. Cells without
/// traffic are left blank.
const SHADES: [&str; 7] =
    ["#dce319", "#73d055", "#29af7f", "#238a8d", "#33638d", "#453781", "#481567"];
/// Edge of the matrix, points.
const EDGE: f64 = 250.0;
/// Maximum width of a letter of the labels, points.
const LETTER: f64 = 3.7;
/// Room for ticks and the title of an axis.
const TITLE: f64 = 20.0;
const MAX_LETTERS: usize = 18;
const MAX_LABELS: f64 = 16.0;

struct Frame {
    left: f64,
    top: f64,
    /// Whether column labels are turned because they are too long to be written side by side.
    upright: bool,
}

impl Frame {
    fn for_labels(names: &[String]) -> Self {
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(1) as f64;
        let room = longest * LETTER;
        let labels = (names.len() as f64).clamp(1.0, MAX_LABELS);
        let upright = room + 4.0 > EDGE / labels;
        let top = TITLE + if upright { room } else { 8.0 } + 6.0;
        Self { left: TITLE + room + 6.0, top, upright }
    }
}

/// The SVG document. For a `page`, it has no background and uses the page's text colour.
pub fn svg(labelled: &LabelledMatrix, shown: CellValue, page: bool) -> String {
    let value = |traffic: &Traffic| match shown {
        CellValue::Bytes => traffic.bytes,
        CellValue::Count => traffic.count,
    };
    let n = labelled.names.len().max(1);
    let cell = EDGE / n as f64;
    let names: Vec<String> = labelled.names.iter().map(|name| label(name)).collect();
    let frame = Frame::for_labels(&names);
    let most = labelled.matrix.pairs.values().map(value).max().unwrap_or(0).max(1);
    // Shades begin at zero and are linear in the traffic.
    let last = SHADES.len() - 1;
    let shade = |value: u64| {
        (((value as f64 / most as f64) * SHADES.len() as f64).ceil() as usize).clamp(1, last + 1)
            - 1
    };
    let mut paths = vec![String::new(); SHADES.len()];
    let mut words = String::new();
    for (&(from, to), traffic) in &labelled.matrix.pairs {
        let value = value(traffic);
        let (x, y) = (frame.left + f64::from(to) * cell, frame.top + f64::from(from) * cell);
        if value == 0 || to as usize >= n || from as usize >= n {
            continue;
        }
        // Writing to a String does not fail.
        let _ = write!(paths[shade(value)], "M{x:.2} {y:.2}h{cell:.2}v{cell:.2}h-{cell:.2}z");
        if n <= 8 {
            let text = match shown {
                CellValue::Bytes => with_prefix(value as f64) + "B",
                CellValue::Count => count(value),
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
    let ink = if page { "currentColor" } else { INK };
    let what = if shown == CellValue::Bytes { "bytes" } else { "messages" };
    let Frame { left, top, .. } = frame;
    let (width, height) = (left + EDGE + 12.0, top + EDGE + 34.0);
    let attributes = format!(
        " font-family=\"Helvetica, Arial, sans-serif\" font-size=\"6.5\" data-left=\"{left:.1}\" \
         data-top=\"{top:.1}\" data-edge=\"{EDGE}\" data-places=\"{n}\" data-of=\"{}\"",
        labelled.of
    );
    let name = format!("Message matrix, {what}");
    let mut text = begin(&format!("{width:.1}"), &format!("{height:.1}"), &attributes, &name);
    if !page {
        text.push_str(BACKGROUND);
    }
    for (path, colour) in paths.iter().zip(SHADES).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(text, "<path fill=\"{colour}\" d=\"{path}\"/>");
    }
    text.push_str(&words);
    let _ = writeln!(
        text,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{EDGE}\" height=\"{EDGE}\" fill=\"none\" \
         stroke=\"{ink}\" stroke-width=\"0.5\"/>"
    );
    labels(&mut text, &names, &frame, ink);
    let middle = top + EDGE / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"10\" text-anchor=\"middle\" fill=\"{ink}\" font-size=\"7.5\">receiver \
         ({of})</text><text transform=\"translate(10 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         fill=\"{ink}\" font-size=\"7.5\">sender ({of})</text>",
        left + EDGE / 2.0,
        of = labelled.of
    );
    legend(&mut text, &frame, most, (shown, ink));
    text.push_str("</svg>\n");
    text
}

/// A name, cut if it is too long.
fn label(name: &str) -> String {
    match name.chars().count() > MAX_LETTERS {
        true => name.chars().take(MAX_LETTERS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn labels(text: &mut String, names: &[String], frame: &Frame, ink: &str) {
    let cell = EDGE / names.len().max(1) as f64;
    let every = (names.len() as f64 / MAX_LABELS).ceil() as usize;
    for (index, name) in names.iter().enumerate().step_by(every.max(1)) {
        let at = (index as f64 + 0.5) * cell;
        let name = escaped(name);
        let (x, y) = (frame.left + at, frame.top - 4.0);
        let across = match frame.upright {
            true => format!("transform=\"translate({:.1} {y:.1}) rotate(-90)\"", x + 2.2),
            false => format!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\""),
        };
        let _ = writeln!(
            text,
            "<text {across} fill=\"{ink}\">{name}</text><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\" fill=\"{ink}\">{name}</text>",
            frame.left - 4.0,
            frame.top + at + 2.2,
        );
    }
}

/// The scale of shades, from zero to the largest value.
fn legend(text: &mut String, frame: &Frame, most: u64, (shown, ink): (CellValue, &str)) {
    let step = EDGE / SHADES.len() as f64;
    let top = frame.top + EDGE + 10.0;
    let name = |value: f64| match shown {
        CellValue::Bytes => with_prefix(value) + "B",
        CellValue::Count => count(value.round() as u64),
    };
    for (index, colour) in SHADES.iter().enumerate() {
        let x = frame.left + index as f64 * step;
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{step:.1}\" height=\"8\" fill=\"{colour}\"/>"
        );
    }
    let ends = [("start", 0.0, "0".to_owned()), ("end", EDGE, name(most as f64))];
    let middle = most.is_multiple_of(2).then(|| ("middle", EDGE / 2.0, name(most as f64 / 2.0)));
    for (anchor, at, label) in ends.into_iter().chain(middle) {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{ink}\">{}</text>",
            frame.left + at,
            top + 16.0,
            escaped(&label)
        );
    }
    text.push('\n');
}
