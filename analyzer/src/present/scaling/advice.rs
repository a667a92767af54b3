//! Writes the findings of a fit as sentences, and advises what to measure next.

use crate::models::scaling::{Definition, Fit, Isoefficiency, Model, Warning};

use super::super::contradiction;
use super::super::quantity::{count, percent, seconds, significant};
use super::words;

/// The sentences of a fit, the answer first. A finding that a warning invalidates is left out in favour of the
/// warning.
pub(super) fn sentences(fit: &Fit) -> Vec<String> {
    let mut all: Vec<String> = contradictions(fit).collect();
    let invalidated = |by: fn(&Warning) -> bool| fit.warnings.iter().any(by);
    match &fit.model {
        Some(model) => {
            if !invalidated(Warning::invalidates_efficiency) {
                all.extend(efficient_until(fit, model));
            }
            match fit.warnings.iter().find(|warning| warning.invalidates_p_c()) {
                Some(warning) => all.push(unknown_end(fit, warning)),
                None => all.push(stops_falling(fit, model)),
            }
            if !invalidated(Warning::invalidates_overhead) {
                all.extend(hidden(model));
            }
        }
        None => all.extend(next_without_model(fit)),
    }
    all.extend(unbalanced(fit));
    all.extend(fit.model.as_ref().and_then(next));
    all
}

/// A sentence on each measured time that contradicts the others, with its reason.
fn contradictions(fit: &Fit) -> impl Iterator<Item = String> {
    fit.contradictions.iter().map(|of| {
        let point = fit.series.points.iter().find(|point| f64::from(point.p) == of.p);
        contradiction::sentence("p", of, point.and_then(|point| point.lack))
    })
}

/// The warnings that the sentences do not contain already.
pub(super) fn warnings(fit: &Fit) -> Vec<String> {
    let leading = match fit.model {
        Some(_) => fit.warnings.iter().position(Warning::invalidates_p_c),
        None => None,
    };
    let others = fit.warnings.iter().enumerate().filter(|(i, _)| Some(*i) != leading);
    others.map(|(_, warning)| words::warning(warning)).collect()
}

/// The sentence that replaces a p_c that is not supported.
fn unknown_end(fit: &Fit, warning: &Warning) -> String {
    let what = match fit.series.work.is_constant() {
        true => "time stops falling",
        false => "work per time stops growing",
    };
    format!("Where {what} cannot be determined: {}.", words::warning(warning))
}

fn efficient_until(fit: &Fit, model: &Model) -> Option<String> {
    let best: Vec<&Isoefficiency> = model
        .isoefficiency
        .iter()
        .filter(|iso| iso.definition == model.isoefficiency[0].definition)
        .collect();
    let largest = fit.series.points.last().map_or(1, |point| point.p);
    let parts: Vec<String> = best
        .iter()
        .map(|iso| {
            let now = model.curve.efficiency(f64::from(fit.p1), iso.definition);
            match iso.p {
                Some(p) if p < 1.0 => format!("never reaches {}", percent(iso.eps)),
                Some(p) => {
                    let far =
                        if p > 2.0 * f64::from(largest) { ", far beyond the data" } else { "" };
                    format!(
                        "stays above {} up to {} ranks{far}",
                        percent(iso.eps),
                        ranks(p.floor())
                    )
                }
                None if now < iso.eps => format!("never reaches {}", percent(iso.eps)),
                None => format!("does not fall to {} in the model", percent(iso.eps)),
            }
        })
        .collect();
    let name = match best.first()?.definition {
        Definition::Reference => "Efficiency ε'",
        Definition::Asymptotic => "Efficiency a/(pτ)",
    };
    Some(format!("{name} {}.", parts.join("; ")))
}

fn stops_falling(fit: &Fit, model: &Model) -> String {
    let strong = fit.series.work.is_constant();
    let Some(p_c) = model.curve.p_c() else {
        return match strong {
            true => "Time does not stop falling within the model, so there is no p_c.".into(),
            false => "Work per time does not stop growing within the model.".into(),
        };
    };
    let range = match model.p_c_interval {
        Some(interval) if interval.hi.is_finite() => {
            format!(" (90 %: {} to {})", ranks(interval.lo), ranks(interval.hi))
        }
        Some(interval) => format!(" (90 %: {} or more, no upper bound)", ranks(interval.lo)),
        None => String::new(),
    };
    match model.tau_min_s(&fit.series) {
        Some(tau_min_s) => format!(
            "Time stops falling at {} ranks{range}, at {}; half of these ranks take {}.",
            ranks(p_c),
            seconds(tau_min_s),
            seconds(model.curve.tau_s(p_c / 2.0, 1.0))
        ),
        None => format!("Work per time stops growing at {} ranks{range}.", ranks(p_c)),
    }
}

fn hidden(model: &Model) -> Option<String> {
    let hidden = model.hidden?;
    Some(format!(
        "Lost time hides in the computation: at p = {} the model finds χ' = {}, measured χ is {}; \
         the gap of {} grows with p, because Σγ does (uneven or repeated work, slower memory).",
        hidden.p,
        seconds(hidden.model_chi_s),
        seconds(hidden.chi_s),
        seconds(hidden.gap_s)
    ))
}

