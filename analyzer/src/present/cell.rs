//! Words for the cells of a table.

use super::causes::words;
use super::code_place::{code_place, offset, source};
use super::context::{plural, thread};
use super::quantity::{count, in_unit, percent, scientific, seconds, signed};
use super::quantity::{signed_percent, significant, with_prefix};
use crate::causes::Context;
use crate::metrics::{Frame, OwnTime};
use crate::plain_text::printable;
use crate::tables::{Cell, Column};
use crate::tables::{Delay, Longer};

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
pub(crate) fn text(cell: &Cell) -> String {
    match cell {
        Cell::Unknown | Cell::Nothing => "–".to_owned(),
        Cell::Text(text) => printable(text),
        Cell::Count(number) => count(*number),
        Cell::Seconds(number) => seconds(*number),
        Cell::Difference(number) => signed(*number),
        Cell::Bytes(number) => with_prefix(*number) + "B",
        Cell::Rate(number) => with_prefix(*number).trim_end().to_owned(),
        Cell::Quantity(number, unit) => in_unit(*number, 3, unit),
        Cell::Between(lo, hi) => format!("{} to {}", seconds(*lo), seconds(*hi)),
        Cell::Ratio(number) => scientific(*number),
        Cell::Given(number) => number.to_string(),
        Cell::Share(part) => percent(*part),
        Cell::Excess(part) => signed_percent(*part),
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
        Cell::Source { module, file, line } => printable(&source(module, file.as_deref(), *line)),
        Cell::Path(frames) => printable(&path(frames)),
    }
}

/// `longer computation, heat.c:42-61`.
fn words_of(delay: &Delay) -> String {
    match delay {
        Delay::WaitedFor(None) => "waited itself".to_owned(),
        Delay::WaitedFor(Some((rank, number))) => format!("waited for {}", thread(*rank, *number)),
        Delay::Longer(longer, context) if *longer == Longer::Inside || is_on_files(context) => {
            format!("longer in {}", words::brief(context))
        }
        Delay::Longer(longer, context) => {
            let what = match longer {
                Longer::Own(OwnTime::Computes) => "computation",
                Longer::Own(OwnTime::Asleep) => "sleep or blocking",
                Longer::Own(OwnTime::Unclear) => "time outside MPI",
                Longer::OtherCode | Longer::Inside => "other code",
            };
            let inside = if matches!(**context, Context::InCall(..)) { " in" } else { "," };
            format!("longer {what}{inside} {}", words::brief(context))
        }
    }
}

fn is_on_files(context: &Context) -> bool {
    matches!(context, Context::InCall(site, _) if site.is_on_files())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::CallSite;
    use crate::trace::symbols::SourceLocation;

    fn site(line: u32) -> CallSite {
        let (file, function) = (Some("src/heat.c".to_owned()), Some("main".to_owned()));
        CallSite {
            function: "MPI_Recv".into(),
            module: "/home/ada/heat".into(),
            place: SourceLocation { function, file, line: Some(line) },
            ..CallSite::default()
        }
    }

    #[test]
    fn delays_say_what_takes_longer_and_where() {
        let between = || Context::Between(Some(site(18)), Some(site(38)));
        let of = |longer, context| text(&Cell::Delay(Delay::Longer(longer, Box::new(context))));
        let computes = Longer::Own(OwnTime::Computes);
        assert_eq!(of(computes, between()), "longer computation, heat.c:18-38");
        let inside = Context::InCall(site(20), Box::new(between()));
        assert_eq!(of(computes, inside), "longer computation in MPI_Recv heat.c:20, heat.c:18-38");
        let file = CallSite { function: "write".into(), ..site(20) };
        let writing = || Context::InCall(file.clone(), Box::new(between()));
        assert_eq!(of(computes, writing()), "longer in write heat.c:20, heat.c:18-38");
        assert_eq!(of(Longer::OtherCode, writing()), "longer in write heat.c:20, heat.c:18-38");
        assert_eq!(of(Longer::OtherCode, between()), "longer other code, heat.c:18-38");
        assert_eq!(of(Longer::Inside, Context::Transfer(site(4))), "longer in MPI_Recv heat.c:4");
        let waited = |whom| text(&Cell::Delay(Delay::WaitedFor(whom)));
        assert_eq!(waited(Some((2, 1))), "waited for rank 2, thread 1");
        assert_eq!(waited(None), "waited itself");
    }
}
