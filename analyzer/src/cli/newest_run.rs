//! Selects the run that a command reads if none is named: the newest in the working directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::{CommandError, eprint_message};
use crate::trace::run_json::RUN_JSON;

/// Folder of the first thousand rank files. Runs that were not made by `gammachi run` have no
/// `run.json`.
const FIRST_RANKS: &str = "ranks-000";

/// Returns the named run, or else the newest run of the working directory, whose name is printed on
/// standard error.
pub fn named_or_newest(run: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(run) = run {
        return Ok(run.to_owned());
    }
    let newest = newest_in(Path::new(".")).ok_or_else(|| {
        CommandError::usage(
            "no run is named and this folder has none; record one with gammachi run -- mpirun -n 4 \
             ./app, or name a run directory",
        )
    })?;
    eprint_message(&format!("{}: the newest run here", newest.display()));
    Ok(newest)
}

/// The run directory in a folder that was begun last.
fn newest_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let runs = entries.filter_map(|entry| Some((begun(&entry.path())?, entry.file_name())));
    runs.max().map(|(_, name)| PathBuf::from(name))
}

/// When a run directory was begun; `None` if it is not a run directory.
fn begun(directory: &Path) -> Option<SystemTime> {
    let changed = |name: &str| fs::metadata(directory.join(name)).and_then(|it| it.modified()).ok();
    changed(FIRST_RANKS).or_else(|| changed(RUN_JSON))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::Duration;

    use super::*;
    use crate::synthetic_trace::RunDirectory;

    #[test]
    fn finds_newest_run_of_folder() {
        let folder = RunDirectory::new();
        let path = folder.path();
        assert_eq!(newest_in(path), None);
        assert_eq!(newest_in(&path.join("absent")), None);
        for (name, marker, age_s) in
            [("b", RUN_JSON, 30), ("c", FIRST_RANKS, 10), ("a", RUN_JSON, 20), ("d", "notes", 1)]
        {
            fs::create_dir(path.join(name)).unwrap();
            let marker = path.join(name).join(marker);
            let file = File::create(marker).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age_s);
            file.set_times(FileTimes::new().set_modified(then)).unwrap();
        }
        assert_eq!(newest_in(path), Some(PathBuf::from("c")));
    }
}
