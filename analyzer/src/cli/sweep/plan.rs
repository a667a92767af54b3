//! Plans a study: which runs it consists of, from rank counts, values and repetitions, in which
//! order, and the command of each.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use trace_format::settings::ParameterError;
use trace_format::settings::values::parameter;

use crate::cli::error::{CommandError, Explained, Kind};
use crate::models::observations::FIGURES;
use crate::trace::study_json::{FORMAT, FORMAT_VERSION, StudyJson, StudyRun, StudyRunState};

/// Why a text is not a parameter with its values; clap names the option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValuesError {
    #[error("{0} is a reserved name; choose another one")]
    NameTaken(String),
    #[error("write NAME=VALUE,VALUE, without an empty value")]
    EmptyValue,
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    #[error("the value {0} is given twice")]
    Repeated(String),
}

/// Why a study would be pointless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlanError {
    #[error("--np: {0} is given twice")]
    RepeatedRanks(u32),
    #[error("--counts-at: {0} is given twice, or by --np as well, whose runs have counts, too")]
    RepeatedCounts(u32),
    #[error(
        "the command does not contain {{np}}: every run would have the same rank count; write for example \
         mpirun -n {{np}} ./app"
    )]
    NoRanks,
    #[error("--param {0}: is given twice; list its values in one, {0}=1000,2000")]
    RepeatedParameter(String),
    #[error(
        "--param {name}: has {values} values, but the command does not contain {{{name}}}: all runs would \
         be the same"
    )]
    UnusedParameter { name: String, values: usize },
}

impl Explained for PlanError {
    const KIND: Kind = CommandError::Usage;
}

/// A parameter and the values that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values {
    pub name: String,
    pub values: Vec<String>,
}

impl Values {
    /// Parses `NAME=V,V,…`.
    pub fn parse(text: &str) -> Result<Self, ValuesError> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        if FIGURES.contains(&name) || ["np", "rep"].contains(&name) {
            return Err(ValuesError::NameTaken(name.to_owned()));
        }
        let mut all: Vec<String> = Vec::new();
        for value in values.split(',').map(str::trim) {
            if value.is_empty() {
                return Err(ValuesError::EmptyValue);
            }
            let (_, value) = parameter(&format!("{name}={value}"))?;
            if all.contains(&value) {
                return Err(ValuesError::Repeated(value));
            }
            all.push(value);
        }
        Ok(Self { name: name.trim().to_owned(), values: all })
    }
}

/// A study as requested.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub argv: Vec<OsString>,
    pub np: Vec<u32>,
    /// Rank counts of runs of which only the counts are used.
    pub counts_at: Vec<u32>,
    pub params: Vec<Values>,
    pub repeat: u32,
    pub seed: u64,
}

impl Plan {
    /// Refuses plans that would be pointless.
    pub fn check(&self) -> Result<(), PlanError> {
        let used = |name: &str| {
            let placeholder = format!("{{{name}}}");
            self.argv.iter().any(|word| find(word.as_bytes(), placeholder.as_bytes()).is_some())
        };
        for (index, np) in self.np.iter().enumerate() {
            if self.np[..index].contains(np) {
                return Err(PlanError::RepeatedRanks(*np));
            }
        }
        for (index, np) in self.counts_at.iter().enumerate() {
            if self.counts_at[..index].contains(np) || self.np.contains(np) {
                return Err(PlanError::RepeatedCounts(*np));
            }
        }
        if !used("np") {
            return Err(PlanError::NoRanks);
        }
        for (index, param) in self.params.iter().enumerate() {
            if self.params[..index].iter().any(|other| other.name == param.name) {
                return Err(PlanError::RepeatedParameter(param.name.clone()));
            }
            if param.values.len() > 1 && !used(&param.name) {
                let (name, values) = (param.name.clone(), param.values.len());
                return Err(PlanError::UnusedParameter { name, values });
            }
        }
        Ok(())
    }

