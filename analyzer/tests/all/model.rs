//! `gammachi model` from outside: tables, formats, emitted expressions, bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn gammachi(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gammachi")).args(arguments).output().expect("it starts")
}

/// A directory of its own, with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("gammachi-model-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("it can be made");
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("it can be written");
    }
    folder
}

/// Three terms of EigenExa, exactly, with three repetitions of which the first is exact.
fn eigenexa() -> String {
    let mut text = String::from("p,N,rep,tau_s,compute,mpi\n");
    for p in [128.0f64, 512.0, 2048.0, 8192.0] {
        for n in [1e4f64, 2e4, 3e4, 4e4] {
            let (compute, mpi) = (1.6e-11 * n.powi(3) / p, 2e-4 * n + 4e-8 * n * n / p.sqrt());
            for rep in 1..=3 {
                let slower = 1.0 + 0.1 * f64::from(rep - 1);
                let (compute, mpi) = (compute * slower, mpi * slower);
                text += &format!("{p},{n},{rep},{},{compute},{mpi}\n", compute + mpi);
            }
        }
    }
    text
}

const BASIS: &str = "N^3/p, N^2/sqrt(p), N, -N/p, 1";
const LARGE: &str = "p,N\n16384,60000\n32768,100000\n";

fn truth(p: f64, n: f64) -> f64 {
    1.6e-11 * n.powi(3) / p + 2e-4 * n + 4e-8 * n * n / p.sqrt()
}

