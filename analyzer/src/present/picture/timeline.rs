//! Draws a timeline: a row for each thread, coloured by kind. Where single calls are known, arrows show messages and
//! bands show collective operations (the two views of Masuguchi et al.).

mod regions;
mod sheet;

use std::fmt::Write as _;
use std::ops::Range;

use crate::metrics::activity::detail::Detail;
use crate::metrics::activity::{Activity, KINDS, Kind};
use crate::trace::Run;

use super::super::quantity::TimeUnit;
use super::super::svg::{BACKGROUND, INK, begin, escaped, round_step};

pub use sheet::View;
use sheet::{LEFT, RIGHT, Sheet, TOP, WIDTH};

/// Colours of the kinds on white, by Okabe and Ito; own code is pale.
const KIND_COLOURS: [&str; 10] = [
    "#cfd6dc", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7", "#0072b2", "#009e73", "#f0e442",
    "#7d5ba6", "#000000",
];
/// Smallest height of a share in a column.
const MIN_HEIGHT: f64 = 0.25;
/// Smallest gap between two calls of a kind that is visible in print; calls closer together are drawn as one.
const MIN_GAP: f64 = 0.02;
const SHARE_COLUMNS: usize = 600;
/// Maximum number of arrows, per row and in total. With more, none is drawn: they would hide what they explain.
const MAX_ARROWS: (usize, usize) = (60, 2000);
/// With more arrows than this, they are drawn thin.
const MANY_ARROWS: usize = 200;
/// Maximum number of events drawn one by one, per row and in total; with more, shares are drawn.
const MAX_EVENTS: (usize, usize) = (2_000, 20_000);

/// The SVG document. Draws single calls if `detail` covers the whole view, else shares.
pub fn svg(run: &Run, activity: &Activity, detail: &Detail, view: &View, title: &str) -> String {
    let rows = view.rows.len().max(1);
    let row_height = (420.0 / rows as f64).clamp(2.0, if rows > 4 { 18.0 } else { 28.0 });
    let sheet = Sheet { view, row_height };
    let height = TOP + rows as f64 * row_height + 52.0;
    let attributes =
        format!(" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"6.5\" fill=\"{INK}\"");
    let mut text = begin(&WIDTH.to_string(), &format!("{height:.0}"), &attributes, title);
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "{BACKGROUND}<text x=\"6\" y=\"12\" font-size=\"8.5\" font-weight=\"bold\">{}</text>",
        escaped(title)
    );
    let covered = detail.windows.iter().any(|window| {
        window.start <= view.seconds.start.max(0.0)
            && view.seconds.end.min(activity.length_s) <= window.end
    });
    let shown = detail
        .events
        .iter()
        .filter(|event| event.begin_s <= view.seconds.end && event.end_s >= view.seconds.start);
    let single = covered && shown.count() <= MAX_EVENTS.1.min(MAX_EVENTS.0 * rows);
    let used = match single {
        true => events(&mut text, (run, activity), detail, &sheet),
        false => shares(&mut text, activity, &sheet),
    };
    regions::brackets(&mut text, detail, &sheet);
    let arrows = if covered { messages(&mut text, activity, detail, &sheet) } else { None };
    labels(&mut text, activity, &sheet);
    axis(&mut text, &sheet);
    legend(&mut text, &used, height - 8.0, single, arrows);
    text.push_str("</svg>\n");
    text
}

