use crate::models::expression::Expression;

use super::*;

fn table(text: &str) -> Observations {
    Observations::from_csv("t.csv", text.as_bytes()).unwrap()
}

fn fit(text: &str, options: &Options) -> Fit {
    Scaling::new(&table(text), options).unwrap().fits.remove(0)
}

fn error_of(text: &str, options: &Options) -> String {
    Scaling::new(&table(text), options).unwrap_err().to_string()
}

/// A table with τ = a/p + c + d·p and Σγ = 0.97·a.
fn exact(rank_counts: &[u32], a: f64, c: f64, d: f64) -> String {
    let rows = rank_counts.iter().map(|p| {
        let p = f64::from(*p);
        format!("{p},{},{}\n", a / p + c + d * p, 0.97 * a)
    });
    "p,tau_s,sum_gamma_s\n".to_owned() + &rows.collect::<String>()
}

#[test]
fn recovers_the_truth_without_noise() {
    let (a, c, d) = (4805.0, 12.2, 0.729);
    let form = Form::ThreeTerms;
    let options = Options { predict: vec![160, 320], form, ..Options::default() };
    let fit = fit(&exact(&[10, 20, 30, 50, 70, 90], a, c, d), &options);
    let model = fit.model.as_ref().unwrap();
    let close =
        |value: f64, truth: f64| assert!((value / truth - 1.0).abs() < 1e-9, "{value} {truth}");
    close(model.curve.a_s(), a);
    close(model.curve.chi0_s(), c);
    close(model.curve.chi1_s(), d);
    close(model.curve.p_c().unwrap(), (a / d).sqrt());
    close(model.tau_min_s(&fit.series).unwrap(), c + 2.0 * (a * d).sqrt());
    for prediction in &fit.predictions {
        let p = f64::from(prediction.p);
        close(prediction.tau_s.unwrap(), a / p + c + d * p);
    }
    close(model.r, 1.0);
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let noisy = "p,tau_s,sum_gamma_s,N\n2,55.1,99,7\n4,29.8,100,7\n8,18.3,103,7\n16,14.9,108,7\n\
                 2,5.5,9.9,3\n4,3.0,10,3\n8,1.83,10.3,3\n16,1.5,10.8,3\n";
    let mut lines: Vec<&str> = noisy.lines().skip(1).collect();
    let forward = Scaling::new(&table(noisy), &Options::default()).unwrap();
    for turn in 0..8 {
        lines.rotate_left(3);
        if turn % 2 == 0 {
            lines.reverse();
        }
        let text = format!("p,tau_s,sum_gamma_s,N\n{}\n", lines.join("\n"));
        let turned = Scaling::new(&table(&text), &Options::default()).unwrap();
        for (a, b) in forward.fits.iter().zip(&turned.fits) {
            let (a, b) = (a.model.as_ref().unwrap(), b.model.as_ref().unwrap());
            assert_eq!(a.curve, b.curve);
            assert_eq!(a.p_c_interval, b.p_c_interval);
        }
    }
}

#[test]
fn repetitions_are_fitted_by_their_minimum() {
    let once = exact(&[1, 2, 4, 8, 16], 100.0, 1.0, 0.2);
    let mut text = String::from("p,tau_s,sum_gamma_s,rep\n");
    for line in once.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        for (rep, factor) in [1.05, 1.0, 1.02].into_iter().enumerate() {
            text += &format!("{},{},{},{rep}\n", cells[0], cells[1] * factor, cells[2]);
        }
    }
    let (once, thrice) = (fit(&once, &Options::default()), fit(&text, &Options::default()));
    let (once_model, thrice_model) = (once.model.unwrap(), thrice.model.unwrap());
    assert_eq!(once_model.curve, thrice_model.curve);
    assert_eq!(thrice.series.points[0].spread.number, 3);
    let noise = thrice_model.noise.unwrap();
    assert_eq!(noise.freedom, 2 + 10, "scatter and repetitions");
    assert!(noise.relative > 0.02 && noise.relative < 0.03, "{noise:?}");
}

