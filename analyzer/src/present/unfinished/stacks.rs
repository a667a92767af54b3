//! Stacks of ranks that do not move, and why others have none.

use std::collections::BTreeMap;

use crate::metrics::{StackFunction, ThreadStack, Unfinished, UnfinishedRank};
use crate::plain_text::printable;
use crate::present::blocks::Blocks;
use crate::present::code_place::{file_and_line, file_name};
use crate::present::context::number_list;
use crate::trace::snapshot::Unanswered;

/// How many lines there are at most, and functions of the program on each.
const MAX_LINES: usize = 16;
const MAX_FUNCTIONS: usize = 4;

/// The block of [`stack_lines`].
pub(in crate::present) fn add_stacks(blocks: &mut Blocks, unfinished: &Unfinished) {
    let mut label = "STACKS";
    for line in stack_lines(unfinished) {
        blocks.sentence(label, &line);
        label = "";
    }
}

/// Where ranks are that were asked, those in the same place together; the innermost function first.
pub(in crate::present) fn stack_lines(unfinished: &Unfinished) -> Vec<String> {
    let mut lines: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for rank in &unfinished.ranks {
        if let Some(text) = stack_text(rank) {
            lines.entry(text).or_default().push(rank.rank);
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, ranks)| ranks[0]);
    let left_out = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let ranks = |ranks: &[u32]| match ranks {
        [one] => format!("rank {one}"),
        _ => format!("ranks {}", number_list(ranks.iter().copied())),
    };
    let shown = lines.iter().map(|(text, of)| format!("{}: {text}", ranks(of)));
    let more = (left_out > 0).then(|| format!("{left_out} more in report --json"));
    shown.chain(more).collect()
}

fn stack_text(rank: &UnfinishedRank) -> Option<String> {
    let stack = rank.position().and_then(|position| position.stack.as_ref());
    stack.map(functions_text).or_else(|| Some(unanswered_text(rank.unanswered?).to_owned()))
}

/// `poll (libc.so.6) … exchange (heat.c:42) < main (heat.c:80)`.
fn functions_text(stack: &ThreadStack) -> String {
    // What starts a program is in its file, but nobody's.
    let is_start = |of: &&StackFunction| of.place.function.as_deref() == Some("_start");
    let own = || stack.functions.iter().filter(|of| of.own && !is_start(of));
    let shown = own().take(MAX_FUNCTIONS).map(function_text).collect::<Vec<_>>().join(" < ");
    let more = if own().count() > MAX_FUNCTIONS { " < …" } else { "" };
    let inner = stack.functions.first().filter(|of| !of.own).map(function_text);
    match (inner, shown.is_empty()) {
        (Some(inner), true) => inner,
        (Some(inner), false) => format!("{inner} … {shown}{more}"),
        (None, _) => format!("{shown}{more}"),
    }
}

fn function_text(of: &StackFunction) -> String {
    let place = file_and_line(&of.place)
        .or_else(|| Some(file_name(&of.module).to_owned()).filter(|name| !name.is_empty()));
    let name = of.place.function.as_deref().unwrap_or("?");
    printable(&place.map_or_else(|| name.to_owned(), |place| format!("{name} ({place})")))
}

fn unanswered_text(why: Unanswered) -> &'static str {
    match why {
        Unanswered::Silent => "did not answer within 1 s: its thread may be in the kernel",
        Unanswered::Blocked => "not asked for its stack: its thread blocks the signal",
        Unanswered::Taken => "not asked for its stack: the program uses the signal itself",
        Unanswered::Traced => "not asked for its stack: a debugger is attached",
        Unanswered::Sleeping => {
            "not asked for its stack: outside MPI it sleeps in a system call that a signal would end"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::symbols::SourceLocation;

    fn function(name: Option<&str>, line: Option<u32>, module: &str, own: bool) -> StackFunction {
        let file = line.map(|_| "/src/heat.c".to_owned());
        let place = SourceLocation { function: name.map(str::to_owned), file, line };
        StackFunction { place, module: module.into(), own }
    }

    #[test]
    fn innermost_function_and_those_of_the_program_are_shown() {
        let text = |functions: &[StackFunction]| {
            functions_text(&ThreadStack {
                at_s: 1.0,
                complete: true,
                functions: functions.to_vec(),
            })
        };
        let poll = function(Some("poll"), None, "/lib/libc.so.6", false);
        let wait = function(None, None, "/lib/libmpi.so.40", false);
        let solve = |line| function(Some("solve"), Some(line), "/home/heat", true);
        let start = function(Some("_start"), None, "/home/heat", true);
        assert_eq!(
            text(&[poll.clone(), wait.clone(), solve(42), solve(7), start]),
            "poll (libc.so.6) … solve (heat.c:42) < solve (heat.c:7)"
        );
        let deep: Vec<StackFunction> = (1..=6).map(solve).collect();
        assert_eq!(text(&deep).matches("solve").count(), MAX_FUNCTIONS);
        assert!(text(&deep).ends_with(" < …"), "{}", text(&deep));
        assert_eq!(text(&[wait]), "? (libmpi.so.40)");
        assert_eq!(text(&[poll]), "poll (libc.so.6)");
    }
}
