//! Renders a clock [`Calibration`](crate::calibration::Calibration) as a screen ([`screen()`]) and a picture
//! ([`figure`]), and writes the part on clocks of a report's document.

mod document;
mod estimated;
mod pictures;
mod screen;

pub use pictures::figure;
pub use screen::screen;

pub(in crate::present) use document::{ClockPart, ExchangeDocument, exchanges};
pub(in crate::present) use estimated::estimated_offsets;
