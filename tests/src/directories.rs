//! Where tests build and record: below the cargo target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::skip;

/// The cargo target directory that contains this test program.
///
/// # Panics
/// If the test program is not in a target directory.
pub fn target_directory() -> PathBuf {
    let program = std::env::current_exe().expect("the test program has a path");
    // <target>/<profile>/deps/<program> or, for a command, <target>/<profile>/<program>.
    let folder = program.parent().expect("a test program is in a folder");
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let target = profile.and_then(Path::parent);
    target.expect("a test program is in <target>/<profile>/deps").to_owned()
}

/// The top folder of this repository.
pub fn repository() -> PathBuf {
    // The run-time variable comes first: a checkout that shares its target directory with another
    // one may run a program that was compiled in the other.
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().expect("the tests are in the repository").to_owned()
}

/// A folder below the target directory for programs that tests build.
pub fn build_directory() -> PathBuf {
    let folder = target_directory().join("tmp").join("victims");
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    folder
}

/// A temporary folder, removed when dropped (kept if the test failed).
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes an empty folder.
    ///
    /// # Panics
    /// If the target directory is not writable.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let folder = target_directory().join("tmp").join("runs").join(name);
        // A process of an earlier run may have had the same number.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target directory is writable");
        Self(folder)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of something in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Default for TempDir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A small file system, unmounted when dropped.
#[derive(Debug)]
pub struct SmallFileSystem(TempDir);

impl SmallFileSystem {
    /// Mounts one of this size; `None` if mounting is not permitted, which [`skip`](crate::skip()) reports.
    ///
    /// # Panics
    /// If there is no `mount`.
    pub fn mount(kilobytes: u32) -> Option<Self> {
        let temp = TempDir::new();
        let size = format!("size={kilobytes}k");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(temp.path())
            .output()
            .expect("mount can be started");
        if !output.status.success() {
            skip("small-file-system", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Some(Self(temp))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
