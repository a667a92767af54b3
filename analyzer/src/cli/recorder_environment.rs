//! What the recorder reads from its environment.
//!
//! In: the recorder's path, the run directory, the options, and the environment as inherited. Out:
//! the variables to set for the measured program. These names are the whole contract between the
//! command and `libgammachi.so`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The dynamic linker's list of libraries to load first; ours goes before those the user has.
pub const LD_PRELOAD: &str = "LD_PRELOAD";
/// Absolute path of the run directory. Where it is unset the recorder itself picks
/// `./NAME-DATE.gammachi`.
pub const GAMMACHI_OUT: &str = "GAMMACHI_OUT";
/// Node-local directory that rank files lie in until MPI is finalized.
pub const GAMMACHI_STAGE: &str = "GAMMACHI_STAGE";
/// Detail level: 0, 1 or 2.
pub const GAMMACHI_LEVEL: &str = "GAMMACHI_LEVEL";
/// What counts as computation: `outside`, `blas` or `regions`.
pub const GAMMACHI_COMPUTE: &str = "GAMMACHI_COMPUTE";
/// Whether interposed compute functions are recorded for their operations, whatever counts as computation.
pub const GAMMACHI_FLOPS: &str = "GAMMACHI_FLOPS";
/// Counters of processor and kernel to read: [`trace_format::counters::parse`].
pub const GAMMACHI_COUNTERS: &str = "GAMMACHI_COUNTERS";
/// Which events stay one by one where there are too many: `first`, `last` or `totals`.
pub const GAMMACHI_KEEP: &str = "GAMMACHI_KEEP";
/// Bytes of a rank's file beyond which events become totals; 0: no limit.
pub const GAMMACHI_MAX_BYTES: &str = "GAMMACHI_MAX_BYTES";
/// Parameters of the run: `N=20000,NB=80`. Names are C identifiers; values hold no comma, no
/// semicolon and no control character.
pub const GAMMACHI_PARAMS: &str = "GAMMACHI_PARAMS";
/// Two-way clock exchanges a pair of ranks, at least: a whole number from 1 on.
pub const GAMMACHI_CLOCK_ROUNDS: &str = "GAMMACHI_CLOCK_ROUNDS";
/// Seconds between clock exchanges during the run.
pub const GAMMACHI_CLOCK_EVERY: &str = "GAMMACHI_CLOCK_EVERY";
/// 32 hexadecimal digits, the same for all ranks of a run.
pub const GAMMACHI_RUN_ID: &str = "GAMMACHI_RUN_ID";
/// Set where every rank of every host is told to load the recorder, so that they may expect each
/// other.
pub const GAMMACHI_EVERY_RANK: &str = "GAMMACHI_EVERY_RANK";
/// Read by the command, not by the recorder: path of `libgammachi.so`.
pub const GAMMACHI_LIBRARY: &str = "GAMMACHI_LIBRARY";

/// A variable and its value.
pub type Variable = (&'static str, OsString);

/// The value of `LD_PRELOAD` that loads the recorder first and keeps what the user has.
///
/// The dynamic linker separates by colon and by blank; so it cannot load a library whose path holds
/// either, and there is no way to quote one.
///
/// # Errors
/// The path holds a colon or a blank; the message says what to do.
pub fn preload(library: &Path, inherited: Option<&OsStr>) -> Result<OsString, String> {
    let ours = library.as_os_str().as_bytes();
    let separates = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
    if ours.iter().any(separates) {
        return Err(format!(
            "{}: the dynamic linker cannot preload a library whose path holds a colon or a blank; \
             copy it elsewhere and name it in {GAMMACHI_LIBRARY}",
            library.display()
        ));
    }
    let mut list = ours.to_vec();
    let inherited = inherited.map(OsStr::as_bytes).unwrap_or_default();
    for theirs in inherited.split(separates).filter(|path| !path.is_empty() && *path != ours) {
        list.push(b':');
        list.extend_from_slice(theirs);
    }
    Ok(OsString::from_vec(list))
}

/// The value of [`GAMMACHI_PARAMS`].
pub fn join_params(params: &[(String, String)]) -> String {
    let pairs: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(",")
}

/// The pairs that an inherited [`GAMMACHI_PARAMS`] holds.
///
/// # Errors
/// The first pair that is none, with the reason.
pub fn split_params(text: &str) -> Result<Vec<(String, String)>, String> {
    text.split(',').filter(|pair| !pair.is_empty()).map(parse_param).collect()
}

/// Reads one `NAME=VALUE`.
///
/// # Errors
/// Why it is none, with advice.
pub fn parse_param(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("it has no '='; write NAME=VALUE, such as N=20000".into());
    };
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!(
            "the name {name:?} must be of letters, digits and '_' and not begin with a digit"
        ));
    }
    if value.chars().any(|c| c == ',' || c == ';' || c.is_control()) {
        return Err(format!(
            "the value of {name} may hold no comma, no semicolon and no control character"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Pairs with later ones of the same name in the place of earlier ones.
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
    use super::*;

    fn preloaded(inherited: &str) -> String {
        let value = preload(Path::new("/opt/libgammachi.so"), Some(OsStr::new(inherited)));
        value.unwrap().into_string().unwrap()
    }

    #[test]
    fn the_recorder_goes_before_what_the_user_preloads() {
        assert_eq!(preload(Path::new("/l.so"), None).unwrap(), "/l.so");
        assert_eq!(preloaded(""), "/opt/libgammachi.so");
        assert_eq!(preloaded("/a.so:/b.so"), "/opt/libgammachi.so:/a.so:/b.so");
        assert_eq!(preloaded("/a.so /b.so"), "/opt/libgammachi.so:/a.so:/b.so");
    }

    #[test]
    fn the_recorder_is_preloaded_once() {
        assert_eq!(preloaded("/a.so:/opt/libgammachi.so"), "/opt/libgammachi.so:/a.so");
    }

    #[test]
    fn a_path_that_cannot_be_preloaded_is_refused() {
        assert!(preload(Path::new("/my files/l.so"), None).unwrap_err().contains("blank"));
        assert!(preload(Path::new("/a:b/l.so"), None).is_err());
    }

    #[test]
    fn params_are_pairs() {
        assert_eq!(parse_param("N=20000").unwrap(), ("N".into(), "20000".into()));
        assert_eq!(parse_param("_a1=x=y z").unwrap(), ("_a1".into(), "x=y z".into()));
        assert_eq!(parse_param("empty=").unwrap(), ("empty".into(), String::new()));
        for wrong in ["N", "=1", "1N=1", "N-B=1", "ä=1", "N=1,2", "N=1;2", "N=1\n", "N=\u{7f}"] {
            assert!(parse_param(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn params_survive_the_environment() {
        let params = split_params("N=20000,NB=80").unwrap();
        assert_eq!(join_params(&params), "N=20000,NB=80");
        let merged = merge_params(params, [("NB".into(), "96".into()), ("P".into(), "2".into())]);
        assert_eq!(join_params(&merged), "N=20000,NB=96,P=2");
        assert!(split_params("").unwrap().is_empty());
        assert!(split_params("N=1,oops").is_err());
    }
}
