//! Finds the recorder, `libgammachi.so`.

use std::env;
use std::path::{Path, PathBuf};

use trace_format::settings;

use super::error::CommandError;

pub const LIBRARY: &str = "libgammachi.so";

/// The library that sees calls on files, beside the recorder.
const IO_LIBRARY: &str = "libgammachi_io.so";

/// The libraries to preload: the recorder and, if calls on files are recorded, the one that sees them.
pub fn preloaded(with_io: bool) -> Result<Vec<PathBuf>, CommandError> {
    let recorder = library_path()?;
    let io = recorder.with_file_name(IO_LIBRARY);
    if with_io && !io.is_file() {
        return Err(CommandError::Program(format!(
            "{} is not there: --io needs it beside the recorder; install both from one release, or \
             record without --io",
            io.display()
        )));
    }
    Ok(if with_io { vec![recorder, io] } else { vec![recorder] })
}

/// Finds the recorder: the file named by `GAMMACHI_LIBRARY`; else in the folder of the command;
/// else in `../lib` relative to it.
pub fn library_path() -> Result<PathBuf, CommandError> {
    let named = settings::LIBRARY.value(|name| env::var_os(name)).map(PathBuf::from);
    find(named.as_deref(), env::current_exe().ok().as_deref())
}

fn find(named: Option<&Path>, executable: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(named) = named {
        let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
        if path.is_file() {
            return Ok(path);
        }
        return Err(CommandError::usage(format!(
            "{}={} is not a file; name {LIBRARY} there, or unset it",
            settings::LIBRARY.name,
            named.display()
        )));
    }
    let places = default_places(executable);
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(found.clone());
    }
    let places: Vec<String> = places.iter().map(|place| format!("  {}", place.display())).collect();
    Err(CommandError::Program(format!(
        "the recorder {LIBRARY} was not found; looked at\n{}\nset {} to its path, \
         or install it beside the command. `cargo install` builds the command alone: \
         `scripts/install PREFIX` in the sources builds both, and archive and wheel of a release \
         have both",
        places.join("\n"),
        settings::LIBRARY.name
    )))
}

fn default_places(executable: Option<&Path>) -> Vec<PathBuf> {
    let Some(folder) = executable.and_then(Path::parent) else { return Vec::new() };
    let mut places = vec![folder.join(LIBRARY)];
    if let Some(above) = folder.parent() {
        places.push(above.join("lib").join(LIBRARY));
    }
    places
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn found_beside_command_or_in_lib() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let executable = bin.join("gammachi");
        fs::write(lib.join(LIBRARY), "").unwrap();
        assert_eq!(find(None, Some(&executable)).unwrap(), lib.join(LIBRARY));
        fs::write(bin.join(LIBRARY), "").unwrap();
        assert_eq!(find(None, Some(&executable)).unwrap(), bin.join(LIBRARY));
        let named = lib.join(LIBRARY);
        assert_eq!(find(Some(&named), Some(&executable)).unwrap(), named);
    }
}
