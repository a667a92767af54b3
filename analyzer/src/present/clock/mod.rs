//! Clocks for people and programs: a [`Calibration`](crate::calibration::Calibration) comes in, a screen
//! ([`screen()`]) and a picture ([`figure`]) go out; of a report's timeline the clock's part of the document.

mod document;
mod pictures;
mod screen;

pub use pictures::figure;
pub use screen::screen;

pub(in crate::present) use document::{ClockPart, ExchangeDocument, exchanges};
