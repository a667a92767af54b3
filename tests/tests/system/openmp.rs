//! Parallel regions of OpenMP programs: their threads' work and waits, in C, C++ and Fortran, with the runtimes of GCC and
//! Clang; nothing changes for the program.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use gammachi_analyzer::metrics::{Metrics, OpenMpMetrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::delays::record_until;
use system_tests::kernels::command;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi, Recorded, under_both, under_mpich};

/// Times that each rank of `works_in_teams` repeats its regions.
const TIMES: f64 = 3.0;
fn gammachi(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(command());
    command.args(arguments).args(paths).output().expect("the command starts")
}

fn json(arguments: &[&str], paths: &[&Path]) -> serde_json::Value {
    let output = gammachi(arguments, paths);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// How far a part may be from the truth before the recording is repeated: a share of it, and milliseconds.
const UNDISTURBED: (f64, f64) = (0.02, 1.5);
/// The same on a machine that stays busy, after so long.
const HOPE: Duration = Duration::from_secs(5);
const BUSY: (f64, f64) = (0.5, 25.0);

fn job(mpi: Mpi, name: &str, build: Build) -> Job {
    let job = Job::new(mpi, &built(mpi, name, build)).environment("GAMMACHI_OPENMP", "1");
    job.environment("OMP_WAIT_POLICY", "passive")
}

fn openmp(recorded: &Recorded) -> OpenMpMetrics {
    let run = Run::open(&recorded.directory()).expect("it can be read");
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures");
    metrics.openmp.expect("parallel regions were recorded")
}

/// A region of `works_in_teams` as the sums of both ranks: work, barriers, locks, ends and tasks in ms, each time.
fn parts(openmp: &OpenMpMetrics, function: &str) -> [f64; 5] {
    let is_of = |name: &Option<String>| name.as_deref().is_some_and(|name| name.contains(function));
    let mut regions = openmp.regions.iter().filter(|of| is_of(&of.begins_at.place.function));
    let region = regions.next().unwrap_or_else(|| panic!("{function} is not in {openmp:?}"));
    assert_eq!((region.count, region.ranks), (6, 2));
    let idle = region.idle;
    [region.work_s, idle.barriers_s, idle.locks_s, idle.ends_s, region.tasks_s]
        .map(|seconds| seconds * 1e3 / (2.0 * TIMES))
}

/// Names of what differs from the truth.
fn wrong_parts(openmp: &OpenMpMetrics, (share, more): (f64, f64)) -> Vec<String> {
    let is_close = |found: f64, truth: f64| (found - truth).abs() <= share * truth + more;
    let truths = [
        ("first", [120.0, 60.0, 30.0, 30.0, 0.0]),
        ("second", [40.0, 0.0, 0.0, 20.0, 0.0]),
        ("third", [0.0, 0.0, 0.0, 0.0, 40.0]),
    ];
    let mut wrong = Vec::new();
    for (function, truth) in truths {
        let found = parts(openmp, function);
        if !found.iter().zip(truth).all(|(found, truth)| is_close(*found, truth)) {
            wrong.push(format!("{function}: {found:?}, not {truth:?}"));
        }
    }
    for rank in &openmp.ranks {
        let alone = if rank.rank == 1 { 40.0 } else { 20.0 };
        // Two threads have nothing to do in the second region, three outside.
        let found = rank.serial_s * 1e3 / TIMES;
        if !is_close(found, 3.0 * alone + 60.0) {
            wrong.push(format!("rank {}: serial {found} ms", rank.rank));
        }
        // Rank 0 waits 20 ms for rank 1, and three of its threads with it.
        let with_mpi = rank.mpi_s * 1e3 / TIMES;
        if !is_close(with_mpi, if rank.rank == 0 { 80.0 } else { 0.0 }) {
            wrong.push(format!("rank {}: MPI {with_mpi} ms", rank.rank));
        }
    }
    wrong
}

/// Whether more threads wanted cores in the last minute than there are.
fn was_busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").expect("Linux has it");
    let load: f64 = load.split(' ').next().and_then(|of| of.parse().ok()).expect("a number");
    load > std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

fn check_known_times(mpi: Mpi, build: Build) {
    let record = || {
        let recorded = job(mpi, "works_in_teams", build).ranks(2).record();
        recorded.expect_code(0);
        recorded
    };
    let begin = Instant::now();
    let recorded = record_until(record, |recorded| {
        let far = if begin.elapsed() < HOPE { UNDISTURBED } else { BUSY };
        wrong_parts(&openmp(recorded), far).is_empty()
    });
    let openmp = openmp(&recorded);
    let wrong = wrong_parts(&openmp, BUSY);
    // On a machine that was busy all the time threads sleep longer, and who waits for whom is open.
    let [work, barriers, locks, ends, _] = parts(&openmp, "first");
    assert!(work > 118.0 && barriers > 0.0 && locks > 0.0 && ends > 0.0, "{wrong:?}");
    assert!(wrong.is_empty() || was_busy(), "{wrong:?}");
    let hybrid = openmp.hybrid.expect("one thread of each rank calls MPI");
    assert_eq!(hybrid.threads, 8);
    let product = hybrid.mpi.efficiency * hybrid.openmp.serial * hybrid.openmp.regions;
    assert!((hybrid.parallel - product).abs() < 1e-9, "{hybrid:?}");
    let slowest = openmp.regions.iter().find_map(|of| of.slowest.filter(|_| of.threads == 4));
    if wrong.is_empty() {
        assert_eq!(slowest.map(|of| of.thread), Some(3));
    }
}

fn check_odd_uses(mpi: Mpi, build: Build, runtime: &str) {
    let job = job(mpi, "uses_teams_oddly", build).environment("OMP_CANCELLATION", "true");
    let job = job.ranks(2);
    let recorded = job.record();
    recorded.expect_code(0).output.expect_same(&job.bare());
    let openmp = openmp(&recorded);
    assert!(openmp.runtimes.iter().any(|name| name.starts_with(runtime)), "{openmp:?}");
    let count: u64 = openmp.regions.iter().map(|of| of.count).sum();
    // At each number of threads a sum, tasks, nested (the outer one alone) and ordered; three more, then the loop; none
    // before or after MPI, in the child or in the other thread.
    assert_eq!(count, 2 * (5 * 4 + 2 + 20_000));
}

/// The OpenMP runtime that Clang links programs with.
fn runtime_of_clang() -> PathBuf {
    let asked = Command::new("clang").arg("-print-file-name=libomp.so.5").output();
    let path = asked.expect("clang is installed").stdout;
    let path = PathBuf::from(String::from_utf8(path).expect("a path of letters").trim());
    assert!(path.is_absolute(), "there is no libomp: {}", path.display());
    path
}

/// Cores that this process may use.
fn cores() -> Vec<usize> {
    // SAFETY: a zeroed set is valid; the call writes at most the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// A program that keeps a core busy until it is dropped.
struct Busy(Child);

impl Busy {
    fn on(core: usize) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        // SAFETY: the child makes one system call between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(core, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
                Ok(())
            });
        }
        Self(command.spawn().expect("a shell starts"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Behind whom the first thread of `spins_in_teams` waited for a core, and on how many cores it might run; recorded again
/// if something else uses the machine.
fn competitor(job: &Job, expected: &str) -> (String, u64) {
    let found = |recorded: &Recorded| {
        let report = json(&["report", "--json"], &[&recorded.directory()]);
        let findings = report["findings"].as_array().expect("a list").clone();
        let waited = findings.iter().filter_map(|of| of["shown_by"].as_array()).flatten();
        let behind = waited.filter_map(|of| of["waited"]["competitor"].as_object()).next();
        let (kind, use_of) = behind.and_then(|of| of.iter().next()).expect("it waited for a core");
        (kind.clone(), use_of["cores"].as_u64().expect("a number"))
    };
    let record = || {
        let recorded = job.record();
        recorded.expect_code(0);
        recorded
    };
    found(&record_until(record, |recorded| found(recorded).0 == expected))
}

under_mpich! {
    fn threads_bound_to_one_core_wait_behind_each_other(mpi) {
        let core = cores()[0].to_string();
        for build in [Build::OpenMp, Build::OpenMpClang] {
            let job = || job(mpi, "spins_in_teams", build).environment("OMP_NUM_THREADS", "2");
            let bound = job().environment("OMP_PLACES", format!("{{{core}}}"));
            for job in [bound, job().argument(&core)] {
                let (kind, cores) = competitor(&job, "threads");
                // Where others take most of the core all the time, they are named.
                assert!(cores == 1 && (kind == "threads" || was_busy()), "{kind} on {cores} cores");
            }
        }
    }

    fn other_programs_on_the_core_of_a_thread_are_named(mpi) {
        let cores = cores();
        let _busy = [Busy::on(cores[0]), Busy::on(cores[0])];
        for build in [Build::OpenMp, Build::OpenMpClang] {
            let job = job(mpi, "spins_in_teams", build).argument(cores[0].to_string());
            let job = job.environment("OMP_NUM_THREADS", "1");
            assert_eq!(competitor(&job, "other_programs"), ("other_programs".into(), 1));
        }
        if let [first, second, ..] = cores[..] {
            // Each thread has a core of its own, one of them with other programs.
            let places = format!("{{{first}}},{{{second}}}");
            for build in [Build::OpenMp, Build::OpenMpClang] {
                let job = job(mpi, "spins_in_teams", build).environment("OMP_NUM_THREADS", "2");
                let job = job.environment("OMP_PLACES", &places);
                // Open MPI would bind the rank to one core, which both threads would share.
                let job = job.environment("OMPI_MCA_hwloc_base_binding_policy", "none");
                assert_eq!(competitor(&job, "other_programs"), ("other_programs".into(), 1));
            }
        }
    }
}

under_both! {
    fn programs_that_use_openmp_oddly_are_unchanged(mpi) {
        check_odd_uses(mpi, Build::OpenMp, "libgomp");
        check_odd_uses(mpi, Build::OpenMpClang, "libomp");
    }

    fn runtime_that_is_loaded_again_elsewhere_is_recorded_each_time(mpi) {
        let plugin = built(mpi, "team_plugin", Build::OpenMpShared);
        let job = job(mpi, "reopens_runtime", Build::C).argument(&plugin);
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        let count: u64 = openmp(&recorded).regions.iter().map(|of| of.count).sum();
        assert_eq!(count, 4 * 5);
    }
}

under_mpich! {
    fn threads_have_known_times(mpi) {
        check_known_times(mpi, Build::OpenMp);
    }

    fn threads_of_clang_have_known_times(mpi) {
        check_known_times(mpi, Build::OpenMpClang);
    }

    // GNU's entries, which LLVM's runtime has, too: each region once.
    fn regions_of_gcc_with_the_runtime_of_clang_are_recorded_once(mpi) {
        let job = job(mpi, "works_in_teams", Build::OpenMp).argument("1");
        let recorded = job.preload_after(&runtime_of_clang()).record();
        recorded.expect_code(0);
        let openmp = openmp(&recorded);
        assert!(openmp.runtimes.iter().any(|name| name.starts_with("libomp")), "{openmp:?}");
        let counts: Vec<u64> = openmp.regions.iter().map(|of| of.count).collect();
        assert_eq!(counts, [1, 1, 1], "{openmp:?}");
    }

    fn another_tool_keeps_the_runtime_for_itself(mpi) {
        let tool = built(mpi, "observes_teams", Build::Shared);
        let job = job(mpi, "works_in_teams", Build::OpenMpClang).argument("1");
        let job = job.environment("OMP_TOOL_LIBRARIES", &tool);
        let recorded = job.record();
        recorded.expect_code(0).output.expect_same(&job.bare());
        assert!(recorded.output.stdout.contains("regions: 3"), "{:?}", recorded.output);
        let openmp = openmp(&recorded);
        assert_eq!(openmp.regions, []);
        assert!(openmp.runtimes.contains(&"libomp.so.5, observed by another tool".into()), "{openmp:?}");
    }

    fn regions_of_fortran_are_recorded(mpi) {
        let recorded = job(mpi, "works_in_teams_fortran", Build::OpenMpFortran).record();
        recorded.expect_code(0);
        let openmp = openmp(&recorded);
        let [region] = openmp.regions.as_slice() else { panic!("{openmp:?}") };
        assert_eq!((region.count, region.threads), (3, 4));
        assert!(region.work_s >= 0.3 && region.idle.ends_s >= 0.1, "{region:?}");
    }

    // Of 4 threads one works 45 ms and the mean 30, of 2 one 30 and the mean 20, three times on each rank.
    fn all_that_shows_a_run_knows_its_regions(mpi) {
        let job = job(mpi, "works_in_teams", Build::OpenMp).ranks(2);
        let [recorded, again] = [job.record(), job.record()];
        recorded.expect_code(0);
        let (run, again) = (recorded.directory(), again.directory());
        let asked = json(&["whatif", "--json", "--threads", "balanced"], &[&run]);
        let [answer] = asked["answers"].as_array().expect("a list").as_slice() else { panic!("{asked}") };
        assert_eq!(answer["question"], "threads_balanced");
        let recorded_s = asked["self_replay"]["recorded_s"].as_f64().expect("a time");
        let saved_s = recorded_s - answer["hi_s"].as_f64().expect("a time");
        assert!(saved_s > 0.0, "{asked}");
        let compared = json(&["compare", "--json"], &[&again, &run]);
        let times = compared["threads_and_files"].as_array().expect("a list");
        let is_first = |of: &&serde_json::Value| of["what"] == "parallel_region" && of["file"] == "works_in_teams.c";
        assert!(times.iter().any(|of| is_first(&of) && of["found"] == false), "{times:?}");
        let page = run.join("page.html");
        let made = gammachi(&["report", "--html"], &[&page, &run]);
        assert!(made.status.success(), "{made:?}");
        let page = std::fs::read_to_string(page).expect("it was written");
        for part in ["id=\"team-table\"", "id=\"hybrid-table\"", "\"lanes\":{\"teams\":[["] {
            assert!(page.contains(part), "{part}");
        }
    }

    fn regions_are_not_recorded_unless_wanted(mpi) {
        let job = Job::new(mpi, &built(mpi, "works_in_teams", Build::OpenMp)).argument("1");
        let recorded = job.record();
        recorded.expect_code(0);
        let run = Run::open(&recorded.directory()).expect("it can be read");
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures");
        assert_eq!(metrics.openmp, None);
    }
}

#[test]
#[ignore = "with scripts/test --all"]
fn threads_of_cpp_have_known_times() {
    check_known_times(Mpi::Mpich, Build::OpenMpCpp);
}