#[test]
fn leaves_out_efficiencies_out_of_range_and_warns() {
    let text = exact(&[1, 2, 4, 8, 16, 32, 128], 100.0, 1.0, 0.2);
    let fit = fit(&text, &Options::default());
    assert!(matches!(fit.left_out[..], [(128, LeftOut::Efficiency(eps))] if eps < 0.1));
    let curve = fit.model.unwrap().curve;
    assert!((curve.chi1_s() / 0.2 - 1.0).abs() < 1e-9);
    assert!(
        fit.warnings.iter().any(|warning| matches!(warning,
            Warning::OutOfRange(all) if matches!(all[..], [(128, eps)] if eps < 0.1))),
        "{:?}",
        fit.warnings
    );
}

#[test]
fn warns_about_coefficients_out_of_range() {
    let warned = |c: f64, d: f64, wanted: &dyn Fn(&Warning) -> bool| {
        let fit = fit(&exact(&[1, 2, 4, 8, 16], 100.0, c, d), &Options::default());
        assert!(fit.warnings.iter().any(wanted), "{c} {d}: {:?}", fit.warnings);
        fit
    };
    warned(-0.9, 0.3, &|w| matches!(w, Warning::NegativeC1(_)));
    let no_minimum = warned(2.0, -0.01, &|w| matches!(w, Warning::NoMinimum(_)));
    let model = no_minimum.model.unwrap();
    assert_eq!((model.curve.p_c(), model.tau_min_interval_s), (None, None));
}

#[test]
fn p_c_is_unsupported_where_the_interval_of_c2_reaches_0() {
    // 10 % scatter about a curve with hardly a minimum in its range.
    let text = "p,tau_s,sum_gamma_s\n1,101,97\n2,57,97\n4,27,97\n8,15.8,97\n16,7.4,97\n";
    let fit = fit(text, &Options::default());
    let model = fit.model.unwrap();
    assert!(model.c_intervals.unwrap()[2].lo <= 0.0, "{:?}", model.c_intervals);
    assert!(fit.warnings.contains(&Warning::UnsupportedPc) || model.curve.c[2] <= 0.0);
    assert_eq!(model.p_c_interval.unwrap().hi, f64::INFINITY);
}

#[test]
fn one_run_bounds_the_minimum_time() {
    let fit = fit("p,tau_s,sum_gamma_s\n10,500,4600\n", &Options::default());
    assert!(fit.model.is_none());
    let bounds = fit.bounds.unwrap();
    assert!((bounds.lo_s - 40.0).abs() < 1e-9 && bounds.hi_s == 500.0 && bounds.p == 10);
    assert!(matches!(fit.warnings[..], [Warning::TooFewPoints(1, true)]), "{:?}", fit.warnings);
}

#[test]
fn weak_scaling_by_expression_and_by_counted_operations() {
    // Work p·1000 at p ranks; τ = w·(a/p + c + d·p) with w = p.
    let mut text = String::from("p,tau_s,sum_gamma_s,N,flops\n");
    for p in [1.0, 2.0, 4.0, 8.0, 16.0] {
        let tau = p * (10.0 / p + 0.1 + 0.01 * p);
        text += &format!("{p},{tau},{},{},{}\n", 9.9 * p, 1000.0 * p, 5e9 * p);
    }
    let work = |text: &str| Some(Expression::parse(text).unwrap());
    let form = Form::ThreeTerms;
    let options = Options { work: work("N"), predict: vec![32], form, ..Options::default() };
    for options in [options.clone(), Options { work: None, ..options.clone() }] {
        let fit = fit(&text, &options);
        let model = fit.model.as_ref().unwrap();
        assert!((model.curve.a_s() - 10.0).abs() < 1e-9);
        assert!((model.curve.p_c().unwrap() - 1000f64.sqrt()).abs() < 1e-6);
        assert_eq!(model.tau_min_s(&fit.series), None, "largest speed is not minimum time");
        let truth = 32.0 * (10.0 / 32.0 + 0.1 + 0.32);
        assert!((fit.predictions[0].tau_s.unwrap() / truth - 1.0).abs() < 1e-9);
        assert!(fit.warnings.contains(&Warning::WeakScaling));
    }
    let without_flops = text.lines().map(|l| l.rsplit_once(',').unwrap().0.to_owned() + "\n");
    let error = error_of(&without_flops.collect::<String>(), &Options::default());
    assert!(error.ends_with("because N changes with p"), "{error}");
    let error = error_of(&text, &Options { work: work("M"), ..Options::default() });
    assert!(error.starts_with("`M`, ") && error.contains("unknown name `M`"), "{error}");
    let error = error_of(&text, &Options { work: work("N-1000"), ..Options::default() });
    assert!(error.contains("line 2: the work is 0; it must be"), "{error}");
}

