//! `gammachi view` as other users and programs of the machine meet it: it cannot be ended or kept busy
//! without the token, and nobody else can read the token.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::synthetic_trace::{RunDirectory, SyntheticRank};

fn run_directory() -> RunDirectory {
    let rank = |number| {
        let mut rank = SyntheticRank::complete(number, 2, 1_000_000, 9_000_000);
        rank.call(0, "MPI_Barrier", 2_000_000, 3_000_000);
        rank.finalize(9_000_000, 9_100_000);
        rank
    };
    RunDirectory::with_ranks(&[rank(0), rank(1)])
}

/// The command at work.
struct Viewer {
    child: Child,
    port: u16,
    token: String,
}

impl Viewer {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let rest = address.trim_end().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// What is answered to a request; empty where the connection is closed instead.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        let (port, token) = (self.port, &self.token);
        self.ask(&format!("GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"))
    }

    fn signal(&mut self, signal: libc::c_int) {
        // SAFETY: kill touches no memory; the child has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn view(run: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gammachi"));
    command.arg("view").arg(run).stdin(Stdio::null());
    let signals_end = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            // SAFETY: takes plain numbers, and may be called between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only makes these calls. Tests that nohup or a shell's `&` started would hand on that they
    // ignore these signals.
    unsafe { command.pre_exec(signals_end) };
    command
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_without_the_token_neither_end_it_nor_keep_it_busy() {
    let run = run_directory();
    let mut viewer = Viewer::start(view(run.path()).arg("--no-open"));
    for length in ["100000000000000", "18446744073709551615"] {
        let answer = viewer.ask(&format!(
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {length}\r\n\r\n",
            viewer.port
        ));
        assert!(answer.starts_with("HTTP/1.1 404 "), "{length}: {answer}");
    }
    let stalled: Vec<TcpStream> = (0..100)
        .map(|number| {
            let mut stream = viewer.connect();
            let begin = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9";
            let _ = stream.write_all(begin.as_bytes());
            if number % 2 == 0 {
                let _ = stream.write_all(b"\r\n\r\n");
            }
            stream
        })
        .collect();
    assert!(viewer.get("").contains("timeline-data"));
    assert!(viewer.get("shares?level=0&tile=0&rows=0-1").starts_with("HTTP/1.1 200 "));
    assert!(viewer.child.try_wait().unwrap().is_none(), "it is still there");
    drop(stalled);
}

/// Arguments of all processes that can be seen.
fn arguments_of_all() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    arguments.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")).collect()
}

/// A desktop whose `xdg-open` writes down what it was given, and stays.
struct Desktop(PathBuf);

impl Desktop {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gammachi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("runtime")).unwrap();
        fs::set_permissions(path.join("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
        let script = path.join("xdg-open");
        let given = path.join("given");
        let text = format!(
            "#!/bin/sh\nprintf '%s' \"$1\" > {0}.part\nmv {0}.part {0}\nsleep 20\ntrue\n",
            given.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn view(&self, run: &Path) -> Viewer {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = vec![self.0.clone()];
        paths.extend(std::env::split_paths(&path));
        Viewer::start(
            view(run)
                .env("PATH", std::env::join_paths(paths).unwrap())
                .env("DISPLAY", ":7")
                .env("XDG_RUNTIME_DIR", self.0.join("runtime")),
        )
    }

    /// The file that the browser was given.
    fn given(&self) -> PathBuf {
        wait_until("xdg-open was started", || self.0.join("given").exists());
        PathBuf::from(fs::read_to_string(self.0.join("given")).unwrap())
    }

    fn left(&self) -> usize {
        fs::read_dir(self.0.join("runtime")).unwrap().count()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_browser_learns_the_address_from_a_file_that_nobody_else_can_read() {
    let (run, desktop) = (run_directory(), Desktop::new("view-token"));
    let viewer = desktop.view(run.path());
    let file = desktop.given();
    for arguments in arguments_of_all() {
        assert!(!arguments.contains(&viewer.token), "{arguments}");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let text = fs::read_to_string(&file).unwrap();
    let address = format!("http://127.0.0.1:{}/{}/", viewer.port, viewer.token);
    assert!(text.contains(&format!("url={address}\"")), "{text}");
    // What the page asks for says that the browser has arrived.
    viewer.get("");
    viewer.get("shares?level=0&tile=0&rows=0-1");
    wait_until("the file is gone", || desktop.left() == 0);
}

#[test]
fn no_file_stays_when_the_command_is_ended() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let (run, desktop) = (run_directory(), Desktop::new(&format!("view-ended-{signal}")));
        let mut viewer = desktop.view(run.path());
        assert!(desktop.given().is_file());
        viewer.signal(signal);
        let status = viewer.child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(signal));
        assert_eq!(desktop.left(), 0, "after signal {signal}");
    }
}
