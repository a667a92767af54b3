//! The test that a module uses only its own floor and those below, and that no modules use each other in a
//! circle. The floors and their order stand in the table at the head of `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names in the first column of the table in the head of `lib.rs`, top floor first.
fn floors(head: &str) -> Vec<String> {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// A module and one that it uses, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: Vec<String>,
    to: Vec<String>,
    line: String,
}

/// `floor/module.rs` and `floor/mod.rs` as paths of modules.
fn module_of(file: &str) -> Vec<String> {
    let parts = file.strip_suffix(".rs").unwrap_or(file).split('/');
    parts.filter(|part| *part != "mod").map(str::to_owned).collect()
}

/// The names behind `start`, which end with "::": `a::b` of `a::b::C`.
fn names(rest: &str) -> Vec<String> {
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    rest[..end.unwrap_or(rest.len())].split("::").map(str::to_owned).collect()
}

/// What a file uses of its crate, and what in it could hide such a use.
fn uses(file: &str, text: &str) -> (Vec<Arrow>, Vec<String>) {
    let (from, mut arrows, mut wrong) = (module_of(file), Vec::new(), Vec::new());
    // `super` of a floor's own file is the crate; of another file, the floor.
    let above = &from[..from.len() - 1];
    for (number, code) in (1..).zip(text.lines()) {
        let line = format!("{file}:{number}");
        if code.trim_start().starts_with("//") {
            continue;
        }
        for (start, base) in [("crate::", &[][..]), ("super::", above)] {
            for (at, _) in code.match_indices(start) {
                let names = names(&code[at + start.len()..]);
                let is_test = start == "super::" && names[0].is_empty();
                if names[0].is_empty() && !is_test || names[0] == "super" {
                    wrong.push(format!("{line}: write crate::floor::module, a use for each"));
                } else if !is_test {
                    let to: Vec<String> = base.iter().cloned().chain(names).collect();
                    arrows.push(Arrow { from: from.clone(), to, line: line.clone() });
                }
            }
        }
    }
    (arrows, wrong)
}

/// Everything that is wrong with these files, given as paths below `src` and their texts.
fn violations(floors: &[String], files: &BTreeMap<String, String>) -> Vec<String> {
    let modules: BTreeSet<Vec<String>> = files.keys().map(|file| module_of(file)).collect();
    let height = |module: &[String]| floors.iter().position(|floor| *floor == module[0]);
    let mut wrong = Vec::new();
    let mut graph: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (file, text) in files {
        let (arrows, hidden) = uses(file, text);
        wrong.extend(hidden);
        if height(&module_of(file)).is_none() {
            wrong.push(format!("{file}: {} is not in the table of floors", module_of(file)[0]));
            continue;
        }
        for Arrow { from, to, line } in arrows {
            match (height(&from), height(&to)) {
                (Some(here), Some(there)) if there >= here => {}
                (_, None) => wrong.push(format!("{line}: {} is not a floor", to[0])),
                _ => wrong.push(format!(
                    "{line}: {} may not use {}, for {} stands above {}",
                    from.join("::"),
                    to.join("::"),
                    to[0],
                    from[0]
                )),
            }
            let used = (1..=to.len()).rev().map(|length| to[..length].to_vec());
            if let Some(used) = used.into_iter().find(|used| modules.contains(used))
                && used != from
            {
                graph.entry(from).or_default().insert(used);
            }
        }
    }
    // What uses nothing that is left, or is used by nothing that is left, is on no circle.
    let mut before = usize::MAX;
    while graph.len() < before {
        before = graph.len();
        let users: BTreeSet<_> = graph.keys().cloned().collect();
        let used: BTreeSet<_> = graph.values().flatten().cloned().collect();
        graph.values_mut().for_each(|used| used.retain(|module| users.contains(module)));
        graph.retain(|module, uses| !uses.is_empty() && used.contains(module));
    }
    let circle: Vec<String> = graph.keys().map(|module| module.join("::")).collect();
    if !circle.is_empty() {
        wrong.push(format!("a circle of uses: {}", circle.join(", ")));
    }
    wrong
}

fn read_all(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the sources are there").path();
        if path.is_dir() {
            read_all(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn arrows_go_down_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    read_all(&source, &mut paths);
    let mut files = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(&source).expect("below it").to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(&path).expect("a source"));
    }
    files.remove("floors.rs");
    let floors = floors(&files.remove("lib.rs").expect("lib.rs"));
    for floor in &floors {
        let own = files.keys().any(|file| module_of(file)[0] == *floor);
        assert!(own, "{floor} is in the table of floors but has no files");
    }
    let wrong = violations(&floors, &files);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn forbidden_arrows_are_named() {
    let floors = ["top", "middle", "low"].map(str::to_owned);
    let check = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        violations(&floors, &files.collect())
    };
    let low = ("low/mod.rs", "pub mod one;\n");
    let one = ("low/one.rs", "// crate::top::a\n//! [`crate::top`]\nfn f() {}\n");
    assert_eq!(
        check(&[("top/a.rs", "use crate::low::one::f;\nuse crate::low;\n"), low, one]),
        [""; 0]
    );
    let up = check(&[("middle/b.rs", "\nfn g() { crate::top::a::h() }\n"), ("top/a.rs", "")]);
    assert_eq!(up, ["middle/b.rs:2: middle::b may not use top::a::h, for top stands above middle"]);
    assert_eq!(check(&[("middle/mod.rs", "use super::top::a;\n")]).len(), 1);
    assert_eq!(check(&[("middle/b.rs", "mod tests { use super::*; }\nuse super::c;\n")]), [""; 0]);
    for hidden in ["use crate::{low, top};", "use super::super::top::a;", "use crate::attic::a;"] {
        assert_eq!(check(&[("low/one.rs", hidden)]).len(), 1, "{hidden}");
    }
    assert_eq!(check(&[("attic/mod.rs", "")]).len(), 1);
    let circle = check(&[
        ("low/one.rs", "use crate::low::two;\n"),
        ("low/two.rs", "use super::one;\n"),
        ("top/a.rs", "use crate::low::one;\n"),
    ]);
    assert_eq!(circle, ["a circle of uses: low::one, low::two"]);
}
