//! Finds the roots of collective operations. Extrae marks only the root's own call as that of the
//! root, so the calls of all members of an operation are collected here.

use std::collections::HashMap;

use trace_format::writer::Position;

/// An operation whose members have not all made their call.
#[derive(Debug, Default)]
struct Open {
    function: u16,
    root: Option<i32>,
    /// Calls of other members that were written before the root was known.
    waiting: Vec<(usize, Position)>,
    members: usize,
}

/// What is known of the root when a member's call is written.
#[derive(Debug, PartialEq, Eq)]
pub enum RootLookup {
    /// The root, by its rank in the communicator.
    Known(i32),
    /// Not known yet: call [`Roots::wait`] with the ticket once the call is written.
    Later(Ticket),
}

/// Identifies an operation: communicator, and number on the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u32, u64);

/// Operations with a root whose members have not all made their call.
#[derive(Debug, Default)]
pub struct Roots {
    open: HashMap<Ticket, Open>,
    /// Number of calls so far, by communicator and task.
    calls: HashMap<(u32, usize), u64>,
    /// Number of calls whose root is not known.
    pub unknown: u64,
}

impl Roots {
    /// Adds a member's call; `root` is the root that the call itself names. Earlier calls whose
    /// root becomes known are passed to `found`.
    pub fn call(
        &mut self,
        (communicator, size): (u32, usize),
        task: usize,
        function: u16,
        root: Option<i32>,
        mut found: impl FnMut(usize, Position, i32),
    ) -> RootLookup {
        let number = self.calls.entry((communicator, task)).or_default();
        let ticket = Ticket(communicator, *number);
        *number += 1;
        let open = self.open.entry(ticket).or_insert_with(|| Open { function, ..Open::default() });
        open.members += 1;
        // Calls of different functions do not belong to one operation: tracing began or ended in
        // between.
        let fits = open.function == function;
        if fits && open.root.is_none() && root.is_some() {
            open.root = root;
            for (task, at) in open.waiting.drain(..) {
                found(task, at, root.unwrap_or_default());
            }
        }
        let known = root.or(open.root.filter(|_| fits));
        let complete = open.members >= size;
        match known {
            Some(root) => {
                if complete {
                    self.close(ticket);
                }
                RootLookup::Known(root)
            }
            None => RootLookup::Later(ticket),
        }
    }

    /// Notes a member's call that was written without its root.
    pub fn wait(&mut self, ticket: Ticket, size: usize, task: usize, at: Position) {
        let Some(open) = self.open.get_mut(&ticket) else { return };
        open.waiting.push((task, at));
        if open.members >= size {
            self.close(ticket);
        }
    }

    fn close(&mut self, ticket: Ticket) {
        let left = self.open.remove(&ticket).map_or(0, |open| open.waiting.len());
        self.unknown += left as u64;
    }

    /// Ends the search; returns the number of calls whose root is not known.
    pub fn finish(self) -> u64 {
        self.unknown + self.open.values().map(|open| open.waiting.len() as u64).sum::<u64>()
    }
}