/// Rounds to a hundredth of a point, because paths make up most of a picture's bytes.
fn short(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

fn rectangle(path: &mut String, x0: f64, x1: f64, y0: f64, y1: f64) {
    let [x0, x1, y0, y1] = [x0, x1, y0, y1].map(short);
    // Writing to a String does not fail.
    let _ = write!(path, "M{x0} {y0}H{x1}V{y1}H{x0}z");
}

/// The outline of a kind in a row, from the row's bottom up to a top that changes from column to column. Kinds are
/// stacked: a later kind is drawn first, behind those below it, so that no seam shows.
struct Steps {
    path: String,
    /// Right end and top of the last column, while the outline is open.
    open: Option<(f64, f64)>,
}

impl Steps {
    fn column(&mut self, (x0, x1): (f64, f64), top: f64, bottom: f64) {
        let [x0, x1, top, bottom] = [x0, x1, top, bottom].map(short);
        // Writing to a String does not fail.
        let _ = match self.open {
            Some((right, height)) if right == x0 && height == top => Ok(()),
            Some((right, _)) if right == x0 => write!(self.path, "H{x0}V{top}"),
            _ => {
                self.end(bottom);
                write!(self.path, "M{x0} {bottom}V{top}")
            }
        };
        self.open = Some((x1, top));
    }

    fn end(&mut self, bottom: f64) {
        if let Some((right, _)) = self.open.take() {
            let _ = write!(self.path, "H{right}V{}z", short(bottom));
        }
    }
}

/// Draws the paths of the kinds in the given order, the last one in front.
fn draw(text: &mut String, paths: &[String], order: impl Iterator<Item = usize>) -> [bool; KINDS] {
    let mut used = [false; KINDS];
    for kind in order.filter(|kind| !paths[*kind].is_empty()) {
        let (colour, path) = (KIND_COLOURS[kind], &paths[kind]);
        let _ = writeln!(text, "<path fill=\"{colour}\" d=\"{path}\"/>");
        used[kind] = true;
    }
    used
}

fn shares(text: &mut String, activity: &Activity, sheet: &Sheet) -> [bool; KINDS] {
    let mut steps: Vec<Steps> =
        (0..KINDS).map(|_| Steps { path: String::new(), open: None }).collect();
    let Range { start, end } = sheet.view.seconds;
    let gap = if sheet.row_height > 4.0 { 1.0 } else { 0.2 };
    let bins = ((end - start) / activity.bin_s()).ceil() as usize;
    let columns = SHARE_COLUMNS.min(bins.max(1));
    let column_s = (end - start) / columns as f64;
    for (position, row) in sheet.view.rows.iter().enumerate() {
        let bottom = sheet.top(position) + sheet.row_height - gap;
        for column in 0..columns {
            let (from, to) =
                (start + column as f64 * column_s, start + (column + 1) as f64 * column_s);
            let sums = activity.seconds(*row, from, to);
            let total: f64 = sums.iter().sum();
            let room = (sheet.row_height - gap) * (total / column_s).min(1.0);
            // Every kind that occurs is drawn, at the cost of the largest one.
            let mut heights =
                sums.map(|sum| if sum > 0.0 { (room * sum / total).max(MIN_HEIGHT) } else { 0.0 });
            let excess = heights.iter().sum::<f64>() - room;
            if let Some(most) = heights.iter_mut().max_by(|a, b| a.total_cmp(b))
                && excess > 0.0
            {
                *most = (*most - excess).max(MIN_HEIGHT);
            }
            let mut top = bottom;
            for (kind, height) in
                heights.into_iter().enumerate().filter(|(_, height)| *height > 0.0)
            {
                top -= height;
                steps[kind].column((sheet.x(from), sheet.x(to)), top, bottom);
            }
        }
        steps.iter_mut().for_each(|steps| steps.end(bottom));
    }
    let paths: Vec<String> = steps.into_iter().map(|steps| steps.path).collect();
    draw(text, &paths, (0..KINDS).rev())
}

fn events(
    text: &mut String,
    (run, activity): (&Run, &Activity),
    detail: &Detail,
    sheet: &Sheet,
) -> [bool; KINDS] {
    let mut paths = vec![String::new(); KINDS];
    let gap = if sheet.row_height > 4.0 { 1.0 } else { 0.2 };
    for (position, row) in sheet.view.rows.iter().enumerate() {
        let row = &activity.rows[*row];
        let (top, bottom) = (sheet.top(position), sheet.top(position) + sheet.row_height - gap);
        rectangle(&mut paths[0], sheet.x(row.begin_s), sheet.x(row.end_s), top, bottom);
    }
    let Range { start, end } = sheet.view.seconds;
    // The last call, merged with earlier ones that print cannot separate: row's position, kind, from, to.
    let mut last: Option<(usize, usize, f64, f64)> = None;
    let mut draw_call = |call: (usize, usize, f64, f64)| {
        let (position, kind, x0, x1) = call;
        let (top, bottom) = (sheet.top(position), sheet.top(position) + sheet.row_height - gap);
        rectangle(&mut paths[kind], x0, x1, top, bottom);
    };
    for event in &detail.events {
        let Some(position) = sheet.position_of(event.row) else { continue };
        if event.begin_s > end || event.end_s < start {
            continue;
        }
        let kind = event.kind(run, activity) as usize;
        let (x0, x1) = (sheet.x(event.begin_s), sheet.x(event.begin_s + event.inside_s));
        let x1 = x1.max(x0 + 0.15);
        match &mut last {
            Some((row, of, from, to)) if (*row, *of) == (position, kind) && x0 - *to < MIN_GAP => {
                (*from, *to) = (from.min(x0), to.max(x1));
            }
            _ => last.replace((position, kind, x0, x1)).into_iter().for_each(&mut draw_call),
        }
    }
    last.into_iter().for_each(draw_call);
    draw(text, &paths, 0..KINDS)
}

/// Draws bands and arrows. Returns the number of arrows, or `None` if there are too many to draw.
fn messages(
    text: &mut String,
    activity: &Activity,
    detail: &Detail,
    sheet: &Sheet,
) -> Option<usize> {
    let row_of = |rank: u32, thread: u32| {
        let found = activity.rows.iter().position(|r| r.rank == rank && r.thread == thread);
        found
            .or_else(|| activity.rows.iter().position(|r| r.rank == rank))
            .and_then(|row| sheet.position_of(row))
    };
    for instance in &detail.collectives {
        let members = instance.members.iter().filter_map(|member| {
            let end_s = member.end_s.unwrap_or(member.begin_s);
            Some((row_of(member.rank, member.thread)?, member.begin_s, end_s))
        });
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|member| member.0);
        let inside = members.iter().any(|(_, from, to)| sheet.shows(*from) || sheet.shows(*to));
        if members.len() < 2 || !inside {
            continue;
        }
        let mut points = String::new();
        for (position, from, _) in &members {
            let (x, y) = (sheet.x(*from), sheet.top(*position));
            let _ = write!(points, "{x:.2},{y:.2} {x:.2},{:.2} ", y + sheet.row_height);
        }
        for (position, _, to) in members.iter().rev() {
            let (x, y) = (sheet.x(*to), sheet.top(*position));
            let _ = write!(points, "{x:.2},{:.2} {x:.2},{y:.2} ", y + sheet.row_height);
        }
        let _ = writeln!(
            text,
            "<polygon points=\"{points}\" fill=\"#1a1a1a\" fill-opacity=\"0.10\" stroke=\"#1a1a1a\" \
             stroke-opacity=\"0.5\" stroke-width=\"0.4\"/>"
        );
    }
    let arrows = detail.messages.iter().filter_map(|message| {
        let (send, receive) = (&message.send, &message.receive);
        let (from, to) = (send.end_s.unwrap_or(send.begin_s), receive.end_s?);
        let positions = (row_of(send.rank, send.thread)?, row_of(receive.rank, receive.thread)?);
        (sheet.shows(from) && sheet.shows(to)).then_some((from, to, positions))
    });
    let arrows: Vec<_> = arrows.collect();
    let most = (MAX_ARROWS.0 * sheet.view.rows.len()).clamp(MANY_ARROWS, MAX_ARROWS.1);
    if arrows.len() > most {
        return None;
    }
    let width = if arrows.len() > MANY_ARROWS { 0.25 } else { 0.5 };
    let mut lines = String::new();
    let mut heads = String::new();
    for (from, to, (a, b)) in &arrows {
        let middle = |position: usize| sheet.top(position) + sheet.row_height / 2.0;
        let (x0, y0, x1, y1) = (sheet.x(*from), middle(*a), sheet.x(*to), middle(*b));
        let _ = write!(lines, "M{x0:.2} {y0:.2}L{x1:.2} {y1:.2}");
        let angle = (y1 - y0).atan2(x1 - x0);
        let end = |turn: f64| (x1 - 3.2 * (angle + turn).cos(), y1 - 3.2 * (angle + turn).sin());
        let ((ax, ay), (bx, by)) = (end(0.4), end(-0.4));
        let _ = write!(heads, "M{x1:.2} {y1:.2}L{ax:.2} {ay:.2}L{bx:.2} {by:.2}z");
    }
    let _ = writeln!(
        text,
        "<path d=\"{lines}\" fill=\"none\" stroke=\"#1a1a1a\" stroke-width=\"{width}\"/><path d=\"{heads}\"/>"
    );
    Some(arrows.len())
}

