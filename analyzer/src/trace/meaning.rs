//! Which fields of an event its function gives a meaning, from the table of MPI's procedures.

use trace_format::functions::{Class, class_of};
use trace_format::procedures::{Direction, Procedure};

/// Which of an event's fields its function gives a meaning.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meaning {
    pub(crate) communicator: bool,
    pub(crate) peer: bool,
    pub(crate) tag: bool,
    pub(crate) bytes: bool,
    pub(crate) received: bool,
    pub(crate) request: bool,
    pub(crate) completes: bool,
    /// The bytes' field is the number of a communicator, window or file.
    pub(crate) makes: bool,
    /// The tag's field is the number of a window or file.
    pub(crate) object: bool,
    pub(crate) compute: bool,
}

impl Meaning {
    /// Of an interposed compute function.
    pub(crate) fn compute() -> Self {
        Self { compute: true, ..Self::default() }
    }

    pub(crate) fn of(procedure: &Procedure) -> Self {
        let class = class_of(&procedure.name);
        let has = |kind: &str, directions: &[Direction]| {
            let mut parameters = procedure.parameters.iter();
            parameters.any(|p| p.kind == kind && directions.contains(&p.direction))
        };
        let named =
            |names: &[&str]| procedure.parameters.iter().any(|p| names.contains(&p.name.as_str()));
        let (inward, outward) = ([Direction::In, Direction::InOut], [Direction::Out]);
        let receives = matches!(class, Class::PointToPoint | Class::Probe);
        let makes = ["COMMUNICATOR", "WINDOW", "FILE"].iter().any(|kind| has(kind, &outward));
        let object = has("WINDOW", &inward) || has("FILE", &inward);
        let collective = class == Class::Collective;
        let matched = named(&["message"]) && receives;
        Self {
            communicator: has("COMMUNICATOR", &inward) || object,
            peer: named(&["dest", "source", "root", "target_rank"]) || matched,
            tag: named(&["tag", "sendtag"]) || matched,
            bytes: !makes
                && (has("BUFFER", &inward) || has("BUFFER", &outward) || class == Class::Probe),
            received: collective,
            request: has("REQUEST", &inward) || has("REQUEST", &outward) || matched,
            completes: matches!(
                procedure.name.as_str(),
                "MPI_Wait" | "MPI_Test" | "MPI_Waitany" | "MPI_Testany"
            ),
            makes,
            object,
            compute: false,
        }
    }
}
