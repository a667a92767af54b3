//! Screens of kept runs as users see them, in `snapshots`. `INSTA_UPDATE=always cargo test -p gammachi
//! --test screens` renews them after a change of figures or words.
//!
//! Only runs whose screens name no function of a system library: its symbols differ between machines.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::scratch::{Scratch, stderr};

/// What a command prints about kept runs, which have their plain names for it.
fn screen(scratch: &Scratch, arguments: &[&str]) -> String {
    let output = scratch.run(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn kept(runs: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kept-runs");
    runs.iter().for_each(|run| symlink(kept.join(run), scratch.0.path().join(run)).unwrap());
    scratch
}

macro_rules! screens {
    ($($command:ident: $($run:literal)*;)*) => {
        $(#[test]
        fn $command() {
            let runs = [$($run),*];
            let scratch = kept(&runs);
            for run in runs {
                let name = format!("{}_{run}", stringify!($command));
                insta::assert_snapshot!(name, screen(&scratch, &[stringify!($command), run]));
            }
        })*
    };
}

screens! {
    report: "collectives" "last" "regions" "unfinished";
    why: "collectives" "encoded" "polls" "unfinished";
    whatif: "messages" "regions";
}

#[test]
fn compare() {
    let scratch = kept(&["messages"]);
    for (run, speed) in [("before", "x0.5"), ("after", "x4")] {
        let change = ["whatif", "messages", "--rank", "0", "--speed", speed, "--out", run];
        screen(&scratch, &change);
    }
    insta::assert_snapshot!("compare_simulated", screen(&scratch, &["compare", "before", "after"]));
}
