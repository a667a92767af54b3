//! Determines the meaning of a call from its procedure's row in the table.
//!
//! This is the only place that defines what a function is for, what it does to messages and
//! requests, which ranks it waits for, and which fields of its record are significant. The
//! recorder's build script reads the [`plan`] of every procedure, the analyzer everything else.
//!
//! | file | contents |
//! |---|---|
//! | `class` | the purpose of a function |
//! | `operation` | the effect of a call on messages, requests and collective operations |
//! | `movement` | where collective operations move data |
//! | `synchronisation` | the ranks that a call's result depends on |
//! | `plan` | the positions of its arguments |

mod class;
pub mod errors;
pub mod functions;
mod movement;
mod operation;
pub mod plan;
pub mod procedures;
mod synchronisation;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::functions::FIRST_FUNCTION;
use crate::slot::Detail;
pub use class::{Class, lists};
pub use movement::Movement;
pub use operation::{EpochCall, Operation, SendMode};
use plan::{NO_SIDE, NONE, Plan, Shape};
pub use synchronisation::Synchronises;

/// The role of the peer in a call's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The call has no peer.
    Nobody,
    /// The rank that it sends to.
    Destination,
    /// The rank that it receives from; the status's source if there is a status.
    Source,
    /// The root of a collective operation, or of a call that makes a communicator.
    Root,
    /// The rank whose memory is accessed, locked or flushed.
    Target,
    /// A leader, as a rank of a communicator other than the record's.
    Leader,
}

impl Peer {
    /// Whether it is a rank of the record's communicator.
    pub fn is_on_communicator(self) -> bool {
        !matches!(self, Self::Nobody | Self::Leader)
    }
}

/// The object that a call works on besides a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A window.
    Window,
    /// A file.
    File,
}

/// The object that a call makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A communicator.
    Communicator,
    /// A window or a file.
    Object(Object),
}

/// The significant fields of a call's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// Whether it has a communicator: its own, or that of its window or file.
    pub communicator: bool,
    /// The role of `peer`.
    pub peer: Peer,
    /// Whether it has a message tag.
    pub tag: bool,
    /// Whether it has bytes (those of the buffer for a posted receive).
    pub bytes: bool,
    /// Whether it has bytes received in addition to those sent.
    pub received: bool,
    /// Whether its bytes are received and not sent, because it has no send buffer.
    pub only_receives: bool,
    /// Whether it has a request or a message; for a call on several requests, the completed one.
    pub request: bool,
    /// The window or file that it works on.
    pub object: Option<Object>,
    /// The object that it makes. The field of the bytes then holds its id.
    pub makes: Option<Made>,
}

impl Fields {
    /// What [`Slot::detail`](crate::slot::Slot::detail) holds. A status names the tag of a
    /// completed request.
    #[inline]
    pub fn detail(&self) -> Detail {
        match () {
            () if self.received => Detail::Received,
            () if self.object.is_some() => Detail::Object,
            () if self.tag || self.request => Detail::Tag,
            () => Detail::Nothing,
        }
    }

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

    fn from_plan(plan: &Plan, class: Class) -> Self {
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
            // The status of a received message names the sender.
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

/// The meaning of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Its name; for a procedure the base name, `MPI_…` without `_c`.
    pub name: String,
    /// Its purpose.
    pub class: Class,
    /// Its effect on messages, requests and collective operations.
    pub operation: Operation,
    /// Name of the blocking form of a collective operation; otherwise the function's own name.
    pub blocking_form: String,
    /// The ranks that its result depends on.
    pub synchronises: Synchronises,
    /// Where it moves data; `None` if it is not a collective operation.
    pub movement: Option<Movement>,
    /// The significant fields of its record.
    pub fields: Fields,
    /// Whether it may find nothing and return at once, as tests and probes do.
    pub polls: bool,
    /// Whether one completed request of several is enough for it.
    pub completes_any: bool,
    /// Whether it returns, or a test succeeds, only when all of its conditions are fulfilled.
    pub needs_all: bool,
    /// How it sends.
    pub send_mode: SendMode,
    /// Whether a call's own record says how many bytes it moved. If a call posts a receive or makes
    /// a persistent request, the record has the size of the buffer.
    pub moves_bytes: bool,
}

impl Meaning {
    /// The meaning of a function by name. A name outside MPI's table is an interposed compute
    /// function.
    pub fn by_name(name: &str) -> &'static Self {
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
        let plan = Plan::new(function, name, class, &procedure.parameters, false);
        let operation = Operation::from_procedure(procedure, class);
        Self {
            name: name.to_owned(),
            class,
            operation,
            blocking_form: operation::blocking_form(name),
            synchronises: synchronisation::synchronises(name, class),
            movement: movement::movement(name, class),
            fields: Fields::from_plan(&plan, class),
            polls: plan.polls,
            completes_any: matches!(plan.shape, Shape::Any | Shape::Some)
                || plan.shape == Shape::All && plan.polls,
            needs_all: needs_all(&plan, operation),
            send_mode: SendMode::from_name(name),
            moves_bytes: moves_bytes(name, class, &plan),
        }
    }

    /// The meaning of a function outside MPI's table.
    fn unlisted(name: &str) -> Self {
        let class = class::class_of(name);
        Self {
            name: name.to_owned(),
            class,
            operation: Operation::Nothing,
            blocking_form: name.to_owned(),
            synchronises: Synchronises::Nobody,
            movement: None,
            fields: Fields::NONE,
            polls: false,
            completes_any: false,
            needs_all: true,
            send_mode: SendMode::Standard,
            moves_bytes: class == Class::Compute,
        }
    }
}

static TABLE: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
    let all = (FIRST_FUNCTION..).zip(procedures::all());
    all.map(|(function, procedure)| (procedure.name.clone(), Meaning::new(function, &procedure)))
        .collect()
});

/// A procedure unknown to this version's table.
static UNKNOWN: LazyLock<Meaning> = LazyLock::new(|| Meaning::unlisted("MPI_unknown"));

fn needs_all(plan: &Plan, operation: Operation) -> bool {
    use Operation::{CompleteOne, CompleteSeveral, Epoch};
    let is_one_of_several = matches!(plan.shape, Shape::Any | Shape::Some);
    let completes = matches!(operation, CompleteOne | CompleteSeveral | Epoch(_));
    !is_one_of_several && (!plan.polls || completes)
}

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