#[test]
fn a_process_grid_that_follows_p_is_not_a_problem_size() {
    let strong = exact(&[1, 2, 4, 8], 100.0, 1.0, 0.2);
    let lines = strong.lines().skip(1).map(|line| {
        let p = line.split(',').next().unwrap();
        format!("{line},{p},5e9\n")
    });
    let text = "p,tau_s,sum_gamma_s,Q,flops\n".to_owned() + &lines.collect::<String>();
    let fit = fit(&text, &Options::default());
    assert!(fit.series.work.is_constant() && fit.series.points.len() == 4);
}

#[test]
fn reports_hidden_overhead_and_uneven_ranks() {
    // Σγ grows by 64 % up to p = 16; the model sees the growth as overhead.
    let mut text = String::from("p,tau_s,sum_gamma_s,chi_min_s,chi_max_s\n");
    for p in [1.0, 2.0, 4.0, 8.0, 16.0] {
        let sum = 100.0 + 0.25 * p * p;
        let chi = 0.2;
        let tau = sum / p + chi;
        text += &format!("{p},{tau},{sum},{},{}\n", chi - 0.1, chi + 0.1);
    }
    let fit = fit(&text, &Options::default());
    let hidden = fit.model.unwrap().hidden.unwrap();
    assert_eq!(hidden.p, 16);
    assert!((hidden.gap_s - 4.0).abs() < 1e-6, "{hidden:?}");
    assert_eq!(fit.unbalanced, None, "0.1 s of 10.2 s is not an imbalance");
    let uneven = "p,tau_s,sum_gamma_s,chi_min_s,chi_max_s\n2,10,16,1.5,2.5\n4,6,16,0.5,3\n";
    let uneven = super::tests::fit(uneven, &Options::default()).unbalanced.unwrap();
    assert!((uneven.excess_s - 1.5).abs() < 1e-12 && uneven.grows && uneven.p == 4, "{uneven:?}");
    assert_eq!((uneven.tau_without_s, uneven.tau_without_p), (4.5, 4));
}

#[test]
fn compares_problem_sizes() {
    let mut text = String::from("p,tau_s,sum_gamma_s,N\n");
    for (n, a, c) in [(1000.0, 10.0, 0.5), (2000.0, 80.0, 1.0), (4000.0, 640.0, 20.0)] {
        for p in [1.0, 2.0, 4.0, 8.0] {
            text += &format!("{p},{},{a},{n}\n", a / p + c + 0.01 * p);
        }
    }
    let scaling = Scaling::new(&table(&text), &Options::default()).unwrap();
    let comparison = scaling.comparison.unwrap();
    assert_eq!(comparison.param, "N");
    let ratios: Vec<f64> = comparison.steps.iter().map(|step| step.a_ratio.round()).collect();
    assert_eq!(ratios, [1.0, 8.0, 64.0]);
    assert!((comparison.steps[1].a_exponent.unwrap() - 3.0).abs() < 1e-9);
    assert!((comparison.steps[2].chi0_ratio.unwrap() - 20.0).abs() < 1e-9);
}