fn json(arguments: &[&str]) -> Value {
    let output = gammachi(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

/// The document of `gammachi model`.
fn model(table: &str, options: &[&str]) -> Value {
    json(&[&["model", table, "--json"], options].concat())
}

/// The model of EigenExa's terms.
fn fitted(table: &str, options: &[&str]) -> Value {
    model(table, &[&["--vars", "p,N", "--basis", BASIS], options].concat())
}

fn path(folder: &Path, file: &str) -> String {
    folder.join(file).to_str().expect("UTF-8").to_owned()
}

#[test]
fn minima_are_fitted_and_large_runs_predicted() {
    let folder = folder("predict", &[("t.csv", &eigenexa()), ("large.csv", LARGE)]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    for method in ["robust", "sparse", "minimax", "nnls", "l1", "lsm"] {
        let found = fitted(&table, &["--method", method, "--predict", &large, "--replicas", "50"]);
        assert_eq!((found["points"].as_u64(), found["rows"].as_u64()), (Some(16), Some(48)));
        assert_eq!(found["method"], method);
        assert_eq!(found["rank"], 5);
        assert!(found["fit"]["max_relative"].as_f64().expect("a number") < 1e-5);
        for (prediction, (p, n)) in found["predictions"]
            .as_array()
            .expect("a list")
            .iter()
            .zip([(16384.0, 6e4), (32768.0, 1e5)])
        {
            assert_eq!((prediction["p"].as_f64(), prediction["N"].as_f64()), (Some(p), Some(n)));
            let value = prediction["value"].as_f64().expect("a time");
            assert!((value / truth(p, n) - 1.0).abs() < 1e-3, "{method}: {value}");
            let warning = prediction["warning"].as_str().expect("a warning");
            assert!(warning.contains("times the largest p measured"), "{warning}");
        }
    }
    let parts = fitted(&table, &["--parts", "compute,mpi", "--predict", &large]);
    let value = parts["predictions"][0]["value"].as_f64().expect("a time");
    assert!((value / truth(16384.0, 6e4) - 1.0).abs() < 1e-3, "{value}");
    assert!(parts["columns"].as_array().expect("a list").iter().any(|c| c["part"] == "mpi"));
}

#[test]
fn parts_of_recorded_runs_are_their_figures() {
    let mut text = String::from("p,N,tau_s,sum_gamma_s,chi_s,rep,run\n");
    for p in [2.0, 4.0, 8.0, 16.0] {
        for n in [100.0, 200.0, 300.0] {
            let (gamma, chi) = (1e-3 * n * n / p, 0.02 * n);
            text += &format!("{p},{n},{},{},{chi},1,r\n", gamma + chi, p * gamma);
        }
    }
    let folder = folder("parts", &[("t.csv", &text), ("large.csv", "p,N\n64,1000\n")]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    let found =
        model(&table, &["--basis", "N^2/p, N, 1", "--parts", "compute,mpi", "--predict", &large]);
    let value = found["predictions"][0]["value"].as_f64().expect("a time");
    let expected = 1e-3 * 1e6 / 64.0 + 20.0;
    assert!((value / expected - 1.0).abs() < 1e-3, "{value} for {expected}");
    assert_eq!(found["response"], "compute + mpi");
}

#[test]
fn envelopes_are_fitted_apart_and_averaged() {
    let mut text = String::from("p,N,envelope,mpi\n");
    for (p, side, factor) in [16.0, 64.0, 256.0, 1024.0, 4096.0]
        .map(|p| (p, "lower", 1.0))
        .into_iter()
        .chain([32.0, 128.0, 512.0, 2048.0, 8192.0].map(|p| (p, "upper", 3.0)))
    {
        for n in [1e4f64, 2e4, 3e4] {
            text += &format!(
                "{p},{n},{side},{}\n",
                factor * (1.3e-8 * n * n / f64::sqrt(p) + 2e-4 * n)
            );
        }
    }
    let folder = folder("envelope", &[("t.csv", &text), ("large.csv", LARGE)]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    let found = model(
        &table,
        &[
            "--response",
            "mpi",
            "--vars",
            "p,N",
            "--basis",
            "N^2/sqrt(p), N, 1",
            "--envelope",
            "--predict",
            &large,
        ],
    );
    let value = found["predictions"][0]["value"].as_f64().expect("a time");
    let expected = 2.0 * (1.3e-8 * 3.6e9 / 128.0 + 2e-4 * 6e4);
    assert!((value / expected - 1.0).abs() < 1e-3, "{value} for {expected}");
}

#[test]
fn extra_p_files_are_written_and_read_back() {
    let folder = folder("extra-p", &[("t.csv", &eigenexa()), ("large.csv", LARGE)]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    let options = ["--vars", "p,N", "--basis", BASIS, "--predict", &large, "--json"];
    let with = |first: &[&str]| json(&[first, &options].concat());
    let direct = with(&["model", &table]);
    for file in ["t.txt", "t.jsonl"] {
        let file = path(&folder, file);
        with(&["model", &table, "--write-extra-p", &file]);
        let back = with(&["model", &file]);
        assert_eq!(back["rows"], direct["rows"]);
        let value = |found: &Value| found["predictions"][1]["value"].as_f64().expect("a time");
        assert!((value(&back) / value(&direct) - 1.0).abs() < 1e-6);
    }
    let text = fs::read_to_string(folder.join("t.txt")).expect("it was written");
    assert!(text.starts_with("PARAMETER p\nPARAMETER N\n\nPOINTS ( 128 10000 )"), "{text}");
}

#[test]
fn emitted_expressions_give_the_predicted_times() {
    let folder = folder("emit", &[("t.csv", &eigenexa()), ("large.csv", LARGE)]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    let basis = "c*N^3/p, N^2/sqrt(p), N, -N/(p*2^-1), 1/p^0.5*log2(p)";
    let options =
        ["model", &table, "--vars", "p,N", "--const", "c=2", "--basis", basis, "--replicas", "0"];
    let found = json(&[&options[..], &["--predict", &large, "--json"]].concat());
    let predicted = found["predictions"][0]["value"].as_f64().expect("a time");
    let emit = |language: &str| {
        let output = gammachi(&[&options[..], &["--emit", language]].concat());
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let python = emit("python") + "\nprint(repr(time_s(16384, 60000)))\n";
    let run = Command::new("python3").args(["-c", &python]).output().expect("python3 starts");
    let from_python: f64 =
        String::from_utf8_lossy(&run.stdout).trim().parse().unwrap_or_else(|_| panic!("{python}"));
    assert!((from_python / predicted - 1.0).abs() < 1e-12, "{from_python} for {predicted}");
    let rust = emit("rust") + "fn main() { println!(\"{}\", time_s(16384.0, 60000.0)); }\n";
    let source = folder.join("emitted.rs");
    fs::write(&source, &rust).expect("it can be written");
    let program = folder.join("emitted");
    let compiled = Command::new("rustc").arg("-o").arg(&program).arg(&source).output();
    assert!(compiled.expect("rustc starts").status.success(), "{rust}");
    let run = Command::new(&program).output().expect("it starts");
    let from_rust: f64 = String::from_utf8_lossy(&run.stdout).trim().parse().expect("a number");
    assert!((from_rust / predicted - 1.0).abs() < 1e-12, "{from_rust} for {predicted}");
    let latex = emit("latex");
    assert!(latex.starts_with("T(p, N) = ") && latex.contains("\\frac{"), "{latex}");
}

#[test]
fn held_back_points_compare_all_methods() {
    let folder = folder("holdout", &[("t.csv", &eigenexa())]);
    let table = path(&folder, "t.csv");
    let found = fitted(&table, &["--holdout", "p>2048", "--compare"]);
    assert_eq!(found["points"], 12);
    assert_eq!(found["holdout"].as_array().expect("a list").len(), 4);
    assert!(found["holdout"][0]["error"].as_f64().expect("an error").abs() < 1e-3);
    let scores = found["comparison"]["scores"].as_array().expect("a list");
    assert_eq!(scores.len(), 7);
    assert!(scores.iter().all(|score| score["median"].as_f64().is_some_and(|error| error < 0.01)));
}

#[test]
fn rank_counts_alone_are_weighed_and_the_three_terms_stay_by_name() {
    let mut text = String::from("p,tau_s\n");
    for p in [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0] {
        text += &format!("{p},{}\n", 4805.0 / p + 12.2 + 0.729 * p);
    }
    let folder = folder("strong", &[("t.csv", &text)]);
    let folder_large = self::folder("strong-large", &[("large.csv", "p\n160\n320\n")]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder_large, "large.csv"));
    let found = json(&["model", &table, "--dictionary", "--predict", &large, "--json"]);
    assert_eq!(found["method"], "evidence");
    for prediction in found["predictions"].as_array().expect("a list") {
        let number = |key: &str| prediction[key].as_f64().expect(key);
        let truth = 4805.0 / number("p") + 12.2 + 0.729 * number("p");
        assert!((number("value") / truth - 1.0).abs() < 0.05, "{prediction}, truth {truth}");
        assert!(number("lo") <= truth && truth <= number("hi"), "{prediction}, truth {truth}");
        assert!(prediction["warning"].as_str().expect("one").contains("no change of regime"));
    }
    let found = json(&["model", &table, "--basis", "three-terms", "--json"]);
    let coefficient = found["columns"][0]["coefficient"].as_f64().expect("a number");
    assert!((coefficient / 4805.0 - 1.0).abs() < 1e-4);
}

#[test]
fn pictures_are_written() {
    let folder = folder("pictures", &[("t.csv", &eigenexa()), ("large.csv", LARGE)]);
    let (table, large) = (path(&folder, "t.csv"), path(&folder, "large.csv"));
    let into = path(&folder, "figures");
    fitted(&table, &["--predict", &large, "--figures", &into]);
    for name in ["model-p.svg", "model-N.svg", "residuals.svg", "columns.svg"] {
        let svg = fs::read_to_string(Path::new(&into).join(name)).expect(name);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
}

#[test]
fn bad_input_is_named_with_its_remedy() {
    let folder = folder(
        "bad",
        &[
            ("t.csv", &eigenexa()),
            ("zero.csv", "p,N,tau_s\n0,1,1\n2,2,2\n4,3,3\n8,4,4\n"),
            ("few.csv", "p,N,tau_s\n1,1,1\n2,2,2\n"),
            ("constant.csv", "p,N,tau_s\n2,1,1\n2,2,2\n2,3,3\n2,4,4\n"),
            ("negative.csv", "p,N,tau_s\n2,1,1\n3,2,-2\n4,3,3\n5,4,4\n"),
            ("data.txt", "PARAMETER p\nPOINTS 1 2 3\nDATA 1\nDATA 2\nDATA 3\nDATA 4\n"),
            ("word.txt", "PARAMETER p\nPOINTS 1 2 3\nVALUES 1\n"),
            (
                "line.jsonl",
                "{\"params\":{\"p\":1},\"value\":1}\n{\"params\":{\"q\":1},\"value\":1}\n",
            ),
        ],
    );
    let cases: &[(&str, &[&str], i32, &str)] = &[
        (
            "t.csv",
            &["--vars", "p,N", "--basis", "N^3/q"],
            2,
            "unknown name `q`; known are p, N; add it",
        ),
        ("t.csv", &["--vars", "p,N", "--basis", "N^3 p"], 2, "an operator is missing here"),
        ("t.csv", &["--vars", "p,N", "--basis", "N, 1, N"], 2, "`N` appears twice"),
        ("t.csv", &["--vars", "p,M", "--basis", "M"], 1, "has no column M; its columns are"),
        ("t.csv", &["--vars", "p,N"], 2, "--basis or --dictionary is required"),
        (
            "t.csv",
            &["--vars", "p,N", "--basis", "N", "--holdout", "p~3"],
            2,
            "write one like p>1024",
        ),
        ("t.csv", &["--vars", "p,N", "--basis", "N", "--holdout", "p>1e9"], 2, "no row of"),
        ("t.csv", &["--vars", "p,N", "--basis", "N", "--const", "NB"], 2, "is not NAME=VALUE"),
        (
            "t.csv",
            &["--basis", "1/p, 1"],
            2,
            "--vars: N is not a variable, but varies among the rows of",
        ),
        ("t.csv", &["--basis", "N^3/p", "--const", "N=1"], 2, "--const N=1: line 2 of"),
        (
            "zero.csv",
            &["--vars", "p,N", "--basis", "log2(p), N"],
            1,
            "line 2: column `log2(p)`, character 1: log2 of 0",
        ),
        (
            "few.csv",
            &["--vars", "p,N", "--basis", "N, p"],
            1,
            "2 different points; robust needs at least 3",
        ),
        ("constant.csv", &["--vars", "p,N", "--basis", "N/p"], 1, "p is 2 at every point to fit"),
        (
            "negative.csv",
            &["--vars", "p,N", "--basis", "N/p"],
            1,
            "line 3: tau_s \"-2\" is not above 0",
        ),
        ("t.csv", &["--vars", "p,N", "--basis", "N, p", "--method", "simplex"], 2, "simplex"),
        (
            "data.txt",
            &["--basis", "p"],
            1,
            "line 6: DATA of region <root>, metric time has more lines",
        ),
        ("word.txt", &["--basis", "p"], 1, "line 3: begins with \"VALUES\""),
        ("line.jsonl", &["--basis", "p"], 1, "line 2: params are not those of the first line, p"),
        ("none.csv", &["--basis", "p"], 1, "cannot be read"),
        ("t.csv", &["--basis", "p", "--region", "solve"], 2, "is a table, which knows no regions"),
        (
            "t.csv",
            &["none.csv", "--basis", "p"],
            2,
            "is a file; name either one table, or runs and studies",
        ),
        ("", &["--basis", "p"], 1, "no rank file in it"),
        ("t.csv", &["--basis", "N/p", "--parts", "compute,io"], 1, "has no column io"),
    ];
    for (file, options, code, expected) in cases {
        let table = path(&folder, file);
        let output = gammachi(&[&["model", table.as_str()], *options].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(expected), "{file} {options:?}: {error}");
        assert_eq!(output.status.code(), Some(*code), "{file} {options:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}