fn labels(text: &mut String, activity: &Activity, sheet: &Sheet) {
    let every = (8.0 / sheet.row_height).ceil().max(1.0) as usize;
    for (position, row) in sheet.view.rows.iter().enumerate().step_by(every) {
        let row = &activity.rows[*row];
        let name = match row.thread {
            0 => format!("rank {}", row.rank),
            thread => format!("rank {}.{thread}", row.rank),
        };
        let y = sheet.top(position) + sheet.row_height / 2.0 + 2.0;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 4.0
        );
    }
}

fn axis(text: &mut String, sheet: &Sheet) {
    let Range { start, end } = sheet.view.seconds;
    let y = sheet.top(sheet.view.rows.len().max(1));
    let step = round_step((end - start) / 6.0);
    // Far from time 0, ticks are labelled relative to the left edge.
    let far = sheet.view.from_left || end - start < start.abs() * 1e-2;
    let base = if far { start } else { 0.0 };
    // One unit for all ticks, with as many digits as distinguish neighbours.
    let unit = TimeUnit::for_seconds(if far { end - start } else { end.abs().max(start.abs()) });
    let mut tick = ((start - base) / step).ceil();
    let _ = writeln!(
        text,
        "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#1a1a1a\" stroke-width=\"0.5\"/>",
        WIDTH - RIGHT
    );
    while tick * step + base <= end + step * 1e-6 && step > 0.0 {
        let x = sheet.x(tick * step + base);
        let label = unit.stepped(tick * step, step);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {y:.1}v3\" stroke=\"#1a1a1a\" stroke-width=\"0.5\"/><text x=\"{x:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            y + 10.0
        );
        tick += 1.0;
    }
    let name = match far {
        true => format!("time after {start:.6} s ({})", unit.name),
        false => format!("time ({})", unit.name),
    };
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"7.5\">{name}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        y + 21.0
    );
}

fn legend(text: &mut String, used: &[bool; KINDS], y: f64, single: bool, arrows: Option<usize>) {
    let mut x = LEFT;
    for kind in Kind::ALL.into_iter().filter(|kind| used[*kind as usize]) {
        let colour = KIND_COLOURS[kind as usize];
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"{colour}\" stroke=\"#1a1a1a\" \
             stroke-width=\"0.3\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 6.0,
            x + 10.0,
            kind.name()
        );
        x += 18.0 + 3.2 * kind.name().len() as f64;
    }
    let note = match (single, arrows) {
        (true, Some(0)) => "single calls",
        (true, Some(_)) => "single calls; arrows: end of send to completion of its receive",
        (true, None) => "single calls; too many messages for arrows",
        (false, Some(1..)) => {
            "share of time by kind; arrows: end of send to completion of its receive"
        }
        (false, _) => "share of time by kind",
    };
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"12\" text-anchor=\"end\" fill=\"#5b6168\">{note}</text>",
        WIDTH - RIGHT
    );
}
