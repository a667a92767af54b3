//! Tests that the analyzer's modules use each other in one direction: types below, what works on them
//! above, and a folder's `mod.rs` on top. Test modules may use anything. That no stage uses a later one is
//! checked in `src/stages.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path: `["causes", "waits"]`; the crate itself is empty.
type Module = Vec<String>;

/// The modules that each module uses, with the names that it uses them for.
type Uses = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

/// Length of the string, character or comment at the start of a text; `None` if there is another token.
fn opaque(text: &str) -> Option<usize> {
    let line = |text: &str| text.find('\n').unwrap_or(text.len());
    let raw = text.trim_start_matches(['b', 'c']).strip_prefix('r').map(|rest| {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        (rest, hashes)
    });
    if text.starts_with("//") {
        return Some(line(text));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if let Some((rest, hashes)) = raw.filter(|(rest, hashes)| rest[*hashes..].starts_with('"')) {
        let close = format!("\"{}", "#".repeat(hashes));
        let body = hashes + 1;
        let end = rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len());
        return Some(text.len() - rest.len() + end);
    }
    let mut characters = text.char_indices();
    let (_, quote) = characters.next()?;
    if quote == '\'' {
        // Not a lifetime: an escape, or one character and the closing quote.
        let second = characters.next()?.1;
        let is_character = second == '\\' || characters.next().is_some_and(|third| third.1 == '\'');
        if !is_character {
            return Some(1);
        }
    } else if quote != '"' {
        return None;
    }
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, character)| {
        let closes = *character == quote && !escaped;
        escaped = *character == '\\' && !escaped;
        closes
    });
    Some(end.map_or(text.len(), |(at, _)| at + 1))
}

/// Names, `::` and single characters of a program, without comments, strings and white space.
fn tokens(text: &str) -> Vec<&str> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let (mut rest, mut found) = (text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let length = match opaque(rest) {
            Some(length) => {
                rest = &rest[length..];
                continue;
            }
            None if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            None if rest.starts_with("::") => 2,
            None => first.len_utf8(),
        };
        if !first.is_whitespace() {
            found.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    found
}

/// Index behind the bracket that closes the one at `open`.
fn behind(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The tokens without attributes, without items for tests, and without the paths of `pub(in …)`.
fn of_program<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let (mut at, mut kept) = (0, Vec::new());
    while at < tokens.len() {
        let rest = &tokens[at..];
        if rest.starts_with(&["#"]) {
            let open = at + 1 + usize::from(rest.get(1) == Some(&"!"));
            at = behind(tokens, open);
            if rest.starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
                while tokens.get(at) == Some(&"#") {
                    at = behind(tokens, at + 1);
                }
                while at < tokens.len() && ![";", "{", ","].contains(&tokens[at]) {
                    at = if ["(", "["].contains(&tokens[at]) { behind(tokens, at) } else { at + 1 };
                }
                at = if tokens.get(at) == Some(&"{") { behind(tokens, at) } else { at + 1 };
            }
        } else if rest.starts_with(&["pub", "("]) {
            at = behind(tokens, at + 1);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// The paths of a `use` without its first word, each behind `prefix`.
fn imported(tree: &[&str], prefix: &[&str], found: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < tree.len() {
        let mut path: Vec<&str> = prefix.to_vec();
        let mut is_group = false;
        while at < tree.len() && tree[at] != "," {
            match tree[at] {
                "{" => {
                    let end = behind(tree, at);
                    imported(&tree[at + 1..end - 1], &path, found);
                    is_group = true;
                    at = end;
                    continue;
                }
                "as" => at += 1,
                "::" => {}
                name => path.push(name),
            }
            at += 1;
        }
        if !is_group {
            found.push(path.iter().map(|name| (*name).to_owned()).collect());
        }
        at += 1;
    }
}

/// Where a path leads from a module, which may be one within a file: the module of a file, and the name there.
fn target(
    from: &[String],
    path: &[String],
    known: &impl Fn(&[String]) -> bool,
) -> Option<(Module, String)> {
    let mut module: Module = from.to_vec();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                module.pop();
                rest = &rest[1..];
            }
        }
        child => {
            let inner: Module = from.iter().cloned().chain([child.to_owned()]).collect();
            known(&inner).then_some(())?;
        }
    }
    while let Some(name) = rest.first() {
        module.push(name.clone());
        if !known(&module) {
            module.pop();
            break;
        }
        rest = &rest[1..];
    }
    while !module.is_empty() && !known(&module) {
        module.pop();
    }
    let name = rest.first().cloned().unwrap_or_default();
    (!module.is_empty()).then_some((module, name))
}

