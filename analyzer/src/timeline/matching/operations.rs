//! The [`Operation`] of each function in a file, as far as it matters for matching.

use std::collections::HashMap;

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Meaning, Operation, Peer};
use trace_format::reader::Head;

/// Names of collective operations, with the same numbers for all files of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectiveNames {
    numbers: HashMap<String, u16>,
    names: Vec<CollectiveName>,
}

/// A collective operation and its properties.
#[derive(Debug, Clone)]
struct CollectiveName {
    name: String,
    rooted: bool,
    implicit: bool,
}

impl CollectiveNames {
    fn number(&mut self, name: &str) -> u16 {
        let meaning = Meaning::by_name(name);
        let base = meaning.blocking_form.clone();
        let next = self.names.len() as u16;
        *self.numbers.entry(base).or_insert_with_key(|base| {
            let implicit = meaning.operation == Operation::Together;
            let rooted = !implicit && meaning.fields.peer == Peer::Root;
            self.names.push(CollectiveName { name: base.clone(), rooted, implicit });
            next
        })
    }

    /// Name of the blocking form.
    pub fn name(&self, number: u16) -> &str {
        self.names.get(usize::from(number)).map_or("?", |of| of.name.as_str())
    }

    /// Whether it has a root.
    pub fn is_rooted(&self, number: u16) -> bool {
        self.names.get(usize::from(number)).is_some_and(|of| of.rooted)
    }

    /// Whether it is [`Operation::Together`].
    pub fn is_implicit(&self, number: u16) -> bool {
        self.names.get(usize::from(number)).is_some_and(|of| of.implicit)
    }
}

/// The operations of a file's functions.
#[derive(Debug, Clone)]
pub(super) struct Operations {
    /// By function number; the second number is that of a collective operation's name.
    table: Vec<(Operation, u16)>,
}

impl Operations {
    /// The operations of a file with these functions. Probes, implicit collectives, and epochs are left
    /// out unless `waiting` is set.
    pub fn new(functions: &[String], names: &mut CollectiveNames, waiting: bool) -> Self {
        let table = functions.iter().map(|name| {
            let operation = match Meaning::by_name(name).operation {
                Operation::Probe | Operation::Together | Operation::Epoch(_) if !waiting => {
                    Operation::Nothing
                }
                operation => operation,
            };
            let number = match operation {
                Operation::Collective
                | Operation::Icollective
                | Operation::CollectiveInit
                | Operation::Together => names.number(name),
                _ => 0,
            };
            (operation, number)
        });
        Self { table: table.collect() }
    }

    /// Whether an event with this fixed part matters for matching; runs of polls do if `polls` is
    /// set.
    #[inline]
    pub fn may_want(&self, head: &Head, polls: bool) -> bool {
        let function = head.function();
        function >= FIRST_FUNCTION
            && (self.operation(function).0 != Operation::Nothing || polls && head.is_long())
    }

    /// Operation of a function, and the number of its name if it is collective.
    #[inline]
    pub fn operation(&self, function: u16) -> (Operation, u16) {
        let index = usize::from(function.wrapping_sub(FIRST_FUNCTION));
        self.table.get(index).copied().unwrap_or((Operation::Nothing, 0))
    }
}
