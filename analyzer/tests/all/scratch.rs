//! The command in a folder of its own, where no recorder is needed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder of its own for each test, removed at the end.
pub struct Scratch(pub TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("GAMMACHI_") || name == "LD_PRELOAD" {
                command.env_remove(name);
            }
        }
        command.env("GAMMACHI_LIBRARY", harmless_library());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

/// A library that this very process has loaded: libc.
pub fn harmless_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    PathBuf::from(paths.find(|p| p.contains("/libc") && p.contains(".so")).unwrap())
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
