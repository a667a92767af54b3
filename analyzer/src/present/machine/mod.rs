//! A measured machine for people: [`Machine`](crate::models::machine::Machine) and what changed come in, the
//! terminal's screen ([`screen()`]) and pictures ([`pictures`]) go out.

pub mod lattice;
pub mod pictures;
mod screen;
mod words;

pub use screen::{change_lines, screen};
pub use words::{difference_sentence, doubt_sentence};
