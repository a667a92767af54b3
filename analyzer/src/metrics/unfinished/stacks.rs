//! Stacks of threads that a watcher asked for when the ranks did not move.

use serde::Serialize;
use trace_format::header::Module;

use super::position::{RankContext, RecentCalls};
use crate::trace::modules::{call_before, code_of, in_file, module_of, modules};
use crate::trace::symbols::{SourceLocation, Symbols};

/// Where a thread was when it was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadStack {
    /// When it was asked, global seconds.
    pub at_s: f64,
    /// Whether the last function is the thread's first.
    pub complete: bool,
    /// Innermost first.
    pub functions: Vec<StackFunction>,
}

/// A function on a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StackFunction {
    #[serde(flatten)]
    pub place: SourceLocation,
    /// Path of the file that contains its code; empty if unknown.
    pub module: String,
    /// Whether it is in the program's own file, or a script's; false in libraries.
    pub own: bool,
}

impl ThreadStack {
    /// The last stack that a thread was asked for, if it has neither begun nor ended a call since.
    pub(super) fn of_thread(
        at: &RankContext,
        tail: &RecentCalls,
        symbols: &mut Symbols,
    ) -> Option<Self> {
        let file = &at.reading.trace.file;
        let os_id = file.threads.iter().find(|thread| thread.number == tail.thread)?.os_id;
        let last = tail.calls.back().map_or(0, |event| event.end.unwrap_or(event.begin));
        let stack = file.stacks.iter().rfind(|stack| stack.os_id == os_id)?;
        if stack.ticks < last {
            return None;
        }
        let modules = modules(&file.definitions);
        let code: Vec<&Module> = code_of(&file.definitions).collect();
        let mut functions = Vec::new();
        for (number, address) in stack.addresses.iter().enumerate() {
            // All but the innermost are those that calls return to.
            let address = if number == 0 { *address } else { call_before(*address) };
            let script = code.iter().find(|code| (code.begin..code.end).contains(&address));
            let module = script
                .copied()
                .or_else(|| Some(modules[module_of(&modules, address, stack.ticks)?]));
            let (path, identity, address) = in_file(module, address);
            let is_program = module.is_some() && path == file.header.program;
            let places = match module {
                Some(_) => symbols.frames(path, identity, address),
                None => vec![SourceLocation::default()],
            };
            functions.extend(places.into_iter().map(|place| StackFunction {
                place,
                module: if script.is_some() { String::new() } else { path.to_owned() },
                own: script.is_some() || is_program,
            }));
        }
        // The interpreter is no part of a script.
        if functions.iter().any(|of| of.own && of.module.is_empty()) {
            functions.iter_mut().for_each(|of| of.own &= of.module.is_empty());
        }
        let at_s = at.time.clock.seconds(stack.ticks);
        Some(Self { at_s, complete: stack.is_complete, functions })
    }
}
