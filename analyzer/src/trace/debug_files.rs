//! Finds the separate debugging information of a module: distributions strip what they install and
//! offer the rest in packages of its own (`-dbgsym`, `-debuginfo`).

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::Object;
use trace_format::encoding::checksum;
use trace_format::file_map::FileMap;

/// Where debugging information may be.
#[derive(Debug, Clone)]
pub struct DebugFolders {
    /// Folders like /usr/lib/debug.
    pub installed: Vec<PathBuf>,
    /// Caches of debuginfod's client.
    pub downloaded: Vec<PathBuf>,
}

impl Default for DebugFolders {
    /// The folders that debuggers use. Nothing is downloaded.
    fn default() -> Self {
        let named = |name: &str, below: &str| {
            let folder = env::var_os(name).filter(|value| !value.is_empty())?;
            Some(Path::new(&folder).join(below))
        };
        let cache = named("DEBUGINFOD_CACHE_PATH", "")
            .or_else(|| named("XDG_CACHE_HOME", "debuginfod_client"))
            .or_else(|| named("HOME", ".cache/debuginfod_client"));
        let earlier = named("HOME", ".debuginfod_client_cache");
        Self {
            installed: vec!["/usr/lib/debug".into()],
            downloaded: cache.into_iter().chain(earlier).collect(),
        }
    }
}

impl DebugFolders {
    /// The file with the debugging information of a module, and its content, if the module does not
    /// have it itself.
    pub fn find(&self, module: &Path, file: &object::File) -> Option<(PathBuf, FileMap)> {
        let has_lines = |file: &object::File| {
            file.section_by_name(".debug_info").or(file.section_by_name(".zdebug_info")).is_some()
        };
        if has_lines(file) {
            return None;
        }
        let id = file.build_id().ok().flatten().unwrap_or_default();
        let link = file.gnu_debuglink().ok().flatten();
        let belonging = |path: PathBuf| {
            let data = FileMap::of_file(&File::open(&path).ok()?).ok()?;
            let found = object::File::parse(&*data).ok()?;
            let found_id = found.build_id().ok().flatten().unwrap_or_default();
            let belongs = match id.is_empty() {
                false => found_id == id,
                true => link.is_some_and(|(_, crc)| checksum(&data) == crc),
            };
            belongs.then_some((path, data))
        };
        let name = link.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        let by_name = name.iter().flat_map(|name| self.named(module, name));
        let candidates = self.identified(id).into_iter().chain(by_name);
        candidates.filter(|path| path.is_file()).find_map(belonging)
    }

    /// The file that holds what several files of debugging information share (`dwz`), if there is
    /// such a one.
    pub fn shared_by(&self, path: &Path, file: &object::File) -> Option<PathBuf> {
        let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
        let name = String::from_utf8_lossy(name).into_owned();
        let beside = path.canonicalize().ok()?.parent()?.join(name);
        std::iter::once(beside).chain(self.identified(id)).find(|path| path.is_file())
    }

    /// Where the file of a build id may be.
    fn identified(&self, id: &[u8]) -> Vec<PathBuf> {
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let Some((first, rest)) = digits.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
        else {
            return Vec::new();
        };
        let installed = self
            .installed
            .iter()
            .map(|folder| folder.join(".build-id").join(first).join(format!("{rest}.debug")));
        let downloaded = self.downloaded.iter().map(|cache| cache.join(&digits).join("debuginfo"));
        installed.chain(downloaded).collect()
    }

    /// Where the file that a module names may be.
    fn named(&self, module: &Path, name: &str) -> Vec<PathBuf> {
        let is_name = !name.is_empty() && !name.contains('/');
        let Some(folder) = module.parent().filter(|_| is_name) else { return Vec::new() };
        let below_root = folder.strip_prefix("/").unwrap_or(folder);
        let installed = self.installed.iter().map(|debug| debug.join(below_root).join(name));
        [folder.join(name), folder.join(".debug").join(name)].into_iter().chain(installed).collect()
    }
}
