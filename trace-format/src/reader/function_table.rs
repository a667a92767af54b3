//! The functions of a file, by number. The files of a run have the same ones, and a table of them is
//! many times as large as the rest of a header.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::meaning::Meaning;

/// The functions of a file in the order of their numbers, from
/// [`FIRST_FUNCTION`](crate::functions::FIRST_FUNCTION).
#[derive(Debug)]
pub struct FunctionTable {
    /// The name of each.
    pub names: Vec<String>,
    /// What calls of each mean.
    pub meanings: Vec<&'static Meaning>,
}

/// The tables of all open files, by the text that names their functions.
static TABLES: Mutex<Option<HashMap<String, Weak<FunctionTable>>>> = Mutex::new(None);

impl FunctionTable {
    /// The table of a file with these names, one per line.
    pub(super) fn shared(names: String) -> Arc<Self> {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = tables.get_or_insert_default();
        if let Some(known) = tables.get(&names).and_then(Weak::upgrade) {
            return known;
        }
        let all: Vec<String> = names.lines().map(str::to_owned).collect();
        let meanings = all.iter().map(|name| Meaning::by_name(name)).collect();
        let table = Arc::new(Self { names: all, meanings });
        tables.retain(|_, table| table.strong_count() > 0);
        tables.insert(names, Arc::downgrade(&table));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_the_same_names_share_a_table() {
        let [a, b] = ["MPI_Send\nMPI_Recv", "MPI_Send\nMPI_Recv"];
        let (a, b) = (FunctionTable::shared(a.into()), FunctionTable::shared(b.into()));
        assert!(Arc::ptr_eq(&a, &b));
        assert_eq!(a.names, ["MPI_Send", "MPI_Recv"]);
        assert_eq!(a.meanings[1].name, "MPI_Recv");
        let other = FunctionTable::shared("MPI_Recv".into());
        assert_eq!(other.names, ["MPI_Recv"]);
    }
}
