//! Renders a measured [`Machine`](crate::models::machine::Machine), and its changes since an earlier measurement, as a
//! screen ([`screen()`]) and pictures ([`pictures`]).

pub mod lattice;
pub mod pictures;
mod screen;
mod words;

pub use screen::{change_lines, screen};
pub use words::{difference_sentence, doubt_sentence};
