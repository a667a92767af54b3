//! Tests that documentation and messages name only commands and options that exist.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use super::{CommandLine, renamed};

/// File formats whose names begin like an old command.
const FORMATS: [&str; 2] = ["clock calibration", "timeline index"];

fn text_files(folder: &Path, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the sources").flatten() {
        let path = entry.path();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(text_files(&path, endings));
        } else if endings.contains(&ending.as_str()) && !path.ends_with("renamed.rs") {
            found.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
        }
    }
    found
}

fn sources(folders: &[&str], endings: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: Vec<_> =
        folders.iter().flat_map(|folder| text_files(&root.join(folder), endings)).collect();
    let readme = root.join("README.md");
    found.push((readme.clone(), fs::read_to_string(readme).expect("a README")));
    assert!(found.len() > 20, "the folders have been moved");
    found
}

/// Inline code, and lines of blocks of code, of a page.
fn code(page: &str) -> Vec<String> {
    let mut code = Vec::new();
    for (number, part) in page.split("```").enumerate() {
        match number % 2 {
            1 => code.extend(part.replace("\\\n", " ").lines().map(str::to_owned)),
            _ => code.extend(part.split('`').skip(1).step_by(2).map(|it| it.replace('\n', " "))),
        }
    }
    code
}

/// The words of a command line, up to what belongs to the shell.
fn words(line: &str) -> Option<Vec<&str>> {
    let of_shell = |word: &&str| ["|", ">", "&&", "||", ";", "#", "\\", "&", "…"].contains(word);
    let all: Vec<&str> = line.split_whitespace().take_while(|word| !of_shell(word)).collect();
    let start = all.iter().position(|word| *word == "gammachi")?;
    let is_line = start == 0 || ["$", "mpirun", "srun"].contains(&all[0]);
    let is_named = all.get(start + 1).is_some_and(|name| name.starts_with(char::is_lowercase));
    let is_format = FORMATS.iter().any(|format| line.contains(format));
    if !is_line || !is_named || is_format {
        return None;
    }
    let words = all.into_iter().skip(start);
    Some(words.map(|word| word.trim_matches(['\'', '"', ';', ')', ','])).collect())
}

/// Whether the words name a command and options that exist; values may be missing or placeholders.
fn exist(words: &[&str]) -> Result<(), clap::Error> {
    match CommandLine::command().try_get_matches_from(words) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnknownArgument
                    | ErrorKind::InvalidSubcommand
                    | ErrorKind::ArgumentConflict
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[test]
fn docs_show_commands_and_options_that_exist() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, page) in sources(&["docs", "python"], &["md"]) {
        for line in code(&page) {
            let Some(words) = words(&line) else { continue };
            if let Err(error) = exist(&words) {
                wrong.push(format!("{}: {line}\n{error}", path.display()));
            }
            count += 1;
        }
    }
    assert!(count > 100 && wrong.is_empty(), "{count}, {}", wrong.join("\n"));
}

#[test]
fn help_shows_commands_and_options_that_exist() {
    fn check(command: &Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            if let Some(Err(error)) = words(line.trim()).map(|words| exist(&words)) {
                panic!("{}: {line}\n{error}", command.get_name());
            }
        }
        command.get_subcommands().for_each(check);
    }
    check(&CommandLine::command());
}

#[test]
fn nothing_names_a_command_by_its_old_name() {
    let folders = [
        "docs",
        "python",
        "scripts",
        "experiments",
        "analyzer/src",
        "bench-kernels/src",
        "pmpi-shim",
        "io-shim",
    ];
    let endings = ["md", "rs", "py", "ipynb", "html", "js", "yml", "txt", "h", ""];
    let is_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut wrong = Vec::new();
    for (path, text) in sources(&folders, &endings) {
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for after in one_line.split("gammachi ").skip(1) {
            let name = after.split(|c| !is_name(c)).next().unwrap_or_default();
            if renamed::is_old(name) && !FORMATS.iter().any(|format| after.starts_with(format)) {
                let sentence: String = after.chars().take(60).collect();
                wrong.push(format!("{}: gammachi {sentence}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
