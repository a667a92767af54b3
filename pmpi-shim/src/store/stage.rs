//! Node-local staging: a rank's file is written below `GAMMACHI_STAGE` and moved to the run
//! directory when MPI is finalized.
//!
//! While the ranks run, the run directory holds one small file made by the rank that chose the
//! directory. It reserves the directory and names the location of that rank's data. If the job is
//! killed, `gammachi collect` gathers what remains in the staging directories.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::files::{STAGED_EXTENSION, rank_file_path};
use trace_format::private_directory;

use crate::host::lock::Lock;
use crate::host::machine;
use crate::host::run_id::RunId;
use crate::host::warn::warn;
use crate::store::directories::{self, CreateError};
use crate::store::file_space::may_grow_to;
use crate::store::trace_file;

/// Where this rank's file is, and where it will be moved.
struct Staged {
    file: PathBuf,
    home: PathBuf,
    /// The run directory.
    directory: PathBuf,
    /// The file that reserves the run directory, if this rank made it.
    claim: Option<PathBuf>,
}

static STAGED: Lock<Option<Staged>> = Lock::new(None);
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Makes the rank's file in the staging directory. `claims`: this rank chooses the run directory.
pub fn create(
    stage: &Path,
    directory: &Path,
    rank: u32,
    run_id: &RunId,
    claims: bool,
) -> Result<(), CreateError> {
    let home = directory.join(rank_file_path(0, rank));
    if home.exists() {
        return Err(CreateError::Exists);
    }
    let job = stage.join(job_name(run_id));
    let run = job.join(directory.file_name().unwrap_or("run.gammachi".as_ref()));
    let file = run.join(rank_file_path(0, rank));
    let claim = match claims {
        true => Some(claim(directory, &home, &file)?),
        false => None,
    };
    let made = make_private(&job)
        .and_then(|()| directories::make_for(&run, &file))
        .map_err(CreateError::Failed);
    if let Err(error) = made.and_then(|()| trace_file::create(&file)) {
        if let Some(claim) = claim {
            let _ = fs::remove_file(claim);
        }
        return Err(error);
    }
    IS_USED.store(true, Relaxed);
    *STAGED.lock() = Some(Staged { file, home, directory: directory.to_owned(), claim });
    Ok(())
}

/// Name of the job's folder on this host. Jobs that share a staging directory never share a folder.
fn job_name(run_id: &RunId) -> String {
    let mut job = String::from("gammachi-");
    match run_id.iter().any(|byte| *byte != 0) {
        true => job.extend(run_id.iter().map(|byte| format!("{byte:02x}"))),
        false => job += &format!("{}-{}", std::process::id(), machine::date_for_name()),
    }
    job
}

/// Makes the job's folder, or verifies that a rank of this user made it. All users may be able to
/// write to the staging directory, so somebody else may have taken the name to obtain the data.
fn make_private(job: &Path) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{}: {error}", job.display());
    private_directory::make(job).map_err(wrong)?;
    let there = fs::symlink_metadata(job).map_err(wrong)?;
    // SAFETY: the system call has no arguments.
    let own = there.uid() == unsafe { libc::geteuid() };
    match there.is_dir() && own && there.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(format!("{} belongs to another user or is open to others", job.display())),
    }
}

/// Reserves the run directory for this run, and records in it where the data are for now.
fn claim(directory: &Path, home: &Path, file: &Path) -> Result<PathBuf, CreateError> {
    directories::make_for(directory, home).map_err(CreateError::Failed)?;
    let path = home.with_extension(STAGED_EXTENSION);
    let text = format!("{}:{}\n", machine::host(), file.display());
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = made.and_then(|mut claim| io::Write::write_all(&mut claim, text.as_bytes()));
    match written {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(CreateError::Exists),
        Err(error) => {
            Err(CreateError::Failed(format!("cannot create {}: {error}", path.display())))
        }
    }
}

/// Whether this rank's file is, or was, in the staging directory.
pub fn is_used() -> bool {
    IS_USED.load(Relaxed)
}

/// Moves the completed file to the run directory. If that fails the file stays, and one line says
/// where.
pub fn move_to_run_directory() {
    let Some(staged) = STAGED.lock().take() else {
        return;
    };
    if let Err(error) = copy(&staged.file, &staged.directory, &staged.home) {
        warn(&format!(
            "this rank's trace remains in {} on {}, because it cannot be moved to {}: {error}; \
             gather it with gammachi collect",
            staged.file.display(),
            machine::host(),
            staged.home.display()
        ));
        return;
    }
    let _ = fs::remove_file(&staged.file);
    // Remove folders that are empty now: the rank's, the run's, the job's.
    for folder in staged.file.ancestors().skip(1).take(3) {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    if let Some(claim) = staged.claim {
        let _ = fs::remove_file(claim);
    }
}

/// Copies under a temporary name first, so that there is never half a file under the final name.
fn copy(from: &Path, directory: &Path, to: &Path) -> io::Result<()> {
    directories::make_for(directory, to).map_err(io::Error::other)?;
    let mut half = to.as_os_str().to_owned();
    half.push(".part");
    let copied = (|| {
        let mut source = File::open(from)?;
        may_grow_to(source.metadata()?.len()).map_err(io::Error::other)?;
        let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
        io::copy(&mut source, &mut target)?;
        target.sync_all()?;
        // Unlike a rename, a link never replaces another run's file. Not every file system has
        // links.
        match fs::hard_link(&half, to) {
            Ok(()) => fs::remove_file(&half),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) => fs::rename(&half, to),
        }
    })();
    if copied.is_err() {
        let _ = fs::remove_file(&half);
    }
    copied
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::*;

    #[test]
    fn rejects_folder_open_to_others() {
        let stage = std::env::temp_dir().join(format!("stage-private-{}", std::process::id()));
        fs::create_dir_all(&stage).unwrap();
        assert_eq!(make_private(&stage.join("new")), Ok(()));
        assert_eq!(make_private(&stage.join("new")), Ok(()), "another rank made it");
        fs::DirBuilder::new().mode(0o755).create(stage.join("open")).unwrap();
        assert!(make_private(&stage.join("open")).is_err());
        symlink(stage.join("new"), stage.join("link")).unwrap();
        assert!(make_private(&stage.join("link")).is_err());
        fs::remove_dir_all(stage).unwrap();
    }
}
