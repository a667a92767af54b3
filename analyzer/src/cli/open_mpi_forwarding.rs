//! Makes Open MPI's launcher forward the recorder's variables to ranks on other hosts.
//!
//! MPICH's and Slurm's launchers forward the whole environment by themselves and ignore what is set
//! here.
//!
//! Open MPI has two ways, and Open MPI 4 aborts a job that mixes them ("Open MPI does not support
//! mixing these two methods"):
//! - the parameter `mca_base_env_list`: it is set by its environment variable, and extended where
//!   the user has set it, in the environment or on the command line (which takes precedence);
//! - options `-x NAME`: if the user has one, the recorder's options are inserted after the launcher
//!   and after every `:` (each part of a command has its own). A later `-x` of the user overrides
//!   them.
//!
//! Nothing is set for a command without a visible launcher (`gammachi run -- ./job.sh`): a `mpirun
//! -x …` inside would abort because of it. Ranks on the same host inherit everything anyway; for
//! other hosts there is `gammachi exec`.
//!
//! A listed name that is not set causes a warning, so only names that are set may be listed. The
//! list may also contain `NAME=VALUE`. This form is used for values that contain `=`: given by
//! name, Open MPI 4 and 5 split such a value (`GAMMACHI_PARAMS` with the value `N=2` arrives on the
//! other host as a variable `N`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::program_search::base_name;

/// The environment variable of Open MPI's parameter `mca_base_env_list`.
pub const ENV_LIST: &str = "OMPI_MCA_mca_base_env_list";
/// The environment variable of the parameter that sets the separator of the list.
pub const ENV_LIST_DELIMITER: &str = "OMPI_MCA_mca_base_env_list_delimiter";
const ENV_LIST_PARAMETER: &str = "mca_base_env_list";

/// The changed command and environment of the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    /// The words to execute.
    pub words: Vec<OsString>,
    /// Value of [`ENV_LIST`] to set, if any.
    pub env_list: Option<OsString>,
}

/// What the user has already set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherited<'a> {
    /// Value of [`ENV_LIST`].
    pub env_list: Option<&'a OsStr>,
    /// Value of [`ENV_LIST_DELIMITER`].
    pub delimiter: Option<&'a OsStr>,
}

/// Decides how `variables` reach ranks on other hosts. All of them are also set for the launcher.
///
/// `is_open_mpi` is called with the launcher's word, and only if the answer matters.
pub fn forward(
    words: &[OsString],
    launcher: Option<usize>,
    variables: &[(String, OsString)],
    inherited: Inherited<'_>,
    is_open_mpi: impl FnOnce(&OsStr) -> bool,
) -> Forwarding {
    let mut words = words.to_vec();
    let Some(launcher) = launcher.filter(|at| may_be_open_mpi(&words[*at])) else {
        return Forwarding { words, env_list: None };
    };
    let delimiter = inherited.delimiter.filter(|d| !d.is_empty()).unwrap_or(OsStr::new(";"));
    let in_arguments = words[launcher..].iter().position(|word| word == ENV_LIST_PARAMETER);
    if let Some(list) = in_arguments.and_then(|at| words.get_mut(launcher + at + 1)) {
        *list = appended(list, delimiter, variables);
        return Forwarding { words, env_list: None };
    }
    let exports = words[launcher..].iter().any(|word| word == "-x" || word == "--x");
    if exports && is_open_mpi(&words[launcher]) {
        // The user's own list in the environment conflicts with -x: let Open MPI report it.
        if inherited.env_list.is_none() {
            insert_exports(&mut words, launcher, variables);
        }
        return Forwarding { words, env_list: None };
    }
    let list = appended(inherited.env_list.unwrap_or_default(), delimiter, variables);
    Forwarding { words, env_list: Some(list) }
}

/// Whether Open MPI uses this launcher name; other libraries use some of them, too.
fn may_be_open_mpi(word: &OsStr) -> bool {
    base_name(word).to_str().is_some_and(|name| {
        ["mpirun", "mpiexec", "orterun", "oshrun", "prterun"].iter().any(|l| name.starts_with(l))
    })
}

