//! The one thing to do next.

use crate::causes::Unknown;
use crate::metrics::{ComputeMode, Selection};
use crate::trace::RankTrace;
use crate::trace::own_program::{OwnProgram, PATHS_LEVEL};

use super::cores::{share_cores, waits_for_other_programs};
use super::delays;
use super::evidence::Evidence;
use super::figures::Figures;
use super::finding::{Delay, Does, Finding};
use super::judged::Diagnosis;
use super::measurement::Measurement;

/// Efficiency at or above which waiting is not worth looking into.
const VERY_GOOD_EFFICIENCY: f64 = 0.95;
/// Efficiency at or above which a run is considered good.
const GOOD_EFFICIENCY: f64 = 0.9;

/// Something to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Look at the run in the viewer.
    View(Purpose),
    /// Record again with these options.
    Record {
        /// Options of `gammachi run`.
        options: &'static [&'static str],
        purpose: Purpose,
    },
    /// Record again so that this is no longer wrong.
    RecordBetter(Measurement),
    /// Record the same again with call paths, which name the lines that call this library.
    RecordPaths {
        /// Its path.
        library: String,
    },
    /// Record the same again with samples, which name the function in which this rank computes longer.
    RecordSamples {
        /// In MPI_COMM_WORLD.
        rank: u32,
    },
    /// Follow the waiting back; with the number of a slow iteration.
    Why(Option<usize>),
    /// Predict what changes would save.
    WhatIf(Purpose),
    /// Run it with several numbers of ranks.
    Sweep(Vec<u32>),
    /// Look at one region.
    Region(String),
}

/// What a step is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// See what every rank did last.
    LastActions,
    /// Keep single calls, which tell who waits for whom.
    SingleCalls,
    /// Record partners, which tell who waits for whom.
    Partners,
    /// See the selected stretch among the others.
    Surroundings,
    /// Times of ranks that share cores say little: use no more ranks than cores.
    FewerRanks,
    /// The same where other programs took the cores as well.
    FewerRanksAlone,
    /// Times of ranks that wait for cores say little: use free cores.
    FreeCores,
    /// Tell latency from bandwidth.
    Transfer,
    /// Predict what changes would save.
    Savings,
    /// See when the time was lost.
    WhenLost,
}

impl Diagnosis<'_> {
    /// The one thing to do next.
    pub fn next(&self) -> Step {
        self.before_figures(&self.of).unwrap_or_else(|| self.by_figures(&self.of))
    }

    /// Once it is known who waits for whom: sampling, if that would name the function that makes a rank late.
    pub fn names_function(&self) -> Option<Step> {
        let of = &self.of;
        let is_sampled = of.run.ranks.iter().any(|rank| rank.file.sampling().is_some());
        if is_sampled || self.invalidated_by(Figures::Delays).is_some() {
            return None;
        }
        self.findings.iter().find_map(|finding| match finding {
            // Samples are taken on cores alone.
            Finding::Delay(Delay { rank, does: Does::Computes | Does::Unclear, .. }) => {
                Some(Step::RecordSamples { rank: *rank })
            }
            _ => None,
        })
    }

    /// What must be done before the run's figures are worth anything.
    fn before_figures(&self, of: &Evidence) -> Option<Step> {
        let metrics = of.metrics;
        let record = |options, purpose| Some(Step::Record { options, purpose });
        if metrics.unfinished.is_some() {
            return Some(Step::View(Purpose::LastActions));
        }
        if of.keeps_mostly_totals() {
            return record(&[], Purpose::SingleCalls);
        }
        if of.causes.is_some_and(|causes| causes.unknown.contains(&Unknown::NoAttributes)) {
            return record(&["--level", "1"], Purpose::Partners);
        }
        if metrics.selection != Selection::Whole {
            return Some(Step::View(Purpose::Surroundings));
        }
        let is_by_others = waits_for_other_programs(&metrics.oversubscription);
        let purpose = match (share_cores(of), is_by_others) {
            (true, false) => Purpose::FewerRanks,
            (true, true) => Purpose::FewerRanksAlone,
            (false, _) => Purpose::FreeCores,
        };
        let lacks_cores = self.lacks_cores().then_some(Step::Record { options: &[], purpose });
        lacks_cores.or_else(|| {
            self.findings.iter().find_map(|finding| match finding {
                Finding::Measurement(found) => Some(Step::RecordBetter(found.clone())),
                _ => None,
            })
        })
    }

    fn by_figures(&self, of: &Evidence) -> Step {
        let slow = self.findings.iter().find_map(|finding| match finding {
            Finding::SlowIterations { slowest, .. } => Some(*slowest),
            _ => None,
        });
        if let Some(slow) = slow {
            return Step::Why(Some(slow));
        }
        let costs_most = |(serialisation, transfer): (f64, f64)| {
            transfer < GOOD_EFFICIENCY && transfer < serialisation
        };
        if of.serialisation_and_transfer().is_some_and(costs_most) {
            return Step::WhatIf(Purpose::Transfer);
        }
        let efficiency = of.metrics.efficiency.map(|one| one.parallel);
        let is_good = efficiency.is_some_and(|parallel| parallel >= VERY_GOOD_EFFICIENCY);
        if of.waiting_share() >= delays::NOTABLE_WAITING && !is_good {
            if let Some(library) = library_to_look_behind(of) {
                return Step::RecordPaths { library };
            }
            if let Some(step) = self.names_function() {
                return step;
            }
            let has_delaying_rank = of.why().is_some_and(|why| delays::has_delaying_rank(&why));
            let tells =
                |one: &Finding| matches!(one, Finding::InTurn { .. } | Finding::SlowHost(_));
            return match has_delaying_rank || self.findings.iter().any(tells) {
                true if self.invalidated_by(Figures::Predictions).is_none() => {
                    Step::WhatIf(Purpose::Savings)
                }
                _ => Step::Why(None),
            };
        }
        if share_cores(of) {
            return Step::Record { options: &[], purpose: Purpose::FewerRanks };
        }
        match (efficiency, of.run.region_names().first()) {
            (Some(efficiency), _) if efficiency >= GOOD_EFFICIENCY => {
                Step::Sweep(rank_counts(of.run.world_size))
            }
            (_, Some(name)) if of.metrics.compute == ComputeMode::Outside => {
                Step::Region((*name).to_owned())
            }
            _ => Step::View(Purpose::WhenLost),
        }
    }
}

/// The library whose callers a recording with call paths would name.
fn library_to_look_behind(of: &Evidence) -> Option<String> {
    let has_no_paths = |rank: &RankTrace| {
        rank.file.fixed.level < PATHS_LEVEL && OwnProgram::new(&rank.file.header).has_call_paths
    };
    let library = delays::library_without_caller(&of.why()?)?;
    of.run.ranks.iter().all(has_no_paths).then_some(library)
}

/// Rank counts for a study that needs no more cores than the run (or two): 1, 2, 4 … and its own.
fn rank_counts(ranks: u32) -> Vec<u32> {
    let ranks = ranks.max(2);
    let doubled = std::iter::successors(Some(1u32), |count| count.checked_mul(2));
    doubled.take_while(|count| *count < ranks).chain([ranks]).collect()
}
