//! Checks whether the local file systems can store a trace, and what granting its pages costs.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

use memmap2::{Advice, MmapMut};
use trace_format::files::WINDOW_EVENT_BYTES;

use super::finding::{Finding, Mark};
use crate::statistics::median;

const PAGE_BYTES: usize = 4096;
/// Pages granted in one trial.
const PAGES: usize = 1024;
/// Number of trials, whose median is taken.
const TRIALS: usize = 5;
/// Events on a page.
const EVENTS_PER_PAGE: f64 = (PAGE_BYTES / WINDOW_EVENT_BYTES) as f64;
/// Upper bound of the bytes per call in a file that is being written, for most programs
/// (docs/reference/encoded-chunks.md).
const CALL_BYTES: f64 = 4.0;
/// Less free space than this counts as little.
const LOW_SPACE_BYTES: u64 = 1 << 30;

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path) in [("current directory", "."), ("/dev/shm", "/dev/shm")] {
        findings.extend(examine(name, Path::new(path)));
    }
    findings
}

fn examine(name: &'static str, path: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    match file_system(path) {
        Ok(system) => findings.push(describe(name, &system)),
        Err(error) => {
            let meaning = "No trace can be written there.";
            return vec![Finding::new(name, Mark::Note, error.to_string(), meaning)];
        }
    }
    findings.push(granting(name, path));
    findings
}

struct FileSystem {
    name: String,
    /// Shared with other hosts over a network.
    shared: bool,
    free_bytes: u64,
}

fn describe(name: &'static str, system: &FileSystem) -> Finding {
    let gib = system.free_bytes as f64 / (1u64 << 30) as f64;
    let calls = system.free_bytes as f64 / CALL_BYTES;
    let room = format!("room for about {calls:.1e} calls");
    let (mark, meaning) = if system.free_bytes < LOW_SPACE_BYTES {
        (
            Mark::Limit,
            format!("Little: {room}. When it is full, recording ends and the program continues."),
        )
    } else if system.shared {
        (
            Mark::Note,
            format!(
                "Shared over a network, {room}: writing the trace may disturb the program's own \
                 communication."
            ),
        )
    } else {
        (Mark::Ok, format!("Local, {room}."))
    };
    Finding::new(name, mark, format!("{}, {gib:.1} GiB free", system.name), meaning)
        .with("type", system.name.clone())
        .with("shared", system.shared)
        .with("free_bytes", system.free_bytes)
}

/// How a page is granted before the recorder stores to it.
struct Grant {
    /// Whether the kernel can populate a mapping for writing (Linux 5.14).
    populate: Result<(), io::Error>,
    ns_per_page: f64,
}

/// A step of granting pages that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
struct GrantError {
    what: &'static str,
    source: io::Error,
}

fn granting(name: &'static str, path: &Path) -> Finding {
    let line = if name == "/dev/shm" { "shm pages" } else { "pages" };
    let grant = match grant_pages(path) {
        Ok(grant) => grant,
        Err(error) => {
            let meaning = "A run recorded there would end its recording at once; choose another \
                           place with --out.";
            return Finding::new(line, Mark::Limit, error.to_string(), meaning)
                .with("usable", false);
        }
    };
    let ns = grant.ns_per_page;
    let cost = format!("{ns:.0} ns per page");
    let amortised = ns / EVENTS_PER_PAGE;
    let (mark, value, meaning) = match &grant.populate {
        Ok(()) => (
            Mark::Ok,
            format!("allocated, mapped and populated, {cost}"),
            format!("Adds {amortised:.1} ns to an event on average, outside the events' times."),
        ),
        Err(error) => (
            Mark::Note,
            format!("allocated and mapped, {cost}; populating at once: {error}"),
            format!(
                "The recorder touches each page instead (Linux before 5.14, or this file \
                 system), {amortised:.1} ns per event on average."
            ),
        ),
    };
    Finding::new(line, mark, value, meaning)
        .with("usable", true)
        .with("populate", grant.populate.is_ok())
        .with("ns_per_page", ns)
        .with("ns_per_event", amortised)
}

/// Grants pages as the recorder does, in a file without a name.
fn grant_pages(folder: &Path) -> Result<Grant, GrantError> {
    let cannot = |what| move |source| GrantError { what, source };
    let file = tempfile::tempfile_in(folder).map_err(cannot("no file can be made"))?;
    let bytes = PAGES * PAGE_BYTES;
    let mut populate = Ok(());
    let mut costs = Vec::new();
    for _ in 0..TRIALS {
        file.set_len(0).map_err(cannot("a file cannot be emptied"))?;
        let began = Instant::now();
        // SAFETY: the descriptor is open for the length of the call; no memory is involved.
        let refused = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
        if refused != 0 {
            let error = io::Error::from_raw_os_error(refused);
            return Err(cannot("space cannot be allocated (posix_fallocate)")(error));
        }
        // SAFETY: the file has no name, so no other process can change or truncate it while the
        // mapping lives, and this function does not either.
        let mut map =
            unsafe { MmapMut::map_mut(&file) }.map_err(cannot("a file cannot be mapped"))?;
        if let Err(error) = map.advise(Advice::PopulateWrite) {
            populate = Err(error);
        }
        for page in map.chunks_mut(PAGE_BYTES) {
            page[0] = 1;
        }
        costs.push(began.elapsed().as_nanos() as f64 / PAGES as f64);
    }
    Ok(Grant { populate, ns_per_page: median(&mut costs).unwrap_or(f64::NAN) })
}

fn file_system(path: &Path) -> io::Result<FileSystem> {
    let found = rustix::fs::statfs(path)?;
    let (name, shared) = name_of(found.f_type as u64 & 0xffff_ffff);
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    let free_bytes = (found.f_bavail as u64).saturating_mul(found.f_bsize as u64);
    Ok(FileSystem { name, shared, free_bytes })
}

/// Name of a file system and whether hosts share it, by its magic number (statfs(2)).
fn name_of(magic: u64) -> (String, bool) {
    let (name, shared) = match magic {
        0xef53 => ("ext4", false),
        0x5846_5342 => ("xfs", false),
        0x9123_683e => ("btrfs", false),
        0x2fc1_2fc1 => ("zfs", false),
        0xf2f5_2010 => ("f2fs", false),
        0x0102_1994 => ("tmpfs", false),
        0x8584_58f6 => ("ramfs", false),
        0x794c_7630 => ("overlayfs", false),
        0x0bd0_0bd0 => ("Lustre", true),
        0x4750_4653 => ("GPFS", true),
        0x1983_0326 => ("BeeGFS", true),
        0xaad7_aaea => ("PanFS", true),
        0x00c3_6400 => ("CephFS", true),
        0x2003_0528 => ("OrangeFS", true),
        0x7461_636f => ("OCFS2", true),
        0x6969 => ("NFS", true),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("SMB", true),
        0x0102_1997 => ("9p", true),
        0x6573_5546 => ("FUSE", true),
        _ => return (format!("type 0x{magic:x}"), false),
    };
    (name.to_owned(), shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_have_names() {
        assert_eq!(name_of(0x0bd0_0bd0), ("Lustre".into(), true));
        assert_eq!(name_of(0xef53), ("ext4".into(), false));
        assert_eq!(name_of(0x1234).0, "type 0x1234");
    }

    #[test]
    fn unwritable_place_is_a_limit() {
        let finding = granting("current directory", Path::new("/proc/self"));
        assert_eq!(finding.mark, Mark::Limit);
        assert_eq!(finding.data["usable"], false);
    }
}