/// Adds what the tokens of a module, or of one within its file, use.
fn collect(
    tokens: &[&str],
    module: &[String],
    known: &impl Fn(&[String]) -> bool,
    take: &mut impl FnMut(Module, String),
) {
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if let ["mod", name, "{", ..] = rest {
            let end = behind(tokens, at + 2);
            let inner: Module = module.iter().cloned().chain([(*name).to_owned()]).collect();
            collect(&tokens[at + 3..end - 1], &inner, known, take);
            at = end;
            continue;
        }
        let mut paths = Vec::new();
        let mut length = 1;
        if rest[0] == "use" {
            length = rest.iter().position(|token| *token == ";").unwrap_or(rest.len());
            imported(&rest[1..length], &[], &mut paths);
        } else if rest.get(1) == Some(&"::") {
            let names =
                rest.chunks(2).take_while(|pair| pair.len() == 2 && pair[1] == "::").count();
            let path = rest.iter().step_by(2).take(names + 1);
            paths.push(path.map(|name| (*name).to_owned()).collect());
            length = 2 * names + 1;
        }
        for path in paths {
            if let Some((module, name)) = target(module, &path, known) {
                take(module, name);
            }
        }
        at += length;
    }
}

/// The files of a crate's modules, from `lib.rs` on, without those for tests.
fn modules(files: &BTreeMap<String, String>) -> BTreeMap<Module, Vec<&str>> {
    let mut found: BTreeMap<Module, Vec<&str>> = BTreeMap::new();
    let mut waiting: Vec<Module> = vec![Vec::new()];
    while let Some(module) = waiting.pop() {
        let path = module.join("/");
        let names = match module.is_empty() {
            true => vec!["lib.rs".to_owned()],
            false => vec![format!("{path}.rs"), format!("{path}/mod.rs")],
        };
        let text = names.iter().find_map(|name| files.get(name));
        let text = text.unwrap_or_else(|| panic!("there is no file of the module {path}"));
        let tokens = of_program(&tokens(text));
        for declared in tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";") {
            waiting.push(module.iter().cloned().chain([declared[1].to_owned()]).collect());
        }
        found.insert(module, tokens);
    }
    found
}

fn uses(files: &BTreeMap<String, String>) -> Uses {
    let modules = modules(files);
    let known = |module: &[String]| modules.contains_key(module);
    let mut uses = Uses::new();
    for (module, tokens) in &modules {
        let of_module = uses.entry(module.clone()).or_default();
        collect(tokens, module, &known, &mut |used, name| {
            if used != *module {
                of_module.entry(used).or_default().insert(name);
            }
        });
    }
    uses
}

/// All modules that a module uses, directly or through others.
fn reached<'u>(uses: &'u Uses, from: &Module) -> BTreeSet<&'u Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = uses[from].keys().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(uses[module].keys());
        }
    }
    reached
}

/// The uses for which `is_wrong`, as lines of text.
fn lines(uses: &Uses, is_wrong: impl Fn(&Module, &Module) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (from, used) in uses {
        for (to, names) in used.iter().filter(|(to, _)| is_wrong(from, to)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (from, to) = (from.join("::"), to.join("::"));
            found.push(format!("{from} uses {to} ({})", names.join(", ")));
        }
    }
    found
}

/// Each use that is part of a circle.
fn circles(uses: &Uses) -> Vec<String> {
    let all: BTreeMap<&Module, BTreeSet<&Module>> =
        uses.keys().map(|module| (module, reached(uses, module))).collect();
    lines(uses, |from, to| all[to].contains(from))
}

/// Each use of a folder's `mod.rs` by a file inside.
fn from_inside(uses: &Uses) -> Vec<String> {
    lines(uses, |from, to| from.starts_with(to))
}

