//! How long the stages of a report take on a made-up run: reading its calls, matching, causes.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box_drop};
use gammachi_analyzer::analysis::Analysis;
use gammachi_analyzer::causes::Causes;
use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::matching::{MatchFinding, MatchSink};
use gammachi_analyzer::trace::Run;

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../src/synthetic_messages.rs"]
mod synthetic_messages;
#[allow(dead_code, reason = "shared with the tests")]
#[path = "../src/synthetic_trace.rs"]
mod synthetic_trace;

use synthetic_messages::on_world;
use synthetic_trace::{RunDirectory, SyntheticRank};

const RANKS: u32 = 8;
const STEPS: u64 = 2000;
const CALLS: u64 = RANKS as u64 * STEPS * 3;

fn main() {
    divan::main();
}

/// In each step a rank sends to the next one, receives from the one before, and all meet. Another one
/// is late each time.
fn ranks() -> Vec<SyntheticRank> {
    let rank = |rank: u32| {
        let mut this = SyntheticRank::level_1(rank, RANKS, 3_000_000 + STEPS * 10_000);
        this.is_encoded = true;
        let (next, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        for step in 0..STEPS {
            let late = if step % u64::from(RANKS) == u64::from(rank) { 3000 } else { 0 };
            let at = 2_000_000 + step * 10_000 + late;
            this.call_with("MPI_Send", at, at + 200, on_world(next as i32, 7, 4096));
            let met = 2_000_000 + step * 10_000 + 6000;
            this.call_with("MPI_Recv", at + 300, met - 500, on_world(before as i32, 7, 4096));
            this.call_with("MPI_Barrier", met, met + 400, on_world(0, 0, 0));
        }
        this
    };
    (0..RANKS).map(rank).collect()
}

struct Ignored;

impl MatchSink for Ignored {
    fn take(&mut self, finding: &MatchFinding) {
        divan::black_box(finding);
    }
}

/// Measures a stage that reads all calls once.
fn bench(bencher: Bencher<'_, '_>, stage: impl Fn(&Run, &GlobalTimeline) + Sync) {
    let directory = RunDirectory::with_ranks(&ranks());
    let run = Run::open(directory.path()).expect("the run is valid");
    let timeline = GlobalTimeline::new(&run);
    bencher.counter(ItemsCount::new(CALLS)).bench(|| stage(&run, &timeline));
}

#[divan::bench]
fn metrics(bencher: Bencher<'_, '_>) {
    bench(bencher, |run, timeline| {
        black_box_drop(Metrics::new(run, timeline, &Selection::Whole).expect("the run is whole"));
    });
}

#[divan::bench]
fn matching(bencher: Bencher<'_, '_>) {
    bench(bencher, |run, timeline| {
        let matched = Analysis::new(run, timeline).matches(|| Ignored);
        assert!(matched.expect("calls have arguments").0.matched > 0);
    });
}

#[divan::bench]
fn causes(bencher: Bencher<'_, '_>) {
    bench(bencher, |run, timeline| {
        black_box_drop(Causes::new(&Analysis::new(run, timeline)));
    });
}
