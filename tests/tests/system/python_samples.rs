//! Python functions on the stacks of samples and on call paths, in every version of Python that is
//! installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use system_tests::directories::repository;
use system_tests::trace::RankTrace;
use system_tests::{Job, Mpi, under_both, victim};
use trace_format::header::{Definition, Module};
use trace_format::reader::SampledThread;
use trace_format::samples::{INTERPRETED, LINE_BITS, PYTHON, interpreted};
use trace_format::settings::{LEVEL, PATHS_FROM, SAMPLE};

const SCRIPT: &str = "samples_python.py";

/// The interpreters whose frames the recorder knows: Debian's, and others that are in PATH.
fn pythons() -> Vec<PathBuf> {
    let ask = "import sys, ctypes; print(sys.version_info[1], sys.executable)";
    let names = ["python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"];
    let candidates = ["/usr/bin/python3"].into_iter().chain(names);
    let found = candidates.filter_map(|name| {
        let output = Command::new(name).args(["-c", ask]).output().ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        let (minor, path) = said.trim().split_once(' ')?;
        let minor: u32 = minor.parse().ok()?;
        (9..=13).contains(&minor).then(|| (minor, PathBuf::from(path)))
    });
    let by_version: BTreeMap<u32, PathBuf> = found.collect();
    assert!(!by_version.is_empty(), "no Python is installed");
    by_version.into_values().collect()
}

/// An interpreter's shared library and its folder, if it has one.
fn shared_library(python: &Path) -> Option<(PathBuf, String)> {
    let ask = "import sys, sysconfig as s; of = s.get_config_var
print(of('LIBDIR') + '/' + str(of('INSTSONAME')), sys.base_prefix)";
    let output = Command::new(python).args(["-c", ask]).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let (library, home) = said.trim().split_once(' ')?;
    let library = Some(PathBuf::from(library)).filter(|of| of.is_file() && library.contains(".so"));
    Some((library?, home.to_owned()))
}

fn job(mpi: Mpi, python: &Path, what: &str, seconds: &str) -> Job {
    let library = if mpi == Mpi::OpenMpi { "libmpi.so.40" } else { "libmpich.so.12" };
    let script = repository().join("tests/victims").join(SCRIPT);
    Job::new(mpi, python).argument(script).argument(library).argument(what).argument(seconds)
}

fn sampled(mpi: Mpi, python: &Path, what: &str, seconds: &str) -> Job {
    job(mpi, python, what, seconds).environment(SAMPLE.name, "499")
}

/// Line of the victim that ends with a comment.
fn line_of(comment: &str) -> u64 {
    let source = std::fs::read_to_string(repository().join("tests/victims").join(SCRIPT)).unwrap();
    let at = source.lines().position(|line| line.ends_with(&format!("# {comment}")));
    at.expect("the comment is there") as u64 + 1
}

/// The Python functions of a rank.
struct Functions<'r>(Vec<&'r Module>);

impl<'r> Functions<'r> {
    fn new(rank: &'r RankTrace) -> Self {
        let code = rank.file.definitions.iter().filter_map(|definition| match definition {
            Definition::Code(code) => Some(code),
            _ => None,
        });
        Self(code.collect())
    }

    /// Function, file and line.
    fn at(&self, address: u64) -> Option<(&str, &str, u64)> {
        let code = self.0.iter().find(|of| (of.begin..of.end).contains(&address))?;
        let file = code.path.rsplit('/').next().unwrap_or_default();
        Some((code.identity.strip_prefix(PYTHON)?, file, address - code.base))
    }

    /// The names on a stack, outermost first.
    fn names(&self, addresses: impl DoubleEndedIterator<Item = u64>) -> Vec<&str> {
        let python = addresses.rev().filter(|address| address & INTERPRETED != 0);
        python.map(|address| self.at(address).expect("it is defined").0).collect()
    }

