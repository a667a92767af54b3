//! Renders [`Causes`](crate::causes::Causes) as the screen and the JSON document of `gammachi why`, and as parts of a
//! report.

mod document;
mod hosts;
pub(super) mod places;
mod screen;
mod stretches;
mod stretches_document;
pub(super) mod words;

use crate::diagnosis::{Undivided, Why};

pub use document::json;
pub(super) use document::{Summary, summary};
pub use screen::screen;
pub(super) use stretches::{iteration_summary, region_lines};
pub(super) use words::undivided;

/// What is not known, and why.
fn missing(why: &Why) -> Vec<String> {
    let unknown = why.causes.unknown.iter().map(|what| words::unknown(*what));
    let unknown =
        unknown.chain(why.ideal.err().and_then(|why| words::undivided(Undivided::NoIdeal(why))));
    unknown.chain(words::no_python_lines(why)).collect()
}
