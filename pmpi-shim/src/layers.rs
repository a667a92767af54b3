//! Tests that a module uses only its own layer and those below, that no modules use each other
//! in a circle, and that locks are of the right type. The layers and their order are in the table at
//! the head of `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names in the first column of the table at the head of `lib.rs`, top layer first.
fn layers(head: &str) -> Vec<String> {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// A use of one module by another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    from: Vec<String>,
    to: Vec<String>,
    line: String,
}

/// Module path of `layer/module.rs` or `layer/mod.rs`.
fn module_of(file: &str) -> Vec<String> {
    let parts = file.strip_suffix(".rs").unwrap_or(file).split('/');
    parts.filter(|part| *part != "mod").map(str::to_owned).collect()
}

/// The path that starts a text such as `a::b::C`, split at "::".
fn names(rest: &str) -> Vec<String> {
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    rest[..end.unwrap_or(rest.len())].split("::").map(str::to_owned).collect()
}

/// The uses of the crate's modules in a file, and spellings that could hide such a use.
fn uses(file: &str, text: &str) -> (Vec<Use>, Vec<String>) {
    let (from, mut found, mut wrong) = (module_of(file), Vec::new(), Vec::new());
    // In a layer's own file, `super` is the crate; in any other file it is the layer.
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
                    wrong.push(format!("{line}: write crate::layer::module, one use per module"));
                } else if !is_test {
                    let to: Vec<String> = base.iter().cloned().chain(names).collect();
                    found.push(Use { from: from.clone(), to, line: line.clone() });
                }
            }
        }
    }
    (found, wrong)
}

/// All violations in these files, given as paths below `src` and their texts.
fn violations(layers: &[String], files: &BTreeMap<String, String>) -> Vec<String> {
    let modules: BTreeSet<Vec<String>> = files.keys().map(|file| module_of(file)).collect();
    let height = |module: &[String]| layers.iter().position(|layer| *layer == module[0]);
    let mut wrong = Vec::new();
    let mut graph: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (file, text) in files {
        let (found, hiding) = uses(file, text);
        wrong.extend(hiding);
        if height(&module_of(file)).is_none() {
            wrong.push(format!("{file}: {} is not in the table of layers", module_of(file)[0]));
            continue;
        }
        for Use { from, to, line } in found {
            match (height(&from), height(&to)) {
                (Some(here), Some(there)) if there >= here => {}
                (_, None) => wrong.push(format!("{line}: {} is not a layer", to[0])),
                _ => wrong.push(format!(
                    "{line}: {} may not use {}, because {} is above {}",
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
    // A module that uses no remaining module, or is used by none, is on no circle.
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
        wrong.push(format!("circular uses: {}", circle.join(", ")));
    }
    wrong
}

fn read_all(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source folder is readable") {
        let path = entry.expect("the source folder is readable").path();
        if path.is_dir() {
            read_all(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The crate's files, by path below `src`.
fn sources() -> BTreeMap<String, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    read_all(&source, &mut paths);
    let mut files = BTreeMap::new();
    for path in paths {
        let name = path
            .strip_prefix(&source)
            .expect("the path is below the source folder")
            .to_string_lossy()
            .into_owned();
        files.insert(name, fs::read_to_string(&path).expect("the source is UTF-8"));
    }
    files
}

#[test]
fn locks_hold_signals_off() {
    for (file, text) in sources() {
        let own = ["layers.rs", "host/lock.rs"].contains(&file.as_str());
        for lock in ["Mutex", "RwLock", "Condvar"] {
            assert!(own || !text.contains(lock), "{file} has a {lock}: use host::lock");
        }
    }
}

#[test]
fn modules_use_only_own_and_lower_layers() {
    let mut files = sources();
    files.remove("layers.rs");
    let layers = layers(&files.remove("lib.rs").expect("lib.rs exists"));
    for layer in &layers {
        let own = files.keys().any(|file| module_of(file)[0] == *layer);
        assert!(own, "{layer} is in the table of layers but has no files");
    }
    let wrong = violations(&layers, &files);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn names_forbidden_uses() {
    let layers = ["top", "middle", "low"].map(str::to_owned);
    let check = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        violations(&layers, &files.collect())
    };
    let low = ("low/mod.rs", "pub mod one;\n");
    let one = ("low/one.rs", "// crate::top::a\n//! [`crate::top`]\nfn f() {}\n");
    assert_eq!(
        check(&[("top/a.rs", "use crate::low::one::f;\nuse crate::low;\n"), low, one]),
        [""; 0]
    );
    let up = check(&[("middle/b.rs", "\nfn g() { crate::top::a::h() }\n"), ("top/a.rs", "")]);
    assert_eq!(up, ["middle/b.rs:2: middle::b may not use top::a::h, because top is above middle"]);
    assert_eq!(check(&[("middle/mod.rs", "use super::top::a;\n")]).len(), 1);
    assert_eq!(check(&[("middle/b.rs", "mod tests { use super::*; }\nuse super::c;\n")]), [""; 0]);
    for hiding in ["use crate::{low, top};", "use super::super::top::a;", "use crate::attic::a;"] {
        assert_eq!(check(&[("low/one.rs", hiding)]).len(), 1, "{hiding}");
    }
    assert_eq!(check(&[("attic/mod.rs", "")]).len(), 1);
    let circle = check(&[
        ("low/one.rs", "use crate::low::two;\n"),
        ("low/two.rs", "use super::one;\n"),
        ("top/a.rs", "use crate::low::one;\n"),
    ]);
    assert_eq!(circle, ["circular uses: low::one, low::two"]);
}
