//! Tells what a call means, from its procedure's row in the table.
//!
//! The only place that says what a function is for, what it does to messages and requests, whom it waits
//! for, and what the fields of its record say. The recorder's build script reads the [`plan`] of every
//! procedure, the analyzer the rest.
//!
//! | file | its idea |
//! |---|---|
//! | `class` | what a function is for |
//! | `operation` | what a call does to messages, requests and collective operations |
//! | `synchronisation` | whose part its result depends on |
//! | `plan` | where its arguments stand |

mod class;
mod operation;
pub mod plan;
mod synchronisation;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::functions::FIRST_FUNCTION;
use crate::procedures;
pub use class::Class;
pub use operation::Operation;
use plan::{NO_SIDE, NONE, Plan, Shape};
pub use synchronisation::Synchronises;

/// What the peer of a call's record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The call has none.
    Nobody,
    /// Where it sends to.
    Destination,
    /// Where it receives from; with a status, what that says.
    Source,
    /// The root of a collective operation, or of what makes a communicator.
    Root,
    /// Whose memory is accessed, locked or flushed.
    Target,
    /// A leader, as a rank of another communicator than the record names.
    Leader,
}

impl Peer {
    /// Whether it is a rank of the communicator that the record names.
    pub fn is_on_communicator(self) -> bool {
        !matches!(self, Self::Nobody | Self::Leader)
    }
}

/// What a call works on beside a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A window.
    Window,
    /// A file.
    File,
}

/// What a call makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A communicator.
    Communicator,
    /// A window or a file.
    Object(Object),
}

/// Which fields of a call's record say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// A communicator: its own, or its window's or file's.
    pub communicator: bool,
    /// Whom `peer` names.
    pub peer: Peer,
    /// Whether it has a message tag.
    pub tag: bool,
    /// Whether it has bytes (of a posted receive the buffer's).
    pub bytes: bool,
    /// Whether it has bytes received beside those sent.
    pub received: bool,
    /// Whether its bytes are received, not sent: it has no buffer to send from.
    pub only_receives: bool,
    /// Whether it names a request, or a message; a call on several the one that it completed.
    pub request: bool,
    /// The window or file that it works on.
    pub object: Option<Object>,
    /// What it makes; the field of the bytes has its number then.
    pub makes: Option<Made>,
}

impl Fields {
    const NONE: Self = Self {
        communicator: false,
        peer: Peer::Nobody,
        tag: false,
        bytes: false,
        received: false,
        only_receives: false,
        request: false,
        object: None,
        makes: None,
    };

    fn of(plan: &Plan, class: Class) -> Self {
        let objects = if class == Class::Io { Object::File } else { Object::Window };
        let works_on = plan.object != NONE || plan.freed_object != NONE;
        let takes_message =
            plan.message != NONE && matches!(class, Class::PointToPoint | Class::Probe);
        let makes = match () {
            () if plan.new_communicator != NONE => Some(Made::Communicator),
            () if plan.new_object != NONE => Some(Made::Object(objects)),
            () => None,
        };
        let peer = match class {
            // A received message says in its status who sent it.
            _ if plan.peer == NONE && takes_message && plan.status != NONE => Peer::Source,
            _ if plan.peer == NONE => Peer::Nobody,
            _ if plan.rooted => Peer::Root,
            Class::OneSided => Peer::Target,
            Class::Communicators => Peer::Leader,
            _ if plan.receives && plan.shape != Shape::SendReceive => Peer::Source,
            _ => Peer::Destination,
        };
        Self {
            communicator: plan.communicator != NONE || plan.freed_communicator != NONE || works_on,
            peer,
            tag: plan.tag != NONE || takes_message && plan.status != NONE,
            bytes: makes.is_none()
                && (plan.send != NO_SIDE || plan.receive != NO_SIDE || class == Class::Probe),
            received: class == Class::Collective,
            only_receives: plan.send == NO_SIDE && plan.receive != NO_SIDE,
            request: plan.request != NONE || plan.request_out != NONE || takes_message,
            object: works_on.then_some(objects),
            makes,
        }
    }
}

/// What a function means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Its name; of a procedure the base name, `MPI_…` without `_c`.
    pub name: String,
    /// What it is for.
    pub class: Class,
    /// What it does to messages, requests and collective operations.
    pub operation: Operation,
    /// Name of the blocking form of a collective operation; else its own.
    pub blocking_form: String,
    /// Whose part its result depends on.
    pub synchronises: Synchronises,
    /// What its record says.
    pub fields: Fields,
    /// Whether it may find nothing and return at once: tests and probes.
    pub polls: bool,
    /// Whether one completed request of several is enough for it.
    pub completes_any: bool,
    /// Whether a call's own record says how many bytes it moved. Where a call posts a receive or makes a
    /// persistent request, the record has the buffer's size.
    pub moves_bytes: bool,
}

impl Meaning {
    /// Of a function by its name; what MPI's table does not have is an interposed compute function.
    pub fn of(name: &str) -> &'static Self {
        static COMPUTE: LazyLock<Meaning> = LazyLock::new(|| Meaning::unlisted("gammachi_work"));
        match TABLE.get(name) {
            Some(meaning) => meaning,
            None if name.starts_with("MPI_") => &UNKNOWN,
            None => &COMPUTE,
        }
    }

    fn new(function: u16, procedure: &procedures::Procedure) -> Self {
        let name = procedure.name.as_str();
        let class = class::class_of(name);
        let plan = Plan::of(function, name, class, &procedure.parameters, false);
        let operation = Operation::of(procedure, class);
        Self {
            name: name.to_owned(),
            class,
            operation,
            blocking_form: operation::blocking_form(name),
            synchronises: synchronisation::of(name, class),
            fields: Fields::of(&plan, class),
            polls: plan.polls,
            completes_any: matches!(plan.shape, Shape::Any | Shape::Some)
                || plan.shape == Shape::All && plan.polls,
            moves_bytes: moves_bytes(name, class, &plan),
        }
    }

    /// Of a function that MPI's table does not have.
    fn unlisted(name: &str) -> Self {
        let class = class::class_of(name);
        Self {
            name: name.to_owned(),
            class,
            operation: Operation::Nothing,
            blocking_form: name.to_owned(),
            synchronises: Synchronises::Nobody,
            fields: Fields::NONE,
            polls: false,
            completes_any: false,
            moves_bytes: class == Class::Compute,
        }
    }
}

static TABLE: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
    let all = (FIRST_FUNCTION..).zip(procedures::all());
    all.map(|(function, procedure)| (procedure.name.clone(), Meaning::new(function, &procedure)))
        .collect()
});

/// A procedure that the table of this version does not have.
static UNKNOWN: LazyLock<Meaning> = LazyLock::new(|| Meaning::unlisted("MPI_unknown"));

fn moves_bytes(name: &str, class: Class, plan: &Plan) -> bool {
    match class {
        Class::PointToPoint => {
            let posts = matches!(name, "MPI_Irecv" | "MPI_Imrecv");
            (plan.send != NO_SIDE || plan.receive != NO_SIDE) && !posts && !plan.persistent
        }
        Class::Collective => !plan.persistent,
        Class::OneSided => !name.starts_with("MPI_Win_"),
        Class::Io => name.contains("read") || name.contains("write"),
        Class::Datatypes => name.starts_with("MPI_Pack") || name.starts_with("MPI_Unpack"),
        Class::Compute => true,
        _ => false,
    }
}
