//! What the command tells to whom: files that only their owner can read, runs without names, and terminals
//! that names from a trace cannot steer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use trace_format::header::COMMUNICATOR_WORLD;
use trace_format::header::{Communicator, Definition, Module, ObjectKind};

use crate::synthetic_trace::{RunDirectory, SyntheticRank, number_of};

/// The command under the usual umask of a login shell.
fn gammachi(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.args(arguments).stdin(Stdio::null());
    // SAFETY: umask is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0o022);
            Ok(())
        })
    };
    command.output().unwrap()
}

/// What was printed by a command that succeeded.
fn printed(arguments: &[&str]) -> String {
    let output = gammachi(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap() + &errors
}

fn communicator(id: u16, made_by: u16) -> Definition {
    Definition::Communicator(Communicator {
        id,
        ticks: 0,
        hash: 7,
        instance: u32::from(id),
        size: 2,
        rank: 0,
        inter: false,
        members: vec![(0, 1, 2)],
        remote_members: Vec::new(),
        remote_size: 0,
        parent: 0,
        made_by,
    })
}

/// Two ranks of a program all of whose names are made by `name`.
fn run_with_names(name: impl Fn(&str) -> String) -> RunDirectory {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::complete(number, 2, 1_000_000, 9_000_000);
        rank.fixed.level = 2;
        let header = &mut rank.header;
        header.program = format!("/{}/{}", name("folder"), name("program"));
        header.arguments = vec!["./a".into(), format!("--{}", name("argument"))];
        header.directory = format!("/{}", name("cwd"));
        header.host = name(&format!("host{number}"));
        header.parameters = vec![("case".into(), name("parameter"))];
        header.mpi_library = format!("Open MPI v4.1.4, package: Open MPI {}", name("builder"));
        header.function_names += &format!("\n{}", name("function"));
        rank.region_name(1, &name("region"));
        let definitions = [
            Definition::Environment(vec![
                ("SLURM_JOB_ID".into(), name("job")),
                ("SLURM_JOB_NODELIST".into(), name("nodes")),
            ]),
            communicator(COMMUNICATOR_WORLD, 0),
            communicator(20, number_of("MPI_Comm_dup")),
            Definition::CommunicatorName { id: 20, ticks: 1, name: name("communicator") },
            Definition::Object {
                kind: ObjectKind::File,
                id: 1,
                ticks: 1,
                communicator: COMMUNICATOR_WORLD,
                name: format!("/{}", name("file")),
            },
            Definition::Code(Module {
                path: format!("/{}.py", name("script")),
                identity: format!("python {}", name("function")),
                base: 1 << 63,
                begin: 1 << 63,
                end: (1 << 63) + (1 << 24),
                ticks: 0,
            }),
            Definition::Module(Module {
                path: format!("/{}.so", name("module")),
                identity: "00".into(),
                base: 0,
                begin: 0,
                end: 1 << 40,
                ticks: 0,
            }),
        ];
        rank.definitions.extend(definitions);
        rank.region_begin(0, 1, 1_500_000);
        rank.call(0, "MPI_Barrier", 2_000_000, 3_000_000);
        rank.region_end(0, 1, 4_000_000);
        rank.finalize(9_000_000, 9_100_000);
        if number == 1 {
            rank.definitions.retain(|d| !matches!(d, Definition::Finalized { .. }));
            let reason = format!("/{}/x: no space left on device", name("full"));
            rank.definitions.push(Definition::Stopped { ticks: 8_000_000, reason });
        }
        rank
    };
    RunDirectory::with_ranks(&[rank(0), rank(1)])
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    below.collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn files_are_their_owners_alone_unless_shared() {
    let run = run_with_names(str::to_owned);
    let out = RunDirectory::new();
    let at = |name: &str| out.path().join(name);
    let (run, page, plot, csv, paje) =
        (text(run.path()), at("page.html"), at("plot.svg"), at("csv"), at("paje"));
    let commands: [&[&str]; 4] = [
        &["report", run, "--html", text(&page)],
        &["view", run, "--svg", text(&plot)],
        &["export", run, "--to", "csv", "--out", text(&csv)],
        &["export", run, "--to", "paje", "--out", text(&paje)],
    ];
    for (option, file_mode, folder_mode) in [(None, 0o600, 0o700), (Some("--share"), 0o644, 0o755)]
    {
        for command in commands {
            let words: Vec<&str> = command.iter().copied().chain(option).collect();
            printed(&words);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let written = files(out.path());
        assert!(written.len() > 5, "{written:?}");
        for file in &written {
            assert_eq!(mode(file), file_mode, "{option:?} {}", file.display());
        }
        assert_eq!(mode(&csv), folder_mode);
        // The page is replaced next time, exports never are.
        fs::remove_dir_all(&csv).unwrap();
        fs::remove_file(&paje).unwrap();
    }
}

#[test]
fn an_anonymous_report_names_nobody() {
    let run = run_with_names(|what| format!("zq{what}"));
    let (run, out) = (text(run.path()), RunDirectory::new());
    let (page, csv) = (out.path().join("page.html"), out.path().join("csv"));
    let directory = Path::new(run).file_name().unwrap().to_str().unwrap();
    let named = |texts: &[String]| -> BTreeSet<String> {
        let all = texts.join("\n");
        let words = all.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let mut found: BTreeSet<String> =
            words.filter(|word| word.starts_with("zq")).map(str::to_owned).collect();
        if all.contains(directory) {
            found.insert(directory.to_owned());
        }
        found
    };
    let all = |option: &[&str]| {
        let with = |words: &[&str]| printed(&[words, option].concat());
        let mut texts = vec![
            with(&["report", run]),
            with(&[
                "report",
                run,
                "--region",
                if option.is_empty() { "zqregion" } else { "region0" },
            ]),
            with(&["report", run, "--json"]),
        ];
        with(&["report", run, "--html", text(&page)]);
        with(&["export", run, "--to", "csv", "--out", text(&csv)]);
        texts.push(fs::read_to_string(&page).unwrap());
        texts.extend(files(&csv).iter().map(|file| fs::read_to_string(file).unwrap()));
        fs::remove_dir_all(&csv).unwrap();
        texts
    };
    let known = named(&all(&[]));
    for what in ["zqargument", "zqhost0", "zqregion", "zqjob", "zqparameter", "zqfull", directory] {
        assert!(known.contains(what), "{what} is shown otherwise: {known:?}");
    }
    // Function names are what a report is about.
    let left = named(&all(&["--anonymise"]));
    assert!(left.iter().all(|name| name == "zqfunction"), "{left:?}");
}

/// Characters of a text by which a terminal is steered.
fn commands_to_a_terminal(text: &str) -> BTreeSet<char> {
    text.chars().filter(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}').collect()
}

#[test]
fn names_from_a_trace_do_not_steer_a_terminal() {
    let hostile = |what: &str| format!("{what}\x1b]0;owned\x07\x1b[2J\r\u{9b}31m\u{7f}\u{202e}");
    let run = run_with_names(hostile);
    let out = RunDirectory::new();
    let moved = out.path().join(hostile("run"));
    fs::rename(run.path(), &moved).unwrap();
    fs::write(moved.join("run.json"), hostile("{")).unwrap();
    fs::create_dir(moved.join(format!("ranks-{}", hostile("")))).unwrap();
    let staged = out.path().join("staged.gammachi");
    fs::create_dir_all(staged.join("ranks-000")).unwrap();
    fs::write(staged.join("ranks-000/rank-000000.staged"), hostile("host:/x") + "\nforged line")
        .unwrap();
    let other = out.path().join("other");
    fs::create_dir_all(other.join("ranks-000")).unwrap();
    let mut one = SyntheticRank::complete(0, 1, 1000, 2000);
    one.header.program = hostile("/opt/other");
    one.fixed.run_id = [3; 16];
    fs::write(other.join("ranks-000/rank-000000.gmc"), one.bytes()).unwrap();
    let (run, out_path) = (text(&moved), text(out.path()));
    let joined = out.path().join("joined");
    let none = hostile("none");
    let commands: [&[&str]; 13] = [
        &["report", run],
        &["report", run, "--json"],
        &["report", run, "--region", &none],
        &["dump", run],
        &["dump", run, "--json"],
        &["dump", run, "--function", &none],
        &["view", "--text", run],
        &["export", run, "--to", "table"],
        &["report", text(&staged)],
        &["collect", text(&joined), out_path],
        &["report", &none],
        &["roofline", run],
        &["view", run, "--index-only"],
    ];
    for command in commands {
        let output = gammachi(command);
        let shown =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!shown.is_empty(), "{command:?}");
        let steering = commands_to_a_terminal(&shown);
        assert!(steering.is_empty(), "{command:?} {steering:?}: {shown:?}");
        assert!(!shown.contains("\nforged line"), "{command:?}: {shown}");
    }
    let json = gammachi(&["report", run, "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["ranks"][0]["host"], hostile("host0"), "a document keeps what there is");
}

#[test]
fn names_do_not_forge_lines_of_files_for_paraver() {
    let run = run_with_names(|what| format!("{what}\nforged"));
    let out = RunDirectory::new();
    let paraver = out.path().join("out");
    printed(&["export", text(run.path()), "--to", "paraver", "--out", text(&paraver)]);
    for file in files(out.path()) {
        let text = fs::read_to_string(&file).unwrap();
        let forged = text.lines().find(|line| line.starts_with("forged"));
        assert_eq!(forged, None, "{}", file.display());
    }
}