fn read(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the source folder is readable") {
        let path = entry.expect("the source folder is readable").path();
        let name = path.file_name().expect("it has a name").to_string_lossy();
        let name = format!("{below}{name}");
        if path.is_dir() {
            read(&path, &format!("{name}/"), files);
        } else if name.ends_with(".rs") {
            files.insert(name, fs::read_to_string(&path).expect("the source is UTF-8"));
        }
    }
}

fn uses_of_the_analyzer() -> Uses {
    let mut files = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    let uses = uses(&files);
    assert!(uses.len() > 400, "only {} modules were found", uses.len());
    uses
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let found = circles(&uses_of_the_analyzer());
    assert!(
        found.is_empty(),
        "These uses make circles. Import a thing from the file that defines it, not through \
         `mod.rs`; move a type that two files need into a file below both.\n{}",
        found.join("\n")
    );
}

#[test]
fn no_file_uses_the_folder_it_lies_in() {
    let found = from_inside(&uses_of_the_analyzer());
    assert!(
        found.is_empty(),
        "A folder's `mod.rs` is above its files. Import a thing from the file that defines it; \
         move what `mod.rs` defines into a file of its own.\n{}",
        found.join("\n")
    );
}

#[test]
fn circles_are_found_and_tests_are_not_looked_at() {
    let check = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        circles(&uses(&files.collect()))
    };
    let lib = ("lib.rs", "pub mod a;\nmod c;");
    let root = ("a/mod.rs", "mod b;\npub use b::{B, one};\n#[cfg(test)]\nmod tests;");
    let of = |b: &'static str, c: &'static str| check(&[lib, root, ("a/b.rs", b), ("c.rs", c)]);
    let by_mod = ["a uses a::b (B, one)", "a::b uses a (A)"];
    assert_eq!(of("use super::A;", ""), by_mod);
    assert_eq!(of("fn f() -> &'static str { super::A::g('\\'', '\"', \"\") }", ""), by_mod);
    assert_eq!(
        of("use crate::{a::{self as x, A}, c};", ""),
        ["a uses a::b (B, one)", "a::b uses a (A, self)"]
    );
    assert_eq!(
        of("use crate::c::C;", "mod d { use super::super::a::A; }"),
        ["a uses a::b (B, one)", "a::b uses c (C)", "c uses a (A)"]
    );
    for fine in [
        "use crate::c::C;",
        "// super::A\n/* super::A */ const S: &str = r#\"super::A \"#;",
        "#[cfg(test)]\nmod tests { use super::super::A; }\npub(in crate::a) fn f<'a>(x: &'a u8) {}",
        "#[cfg(test)]\nuse super::A;\nmod inner { use super::B; }",
    ] {
        assert_eq!(of(fine, "pub struct C;"), [""; 0], "{fine}");
    }
}

#[test]
fn a_use_of_the_own_folder_is_found() {
    let files =
        [("lib.rs", "mod a;"), ("a/mod.rs", "mod b;\npub struct A;"), ("a/b.rs", "use super::A;")];
    let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    let uses = uses(&files.into_iter().collect());
    assert_eq!(circles(&uses), [""; 0]);
    assert_eq!(from_inside(&uses), ["a::b uses a (A)"]);
}

/// A clock that is stepped while a run is watched does not matter: only a snapshot's own moment is on it.
#[test]
fn watchers_read_no_wall_clock() {
    let mut files = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    let watches = |file: &str| {
        let named = ["cli/watch.rs", "cli/flight.rs", "cli/watch_signals.rs"].contains(&file);
        named || file.starts_with("live/") || file == "trace/closed_files.rs"
    };
    let watching: Vec<_> = files.iter().filter(|(file, _)| watches(file)).collect();
    assert!(watching.len() > 15, "only {} files were found", watching.len());
    for (file, text) in watching {
        let is_snapshot = file == "live/snapshots.rs";
        for clock in ["SystemTime", "Realtime", "run_json::{Instant", "run_json::Instant"] {
            assert!(is_snapshot || !text.contains(clock), "{file} reads {clock}");
        }
    }
}