    /// The study, including the runs that exist already. Those come first, unchanged; new ones
    /// follow, repetition by repetition, each in shuffled order.
    pub fn study(
        &self,
        level: u8,
        compute: &str,
        region: &Option<String>,
        existing: Vec<StudyRun>,
    ) -> StudyJson {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut runs = existing;
        let mut add = |np, params: Vec<(String, String)>, rep, counts_only| {
            let known = |run: &StudyRun| {
                (run.np, run.rep, run.counts_only) == (np, rep, counts_only) && run.params == params
            };
            if runs.iter().any(known) {
                return;
            }
            runs.push(StudyRun {
                directory: directory(runs.len() + 1, np, &params, rep),
                np,
                params,
                rep,
                counts_only,
                state: StudyRunState::Pending,
                exit_code: None,
                reason: None,
                duration_s: None,
            });
        };
        for rep in 1..=self.repeat {
            let mut block = self.combinations(&self.np);
            random.shuffle(&mut block);
            block.into_iter().for_each(|(np, params)| add(np, params, rep, false));
        }
        // Counts are the same every time.
        let counted = self.combinations(&self.counts_at);
        counted.into_iter().for_each(|(np, params)| add(np, params, 1, true));
        StudyJson {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            gammachi_version: env!("CARGO_PKG_VERSION").into(),
            argv: self.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            level,
            compute: compute.into(),
            region: region.clone(),
            seed: self.seed,
            runs,
        }
    }

    fn combinations(&self, np: &[u32]) -> Vec<(u32, Vec<(String, String)>)> {
        let mut all: Vec<(u32, Vec<(String, String)>)> =
            np.iter().map(|np| (*np, Vec::new())).collect();
        for param in &self.params {
            all = all
                .into_iter()
                .flat_map(|(np, pairs)| {
                    param.values.iter().map(move |value| {
                        let mut pairs = pairs.clone();
                        pairs.push((param.name.clone(), value.clone()));
                        (np, pairs)
                    })
                })
                .collect();
        }
        all
    }

    /// The command of a run. Placeholders are replaced in a single pass, so that a value is never
    /// taken for a placeholder.
    pub fn command(&self, run: &StudyRun) -> Vec<OsString> {
        let mut values =
            vec![("np".to_owned(), run.np.to_string()), ("rep".to_owned(), run.rep.to_string())];
        values.extend(run.params.iter().cloned());
        self.argv.iter().map(|word| replaced(word, &values)).collect()
    }

