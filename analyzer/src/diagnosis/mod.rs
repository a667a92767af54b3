//! What a run's figures mean: findings, in order, and what each makes invalid.
//!
//! Every command shows the same findings of a run; nothing is judged while sentences are made. Nothing here makes a
//! sentence: `present` words a [`Finding`].
//!
//! | file | what it finds |
//! |---|---|
//! | `finding` | the kinds of findings, each with its evidence and what it takes from others |
//! | [`Evidence`] | what is known of a run |
//! | [`Measurement`] | what is wrong with the measurement itself |
//! | `completeness` | damaged files, missing ranks |
//! | `endings` | how the job ended, deadlocks, hangs |
//! | `cores` | ranks that lacked cores |
//! | `computation` | efficiency, balance, sleep |
//! | `delays` | how long ranks waited, and what cost most |
//! | `functions` | the functions that take longer on delaying ranks |
//! | `code_parts` | the functions of regions, phases, iterations and threads |
//! | `files` | what calls on files cost |
//! | `hosts` | a host whose ranks make others wait |
//! | `one_rank` | what one rank does while the others wait: file accesses, sleep |
//! | `transfer` | what transfer costs, whether messages are too small, hidden or on the wrong hosts |
//! | `saves` | what advice would save: none is given without |
//! | [`Why`] | causes of waiting with their context |
//! | `next` | what to do next |

mod code_parts;
mod completeness;
mod computation;
pub mod cores;
mod delays;
mod endings;
mod evidence;
mod figures;
mod files;
pub mod finding;
mod functions;
mod hosts;
mod judged;
mod measurement;
mod next;
mod one_rank;
mod saves;
mod transfer;
mod why;

#[cfg(test)]
mod tests;

use crate::metrics::Metrics;

pub use code_parts::{CodePart, LongerInSlow, PartKind};
pub use evidence::{Evidence, Undivided};
pub use figures::Figures;
pub use finding::{Finding, NOTABLE_SHARE};
pub use functions::LongerFunctions;
pub use judged::{Diagnosis, invalidated_by};
pub use measurement::Measurement;
pub use next::{Purpose, Step};
pub use why::{NotRecorded, OwnTimes, Why};

/// Efficiency at or above which the causes of what is lost are left to the tables.
const HARDLY_LOST: f64 = 0.97;
/// Load balance at or above which ranks compute equally long.
pub const BALANCED: f64 = 0.95;
/// How many times as much must be lost to serialisation as to imbalance if there is some.
const MUCH_MORE: i32 = 4;
/// Serialisation below which waiting in turn is mentioned.
const NOTABLE_SERIALISATION: f64 = 0.9;

impl<'a> Diagnosis<'a> {
    /// Judges a run: what is missing and how it ended, then what makes figures worthless, then what was lost.
    pub fn new(evidence: Evidence<'a>) -> Self {
        let of = &evidence;
        let mut findings = Vec::new();
        findings.extend(completeness::damage(of));
        findings.extend(completeness::not_begun(of));
        findings.extend(completeness::missing_ranks(of));
        findings.extend(endings::endings(of));
        findings.extend(Measurement::all(of).map(Finding::Measurement));
        let cores = cores::lack_of_cores(of);
        let is_decisive = matches!(cores, Some(Finding::LackOfCores { decisive: true, .. }));
        let (first, later) = if is_decisive { (cores, None) } else { (None, cores) };
        findings.extend(first);
        if of.is_stuck() {
            findings.push(Finding::Stuck);
        } else {
            findings.extend(losses(of));
            findings.extend(files::costs(of));
            findings.extend(later);
            findings.extend(cores::unequal_pinning(of));
            findings.extend(cores::threads_share_cores(of));
            findings.extend(computation::asleep(of).filter(|asleep| !is_told(asleep, &findings)));
        }
        let mut diagnosis = Self { of: evidence, findings };
        diagnosis.suppress();
        diagnosis
    }
}

