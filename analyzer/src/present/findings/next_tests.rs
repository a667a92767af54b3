//! What a report proposes to do next.

use trace_format::header::{Definition, Module, Sampling, SamplingSource};
use trace_format::markers::ToolReason;

use super::{next_step, sentences};
use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence, Figures};
use crate::metrics::{Metrics, Selection};
use crate::replay::NoIdeal;
use crate::synthetic_messages::on_world;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Two ranks of a program that wait at barriers in a library.
fn waits_in_library() -> [SyntheticRank; 2] {
    const END: u64 = 3_000_000;
    std::array::from_fn(|number| {
        let mut rank = SyntheticRank::level_1(number as u32, 2, END);
        rank.header.program = "/home/ada/flow".into();
        rank.definitions.push(Definition::Module(Module {
            path: "/opt/lib/libmesh.so.2".into(),
            identity: String::new(),
            base: 0x9000,
            begin: 0x9000,
            end: 0xa000,
            ticks: 0,
        }));
        for turn in 0..20 {
            let begin = 1_100_000 + turn * 50_000;
            let late = if number as u64 == turn % 2 { 40_000 } else { 1_000 };
            rank.call_with("MPI_Barrier", begin + late, begin + 40_010, on_world(0, 0, 0));
            rank.threads[0].last_mut().unwrap().site = 0x9010;
        }
        rank.finalize(END, END + 10);
        rank
    })
}

/// Command and purpose proposed for a run of `mpirun -n 2 ./flow 'a b'`.
fn proposed(ranks: &[SyntheticRank]) -> (String, String) {
    judged(ranks, next_step)
}

/// What is made of the diagnosis of such a run.
fn judged<T>(ranks: &[SyntheticRank], made: impl Fn(&Diagnosis) -> T) -> T {
    let directory = RunDirectory::with_ranks(ranks);
    let mut description = crate::trace::run_json::tests::example();
    description.argv = ["mpirun", "-n", "2", "./flow", "a b"].map(str::to_owned).to_vec();
    description.write(directory.path()).unwrap();
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let causes = Causes::new(&Analysis::new(&run, &timeline));
    let (run, timeline, metrics) = (&run, &timeline, &metrics);
    let (causes, ideal) = (Some(&causes), Err(NoIdeal::NotAsked));
    made(&Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay: None }))
}

#[test]
fn recorder_that_costs_too_much_is_named_with_a_cheaper_recording() {
    let all = |of: &Diagnosis| {
        (sentences(of), next_step(of), of.invalidated_by(Figures::Efficiency).is_some())
    };
    let run = |windows: u64, pauses: bool| {
        let end = 200_000_000;
        let ranks: [SyntheticRank; 2] = std::array::from_fn(|number| {
            let mut rank = SyntheticRank::level_1(number as u32, 2, end);
            if pauses {
                rank.call(0, "MPI_Pcontrol", 2_000_000, 2_000_010);
            }
            for window in (0..windows).filter(|_| number == 1) {
                let begin = 10_000_000 * (window + 1);
                rank.tool(0, ToolReason::Window, begin, begin + 5_000_000);
            }
            rank.finalize(end, end + 10);
            rank
        });
        judged(&ranks, all)
    };
    let (sentences, (command, purpose), is_invalid) = run(8, false);
    let said = "The recorder took 10 % of the ranks' time (20 % of rank 1's): efficiency and predictions are unreliable.";
    assert_eq!(sentences, [said]);
    assert_eq!(command, "gammachi run --level 0 -- …");
    assert_eq!(purpose, "costs less: no partners and communicators");
    assert!(is_invalid);
    for (windows, pauses) in [(3, false), (8, true)] {
        let (sentences, (command, _), is_invalid) = run(windows, pauses);
        assert!(!sentences.join(" ").contains("The recorder took") && !is_invalid, "{sentences:?}");
        assert!(!command.contains("--level"), "{command}");
    }
}

#[test]
fn paths_are_proposed_where_waits_are_in_a_library() {
    let mut ranks = waits_in_library();
    let (command, purpose) = proposed(&ranks);
    assert_eq!(command, "gammachi run --level 2 -- mpirun -n 2 ./flow 'a b'");
    assert_eq!(purpose, "shows which lines of your program call libmesh");
    let is_other = |ranks: &[SyntheticRank]| !proposed(ranks).0.contains("--level 2");
    ranks.iter_mut().for_each(|rank| rank.header.program = "/usr/bin/perl5.36".into());
    assert!(is_other(&ranks), "the frames of a script are those of its interpreter");
    ranks.iter_mut().for_each(|rank| rank.header.program = "/usr/bin/python3.11".into());
    assert!(!is_other(&ranks), "but Python's functions are on call paths");
    ranks.iter_mut().for_each(|rank| rank.header.program = "/opt/lib/flow".into());
    assert!(is_other(&ranks), "the library belongs to the program");
    let mut ranks = waits_in_library();
    ranks.iter_mut().for_each(|rank| rank.fixed.level = 2);
    assert!(is_other(&ranks), "paths were recorded");
}

#[test]
fn sampling_is_proposed_where_a_rank_computes_longer() {
    const END: u64 = 3_000_000;
    let ranks = |sampled: bool| -> [SyntheticRank; 2] {
        std::array::from_fn(|number| {
            let mut rank = SyntheticRank::level_1(number as u32, 2, END);
            if sampled {
                rank.definitions.push(Definition::Sampling(Sampling {
                    rate_hz: 99,
                    source: SamplingSource::TaskClock,
                    unavailable: String::new(),
                }));
            }
            for turn in 0..20 {
                let begin = 1_100_000 + turn * 50_000;
                let late = if number == 1 { 40_000 } else { 1_000 };
                rank.call_with("MPI_Barrier", begin + late, begin + 40_010, on_world(0, 0, 0));
            }
            rank.finalize(END, END + 10);
            rank
        })
    };
    let (command, purpose) = proposed(&ranks(false));
    assert_eq!(command, "gammachi run --sample -- mpirun -n 2 ./flow 'a b'");
    assert_eq!(purpose, "names the function in which rank 1 computes longer");
    let (command, _) = proposed(&ranks(true));
    assert!(command.starts_with("gammachi whatif "), "it has samples: {command}");
}
