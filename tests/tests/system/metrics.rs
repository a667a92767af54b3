//! `gammachi watch --metrics`: figures of a running job for Prometheus.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use system_tests::directories::TempDir;
use system_tests::{Job, command, under_mpich, victim};

/// However loaded the host is.
const PATIENCE: Duration = Duration::from_secs(120);

struct Watcher(Child);

impl Watcher {
    fn start(run: &Path, metrics: &str) -> Self {
        let mut watcher = Command::new(command());
        Self(watcher.arg("watch").arg(run).args(["--metrics", metrics]).spawn().expect("it starts"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for something.
fn wait_for<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Values by name and labels without those that all have.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = name.split_once('{').expect("labels");
        let own = labels.trim_end_matches('}').split(',').skip(2).collect::<Vec<_>>().join(",");
        (format!("{name} {own}").trim_end().to_owned(), value.parse().expect("a number"))
    });
    samples.collect()
}

fn get(port: u16, host: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

under_mpich! {
    fn file_holds_what_ranks_do_while_the_job_runs(mpi) {
        let folder = TempDir::new();
        let (ends, file) = (folder.join("ends"), folder.join("run.prom"));
        let mut running = Job::new(mpi, &victim(mpi, "sleeps_in_turn"))
            .ranks(2)
            .argument(&ends)
            .start_recording();
        running.wait_for(|trace| (trace.rank(0).count("MPI_Barrier") > 40).then_some(()));
        let mut watcher = Watcher::start(&running.directory(), file.to_str().expect("text"));
        let read = || std::fs::read_to_string(&file).ok();
        let first = samples(&wait_for(read));
        let busy = |of: &BTreeMap<String, f64>| of.get("gammachi_iterations_total").is_some_and(|n| *n > 40.0);
        let later = wait_for(|| read().map(|text| samples(&text)).filter(|of| busy(of) && *of != first));
        for name in ["gammachi_mpi_seconds_total", "gammachi_outside_mpi_seconds_total", "gammachi_calls_total"] {
            assert!(later[name] > first[name], "{name}: {first:?} {later:?}");
        }
        let states = later.iter().filter(|(name, _)| name.starts_with("gammachi_ranks "));
        assert_eq!(states.map(|(_, count)| *count).sum::<f64>(), 2.0, "{later:?}");
        assert!(later["gammachi_iteration_seconds"] >= 0.02, "{later:?}");
        assert_eq!(later["gammachi_alarms_total kind=\"dead\""], 0.0, "{later:?}");
        assert!(later["gammachi_last_event_age_seconds"] < 60.0, "{later:?}");
        std::fs::write(&ends, "").expect("it can be written");
        running.end().expect_code(0);
        assert!(watcher.0.wait().expect("it ends").success());
        assert!(!file.exists(), "what is no longer true is removed");
    }

    fn port_answers_this_host_only(mpi) {
        let folder = TempDir::new();
        let ends = folder.join("ends");
        let mut running = Job::new(mpi, &victim(mpi, "sleeps_in_turn"))
            .ranks(2)
            .argument(&ends)
            .start_recording();
        running.wait_for(|trace| (trace.rank(0).count("MPI_Barrier") > 2).then_some(()));
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let watcher = Watcher::start(&running.directory(), &format!("{port},ranks"));
        let answer = wait_for(|| get(port, "127.0.0.1").filter(|text| text.contains("gammachi_ranks{")));
        assert!(answer.contains("application/openmetrics-text; version=1.0.0"), "{answer}");
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        let found = samples(body);
        for rank in ["0", "1"] {
            assert!(found.contains_key(&format!("gammachi_mpi_seconds_total rank=\"{rank}\"")), "{body}");
        }
        let foreign = get(port, "example.org").expect("an answer");
        assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
        drop(watcher);
        std::fs::write(&ends, "").expect("it can be written");
        running.end().expect_code(0);
    }
}
