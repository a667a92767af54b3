//! Programs that no preloaded library can record: `gammachi run` says so and why, and runs them all the
//! same. And the commands that packagers use.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder of its own, removed at the end.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn compile(&self, arguments: &[&str]) {
        let output =
            Command::new("cc").args(arguments).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// `gammachi run` of these words; its exit code is the program's, and nothing is left behind.
    fn run(&self, words: &[&str]) -> String {
        let output = self.gammachi(&[&["run", "--out", "r", "--"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(!self.0.path().join("r").exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn gammachi(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        // Any library will do: none of these programs would be recorded.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        command
            .env("GAMMACHI_LIBRARY", libraries.into_iter().find(|p| p.contains("/libc")).unwrap());
        command.output().unwrap()
    }
}

fn victim(name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/victims");
    tests.join(name).display().to_string()
}

#[test]
fn programs_that_cannot_be_recorded_are_named_with_the_reason() {
    let scratch = Scratch::new();
    fs::write(scratch.0.path().join("nothing.c"), "int main(void) { return 0; }\n").unwrap();
    fs::write(
        scratch.0.path().join("uses.c"),
        "int runs_mpi(void); int main(void) { return runs_mpi(); }\n",
    )
    .unwrap();
    let held = victim("holds_mpi.c");
    scratch.compile(&["-static", "nothing.c", "-o", "static"]);
    scratch.compile(&[&held, "-o", "inside"]);
    scratch.compile(&[
        "-fPIC",
        "-shared",
        "-DLIBRARY",
        "-Wl,-Bsymbolic",
        &held,
        "-o",
        "libheld.so",
    ]);
    scratch.compile(&["uses.c", "-L.", "-lheld", "-Wl,-rpath,$ORIGIN", "-o", "symbolic"]);
    scratch.compile(&["nothing.c", "-o", "nothing"]);
    let session = "int MPI_Session_init(int, int, int *);\nint main(void) { int s; return MPI_Session_init(0, 0, &s); }\n";
    let library = "int PMPI_Init(void) { return 0; }\nint MPI_Session_init(int i, int e, int *s) { return *s = i + e; }\n";
    fs::write(scratch.0.path().join("session.c"), session).unwrap();
    fs::write(scratch.0.path().join("sessions.c"), library).unwrap();
    scratch.compile(&["-fPIC", "-shared", "sessions.c", "-o", "libsessions.so"]);
    scratch.compile(&["session.c", "-L.", "-lsessions", "-Wl,-rpath,$ORIGIN", "-o", "session"]);
    let expect = |words: &[&str], parts: &[&str]| {
        let printed = scratch.run(words);
        for part in parts {
            assert!(printed.contains(part), "{words:?}: {printed}");
        }
    };
    expect(&["./static"], &["./static cannot be recorded: it is linked statically", "r removed"]);
    expect(&["./inside"], &["./inside cannot be recorded: it has an MPI library linked into it"]);
    expect(&["./symbolic"], &["libheld.so contains an MPI library", "-Bsymbolic"]);
    // A session begins recording as MPI_Init does; this one is none of MPI's.
    expect(&["./session"], &["no process initialised MPI under the recorder"]);
    expect(&["./nothing"], &["no MPI library is among the libraries of"]);
    expect(&["env", "-i", "./nothing"], &["`env -i` takes LD_PRELOAD out of the environment"]);
    let program = scratch.0.path().join("nothing");
    if chown(&program, Some(65_534), None).is_ok() {
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        expect(&["./nothing"], &["it is setuid to user 65534"]);
    } else {
        crate::skip::skip("setuid-program", "the file could not be given to another user");
    }
}

#[test]
fn completions_and_man_pages_follow_the_command_line() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = scratch.gammachi(&["completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("collect"), "{shell}: {text}");
    }
    assert!(scratch.gammachi(&["man-pages", "man"]).status.success());
    let page = fs::read_to_string(scratch.0.path().join("man/gammachi-run.1")).unwrap();
    assert!(page.contains(".TH gammachi-run 1") && page.contains("\\-\\-level"), "{page}");
}

#[test]
fn what_collect_cannot_join_is_refused_with_a_reason() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.0.path().join("empty")).unwrap();
    let none = scratch.gammachi(&["collect", "run", "empty"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no rank file"), "{none:?}");
    let missing = scratch.gammachi(&["collect", "run", "nowhere"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere"), "{missing:?}");
    assert!(!scratch.0.path().join("run").exists());
}
