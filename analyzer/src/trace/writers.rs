//! How the states of the processes that write a run's files are found: now, or as of a snapshot.

use std::collections::BTreeMap;
use std::path::Path;

use trace_format::reader::RankFile;

use super::facts::RankFacts;
use super::process::ProcessState;
use super::run_json::RunJson;

/// How the states of a run's processes are found.
pub(super) enum Writers {
    /// They may be running.
    Live,
    /// They are those of a snapshot.
    Then(BTreeMap<u32, String>),
}

impl Writers {
    /// Those of a run, which may be a snapshot. What is wrong with its description is said elsewhere.
    pub fn of_directory(directory: &Path) -> Self {
        let snapshot = RunJson::read(directory).ok().and_then(|run| run.snapshot);
        snapshot.map_or(Self::Live, |snapshot| Self::Then(snapshot.processes))
    }

    /// State of the process that writes a file; [`ProcessState::Unknown`] if MPI_Finalize returned.
    pub fn state(&self, file: &RankFile) -> ProcessState {
        match self {
            _ if RankFacts::from_definitions(&file.definitions).finalized() => {
                ProcessState::Unknown
            }
            Self::Live => ProcessState::detect(file),
            Self::Then(states) => {
                let name = states.get(&file.fixed.rank);
                name.map_or(ProcessState::Unknown, |name| ProcessState::from_name(name))
            }
        }
    }

    /// Whether files may still change.
    pub fn may_run(&self) -> bool {
        matches!(self, Self::Live)
    }
}
