//! How Open MPI's launcher is told to hand our variables on to ranks on other hosts.
//!
//! In: the words of the command, where its launcher stands, our variables, and what the user says
//! already. Out: [`Forwarding`]. MPICH's and Slurm's launchers hand on the whole
//! environment by themselves, and ignore what is set here.
//!
//! Open MPI has two ways, and Open MPI 4 aborts a job that mixes them ("Open MPI does not support
//! mixing these two methods"):
//! - the parameter `mca_base_env_list`, set here by its environment variable, and added to where
//!   the user has it in the environment or on the command line (which wins over the environment);
//! - options `-x NAME`: where the user has one, ours go right behind the launcher and behind every
//!   `:` (each part of a command has its own); a later `-x` of the user's wins over ours.
//!
//! Nothing is set for a command whose launcher is not in sight (`gammachi run -- ./job.sh`): a
//! `mpirun -x …` inside would abort because of us. Ranks on the same host inherit everything
//! anyhow; for other hosts there is `gammachi exec`.
//!
//! A name in the list that is not set draws a warning, so only names that are set may be listed.
//! Beside names the list takes `NAME=VALUE`, and that is the form for a value that holds `=`: given
//! by its name, Open MPI 4 and 5 take such a value apart (`GAMMACHI_PARAMS` with the value `N=2`
//! arrives on the other host as a variable `N`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::program_search::base_name;

/// The environment variable of Open MPI's parameter `mca_base_env_list`.
pub const ENV_LIST: &str = "OMPI_MCA_mca_base_env_list";
/// The environment variable of the parameter that says what separates the list.
pub const ENV_LIST_DELIMITER: &str = "OMPI_MCA_mca_base_env_list_delimiter";
const ENV_LIST_PARAMETER: &str = "mca_base_env_list";

/// What the launcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    /// The words to execute.
    pub words: Vec<OsString>,
    /// Value of [`ENV_LIST`] to set, if any.
    pub env_list: Option<OsString>,
}

/// What the user says already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherited<'a> {
    /// Value of [`ENV_LIST`].
    pub env_list: Option<&'a OsStr>,
    /// Value of [`ENV_LIST_DELIMITER`].
    pub delimiter: Option<&'a OsStr>,
}

/// Decides how `variables` reach ranks on other hosts; all of them are set for the launcher.
///
/// `is_open_mpi` is asked, about the launcher's word, only where the answer matters.
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
        // A list in the environment beside -x: the user's own conflict, theirs to be told of.
        if inherited.env_list.is_none() {
            insert_exports(&mut words, launcher, variables);
        }
        return Forwarding { words, env_list: None };
    }
    let list = appended(inherited.env_list.unwrap_or_default(), delimiter, variables);
    Forwarding { words, env_list: Some(list) }
}

/// Whether the launcher's name is one that Open MPI uses; others use some of them too.
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

/// `NAME`, or `NAME=VALUE` for a value that holds `=`; nothing where the list cannot carry it.
fn list_entry(name: &str, value: &OsStr, delimiter: &OsStr) -> Option<OsString> {
    let holds =
        |part: &OsStr| value.as_bytes().windows(part.len()).any(|bytes| bytes == part.as_bytes());
    let mut entry = OsString::from(name);
    if holds(OsStr::new("=")) {
        if holds(delimiter) {
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

    fn told(command: &str, inherited: Inherited<'_>) -> (String, Option<String>) {
        let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        let launcher =
            words.iter().position(|word| super::super::program_search::is_launcher(word));
        let told = forward(&words, launcher, &variables(), inherited, |_| true);
        let words: Vec<&str> = told.words.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), told.env_list.map(|list| list.into_string().unwrap()))
    }

    #[test]
    fn the_list_is_set_for_a_launcher_in_sight() {
        let (words, list) = told("env A=1 mpirun -n 2 ./app", Inherited::default());
        assert_eq!(words, "env A=1 mpirun -n 2 ./app");
        assert_eq!(list.unwrap(), "LD_PRELOAD;OUT");
        assert_eq!(told("./job.sh", Inherited::default()).1, None);
        assert_eq!(told("srun -n 2 ./app", Inherited::default()).1, None);
    }

    #[test]
    fn the_users_list_is_kept() {
        let mine = Inherited { env_list: Some(OsStr::new("A;B=1")), delimiter: None };
        assert_eq!(told("mpirun ./app", mine).1.unwrap(), "A;B=1;LD_PRELOAD;OUT");
        let mine = Inherited { env_list: Some(OsStr::new("A")), delimiter: Some(OsStr::new("+")) };
        assert_eq!(told("mpirun ./app", mine).1.unwrap(), "A+LD_PRELOAD+OUT");
        assert_eq!(
            told("mpirun --mca mca_base_env_list A ./app", Inherited::default()),
            ("mpirun --mca mca_base_env_list A;LD_PRELOAD;OUT ./app".into(), None)
        );
    }

    #[test]
    fn a_value_with_an_equals_sign_is_written_out() {
        let entry =
            |value: &str| list_entry("P", OsStr::new(value), OsStr::new(";")).unwrap_or_default();
        assert_eq!(entry("N=2,NB=80"), "P=N=2,NB=80");
        assert_eq!(entry("2;3"), "P");
        assert_eq!(entry(""), "P");
        assert_eq!(entry("N=2;3"), "", "no form of the list carries it");
    }

    #[test]
    fn the_two_ways_are_never_mixed() {
        assert_eq!(
            told("time mpirun -n 1 -x A ./a : -n 1 ./b", Inherited::default()),
            (
                "time mpirun -x LD_PRELOAD -x OUT -n 1 -x A ./a : -x LD_PRELOAD \
                 -x OUT -n 1 ./b"
                    .into(),
                None
            )
        );
    }

    #[test]
    fn an_option_x_of_another_launcher_is_left_alone() {
        let words = ["mpirun", "./app", "-x"].map(OsString::from);
        let told = forward(&words, Some(0), &variables(), Inherited::default(), |_| false);
        assert_eq!(told.words, words);
        assert_eq!(told.env_list.unwrap(), "LD_PRELOAD;OUT");
    }
}
