//! All commands find the same in a run, in the same order, none states what a finding makes invalid, and their documents
//! fit their schemas: shown on runs of every kind, made by seed, and on the kept ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

mod outputs;
mod rules;
mod runs;
use outputs::Outputs;
use runs::Kind;

/// Runs of each kind.
const VARIANTS: u64 = 14;

/// What was found in runs.
#[derive(Default)]
struct Found {
    /// How many runs have each kind of finding.
    kinds: BTreeMap<String, u32>,
    /// How many runs were compared.
    compared: u32,
    /// The runs that break a rule, and how.
    broken: Vec<String>,
}

impl Found {
    /// Checks a run that has nothing of some kinds, if anything of it can be read.
    fn check(this: &Mutex<Self>, name: &str, directory: &Path, has_not: &[&str]) {
        let made = std::panic::catch_unwind(|| Outputs::read(directory));
        let outputs = match made {
            Ok(Some(outputs)) => outputs,
            Ok(None) => return,
            Err(_) => {
                let mut this = this.lock().expect("no panic elsewhere");
                return this.broken.push(format!("{name}: an output panics"));
            }
        };
        let broken = rules::broken(&outputs);
        let mut this = this.lock().expect("no panic elsewhere");
        this.compared += 1;
        this.broken.extend(broken.map(|rule| format!("{name}: {rule}")));
        for finding in outputs.report.document["findings"].as_array().expect("a list") {
            let kind = finding["kind"].as_str().expect("a name");
            *this.kinds.entry(kind.to_owned()).or_default() += 1;
            if has_not.contains(&kind) {
                this.broken.push(format!("{name}: finds {finding:#}"));
            }
        }
    }

    #[track_caller]
    fn expect_agreement(&self) {
        let (count, first) = (self.broken.len(), self.broken.first());
        assert!(first.is_none(), "{count} runs disagree, such as {}", first.map_or("", |it| it));
    }
}

#[test]
fn made_runs_are_judged_alike_by_all() {
    let (found, next) = (Mutex::default(), AtomicU64::new(0));
    let all = Kind::ALL.len() as u64 * VARIANTS;
    let work = || {
        while let number @ 0.. = next.fetch_add(1, Ordering::Relaxed)
            && number < all
        {
            let (kind, seed) = (Kind::ALL[(number / VARIANTS) as usize], number % VARIANTS);
            let made = runs::make(kind, seed);
            let name = format!("{kind:?} {seed}");
            Found::check(&found, &name, made.path(), &kind.has_not());
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let found: Found = found.into_inner().expect("no panic");
    found.expect_agreement();
    assert!(found.compared >= 200, "{} of {all} runs were compared", found.compared);
    // The runs are as different as they should be.
    for kind in [
        "damaged_files",
        "ranks_missing",
        "aborted",
        "ended",
        "crashed",
        "unfinished",
        "deadlock",
        "hang",
        "stuck",
        "lack_of_cores",
        "efficiency",
        "waiting_not_recorded",
        "transfer",
        "small_messages",
        "no_overlap",
        "placement",
        "waiting",
        "uncertain_waits",
        "slow_iterations",
        "delay",
        "serial_io",
        "blocked",
        "in_turn",
        "overlap",
        "asleep",
    ] {
        assert!(found.kinds.contains_key(kind), "no run has {kind}: {:?}", found.kinds);
    }
}

#[test]
fn kept_runs_are_judged_alike_by_all() {
    let found = Mutex::default();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kept-runs");
    let entries = fs::read_dir(kept).expect("the folder of runs");
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    // Too long for a test that prints it six times.
    runs.retain(|path| path.is_dir() && !path.ends_with("encoded") && !path.ends_with("last"));
    for run in runs {
        Found::check(&found, &run.display().to_string(), &run, &[]);
    }
    let found: Found = found.into_inner().expect("no panic");
    found.expect_agreement();
    assert!(found.compared > 10, "{} runs were compared", found.compared);
}
