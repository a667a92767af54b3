//! A measured machine for people: [`Machine`](crate::models::machine::Machine) and what changed come in, the
//! terminal's screen ([`screen()`]) and pictures ([`pictures`]) go out.

pub mod lattice;
pub mod pictures;
mod screen;

pub use screen::{change_lines, screen};