    /// The names on the stack of each sample, outermost first.
    fn of_samples(&self, thread: &SampledThread) -> Vec<Vec<&str>> {
        let stack = |of: &trace_format::reader::Sample| {
            let callers = of.path.map_or(&[][..], |path| &thread.paths[path as usize]);
            let whole: Vec<u64> = [of.address].into_iter().chain(callers.iter().copied()).collect();
            self.names(whole.into_iter())
        };
        thread.samples.iter().map(stack).collect()
    }

    /// Number of stacks on which a function calls `burn`.
    fn below(&self, thread: &SampledThread, name: &str) -> usize {
        let is_it = |names: &Vec<&str>| names.ends_with(&[name, "burn"]);
        self.of_samples(thread).iter().filter(|names| is_it(names)).count()
    }

    /// File and line of a function where it has called `burn`. A sample may also meet it before or after that, at
    /// another line.
    fn callers_of_burn<'s>(
        &'s self,
        thread: &'s SampledThread,
        name: &'s str,
    ) -> impl Iterator<Item = (&'s str, u64)> {
        thread.paths.iter().filter_map(move |path| {
            let mut python = path.iter().filter(|address| *address & INTERPRETED != 0);
            let is_burn = self.at(*python.next()?)?.0 == "burn";
            let (function, file, line) = self.at(*python.next()?)?;
            (is_burn && function == name).then_some((file, line))
        })
    }
}

fn first(threads: &[SampledThread]) -> &SampledThread {
    threads.iter().find(|of| of.thread == Some(0)).expect("it is sampled")
}

/// Checks that three quarters of the time are spent in `heavy`, at the right line.
fn check_shares(rank: &RankTrace, thread: &SampledThread) {
    let functions = Functions::new(rank);
    let (heavy, light) = (functions.below(thread, "heavy"), functions.below(thread, "light"));
    let n = (heavy + light) as f64;
    assert!(n >= 100.0, "{n} of {} samples", thread.samples.len());
    let deviation = (n * 0.75 * 0.25).sqrt();
    assert!((heavy as f64 - 0.75 * n).abs() < 4.0 * deviation, "{heavy} and {light}");
    let complete = thread.samples.iter().filter(|of| of.complete).count();
    assert!(complete * 1000 >= thread.samples.len() * 995, "{complete} complete");
    let lines: BTreeSet<(&str, u64)> = functions.callers_of_burn(thread, "heavy").collect();
    assert_eq!(lines, BTreeSet::from([(SCRIPT, line_of("line of heavy"))]));
}

