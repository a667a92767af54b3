//! The environment of a recorded program: `LD_PRELOAD`, and the variables that ranks on other hosts
//! need.
//!
//! The variables that the recorder reads are defined in [`trace_format::settings`].

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use trace_format::settings::{self, LIBRARY};

use super::error::{CommandError, Explained, Kind};

/// The dynamic linker's list of libraries to load first. The recorder goes before the user's own
/// libraries.
pub const LD_PRELOAD: &str = "LD_PRELOAD";

pub type Variable = (&'static str, OsString);

/// The path of the library contains a colon or a blank, which separate the dynamic linker's list
/// and cannot be quoted.
#[derive(Debug, PartialEq, Eq, Error)]
#[error(
    "{}: the dynamic linker cannot preload a library whose path holds a colon or a blank; copy it \
     elsewhere and name it in {}", .0.display(), LIBRARY.name
)]
pub struct PreloadError(PathBuf);

impl Explained for PreloadError {
    const KIND: Kind = CommandError::Program;
}

/// The value of `LD_PRELOAD` that loads the recorder first, then its other libraries, and keeps the user's own ones.
pub fn preload<P: AsRef<Path>>(
    libraries: &[P],
    inherited: Option<&OsStr>,
) -> Result<OsString, PreloadError> {
    let separates = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
    let ours: Vec<&[u8]> =
        libraries.iter().map(|library| library.as_ref().as_os_str().as_bytes()).collect();
    if let Some(at) = ours.iter().position(|path| path.iter().any(separates)) {
        return Err(PreloadError(libraries[at].as_ref().to_owned()));
    }
    let inherited = inherited.map(OsStr::as_bytes).unwrap_or_default();
    let theirs = inherited.split(separates).filter(|path| !path.is_empty() && !ours.contains(path));
    let list: Vec<&[u8]> = ours.iter().copied().chain(theirs).collect();
    Ok(OsString::from_vec(list.join(&b':')))
}

/// The variables that ranks on other hosts need: those set by the command, and those that the user
/// has set for the recorder.
pub fn forwarded(
    ours: &[Variable],
    inherited: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(String, OsString)> {
    let theirs = inherited.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let theirs = theirs.filter(|(name, _)| {
        settings::is_forwarded(name) && !ours.iter().any(|(own, _)| own == name)
    });
    ours.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).chain(theirs).collect()
}

/// Merges pairs; later values replace earlier ones of the same name.
pub fn merge_params(
    earlier: Vec<(String, String)>,
    later: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let mut merged = earlier;
    for (name, value) in later {
        match merged.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => merged.push((name, value)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use trace_format::settings::{KEEP, LEVEL, OTF2_LIBRARY};

    use super::*;

    fn preloaded(inherited: &str) -> String {
        let value = preload(&["/opt/libgammachi.so"], Some(OsStr::new(inherited)));
        value.unwrap().into_string().unwrap()
    }

    #[test]
    fn recorder_is_first_in_preload_list() {
        assert_eq!(preload(&["/l.so"], None).unwrap(), "/l.so");
        assert_eq!(preloaded(""), "/opt/libgammachi.so");
        assert_eq!(preloaded("/a.so:/b.so"), "/opt/libgammachi.so:/a.so:/b.so");
        assert_eq!(preloaded("/a.so /b.so"), "/opt/libgammachi.so:/a.so:/b.so");
    }

    #[test]
    fn other_library_follows_recorder() {
        let both = ["/opt/libgammachi.so", "/opt/libgammachi_io.so"];
        let value = preload(&both, Some(OsStr::new("/a.so:/opt/libgammachi_io.so"))).unwrap();
        assert_eq!(value, "/opt/libgammachi.so:/opt/libgammachi_io.so:/a.so");
    }

    #[test]
    fn recorder_is_preloaded_once() {
        assert_eq!(preloaded("/a.so:/opt/libgammachi.so"), "/opt/libgammachi.so:/a.so");
    }

    #[test]
    fn refuses_path_with_separator() {
        assert!(preload(&["/my files/l.so"], None).unwrap_err().to_string().contains("blank"));
        assert!(preload(&["/l.so", "/a:b/l.so"], None).is_err());
    }

    #[test]
    fn later_params_replace_earlier_ones() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let merged = merge_params(
            vec![pair("N", "20000"), pair("NB", "80")],
            [pair("NB", "96"), pair("P", "2")],
        );
        assert_eq!(merged, [pair("N", "20000"), pair("NB", "96"), pair("P", "2")]);
    }

    #[test]
    fn forwards_only_variables_that_ranks_read() {
        let ours = [(LEVEL.name, OsString::from("2"))];
        let inherited =
            [(LEVEL.name, "0"), (KEEP.name, "last"), ("HOME", "/"), (OTF2_LIBRARY.name, "/x")];
        let inherited = inherited.into_iter().map(|(name, value)| (name.into(), value.into()));
        let forwarded = forwarded(&ours, inherited);
        assert_eq!(forwarded, [(LEVEL.name.into(), "2".into()), (KEEP.name.into(), "last".into())]);
    }
}
