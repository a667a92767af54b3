//! What the structure of runs predicts, where the rank count alone is asked for, or with it a problem size.

use rayon::prelude::*;

use crate::cli::error::CommandError;
use crate::cli::labelled_run::labels_of;
use crate::cli::observed::Observed;
use crate::cli::structural_runs::{add_structure, message_times, rows_of};
use crate::models::observations::{P, TAU_S};
use crate::models::regression::{Findings, Prediction};
use crate::models::scaling::bootstrap::Interval;
use crate::models::scaling::{AtProblemSize, Curves, Fit, Options, Scaling};
use crate::models::structure::{Abstains, LEAST_RUNS, SizedRun};

use super::arguments::ModelArguments;
use super::request::Request;

/// The same times that `gammachi scaling` predicts from what the runs do, at each problem size that is asked for, be it
/// measured or not; nothing where other variables than p and one parameter, or other quantities than τ are modelled,
/// and of tables.
///
/// # Errors
/// A file that is named cannot be read.
pub(super) fn predicted(
    arguments: &ModelArguments,
    request: &Request,
    findings: &Findings,
    observed: &Observed,
) -> Result<Vec<AtProblemSize>, CommandError> {
    let Observed { table, directories, counted, .. } = observed;
    let parts: Vec<&str> = request.parts.iter().map(|part| part.response.as_str()).collect();
    let Some(variables) = Variables::of(request) else { return Ok(Vec::new()) };
    let asked = variables.asked(&findings.predictions);
    let is_of_runs = arguments.region.is_none() && !directories.is_empty();
    if parts != [TAU_S] || !is_of_runs || asked.is_empty() {
        return Ok(Vec::new());
    }
    let predict = asked.iter().flat_map(|(_, curves)| curves).map(|of| of.p).collect();
    let options = Options { predict, ..Options::default() };
    let Ok(mut scaling) = Scaling::new(table, &options) else { return Ok(Vec::new()) };
    let Some(sizes) = variables.sizes(&scaling) else { return Ok(Vec::new()) };
    // Where a size was measured at enough rank counts, its runs need not be continued to it.
    let measured = |size: Option<f64>, fit: usize, scaling: &Scaling| {
        sizes[fit] == size
            && (size.is_none() || scaling.fits[fit].series.points.len() >= LEAST_RUNS)
    };
    for fit in 0..sizes.len() {
        let of_fit = asked.iter().find(|(size, _)| measured(*size, fit, &scaling));
        let is_asked = |p: u32| of_fit.is_some_and(|(_, all)| all.iter().any(|of| of.p == p));
        scaling.fits[fit].predictions.retain(|of| is_asked(of.p));
    }
    let machine = arguments.machine.as_deref();
    add_structure(&mut scaling, table, (directories, counted), machine)?;
    let mut runs: Option<Result<Vec<SizedRun>, Abstains>> = None;
    let mut found = Vec::new();
    for (size, curves) in &asked {
        let fit = (0..sizes.len()).find(|fit| measured(*size, *fit, &scaling));
        let structure = match (fit, *size) {
            (Some(fit), _) => scaling.fits[fit].structure.take(),
            (None, None) => None,
            (None, Some(size)) => {
                let runs = match &runs {
                    Some(runs) => runs,
                    None => runs.insert(sized_runs(&scaling, &sizes, observed)?),
                };
                let machine = message_times(machine)?;
                Some(scaling.at_problem_size(runs.clone(), size, &machine, curves))
            }
        };
        let size = variables.size.map(|(_, name)| name.to_owned()).zip(*size);
        found.extend(structure.map(|structure| AtProblemSize { size, structure }));
    }
    Ok(found)
}

/// What runs at all sizes and rank counts do.
///
/// # Errors
/// The table lacks rank counts or times.
fn sized_runs(
    scaling: &Scaling,
    sizes: &[Option<f64>],
    Observed { table, directories, .. }: &Observed,
) -> Result<Result<Vec<SizedRun>, Abstains>, CommandError> {
    let mut of_rows: Vec<(f64, usize)> = Vec::new();
    for (fit, size) in scaling.fits.iter().zip(sizes) {
        let rows = rows_of(fit, table)?.into_iter();
        of_rows.extend(size.iter().flat_map(|size| rows.clone().map(|row| (*size, row))));
    }
    let read =
        |(size, row): (f64, usize)| labels_of(&directories[row]).map(|run| SizedRun { size, run });
    Ok(of_rows.into_par_iter().map(read).collect())
}

/// What a model's variables are.
#[derive(Clone, Copy)]
pub(super) struct Variables<'r> {
    /// The place of p among them.
    p: usize,
    /// The place and the name of the only other one.
    size: Option<(usize, &'r str)>,
}

impl<'r> Variables<'r> {
    /// `None` if p is none of them, or there are more than two.
    pub fn of(request: &'r Request) -> Option<Self> {
        let p = request.variables.iter().position(|name| name == P)?;
        match request.variables.as_slice() {
            [_] => Some(Self { p, size: None }),
            [a, b] => Some(Self { p, size: Some(if p == 0 { (1, b) } else { (0, a) }) }),
            _ => None,
        }
    }

