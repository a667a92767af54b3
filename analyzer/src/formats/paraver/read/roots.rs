//! Who is the root of a collective operation: Extrae says on the root's call alone that it is the root;
//! here all members' calls of an operation come together.

use std::collections::HashMap;

use trace_format::writer::Position;

/// An operation whose root some member needs.
#[derive(Debug, Default)]
struct Open {
    function: u16,
    root: Option<i32>,
    /// Calls of other members that were written before the root was known.
    waiting: Vec<(usize, Position)>,
    members: usize,
}

/// What a member's call learns.
#[derive(Debug, PartialEq, Eq)]
pub enum Learned {
    /// The root, by its rank in the communicator.
    Root(i32),
    /// Nothing yet: [`Roots::wait`] with what is given, once the call is written.
    Later(Ticket),
}

/// Which operation it is: communicator, and which on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u32, u64);

/// Operations with a root whose members have not all come.
#[derive(Debug, Default)]
pub struct Roots {
    open: HashMap<Ticket, Open>,
    /// Calls so far, by communicator and task.
    calls: HashMap<(u32, usize), u64>,
    /// Calls whose root never was said.
    pub unknown: u64,
}

impl Roots {
    /// A member's call. `root` is what the call itself says. Calls to be changed now, with their root, go
    /// to `found`.
    pub fn call(
        &mut self,
        (communicator, size): (u32, usize),
        task: usize,
        function: u16,
        root: Option<i32>,
        mut found: impl FnMut(usize, Position, i32),
    ) -> Learned {
        let number = self.calls.entry((communicator, task)).or_default();
        let ticket = Ticket(communicator, *number);
        *number += 1;
        let open = self.open.entry(ticket).or_insert_with(|| Open { function, ..Open::default() });
        open.members += 1;
        // Members that call different functions do not belong together: tracing began or ended in between.
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
                Learned::Root(root)
            }
            None => Learned::Later(ticket),
        }
    }

    /// A member's call was written without its root.
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

    /// Nothing comes any more; gives the number of calls whose root is not known.
    pub fn finish(self) -> u64 {
        self.unknown + self.open.values().map(|open| open.waiting.len() as u64).sum::<u64>()
    }
}