under_both! {
    fn python_functions_have_their_shares_and_lines(mpi) {
        for python in pythons() {
            eprintln!("{}", python.display());
            let recorded = sampled(mpi, &python, "shares", "2").ranks(2).record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            for rank in [trace.rank(0), trace.rank(1)] {
                check_shares(rank, first(&rank.file.sampled_threads()));
            }
        }
    }

    fn stacks_have_python_functions_in_order(mpi) {
        for python in pythons() {
            eprintln!("{}", python.display());
            let recorded = sampled(mpi, &python, "stacks", "0.2").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let (rank, threads) = (trace.rank(0), trace.rank(0).file.sampled_threads());
            let functions = Functions::new(rank);
            let found: Vec<String> =
                functions.of_samples(first(&threads)).iter().map(|names| names.join(" ")).collect();
            // Names are qualified from 3.11 on.
            for expected in [
                &format!("<module> stacks{} burn", " recursion".repeat(31))[..],
                "<module> stacks chain chain chain chain burn",
                "<module> stacks coroutine awaits awaits awaits burn",
                "<module> stacks made burn",
                "<module> stacks <lambda> burn",
                "<module> stacks λ_größe burn",
            ] {
                let is_it = |names: &&String| {
                    names.replace("stacks.<locals>.", "") == *expected
                };
                let count = found.iter().filter(is_it).count();
                assert!(count >= 10, "{count} of {expected}, {found:?}");
            }
            let lines: BTreeSet<(&str, u64)> = functions.callers_of_burn(first(&threads), "made").collect();
            assert_eq!(lines, BTreeSet::from([("made.py", 3)]));
            let sort_is_between = first(&threads).paths.iter().any(|path| {
                let name = |address: &u64| functions.at(*address).map_or("", |of| of.0);
                let python: Vec<usize> = (0..path.len()).filter(|at| !name(&path[*at]).is_empty()).collect();
                python.windows(2).any(|two| {
                    name(&path[two[0]]).ends_with("<lambda>") && name(&path[two[1]]) == "stacks" && two[1] > two[0] + 1
                })
            });
            assert!(sort_is_between, "compiled functions stay where they are");
        }
    }

    fn frames_that_come_and_go_are_unharmed(mpi) {
        for python in pythons() {
            for what in ["churn", "churn_in_threads", "children"] {
                eprintln!("{} {what}", python.display());
                let recorded = sampled(mpi, &python, what, "3").record();
                recorded.expect_code(0);
                assert_eq!(recorded.output.stdout, "right\n", "{}", recorded.output);
                assert_eq!(recorded.output.recorder_lines(), [""; 0]);
                let trace = recorded.trace();
                assert!(trace.rank(0).is_finalized());
                assert!(Functions::new(trace.rank(0)).0.len() > 3);
            }
        }
    }

    fn threads_have_functions_of_their_own(mpi) {
        for python in pythons() {
            eprintln!("{}", python.display());
            let recorded = sampled(mpi, &python, "threads", "1").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let (rank, threads) = (trace.rank(0), trace.rank(0).file.sampled_threads());
            let functions = Functions::new(rank);
            assert!(functions.below(first(&threads), "light") >= 50);
            assert_eq!(functions.below(first(&threads), "heavy"), 0);
            let others = threads.iter().filter(|of| functions.below(of, "heavy") >= 100);
            assert_eq!(others.count(), 2);
        }
    }

    fn killed_rank_leaves_names_of_its_functions(mpi) {
        for python in pythons() {
            let recorded = sampled(mpi, &python, "dies", "1").record();
            let trace = recorded.trace();
            let (rank, threads) = (trace.rank(0), trace.rank(0).file.sampled_threads());
            assert!(!rank.is_finalized());
            assert!(Functions::new(rank).below(first(&threads), "heavy") >= 100);
        }
    }

    fn embedded_python_is_found_outside_the_global_scope(mpi) {
        for (library, home) in pythons().iter().filter_map(|python| shared_library(python)) {
            eprintln!("{}", library.display());
            let job = Job::new(mpi, &victim(mpi, "embeds_python")).argument(&library);
            let job = job.environment("PYTHONHOME", home).environment(SAMPLE.name, "499");
            let recorded = job.record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let (rank, threads) = (trace.rank(0), trace.rank(0).file.sampled_threads());
            let functions = Functions::new(rank);
            let stacks = functions.of_samples(first(&threads));
            let inside = stacks.iter().filter(|names| **names == ["<module>", "embedded"]);
            assert!(inside.count() >= 100, "{stacks:?}");
        }
    }

    fn call_paths_have_python_functions(mpi) {
        for python in pythons() {
            let job = job(mpi, &python, "waits", "0.5").ranks(2);
            let recorded = job.environment(LEVEL.name, "2").environment(PATHS_FROM.name, "0").record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            let functions = Functions::new(trace.rank(0));
            let paths = trace.rank(0).file.definitions.iter().filter_map(|definition| match definition {
                Definition::Path { addresses, .. } => Some(addresses),
                _ => None,
            });
            let is_it = |path: &&Vec<u64>| functions.names(path.iter().copied()) == ["<module>", "waits"];
            let waits: Vec<&Vec<u64>> = paths.filter(is_it).collect();
            let lines = waits.iter().filter_map(|path| {
                let innermost = path.iter().find(|address| *address & INTERPRETED != 0)?;
                functions.at(*innermost).map(|of| of.2)
            });
            assert_eq!(lines.collect::<BTreeSet<u64>>(), BTreeSet::from([line_of("line of the call")]));
        }
    }
}

#[test]
fn lines_have_addresses_of_their_own() {
    assert_eq!(interpreted(3, 42), 1 << 63 | 3 << LINE_BITS | 42);
    assert_eq!(interpreted(3, 1 << LINE_BITS), 1 << 63 | 3 << LINE_BITS, "unknown");
}
