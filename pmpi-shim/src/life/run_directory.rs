//! The run directory: one rank makes it and tells the others.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trace_format::files::rank_file_path;
use trace_format::layout::{FixedHeader, MAGIC};
use trace_format::plain::read_plain;
use trace_format::settings::OUT;

use crate::clock::exchange::Exchanger;
use crate::host::machine;
use crate::host::presence;
use crate::host::run_id::{self, RUN_ID_BYTES, RunId};
use crate::host::settings::Settings;
use crate::host::warn::warn;
use crate::mpi::agreement::{self, Participants};
use crate::mpi::library::Job;
use crate::store::directories::{self, CreateError};
use crate::store::stage;
use crate::store::trace_file;

/// Maximum length of a path that rank 0 passes to the others.
const MAX_PATH_BYTES: usize = 4096;
/// Number of directories tried if the requested one already holds a run.
const MAX_DIRECTORIES: u32 = 1000;
/// How long a directory that another rank has just made may be without a file's header.
const HEADER_PATIENCE: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A run's directory and id, decided by one rank for all.
pub enum RunDirectory {
    Chosen(PathBuf, RunId),
    Refused(String),
}

/// Has one rank make the directory and its own file and tell the others. If MPI's constants are unknown, every rank uses the directory from
/// the environment.
pub fn agree_on_directory(
    settings: &Settings,
    job: &Job,
    participants: &Participants,
    exchanger: Option<&Exchanger>,
) -> RunDirectory {
    let rank = job.rank;
    let decides = rank == participants.root();
    let Some(exchanger) = exchanger else {
        let Some(out) = settings.out.clone() else {
            return RunDirectory::Refused(format!(
                "{} must name the run directory, because this version does not know the MPI library",
                OUT.name
            ));
        };
        return match decides {
            true => make_run_directory(settings, &out, rank, run_id::without_messages()),
            false => RunDirectory::Chosen(out, run_id::without_messages()),
        };
    };
    // The run's id, then the path; all zeros if the deciding rank cannot record.
    let mut message = vec![0u8; RUN_ID_BYTES + MAX_PATH_BYTES];
    let mut chosen = RunDirectory::Refused(String::new());
    if decides {
        let out = settings.out.clone().unwrap_or_else(default_directory);
        let id = if *participants == Participants::Everyone {
            run_id::fresh()
        } else {
            run_id::without_messages()
        };
        chosen = make_run_directory(settings, &out, rank, id);
        if let RunDirectory::Chosen(directory, id) = &chosen {
            let bytes = directory.as_os_str().as_encoded_bytes();
            if bytes.len() < MAX_PATH_BYTES {
                message[..RUN_ID_BYTES].copy_from_slice(id);
                message[RUN_ID_BYTES..][..bytes.len()].copy_from_slice(bytes);
            } else {
                chosen =
                    RunDirectory::Refused("the path of the run directory is too long".to_owned());
            }
        }
    }
    let arrived = match participants {
        Participants::Everyone => exchanger.broadcast(&mut message),
        Participants::Some(_) => agreement::send_to_others(job, participants, &mut message),
    };
    if !arrived {
        return RunDirectory::Refused("MPI refused the recorder's own broadcast".to_owned());
    }
    if decides {
        return chosen;
    }
    let (id, path) = message.split_at(RUN_ID_BYTES);
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(MAX_PATH_BYTES);
    match &path[..length] {
        [] => RunDirectory::Refused(format!("rank {} cannot record", participants.root())),
        path => RunDirectory::Chosen(
            PathBuf::from(OsStr::from_bytes(path)),
            id.try_into().unwrap_or([0; RUN_ID_BYTES]),
        ),
    }
}

fn default_directory() -> PathBuf {
    named_after_program(&machine::date_for_name())
}

fn named_after_program(ending: &str) -> PathBuf {
    let program = machine::program();
    let name = Path::new(&program).file_name().map_or("run".into(), |n| n.to_string_lossy());
    PathBuf::from(format!("{name}-{ending}.gammachi"))
}

/// Makes this rank's file before the ranks can talk to each other: all of a job on one host compute
/// the same directory and id. Where they do not, they agree when they meet.
pub fn make_rank_file_alone(settings: &Settings, (rank, size): (u32, u32)) -> RunDirectory {
    let key = presence::shared_key();
    let id = if size == 1 { run_id::fresh() } else { run_id::of_job(key) };
    let wanted = settings.out.clone().unwrap_or_else(|| match size {
        1 => default_directory(),
        _ => named_after_program(&format!("{key:016x}")),
    });
    let wanted = std::path::absolute(&wanted).unwrap_or(wanted);
    for attempt in 1..=MAX_DIRECTORIES {
        let directory = numbered(&wanted, attempt);
        if attempt > 1 {
            match directories::make_new(&directory) {
                Ok(()) => {}
                // Another rank, of this job or another, has made it and is about to write its file.
                Err(CreateError::Exists) => wait_for_header(&directory),
                Err(CreateError::Failed(reason)) => return RunDirectory::Refused(reason),
            }
        }
        if holds_another_run(&directory, &[id]) {
            continue;
        }
        match create_rank_file(settings, &directory, (rank, &id), rank == 0) {
            Ok(()) => return RunDirectory::Chosen(directory, id),
            // An earlier job of this command, which nothing tells from this one.
            Err(CreateError::Exists) => {}
            Err(CreateError::Failed(reason)) => return RunDirectory::Refused(reason),
        }
    }
    all_hold_runs(&wanted)
}