    /// The rank count of a point and its problem size, if they are such.
    pub fn point(self, of: &Prediction) -> Option<(u32, Option<f64>)> {
        let p = of.values.get(self.p).filter(|p| p.fract() == 0.0 && **p >= 1.0)?;
        let size = self.size.map(|(place, _)| of.values[place]);
        size.is_none_or(|size| size > 0.0).then_some((*p as u32, size))
    }

    /// What the model says of the points, by problem size.
    fn asked(self, predictions: &[Prediction]) -> Vec<(Option<f64>, Vec<Curves>)> {
        let mut asked: Vec<(Option<f64>, Vec<Curves>)> = Vec::new();
        for of in predictions {
            let Some((p, size)) = self.point(of) else { continue };
            let interval_s = of.lo.zip(of.hi).map(|(lo, hi)| Interval { lo, hi });
            let curves = Curves { p, tau_s: of.value, interval_s };
            match asked.iter_mut().find(|(known, _)| *known == size) {
                Some((_, known)) => known.push(curves),
                None => asked.push((size, vec![curves])),
            }
        }
        asked
    }

    /// The problem size of each fit; `None` if they differ in anything else, or one is no number.
    fn sizes(self, scaling: &Scaling) -> Option<Vec<Option<f64>>> {
        let Some((_, name)) = self.size else {
            return (scaling.fits.len() == 1).then(|| vec![None]);
        };
        let others = |fit: &Fit| -> Vec<(String, String)> {
            fit.series.params.iter().filter(|(of, _)| of != name).cloned().collect()
        };
        let first = others(scaling.fits.first()?);
        let size = |fit: &Fit| {
            let (_, value) = fit.series.params.iter().find(|(of, _)| of == name)?;
            let is_alike = others(fit) == first;
            value.parse::<f64>().ok().filter(|size| *size > 0.0 && is_alike).map(Some)
        };
        scaling.fits.iter().map(size).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::labelled_run::tests::{run, run_of_size};
    use crate::cli::model::input;
    use crate::synthetic_trace::RunDirectory;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ModelArguments,
    }

    fn asked(runs: &[RunDirectory], points: &str, options: &[&str]) -> Vec<AtProblemSize> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("points.csv");
        std::fs::write(&file, points).unwrap();
        let mut line = vec!["model".to_owned()];
        line.extend(runs.iter().map(|run| run.path().display().to_string()));
        line.extend(["--predict".to_owned(), file.display().to_string()]);
        line.extend(options.iter().map(|option| (*option).to_owned()));
        let Line { arguments } = Line::parse_from(line);
        let observed = input::read(&arguments).unwrap();
        let request = Request::new(&arguments, &observed.table).unwrap();
        let findings = request.findings(&observed.table).unwrap();
        predicted(&arguments, &request, &findings, &observed).unwrap()
    }

    #[test]
    fn times_over_p_are_predicted_from_what_the_runs_do_too() {
        let runs = [2, 4, 8, 16, 32].map(run);
        let points = "p\n64\n256\n";
        let found = asked(&runs, points, &["--vars", "p"]);
        let [AtProblemSize { size: None, structure }] = &found[..] else { panic!("{found:?}") };
        // Ranks of made runs share the cores of one machine, if it is known.
        let by_structure = structure.as_ref().unwrap();
        assert_eq!(
            by_structure.forecasts.iter().map(|(of, _)| of.p).collect::<Vec<_>>(),
            [64, 256]
        );
        assert!((by_structure.forecasts[0].0.tau_s / 2.24e-3 - 1.0).abs() < 0.03);
        assert!(asked(&runs, points, &["--vars", "p", "--response", "chi_s"]).is_empty());
    }

    #[test]
    fn times_at_other_problem_sizes_are_predicted_where_these_are_enough() {
        let of = |sizes: &[u64]| {
            let at = |p| sizes.iter().map(move |size| run_of_size(p, *size));
            [2, 4, 8, 16, 32].into_iter().flat_map(at).collect::<Vec<RunDirectory>>()
        };
        let options = ["--vars", "p,N", "--basis", "N^2/p, log2(p)", "--replicas", "20"];
        let runs = of(&[500, 1_000, 2_000, 4_000]);
        let found = asked(&runs, "N,p\n8000,64\n4000,64\n8000,128\n0,64\n", &options);
        let at: Vec<(Option<f64>, Vec<u32>, bool)> = found
            .iter()
            .map(|of| {
                let by = of.structure.as_ref().unwrap();
                let p = by.forecasts.iter().map(|(of, _)| of.p).collect();
                (of.size.as_ref().map(|(_, size)| *size), p, by.held_back_size.is_some())
            })
            .collect();
        // What was measured is not continued over problem sizes.
        let sizes = [(Some(8_000.0), vec![64, 128], true), (Some(4_000.0), vec![64], false)];
        assert_eq!(at, sizes);
        let truth = 2.0 * (4.0 * 8_000.0 * 8_000.0 / 64.0 + 20_000.0 * 6.0) * 1e-9;
        let (forecast, _) = &found[0].structure.as_ref().unwrap().forecasts[0];
        assert!((forecast.tau_s / truth - 1.0).abs() < 0.05, "{forecast:?}, not {truth}");
        let few = asked(&of(&[1_000, 2_000, 4_000]), "p,N\n64,8000\n", &options);
        assert!(matches!(few[0].structure, Err(Abstains::FewProblemSizes(3))), "{few:?}");
    }
}
