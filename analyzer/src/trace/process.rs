//! Finds out whether the process that writes a rank's file is still running.
//!
//! The process is identified by its id, on the same kernel and host, and by the file: the recorder
//! keeps the window that it writes mapped, and before it has one, the file open. A process with that
//! id that has neither is another one.

use std::fs::{self, File};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_format::reader::RankFile;

/// What is known of a rank's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    /// It is running on this host; with the kernel's letter for its state (`R` running or ready to
    /// run, `S` sleeping, `D` in an uninterruptible system call, `T` stopped).
    Runs(char),
    /// It ran on this host but has ended.
    Gone,
    /// It ran on another host, or cannot be inspected.
    Unknown,
}

impl ProcessState {
    /// State of the process that writes a file.
    pub fn detect(file: &RankFile) -> Self {
        let header = &file.header;
        let here = same_kernel(&header.boot_id) && same_host(&header.host);
        if !here || file.fixed.pid == 0 {
            return Self::Unknown;
        }
        let process = Path::new("/proc").join(file.fixed.pid.to_string());
        if !process.exists() {
            return Self::Gone;
        }
        let Some(state) = fs::read_to_string(process.join("stat")).ok().and_then(|s| state(&s))
        else {
            return Self::Unknown;
        };
        match (fs::read_to_string(process.join("maps")), fs::metadata(&file.path)) {
            (Ok(maps), Ok(metadata)) => {
                match maps_file(&maps, metadata.st_ino()) || has_open(&process, &metadata) {
                    true => Self::Runs(state),
                    false => Self::Gone,
                }
            }
            _ => Self::Unknown,
        }
    }

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs('R') => "on a core",
            Self::Runs('T' | 't') => "stopped",
            Self::Runs(_) => "asleep",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }

    /// The state of this name.
    pub(super) fn from_name(name: &str) -> Self {
        let states = [Self::Runs('R'), Self::Runs('T'), Self::Runs('S'), Self::Gone];
        states.into_iter().find(|state| state.name() == name).unwrap_or(Self::Unknown)
    }

    /// Whether it is running.
    pub fn runs(self) -> bool {
        matches!(self, Self::Runs(_))
    }
}

/// A process that is asked for its state again and again: without the search for the file that it has mapped, which takes
/// longer than all else.
#[derive(Debug)]
pub struct KnownProcess {
    stat: File,
    /// Where its program and stack lie.
    addresses: String,
}

impl KnownProcess {
    /// The process that writes a file, if it runs on this host.
    pub fn new(file: &RankFile) -> Option<Self> {
        let stat = File::open(format!("/proc/{}/stat", file.fixed.pid)).ok()?;
        // From here on, the number cannot be that of another process.
        let addresses = addresses(&read(&stat))?.to_owned();
        ProcessState::detect(file).runs().then_some(Self { stat, addresses })
    }

    /// Its state now; `None` if it has become another program, or may not be seen any more.
    pub fn state(&self) -> Option<ProcessState> {
        let text = read(&self.stat);
        match state(&text) {
            // It has ended, and its parent has not noticed yet.
            None | Some('Z' | 'X') => Some(ProcessState::Gone),
            Some(state) => {
                (addresses(&text) == Some(&*self.addresses)).then_some(ProcessState::Runs(state))
            }
        }
    }
}

fn read(stat: &File) -> String {
    const BYTES: usize = 512;
    let mut text = [0; BYTES];
    let read = stat.read_at(&mut text, 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..read]).into_owned()
}

fn same_kernel(boot_id: &str) -> bool {
    let here = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !boot_id.is_empty() && here.trim() == boot_id
}

/// Process ids of another container mean nothing here.
fn same_host(host: &str) -> bool {
    host_name() == host
}

/// Name of this host; empty if it cannot be read.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The third field of `/proc/PID/stat`. The second, the name, may contain spaces and parentheses.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Fields 26 to 28: begin and end of the program's code, and where its stack began. A program that is started in the
/// place of another has others; whoever may not know them sees 0 or 1.
fn addresses(stat: &str) -> Option<&str> {
    /// Fields between the name and them.
    const BEFORE: usize = 23;
    let rest = stat.rsplit_once(')')?.1.trim_start();
    let begin = rest.match_indices(' ').nth(BEFORE - 1)?.0 + 1;
    let end = rest[begin..].match_indices(' ').nth(2)?.0;
    Some(&rest[begin..begin + end])
}

/// Whether a line of `/proc/PID/maps` is a shared mapping of the file with this inode.
fn maps_file(maps: &str, inode: u64) -> bool {
    let inode = inode.to_string();
    maps.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(1).is_some_and(|access| access.ends_with('s'))
            && fields.nth(2) == Some(inode.as_str())
    })
}

/// Whether a process has a file open.
fn has_open(process: &Path, file: &fs::Metadata) -> bool {
    let is_it = |of: fs::Metadata| (of.st_dev(), of.st_ino()) == (file.st_dev(), file.st_ino());
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.map(|entry| entry.path()).any(|path| fs::metadata(path).is_ok_and(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    #[test]
    fn process_that_has_not_mapped_its_file_yet_runs() {
        let directory = RunDirectory::new();
        let mut rank = SyntheticRank::complete(0, 1, 1000, 2000);
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        (rank.header.host, rank.header.boot_id) = (host_name(), boot_id.trim().to_owned());
        rank.fixed.pid = std::process::id();
        directory.write(rank.killed());
        let path = directory.file(0);
        let file = RankFile::open(&path).unwrap();
        assert_eq!(ProcessState::detect(&file), ProcessState::Gone);
        let open = File::open(&path).unwrap();
        assert!(ProcessState::detect(&file).runs());
        drop(open);
        assert_eq!(ProcessState::detect(&file), ProcessState::Gone);
    }

    #[test]
    fn reads_state_and_mappings() {
        assert_eq!(state("17 (a) b (c) R 1 17 17 0"), Some('R'));
        assert_eq!(state("nonsense"), None);
        let fields: Vec<String> = (4..=30).map(|number| number.to_string()).collect();
        let stat = format!("17 (a) b (c) R {} \n", fields.join(" "));
        assert_eq!(addresses(&stat), Some("26 27 28"));
        assert_eq!(addresses("nonsense"), None);
        for state in [ProcessState::Runs('R'), ProcessState::Gone, ProcessState::Unknown] {
            assert_eq!(ProcessState::from_name(state.name()), state);
        }
        assert_eq!(
            ProcessState::from_name(ProcessState::Runs('t').name()),
            ProcessState::Runs('T')
        );
        let maps = "7f00-7f10 rw-s 00010000 fe:01 4711 /run/rank-000000.gmc\n\
                    7f20-7f30 r--p 00000000 fe:01 4712 /lib/libc.so.6\n";
        assert!(maps_file(maps, 4711));
        assert!(!maps_file(maps, 4712) && !maps_file(maps, 47));
    }
}