fn appended(list: &OsStr, delimiter: &OsStr, variables: &[(String, OsString)]) -> OsString {
    let mut list = list.to_owned();
    for entry in variables.iter().filter_map(|(name, value)| list_entry(name, value, delimiter)) {
        if !list.is_empty() {
            list.push(delimiter);
        }
        list.push(entry);
    }
    list
}

/// `NAME`, or `NAME=VALUE` if the value contains `=`; `None` if the list cannot represent it.
fn list_entry(name: &str, value: &OsStr, delimiter: &OsStr) -> Option<OsString> {
    let contains =
        |part: &OsStr| value.as_bytes().windows(part.len()).any(|bytes| bytes == part.as_bytes());
    let mut entry = OsString::from(name);
    if contains(OsStr::new("=")) {
        if contains(delimiter) {
            return None;
        }
        entry.push("=");
        entry.push(value);
    }
    Some(entry)
}

fn insert_exports(words: &mut Vec<OsString>, launcher: usize, variables: &[(String, OsString)]) {
    let exports: Vec<OsString> = variables
        .iter()
        .flat_map(|(name, _)| [OsString::from("-x"), OsString::from(name)])
        .collect();
    let mut at = launcher;
    while at < words.len() {
        if at == launcher || words[at] == ":" {
            words.splice(at + 1..at + 1, exports.iter().cloned());
            at += exports.len();
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Vec<(String, OsString)> {
        [("LD_PRELOAD", "/l.so"), ("OUT", "/a;b")]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into()
    }

    fn forwarded(command: &str, inherited: Inherited<'_>) -> (String, Option<String>) {
        let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        let launcher =
            words.iter().position(|word| super::super::program_search::is_launcher(word));
        let forwarding = forward(&words, launcher, &variables(), inherited, |_| true);
        let words: Vec<&str> = forwarding.words.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), forwarding.env_list.map(|list| list.into_string().unwrap()))
    }

    #[test]
    fn sets_list_for_visible_launcher() {
        let (words, list) = forwarded("env A=1 mpirun -n 2 ./app", Inherited::default());
        assert_eq!(words, "env A=1 mpirun -n 2 ./app");
        assert_eq!(list.unwrap(), "LD_PRELOAD;OUT");
        assert_eq!(forwarded("./job.sh", Inherited::default()).1, None);
        assert_eq!(forwarded("srun -n 2 ./app", Inherited::default()).1, None);
    }

    #[test]
    fn extends_list_of_user() {
        let mine = Inherited { env_list: Some(OsStr::new("A;B=1")), delimiter: None };
        assert_eq!(forwarded("mpirun ./app", mine).1.unwrap(), "A;B=1;LD_PRELOAD;OUT");
        let mine = Inherited { env_list: Some(OsStr::new("A")), delimiter: Some(OsStr::new("+")) };
        assert_eq!(forwarded("mpirun ./app", mine).1.unwrap(), "A+LD_PRELOAD+OUT");
        assert_eq!(
            forwarded("mpirun --mca mca_base_env_list A ./app", Inherited::default()),
            ("mpirun --mca mca_base_env_list A;LD_PRELOAD;OUT ./app".into(), None)
        );
    }

    #[test]
    fn value_with_equals_sign_is_written_out() {
        let entry =
            |value: &str| list_entry("P", OsStr::new(value), OsStr::new(";")).unwrap_or_default();
        assert_eq!(entry("N=2,NB=80"), "P=N=2,NB=80");
        assert_eq!(entry("2;3"), "P");
        assert_eq!(entry(""), "P");
        assert_eq!(entry("N=2;3"), "", "the list cannot represent it");
    }

    #[test]
    fn never_mixes_both_ways() {
        assert_eq!(
            forwarded("time mpirun -n 1 -x A ./a : -n 1 ./b", Inherited::default()),
            (
                "time mpirun -x LD_PRELOAD -x OUT -n 1 -x A ./a : -x LD_PRELOAD \
                 -x OUT -n 1 ./b"
                    .into(),
                None
            )
        );
    }

    #[test]
    fn ignores_option_x_of_other_launcher() {
        let words = ["mpirun", "./app", "-x"].map(OsString::from);
        let forwarding = forward(&words, Some(0), &variables(), Inherited::default(), |_| false);
        assert_eq!(forwarding.words, words);
        assert_eq!(forwarding.env_list.unwrap(), "LD_PRELOAD;OUT");
    }
}
