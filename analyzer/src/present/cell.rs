//! Words for the cells of a table.

use super::causes::words;
use super::code_place::{code_place, offset};
use super::context::plural;
use super::quantity::{count, percent, seconds, significant, with_prefix};
use crate::causes::Context;
use crate::metrics::{Frame, OwnTime};
use crate::plain_text::printable;
use crate::tables::waits::{Delay, Longer};
use crate::tables::{Cell, Column};

/// Maximum number of functions of a call path shown; the outermost and the innermost ones are kept.
const MAX_FUNCTIONS: usize = 6;

/// A cell of a column in a terminal.
pub(super) fn brief(cell: &Cell, column: &Column) -> String {
    match cell {
        Cell::Unknown if column.is_text() => "unknown".to_owned(),
        Cell::Unknown => "?".to_owned(),
        Cell::Nothing => "-".to_owned(),
        cell => text(cell),
    }
}

/// A cell where there is room.
pub(super) fn text(cell: &Cell) -> String {
    match cell {
        Cell::Unknown | Cell::Nothing => "–".to_owned(),
        Cell::Text(text) => printable(text),
        Cell::Count(number) => count(*number),
        Cell::Seconds(number) => seconds(*number),
        Cell::Bytes(number) => with_prefix(*number) + "B",
        Cell::Rate(number) => with_prefix(*number).trim_end().to_owned(),
        Cell::Share(part) => percent(*part),
        Cell::Factor(factor) => significant(*factor, 2),
        Cell::Thread { rank, number } => thread(*rank, *number),
        Cell::Ranks(ranks) => match ranks.as_slice() {
            [rank] => format!("rank {rank}"),
            ranks => plural(ranks.len(), "rank"),
        },
        Cell::Context(context) => printable(&words::brief(context)),
        Cell::Delay(delay) => printable(&words_of(delay)),
        Cell::Code(Frame { module, address, place }) => {
            printable(&code_place(module, *address, place))
        }
        Cell::Path(frames) => printable(&path(frames)),
    }
}

/// `rank 2`, with its thread unless that is the first.
pub(super) fn thread(rank: u32, number: u32) -> String {
    match number {
        0 => format!("rank {rank}"),
        number => format!("rank {rank}, thread {number}"),
    }
}

/// `longer computation, heat.c:42-61`.
fn words_of(delay: &Delay) -> String {
    match delay {
        Delay::WaitedFor(None) => "waited itself".to_owned(),
        Delay::WaitedFor(Some((rank, number))) => format!("waited for {}", thread(*rank, *number)),
        Delay::Longer(Longer::Inside, context) => format!("longer in {}", words::brief(context)),
        Delay::Longer(longer, context) => {
            let what = match longer {
                Longer::Own(OwnTime::Computes) => "computation",
                Longer::Own(OwnTime::Asleep) => "sleep or blocking",
                Longer::Own(OwnTime::Unclear) => "time outside MPI",
                Longer::OtherCode | Longer::Inside => "other code",
            };
            let inside = if matches!(context, Context::InCall(..)) { " in" } else { "," };
            format!("longer {what}{inside} {}", words::brief(context))
        }
    }
}

/// `main > solve > exchange`.
fn path(frames: &[Frame]) -> String {
    let name = |frame: &Frame| match &frame.place.function {
        Some(function) => function.clone(),
        None => offset(&frame.module, frame.address),
    };
    let mut names: Vec<String> = frames.iter().rev().map(name).collect();
    if names.len() > MAX_FUNCTIONS {
        names.splice(1..names.len() + 2 - MAX_FUNCTIONS, ["...".to_owned()]);
    }
    names.join(" > ")
}
