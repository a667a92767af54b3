//! Ranks that did not finish ([`Unfinished`](crate::metrics::Unfinished)): parts of a report's screen, page and
//! document.

mod screen;
mod sentences;
mod stacks;
mod words;

pub(in crate::present) use screen::{
    last_call_lines, lasted, open_waits, position_lines, position_table, positions,
};
pub(in crate::present) use sentences::{sentences, short};
pub(in crate::present) use stacks::{add_stacks, stack_lines};
pub(in crate::present) use words::call_text;
