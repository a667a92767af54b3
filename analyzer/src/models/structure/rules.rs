//! What libraries do, by size and number of members. Beside the ways that stay the same at every size, these change
//! where the libraries do.

use super::labels::{Kind, Pattern};
use super::library::Library;
use super::shape::Shape;
use super::work::Work;
use super::{mpich, open_mpi};

impl Library {
    fn way(self, pattern: Pattern, shape: Shape, bytes: f64) -> Option<Work> {
        match self {
            Self::Mpich => mpich::way(pattern, shape, bytes),
            Self::OpenMpi => open_mpi::way(pattern, shape, bytes),
        }
    }
}

/// What the library does, or, if it is not known, what each library does. In the same order whatever the numbers are.
pub(super) fn by_rule(
    library: Option<Library>,
    kind: Kind,
    bytes: f64,
    shape: Shape,
) -> Vec<Option<Work>> {
    let Kind::Collective(pattern) = kind else { return Vec::new() };
    let libraries = library.map_or(Library::ALL.to_vec(), |known| vec![known]);
    libraries.into_iter().map(|library| library.way(pattern, shape, bytes)).collect()
}