fn unbalanced(fit: &Fit) -> Option<String> {
    let uneven = fit.unbalanced?;
    let grows = if uneven.grows { ", and more so with more ranks" } else { "" };
    Some(format!(
        "The load is imbalanced{grows}: at p = {} the ranks' lost time χ ranges from {} to {}; the busiest rank \
         computes {} longer than the mean.",
        uneven.p,
        seconds(uneven.chi_min_s),
        seconds(uneven.chi_max_s),
        seconds(uneven.excess_s)
    ))
}

fn next(model: &Model) -> Option<String> {
    // A value that is known to a thousandth needs no further run.
    let next = model.next.filter(|next| next.error_now.is_none_or(|now| now > 1e-3))?;
    let what = next.narrows;
    Some(match next.error_now.zip(next.error_then) {
        Some((now, then)) => format!(
            "Next: a run at p = {} would reduce the uncertainty of {what} most, from ±{} to about ±{} (standard \
             error).",
            next.p,
            percent(now),
            percent(then)
        ),
        None => format!("Next: a run at p = {} would constrain {what} most.", next.p),
    })
}

fn next_without_model(fit: &Fit) -> Option<String> {
    let mut measured: Vec<u32> = fit.series.points.iter().map(|point| point.p).collect();
    let smallest = *measured.first()?;
    let mut wanted = Vec::new();
    let mut p = smallest;
    while measured.len() < 4 && wanted.len() < 3 {
        p = p.checked_mul(2)?;
        if !measured.contains(&p) {
            measured.push(p);
            wanted.push(p.to_string());
        }
    }
    (!wanted.is_empty()).then(|| format!("Next: measure p = {} as well.", wanted.join(", ")))
}

fn ranks(p: f64) -> String {
    if p >= 10.0 {
        return count(p.round() as u64);
    }
    significant(p, 3).trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use crate::models::Observations;
    use crate::models::observations::tests::contradicted;
    use crate::models::scaling::{Options, Scaling};
    use crate::present::scaling::screen;

    #[test]
    fn a_point_that_contradicts_the_curve_stands_first_with_its_reason() {
        let table = contradicted();
        let predict = Options { predict: vec![8], ..Options::default() };
        for options in [Options::default(), predict] {
            let scaling = Scaling::new(&table, &options).unwrap();
            let screen = screen(&scaling, &[], false);
            let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = screen.find("p = 4 contradicts the other points: it took 3.98 s").unwrap();
            assert!(first < screen.find("Next: measure").unwrap_or(usize::MAX), "{screen}");
            assert!(
                screen
                    .contains("4 of its ranks shared 2 cores, and they waited for a core for 48 %"),
                "{screen}"
            );
            for prediction in &scaling.fits[0].predictions {
                let interval = prediction.interval_s.unwrap();
                assert!(interval.hi >= 3.98 && prediction.tau_s.is_err(), "{interval:?}");
            }
        }
    }

    #[test]
    fn imbalance_is_told_as_measured_without_a_promise() {
        use crate::models::observations::{RankTimes, RunFigures};
        let run = |p: u32| {
            let tau_s = 8.0 / f64::from(p) + 1.0;
            let rank = |rank| {
                let gamma_s = if rank == 0 { tau_s - 0.1 } else { tau_s - 0.9 };
                RankTimes { rank, gamma_s, chi_s: tau_s - gamma_s }
            };
            let (name, ranks) = (format!("p{p}"), (0..p).map(rank).collect());
            RunFigures {
                name,
                p,
                tau_s,
                ranks,
                flops: None,
                params: Vec::new(),
                rep: None,
                lack: None,
            }
        };
        let table = Observations::from_runs("study", &[run(2), run(4), run(8)]).unwrap();
        let scaling = Scaling::new(&table, &Options::default()).unwrap();
        let screen = screen(&scaling, &[], false);
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        let measured = "at p = 8 the ranks' lost time χ ranges from 100 ms to 900 ms; the busiest rank computes 700 ms \
                        longer than the mean.";
        assert!(screen.contains(measured), "{screen}");
        assert!(!screen.contains("would save") && !screen.contains("would be"), "{screen}");
    }

    #[test]
    fn warning_replaces_the_p_c_that_it_invalidates() {
        // p_c = 316 is twenty times the largest rank count.
        let mut text = String::from("p,tau_s,sum_gamma_s\n");
        for p in [1.0, 2.0, 4.0, 8.0, 16.0] {
            text += &format!("{p},{},97\n", 100.0 / p + 1.0 + 0.001 * p);
        }
        let table = Observations::from_csv("t.csv", text.as_bytes()).unwrap();
        let options = Options { predict: vec![32, 1_000_000], ..Options::default() };
        let scaling = Scaling::new(&table, &options).unwrap();
        let screen = screen(&scaling, &[], false);
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!screen.contains("Time stops falling at"), "{screen}");
        assert_eq!(screen.matches("times beyond the largest rank count fitted").count(), 1);
        assert!(screen.contains("falling cannot be determined: p_c = 316"), "{screen}");
        assert!(screen.contains("assumes no change of regime"), "{screen}");
    }
}
