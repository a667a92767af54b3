//! Calls by which loops of a program are recognised.

use trace_format::meaning::{Class, Meaning};

/// Whether the function communicates. Tests and probes are left out, because how often they occur is chance.
pub fn may_turn_a_loop(meaning: &Meaning) -> bool {
    let communicates = matches!(
        meaning.class,
        Class::PointToPoint | Class::Collective | Class::Completion | Class::OneSided | Class::Io
    );
    communicates && !meaning.polls
}