#[test]
fn suggests_a_next_run_that_helps() {
    let text = "p,tau_s,sum_gamma_s\n1,101,97\n2,51.5,97\n4,27,97\n8,15.1,97\n";
    let model = fit(text, &Options::default()).model.unwrap();
    let next = model.next.unwrap();
    assert_eq!(next.p, 16, "the far end tells most about c2: {next:?}");
    let (now, then) = next.error_now.zip(next.error_then).unwrap();
    assert!(then < 0.7 * now, "{next:?}");
}

#[test]
fn refuses_bad_tables_and_names_the_line() {
    let options = Options::default();
    for (text, message) in [
        ("p,tau_s\n1,2\n", "t.csv: has no column sum_gamma_s"),
        ("tau_s,sum_gamma_s\n1,2\n", "t.csv: has no column p"),
        ("p,tau_s,sum_gamma_s\n1,x,1\n", "t.csv, line 2: tau_s \"x\" is not a number"),
        ("p,tau_s,sum_gamma_s\n1,NaN,1\n", "t.csv, line 2: tau_s \"NaN\" is not a finite number"),
        ("p,tau_s,sum_gamma_s\n1,-2,1\n", "t.csv, line 2: tau_s \"-2\" is not above 0"),
        ("p,tau_s,sum_gamma_s\n1,0,1\n", "t.csv, line 2: tau_s \"0\" is not above 0"),
        ("p,tau_s,sum_gamma_s\n1,2,0\n", "t.csv, line 2: sum_gamma_s \"0\" is not above 0"),
        ("p,tau_s,sum_gamma_s\n1.5,2,1\n", "t.csv, line 2: p \"1.5\" is not a whole number"),
        ("p,tau_s,sum_gamma_s\n0,2,1\n", "t.csv, line 2: p \"0\" is not a whole number"),
        ("p,tau_s,sum_gamma_s\n2,2,5\n", "t.csv, line 2: sum_gamma_s \"5\" is more than p·tau_s"),
        ("p,tau_s,sum_gamma_s\n4,2,1\n4,3,1\n", "t.csv: line 2 and line 3 are both p=4"),
        ("p,tau_s,sum_gamma_s\n4,2,\n", "no run has a sum_gamma_s"),
    ] {
        let error = error_of(text, &options);
        assert!(error.starts_with(message), "{error}\nexpected {message}");
    }
    let p1 = Options { p1: Some(3), ..Options::default() };
    let error = error_of("p,tau_s,sum_gamma_s\n1,2,1\n2,1,1\n", &p1);
    assert!(error.starts_with("no run has p = 3 and a sum_gamma_s; those"), "{error}");
}

#[test]
fn divides_sums_over_threads_by_the_threads() {
    let one = "p,tau_s,sum_gamma_s\n1,100,97\n2,51,97\n4,28,97\n8,17,97\n";
    let four =
        "p,tau_s,sum_gamma_s,gamma_threads\n1,100,388,4\n2,51,388,4\n4,28,388,4\n8,17,388,4\n";
    let (one, four) = (fit(one, &Options::default()), fit(four, &Options::default()));
    assert_eq!(one.model.unwrap().curve, four.model.unwrap().curve);
}

#[test]
fn gives_a_range_where_a_single_time_would_mislead() {
    let rows = "2,5.02,10\n4,2.53,10\n8,1.29,10\n16,0.68,10\n";
    let options = Options { predict: vec![32, 4096], ..Options::default() };
    let fit = fit(&format!("p,tau_s,sum_gamma_s\n{rows}"), &options);
    let [near, far] = fit.predictions.as_slice() else { panic!("two predictions") };
    assert!(near.tau_s.is_ok(), "{near:?}");
    assert!(matches!(far.tau_s, Err(Unsupported::TooWide { next: 32, .. })), "{far:?}");
    let range = far.interval_s.unwrap();
    // 10/4096 is what computation alone takes.
    assert!(10.0 / 4096.0 < range.lo && range.lo < range.hi, "{range:?}");
}