fn numbered(wanted: &Path, attempt: u32) -> PathBuf {
    let mut directory = wanted.to_owned();
    if attempt > 1 {
        directory.as_mut_os_string().push(format!("-{attempt}"));
    }
    directory
}

fn all_hold_runs(wanted: &Path) -> RunDirectory {
    RunDirectory::Refused(format!(
        "{} and the directories numbered after it already hold runs",
        wanted.display()
    ))
}

/// Makes the directory and the rank's file in it. Tries `DIR-2`, `DIR-3` … if `DIR` already holds a
/// run. Only ranks that cannot talk to each other, and so compute the same id, share a directory.
fn make_run_directory(
    settings: &Settings,
    wanted: &Path,
    rank: u32,
    run_id: RunId,
) -> RunDirectory {
    let wanted = std::path::absolute(wanted).unwrap_or_else(|_| wanted.to_owned());
    // Ranks of this job that opened a session before MPI_Init have files already.
    let early_id = run_id::of_job(presence::shared_key());
    for attempt in 1..=MAX_DIRECTORIES {
        let directory = numbered(&wanted, attempt);
        if attempt > 1 {
            // An existing directory belongs to somebody else, even if it is still empty.
            match directories::make_new(&directory) {
                Ok(()) => {}
                Err(CreateError::Exists) => continue,
                Err(CreateError::Failed(reason)) => return RunDirectory::Refused(reason),
            }
        } else if holds_another_run(&directory, &[run_id, early_id]) {
            continue;
        }
        match create_rank_file(settings, &directory, (rank, &run_id), true) {
            Ok(()) => return RunDirectory::Chosen(directory, run_id),
            Err(CreateError::Exists) => {}
            Err(CreateError::Failed(reason)) => return RunDirectory::Refused(reason),
        }
    }
    all_hold_runs(&wanted)
}

fn wait_for_header(directory: &Path) {
    let start = Instant::now();
    while first_header(directory).is_none() && start.elapsed() < HEADER_PATIENCE {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether a directory holds a rank file of another run, such as that of a parent world.
fn holds_another_run(directory: &Path, own: &[RunId]) -> bool {
    first_header(directory).is_some_and(|header| !own.contains(&header.run_id))
}

/// The header of a rank file of a directory.
fn first_header(directory: &Path) -> Option<FixedHeader> {
    let folders = directory.read_dir().into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_name().as_bytes().starts_with(b"ranks-"));
    let mut files = folders.flat_map(|folder| folder.path().read_dir()).flatten().flatten();
    // A file that is still empty says nothing. Otherwise one file is enough.
    files.find_map(|file| header_of(&file.path()))
}

/// The fixed header of a rank file, if it is written.
fn header_of(path: &Path) -> Option<FixedHeader> {
    let mut bytes = [0u8; size_of::<FixedHeader>()];
    // What is not a file is not waited for.
    let mut options = File::options();
    let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok().filter(|of| of.is_file())?;
    file.read_exact(&mut bytes).ok()?;
    read_plain::<FixedHeader>(&bytes).filter(|header| header.magic == MAGIC)
}

/// Makes the rank's file, in the staging directory if there is one that can be used. `chooses`: no
/// rank has yet claimed the run directory for this run.
pub fn create_rank_file(
    settings: &Settings,
    directory: &Path,
    (rank, run_id): (u32, &RunId),
    chooses: bool,
) -> Result<(), CreateError> {
    if let Some(staging) = &settings.stage {
        match stage::create(staging, directory, rank, run_id, chooses) {
            Err(CreateError::Failed(reason)) => {
                warn(&format!("not staged in {}: {reason}", staging.display()));
            }
            made => return made,
        }
    }
    let path = directory.join(rank_file_path(0, rank));
    directories::make_for(directory, &path).map_err(CreateError::Failed)?;
    trace_file::create(&path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::plain::bytes_of;

    #[test]
    fn directory_with_files_of_another_run_is_refused() {
        let name = format!("gammachi-run-directory-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let (ours, other) = ([7; RUN_ID_BYTES], [8; RUN_ID_BYTES]);
        assert!(!holds_another_run(&directory, &[ours]), "it does not exist");
        let path = directory.join(rank_file_path(0, 1));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, []).unwrap();
        assert!(!holds_another_run(&directory, &[ours]), "the file is empty");
        let mut header: FixedHeader = read_plain(&[0; size_of::<FixedHeader>()]).unwrap();
        (header.magic, header.run_id) = (MAGIC, other);
        std::fs::write(&path, bytes_of(&header)).unwrap();
        assert!(holds_another_run(&directory, &[ours]));
        assert!(!holds_another_run(&directory, &[ours, other]));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
