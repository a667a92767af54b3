//! The runs that a prediction is about: program, arguments, parameters, rank count.

use serde::{Deserialize, Serialize};

use crate::trace::Run;

/// A run, or the runs that a prediction is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subject {
    /// File name of the program; unknown for a table.
    pub program: Option<String>,
    /// The program's build id, if it has one.
    pub build_id: Option<String>,
    /// The version string of the MPI library.
    pub mpi: Option<String>,
    /// The program's arguments; unknown if the runs that the prediction is based on had different
    /// ones.
    pub arguments: Option<Vec<String>>,
    /// Parameters and their values.
    pub params: Vec<(String, String)>,
    /// Parameters whose values the prediction leaves open.
    #[serde(default)]
    pub open: Vec<String>,
    /// Rank count.
    pub p: Option<u32>,
    /// Region of the predicted time; the whole run if there is none.
    pub region: Option<String>,
}

/// How a run differs from the subject of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    RankCount,
    /// The program's name.
    Program,
    /// The program's build id.
    Build,
    /// The MPI library.
    Mpi,
    /// The program's arguments.
    Arguments,
    /// The parameters.
    Params,
}

impl Subject {
    /// The subject of a recorded run.
    pub fn from_run(run: &Run) -> Self {
        let mut subject =
            Self { params: run.parameters(), p: Some(run.world_size), ..Self::default() };
        if let Some(rank) = run.ranks.first() {
            let header = &rank.file.header;
            let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            subject.program = header.program.rsplit('/').next().and_then(filled);
            subject.build_id = filled(&header.build_id);
            subject.mpi = filled(&header.mpi_library);
            subject.arguments = Some(header.arguments.iter().skip(1).cloned().collect());
        }
        subject
    }

    /// What several runs have in common. Parameters and rank count are left for the prediction to
    /// fill in.
    pub fn shared(runs: &[Self]) -> Self {
        let Some(first) = runs.first() else { return Self::default() };
        fn agreed<T: Clone + PartialEq>(
            runs: &[Subject],
            field: impl Fn(&Subject) -> &Option<T>,
        ) -> Option<T> {
            let first = field(runs.first()?);
            runs.iter().all(|run| field(run) == first).then(|| first.clone()).flatten()
        }
        Self {
            program: agreed(runs, |run| &run.program),
            build_id: agreed(runs, |run| &run.build_id),
            mpi: agreed(runs, |run| &run.mpi),
            arguments: agreed(runs, |run| &run.arguments),
            region: first.region.clone(),
            ..Self::default()
        }
    }

    /// Whether a run can be recognised: the program, the rank count and every parameter are known;
    /// without parameters, the arguments.
    pub fn is_certain(&self) -> bool {
        let identified = self.arguments.is_some() || !self.params.is_empty();
        self.program.is_some() && self.p.is_some() && self.open.is_empty() && identified
    }

    /// How a run differs, in what is known of both.
    pub fn differences(&self, run: &Self) -> Vec<Difference> {
        fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            matches!((a, b), (Some(a), Some(b)) if a != b)
        }
        let value = |name: &String| run.params.iter().find(|(other, _)| other == name);
        let other = |(name, text): &(String, String)| {
            value(name).is_none_or(|(_, other)| !is_same_value(text, other))
        };
        let unknown = |(name, _): &(String, String)| {
            !self.open.contains(name) && self.params.iter().all(|(known, _)| known != name)
        };
        let params = self.params.iter().any(other)
            || (self.program.is_some() && run.params.iter().any(unknown));
        let found = [
            (Difference::RankCount, differ(&self.p, &run.p)),
            (Difference::Program, differ(&self.program, &run.program)),
            (Difference::Build, differ(&self.build_id, &run.build_id)),
            (Difference::Mpi, differ(&self.mpi, &run.mpi)),
            (Difference::Arguments, differ(&self.arguments, &run.arguments)),
            (Difference::Params, params),
        ];
        found.iter().filter(|(_, differs)| *differs).map(|(what, _)| *what).collect()
    }
}

/// Whether two texts are the same value, such as `1e3` and `1000`.
pub fn is_same_value(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p: u32, arguments: &[&str], params: &[(&str, &str)]) -> Subject {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Subject {
            program: Some("app".into()),
            build_id: Some("ab12".into()),
            mpi: Some("Open MPI 4".into()),
            arguments: Some(arguments.iter().map(|word| (*word).to_owned()).collect()),
            params: params.iter().map(text).collect(),
            p: Some(p),
            ..Subject::default()
        }
    }

    #[test]
    fn same_parameters_match_whatever_the_arguments() {
        let runs = [run(1, &["1000"], &[("N", "1000")]), run(2, &["2000"], &[("N", "2000")])];
        let mut predicted = Subject::shared(&runs);
        assert!(!predicted.is_certain(), "neither arguments nor parameters are known");
        predicted.params = vec![("N".into(), "4e3".into())];
        predicted.p = Some(8);
        assert!(predicted.is_certain());
        assert_eq!(predicted.differences(&run(8, &["4000"], &[("N", "4000")])), []);
        let other = run(4, &["4000"], &[("N", "5000")]);
        assert_eq!(predicted.differences(&other), [Difference::RankCount, Difference::Params]);
    }

    #[test]
    fn open_parameter_makes_prediction_uncertain() {
        let mut predicted = Subject::shared(&[run(1, &["x"], &[]), run(2, &["x"], &[])]);
        predicted.p = Some(4);
        assert!(predicted.is_certain());
        assert_eq!(predicted.differences(&run(4, &["x"], &[])), []);
        assert_eq!(predicted.differences(&run(4, &["y"], &[])), [Difference::Arguments]);
        // A parameter that no run had before may change anything.
        assert_eq!(predicted.differences(&run(4, &["x"], &[("T", "2")])), [Difference::Params]);
        predicted.open = vec!["N".into()];
        assert!(!predicted.is_certain());
    }

    #[test]
    fn other_build_or_library_is_a_difference() {
        let predicted = run(2, &[], &[]);
        let mut rebuilt = predicted.clone();
        rebuilt.build_id = Some("cd34".into());
        rebuilt.mpi = Some("MPICH 4".into());
        assert_eq!(predicted.differences(&rebuilt), [Difference::Build, Difference::Mpi]);
        rebuilt.build_id = None;
        assert_eq!(predicted.differences(&rebuilt), [Difference::Mpi]);
    }
}
