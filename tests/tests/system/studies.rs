//! A study from measurement to model, under real MPIs: every run is in the table with what the
//! program did, failed runs are marked, an interrupted sweep can be resumed.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gammachi_analyzer::trace::study_json::{StudyJson, StudyRunState};
use serde_json::Value;
use system_tests::directories::TempDir;
use system_tests::library::library;
use system_tests::victim::{Build, built};
use system_tests::{Mpi, command, under_mpich};

/// Matrix products that the program divides among its ranks.
const PRODUCTS: f64 = 12.0;
/// What does not happen within this time never will.
const MAX_WAIT: Duration = Duration::from_secs(240);

fn prepare(mut command: Command, mpi: Mpi, folder: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GAMMACHI_") {
            command.env_remove(name);
        }
    }
    command
        .env("GAMMACHI_LIBRARY", library())
        .env("OPENBLAS_NUM_THREADS", "1")
        .env("COLUMNS", "100")
        .envs(mpi.environment().iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn gammachi(mpi: Mpi, folder: &Path, words: &[String]) -> Output {
    prepare(Command::new(command()), mpi, folder).args(words).output().expect("it starts")
}

/// Arguments of a sweep over the program that multiplies matrices.
fn sweep(mpi: Mpi, options: &str, arguments: &str) -> Vec<String> {
    let launcher = mpi.launcher();
    let mut words: Vec<String> = "sweep --compute blas --region solve --out study"
        .split(' ')
        .chain(options.split(' '))
        .map(str::to_owned)
        .collect();
    words.push("--".into());
    words.push(launcher.get_program().to_string_lossy().into_owned());
    words.extend(launcher.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.extend(["-n".into(), "{np}".into()]);
    words.push(built(mpi, "multiplies", Build::Blas).display().to_string());
    words.extend(arguments.split(' ').map(str::to_owned));
    words
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rows of a CSV table as pairs of column name and value.
fn rows(csv: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines
        .map(|line| {
            names.iter().map(|n| (*n).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
        })
        .collect()
}

fn number(row: &[(String, String)], name: &str) -> f64 {
    let cell = row.iter().find(|(other, _)| other == name);
    cell.and_then(|(_, value)| value.parse().ok())
        .unwrap_or_else(|| panic!("{row:?} has no {name}"))
}

fn states(folder: &Path) -> Vec<StudyRunState> {
    let study = StudyJson::read(&folder.join("study")).expect("a study");
    study.runs.iter().map(|run| run.state).collect()
}

/// The output of a program on its terminal, readable while it runs.
struct TerminalOutput {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl TerminalOutput {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut piece = [0u8; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                shared
                    .lock()
                    .expect("no thread panics with the lock")
                    .extend_from_slice(&piece[..count]);
            }
        });
        Self { text, reader }
    }

    fn text_so_far(&self) -> String {
        text(&self.text.lock().expect("no thread panics with the lock"))
    }

    #[track_caller]
    fn wait_for(&self, part: &str) {
        let begin = Instant::now();
        while !self.text_so_far().contains(part) {
            assert!(begin.elapsed() < MAX_WAIT, "{part:?} is not shown: {}", self.text_so_far());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn into_screen(self) -> String {
        self.reader.join().expect("the reader does not panic");
        text(&self.text.lock().expect("no thread panics with the lock"))
    }
}

under_mpich! {
    fn table_has_every_run_and_each_size_has_a_fit(mpi) {
        let temp = TempDir::new();
        let words = sweep(mpi, "--np 1,2,3,4 --param N=64,160 --repeat 2", "{N} 3");
        let output = gammachi(mpi, temp.path(), &words);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("4 of 16 runs failed; the first: ") && stderr.contains("exit code 3"), "{stderr}");
        let study = StudyJson::read(&temp.join("study")).expect("a study");
        for run in &study.runs {
            let failed = run.np == 3;
            assert_eq!(run.state == StudyRunState::Failed, failed, "{run:?}");
            assert!(!failed || run.reason.as_deref().is_some_and(|why| why.contains("exit code 3")));
        }

        let output = gammachi(mpi, temp.path(), &["export".into(), "study".into(), "--to".into(), "table".into()]);
        let (csv, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(stderr.contains("left out: study/"), "{stderr}");
        let rows = rows(&csv);
        assert_eq!(rows.len(), 12, "{csv}");
        for row in &rows {
            let (p, n, tau) = (number(row, "p"), number(row, "N"), number(row, "tau_s"));
            // Only of the region: the product before it is not counted.
            assert_eq!(number(row, "flops"), PRODUCTS * 2.0 * n.powi(3), "{row:?}");
            let sum = number(row, "sum_gamma_s");
            assert!(sum > 0.0 && sum < p * tau, "{row:?}");
            // Each of the three values is rounded to a nanosecond.
            assert!((number(row, "chi_s") - (tau - sum / p)).abs() < 2.5e-9, "{row:?}");
            assert!(number(row, "chi_min_s") <= number(row, "chi_max_s"), "{row:?}");
            assert!([1.0, 2.0].contains(&number(row, "rep")), "{row:?}");
        }

        fs::write(temp.join("study.csv"), &csv).expect("the test's folder is writable");
        let fits = |source: &str| -> Value {
            let words = ["scaling", source, "--json", "--predict", "8"].map(str::to_owned);
            let output = gammachi(mpi, temp.path(), &words);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            document["fits"].clone()
        };
        let of_study = fits("study");
        for (fit, n) in of_study.as_array().expect("fits").iter().zip(["64", "160"]) {
            assert_eq!((&fit["params"]["N"], &fit["scaling"]), (&n.into(), &"strong".into()));
            let points = fit["points"].as_array().expect("points");
            let p: Vec<u64> = points.iter().filter_map(|point| point["p"].as_u64()).collect();
            assert_eq!(p, [1, 2, 4]);
            for point in points {
                let [product, parallel, scaling] =
                    ["efficiency_reference", "efficiency_parallel", "computation_scaling"]
                        .map(|key| point[key].as_f64().expect(key));
                assert!((product / (parallel * scaling) - 1.0).abs() < 1e-9, "{point}");
                assert_eq!(point["runs"], 2);
            }
            assert!(fit["bounds"]["tau_min_lo_s"].as_f64() <= fit["bounds"]["tau_min_hi_s"].as_f64());
            assert!(!fit["advice"].as_array().expect("advice").is_empty());
        }
        let words = "model study --vars p,N --basis N^3/p,N^2,1 --parts compute,mpi --replicas 20 --json";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let output = gammachi(mpi, temp.path(), &words);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("left out: study/"), "{}", text(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((found["rows"].as_u64(), found["points"].as_u64()), (Some(12), Some(6)));
        let parts: Vec<&str> = found["columns"].as_array().expect("columns").iter()
            .filter_map(|column| column["part"].as_str()).collect();
        assert_eq!(parts, ["compute", "compute", "compute", "mpi", "mpi", "mpi"]);

        for (a, b) in of_study.as_array().into_iter().flatten().zip(fits("study.csv").as_array().unwrap()) {
            assert_eq!(a["sum_gamma_p1_s"], b["sum_gamma_p1_s"]);
            assert_eq!(a["c2"], b["c2"], "the table has everything that the model needs");
        }
    }

    fn ctrl_c_ends_the_sweep_and_the_same_command_resumes_it(mpi) {
        let temp = TempDir::new();
        let hold = temp.join("hold");
        let arguments = format!("48 0 {}", hold.display());
        let once = gammachi(mpi, temp.path(), &sweep(mpi, "--np 2 --repeat 1", &arguments));
        assert_eq!(once.status.code(), Some(0), "{}", text(&once.stderr));

        fs::write(&hold, "").expect("the test's folder is writable");
        let words = sweep(mpi, "--np 2 --repeat 3", &arguments);
        let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("'{}' {}", command().display(), line.join(" "));
        // A new terminal, on which Ctrl-C is pressed.
        let mut terminal = Command::new("timeout");
        terminal.args(["300", "script", "-qfec", &line, "/dev/null"]);
        let mut terminal = prepare(terminal, mpi, temp.path());
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut terminal = terminal.spawn().expect("script (bsdutils) is installed");
        let study = StudyJson::read(&temp.join("study")).expect("a study").runs.len();
        assert_eq!(study, 1);
        let waits = (0..MAX_WAIT.as_millis() / 20).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            let runs = StudyJson::read(&temp.join("study")).expect("a study").runs;
            let next = runs.get(1).map(|run| temp.join("study").join(&run.directory));
            next.is_some_and(|next| next.join("ranks-000/rank-000001.gmc").is_file())
        });
        assert!(waits, "the second run does not start");
        let shown = TerminalOutput::new(terminal.stdout.take().expect("a pipe"));
        shown.wait_for("s left  p=2 rep 2");
        let mut keys = terminal.stdin.take().expect("a pipe");
        keys.write_all(b"\x03").expect("script reads it");
        let output = terminal.wait_with_output().expect("it ends");
        drop(keys);
        let screen = shown.into_screen();
        assert_eq!(output.status.code(), Some(130), "{screen}");
        assert!(screen.contains("1/3 runs"), "{screen}");
        assert!(screen.contains("gammachi: interrupted; 1 of 3 runs are done"), "{screen}");
        let waiting = [StudyRunState::Finished, StudyRunState::Pending, StudyRunState::Pending];
        assert_eq!(states(temp.path()), waiting);

        fs::remove_file(&hold).expect("removable");
        let output = gammachi(mpi, temp.path(), &words);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(states(temp.path()), [StudyRunState::Finished; 3]);
        assert!(text(&output.stdout).lines().count() == 2, "{}", text(&output.stdout));
    }
}