/// Whether it depends on why ranks waited what makes predictions invalid.
pub fn doubts_depend_on_waits(metrics: &Metrics) -> bool {
    metrics.unfinished.is_some() || cores::may_lack(metrics)
}

/// Whether it was said that the only rank that sleeps does so where the others wait for it.
fn is_told(asleep: &Finding, findings: &[Finding]) -> bool {
    findings.iter().any(|finding| match (finding, asleep) {
        (Finding::Blocked(blocked), Finding::Asleep(asleep)) => {
            asleep.ranks == 1 && asleep.rank == blocked.rank
        }
        _ => false,
    })
}

/// Efficiency, and why it is lost.
fn losses(of: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let why = of.why();
    let is_whole = why.is_none_or(|why| why.is_of_all());
    let has_finished = of.metrics.unfinished.is_none();
    let is_notable = why.is_some_and(|why| delays::is_notable(&why, has_finished));
    let not_recorded = of.waiting_not_recorded();
    let uncertain = why.as_ref().filter(|_| is_notable).and_then(delays::uncertain);
    // What makes waits and delays worthless is found whether or not they matter.
    let doubts = not_recorded.map(|because| Finding::WaitingNotRecorded { because });
    let doubts = doubts.or(uncertain);
    findings.push(Finding::Efficiency(computation::efficiency(of)));
    let efficiency = of.metrics.efficiency.as_ref();
    if efficiency.is_some_and(|one| one.parallel >= HARDLY_LOST) {
        findings.extend(doubts);
        return findings;
    }
    let Some(why) = why.filter(|_| !of.hides_waiting()) else {
        match doubts {
            Some(doubts) => findings.push(doubts),
            None => findings.extend(computation::loses_most(of)),
        }
        return findings;
    };
    let transfer = transfer::costs(of, &why);
    if !is_notable && transfer.is_empty() {
        findings.extend(doubts);
        findings.extend(computation::loses_most(of).filter(|_| has_finished));
        return findings;
    }
    let waiting = if is_notable { waiting(of, &why, &transfer) } else { Vec::new() };
    findings.extend(transfer.into_iter().chain(waiting).chain(doubts));
    findings.extend(transfer::overlap(of, &why).filter(|_| is_whole && of.is_complete()));
    findings
}

/// How long ranks waited and, unless transfer costs much more, why.
fn waiting(of: &Evidence, why: &Why, transfer: &[Finding]) -> Vec<Finding> {
    let mut waiting = delays::waiting(why, of.metrics);
    let dominates = |finding: &Finding| match finding {
        Finding::Transfer { dominates, .. } | Finding::SmallMessages { dominates, .. } => {
            *dominates
        }
        _ => false,
    };
    let by_files = waiting.iter().any(|finding| matches!(finding, Finding::SerialIo(_)));
    let in_turn = in_turn(of).filter(|_| !by_files);
    let dominates = transfer.iter().any(dominates);
    if dominates || in_turn.is_some() {
        waiting.truncate(1);
    }
    // In a chain of ranks that wait in turn, the first is as little to blame as the others. Ranks whose transfers cost
    // more than that only exchange messages in turn.
    let factors = of.serialisation_and_transfer();
    let costs_less = factors.is_some_and(|(serialisation, transfer)| serialisation <= transfer);
    waiting.extend(in_turn.filter(|_| !dominates && costs_less));
    waiting
}

/// Ranks that compute nearly equally long and wait all the same, as in a pipeline.
fn in_turn(of: &Evidence) -> Option<Finding> {
    let why = of.why()?;
    let balance = of.metrics.efficiency?.load_balance?;
    let (serialisation, _) = of.serialisation_and_transfer()?;
    let is_balanced = balance >= BALANCED || serialisation < balance.powi(MUCH_MORE);
    (is_balanced && serialisation < NOTABLE_SERIALISATION).then(|| Finding::InTurn {
        serialisation,
        places: delays::longest_wait_places(&why),
        at_barrier: delays::waits_at_repeated_barrier(&why),
    })
}
