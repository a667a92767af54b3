//! Draws the regions that the program marked: a bracket at the foot of the row, with the name where there is room.

use std::fmt::Write as _;

use crate::metrics::activity::detail::{Detail, RegionSpan};
use crate::present::svg::escaped;

use super::sheet::Sheet;

/// Smallest height of a row with brackets; in lower rows they would hide the calls.
const MIN_ROW_HEIGHT: f64 = 8.0;
const FONT_SIZE: f64 = 5.5;
/// Approximate width of a letter.
const LETTER: f64 = 3.1;
/// Narrower brackets are left out.
const MIN_WIDTH: f64 = 1.0;
/// Distance of a bracket from that of the region inside it.
const STEP: f64 = 1.6;

/// Draws a bracket for each region in the picture; the innermost ones lie highest.
pub(super) fn brackets(text: &mut String, detail: &Detail, sheet: &Sheet) {
    if sheet.row_height < MIN_ROW_HEIGHT {
        return;
    }
    let window = &sheet.view.seconds;
    let shown = |region: &&RegionSpan| {
        let wide = sheet.x(region.seconds.end) - sheet.x(region.seconds.start) >= MIN_WIDTH;
        wide && region.seconds.end > window.start && region.seconds.start < window.end
    };
    let all: Vec<&RegionSpan> = detail.regions.iter().filter(shown).collect();
    for region in &all {
        let Some(position) = sheet.position_of(region.row) else { continue };
        let depth = all.iter().filter(|other| is_inside(region, other)).count();
        let bottom = sheet.top(position) + sheet.row_height - 2.0 - STEP * depth as f64;
        let (x0, x1) = (sheet.x(region.seconds.start), sheet.x(region.seconds.end));
        let name = escaped(&region.name);
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "<g><title>region {name}</title><path d=\"M{x0:.2} {:.2}V{bottom:.2}H{x1:.2}V{:.2}\" fill=\"none\" \
             stroke=\"#1a1a1a\" stroke-width=\"0.6\"/>",
            bottom - STEP,
            bottom - STEP
        );
        let width = LETTER * region.name.chars().count() as f64;
        let is_innermost = !all.iter().any(|other| is_inside(other, region));
        if is_innermost && width < x1 - x0 {
            let _ = write!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{FONT_SIZE}\">{name}</text>",
                f64::midpoint(x0, x1),
                bottom - STEP
            );
        }
        text.push_str("</g>\n");
    }
}

/// Whether a region lies inside another one of the same row.
fn is_inside(inner: &RegionSpan, outer: &RegionSpan) -> bool {
    let (a, b) = (&inner.seconds, &outer.seconds);
    inner.row == outer.row && a != b && b.start <= a.start && a.end <= b.end
}