    /// The runs and their commands, one per line.
    pub fn describe(&self, study: &StudyJson) -> String {
        let line = |run: &StudyRun| {
            let words = self.command(run);
            let words: Vec<String> =
                words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
            let state = match run.state {
                StudyRunState::Pending => "",
                StudyRunState::Finished => "  (done)",
                StudyRunState::Failed => "  (failed)",
            };
            let use_of = if run.counts_only { "  (counts only)" } else { "" };
            format!("{}: {}{use_of}{state}\n", run.directory, words.join(" "))
        };
        study.runs.iter().map(line).collect()
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

fn replaced(word: &OsStr, values: &[(String, String)]) -> OsString {
    let (text, mut out, mut at) = (word.as_bytes(), Vec::new(), 0);
    while at < text.len() {
        let found = values
            .iter()
            .find(|(name, _)| text[at..].starts_with(format!("{{{name}}}").as_bytes()));
        match found {
            Some((name, value)) => {
                out.extend_from_slice(value.as_bytes());
                at += name.len() + 2;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(out)
}

/// `0007-p4-N1000-rep2.gammachi`.
fn directory(number: usize, np: u32, params: &[(String, String)], rep: u32) -> String {
    let sanitised = |text: &str| -> String {
        let sanitised =
            |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
        text.chars().map(sanitised).take(24).collect()
    };
    let params: String = params
        .iter()
        .map(|(name, value)| format!("-{}{}", sanitised(name), sanitised(value)))
        .collect();
    let params: String = params.chars().take(96).collect();
    format!("{number:04}-p{np}{params}-rep{rep}.gammachi")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(argv: &[&str], np: &[u32], params: &[(&str, &str)], repeat: u32) -> Plan {
        let params =
            params.iter().map(|(name, values)| Values::parse(&format!("{name}={values}")).unwrap());
        Plan {
            argv: argv.iter().map(OsString::from).collect(),
            np: np.to_vec(),
            counts_at: Vec::new(),
            params: params.collect(),
            repeat,
            seed: 1,
        }
    }

    #[test]
    fn runs_every_combination_once_per_repetition() {
        let plan = plan(&["mpirun", "-n", "{np}", "app", "{N}"], &[1, 2, 4], &[("N", "10,20")], 3);
        let study = plan.study(1, "outside", &None, Vec::new());
        assert_eq!(study.runs.len(), 18);
        let reps: Vec<u32> = study.runs.iter().map(|run| run.rep).collect();
        assert!(reps.is_sorted());
        let mut names: Vec<&str> = study.runs.iter().map(|run| run.directory.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 18);
        let order = |rep: usize| -> Vec<u32> {
            study.runs[6 * (rep - 1)..6 * rep].iter().map(|run| run.np).collect()
        };
        assert!(!order(1).is_sorted() || !order(2).is_sorted(), "shuffled");
        assert_ne!(order(1), order(2));
        assert_eq!(
            plan.study(1, "outside", &None, Vec::new()),
            study,
            "the same seed, the same order"
        );
    }

    #[test]
    fn runs_for_counts_come_last_and_once() {
        let counts_at = vec![8, 16];
        let timed = plan(&["mpirun", "-n", "{np}", "app", "{N}"], &[1, 2], &[("N", "10,20")], 3);
        let plan = Plan { counts_at, ..timed };
        let study = plan.study(1, "outside", &None, Vec::new());
        let of_counts: Vec<u32> =
            study.runs.iter().skip(12).filter(|run| run.counts_only).map(|run| run.np).collect();
        assert_eq!((study.runs.len(), of_counts), (16, vec![8, 8, 16, 16]));
        assert_eq!(plan.study(1, "outside", &None, study.runs.clone()), study);
        let again = Plan { counts_at: vec![2], ..plan };
        assert_eq!(again.check(), Err(PlanError::RepeatedCounts(2)));
    }

    #[test]
    fn keeps_existing_runs_and_adds_new_ones() {
        let argv = ["x", "{np}", "{N}"];
        let mut study = plan(&argv, &[1, 2], &[("N", "10")], 1).study(1, "blas", &None, Vec::new());
        study.runs[0].state = StudyRunState::Finished;
        let first = study.runs[0].clone();
        let more = plan(&argv, &[1, 2, 4], &[("N", "10")], 2).study(1, "blas", &None, study.runs);
        assert_eq!(more.runs.len(), 6);
        assert_eq!(more.runs[0], first);
        let names: std::collections::BTreeSet<&str> =
            more.runs.iter().map(|run| run.directory.as_str()).collect();
        assert_eq!(names.len(), 6);
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let plan = plan(&["{np}x{N}", "{rep}", "{other}", "${N}", "{}"], &[8], &[("N", "{np}")], 1);
        let study = plan.study(1, "outside", &None, Vec::new());
        let words = plan.command(&study.runs[0]);
        assert_eq!(words, ["8x{np}", "1", "{other}", "${np}", "{}"]);
    }

    #[test]
    fn refuses_pointless_study() {
        let fails_with = |plan: Plan, what: &str| {
            let error = plan.check().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        fails_with(plan(&["app"], &[1], &[], 1), "does not contain {np}");
        fails_with(plan(&["{np}"], &[1, 1], &[], 1), "1 is given twice");
        fails_with(plan(&["{np}"], &[1], &[("N", "1,2")], 1), "does not contain {N}");
        fails_with(plan(&["{np}"], &[1], &[("N", "1"), ("N", "2")], 1), "list its values in one");
        assert!(plan(&["{np}"], &[1], &[("label", "x")], 1).check().is_ok());
        for text in ["p=1", "tau_s=1", "np=2", "N=1,,2", "N=1,1", "N", "=1"] {
            assert!(Values::parse(text).is_err(), "{text}");
        }
    }
}
