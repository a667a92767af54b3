//! Words findings: one sentence each, if any. What is found, and in which order, is decided in [`crate::diagnosis`].

mod computation;
mod cores;
mod endings;
mod files;
mod measurement;
mod next;
mod transfer;
mod waiting;

#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod next_tests;

use cores::Lack;
pub(super) use cores::unequal_pinning;
pub(super) use next::{after_causes, next_lines, next_step};

use serde::Serialize;

use crate::diagnosis::{Diagnosis, Figures, Finding, NotRecorded};
use crate::metrics::Unfinished;
use crate::trace::NotBegun;

use super::context::{number_list, plural, range_list};
use super::quantity::percent;
use super::unfinished;

/// The sentences of all findings, in order.
pub(crate) fn sentences(diagnosis: &Diagnosis) -> Vec<String> {
    let unfinished = diagnosis.of.metrics.unfinished.as_ref();
    diagnosis.findings.iter().filter_map(|finding| sentence(finding, unfinished)).collect()
}

/// What is said of a run before figures that say little because of it; empty if they are valid.
pub(crate) fn doubts(diagnosis: &Diagnosis, figures: Figures) -> Vec<String> {
    match diagnosis.invalidated_by(figures) {
        None => Vec::new(),
        // How it ended says why calls never returned.
        Some(Finding::Stuck) => sentences(diagnosis),
        Some(finding) => {
            sentence(finding, diagnosis.of.metrics.unfinished.as_ref()).into_iter().collect()
        }
    }
}

/// The sentences of the findings that make figures invalid, in order; of a run that got stuck, how it ended as well.
pub(crate) fn all_doubts(diagnosis: &Diagnosis) -> Vec<String> {
    if diagnosis.findings.contains(&Finding::Stuck) {
        return sentences(diagnosis);
    }
    let unfinished = diagnosis.of.metrics.unfinished.as_ref();
    let invalidate = diagnosis.findings.iter().filter(|one| !one.invalidates().is_empty());
    invalidate.filter_map(|finding| sentence(finding, unfinished)).collect()
}

/// The sentence of a finding; `None` if it is told by others. Where ranks stood that did not finish is part of some.
pub(crate) fn sentence(finding: &Finding, unfinished: Option<&Unfinished>) -> Option<String> {
    Some(match finding {
        Finding::DamagedFiles { files: 1 } => "1 file is damaged (see DAMAGE).".to_owned(),
        Finding::DamagedFiles { files } => {
            format!("{} are damaged (see DAMAGE).", plural(*files, "file"))
        }
        Finding::NotBegun { ranks, world } => not_begun(ranks, *world),
        Finding::RanksMissing { count, ranks, world } => format!(
            "No readable trace for {count} of {} ({}); all figures cover the remaining ranks only.",
            plural(*world as usize, "rank"),
            range_list(ranks.iter().copied())
        ),
        Finding::EndRequested(request) => endings::request(request),
        Finding::Aborted { rank, at_s, ranks, exit_code } => {
            endings::aborted((*rank, *at_s), *ranks, *exit_code)
        }
        Finding::Ended { end, after_finalize, or_signal } => {
            endings::ended(*end, *after_finalize, *or_signal)
        }
        Finding::Died { rank, at_s, code, signal, first, launcher } => {
            let when = (*at_s, *first);
            endings::died(*rank, when, (*code, *signal), *launcher)
        }
        Finding::Crashed { rank, waiting } => endings::crashed(*rank, waiting, unfinished?)?,
        Finding::Unfinished { ranks, over } => endings::positions(ranks, *over, unfinished?)?,
        Finding::Deadlock { .. } | Finding::Hang { .. } => unfinished::short(finding, unfinished?)?,
        // How it ended says why.
        Finding::Stuck => return None,
        Finding::Measurement(found) => measurement::sentence(found),
        Finding::LackOfCores {
            decisive,
            share,
            shown_by,
            while_computing_s,
            ranks_missing,
            ..
        } => {
            let (share, while_computing_s) = (*share, *while_computing_s);
            let ranks_missing = *ranks_missing;
            let lack = Lack { shown_by, share, while_computing_s, ranks_missing };
            let lack = cores::lack_of_cores(&lack)?;
            match decisive {
                true => format!("{lack} The other figures are unreliable."),
                false => lack,
            }
        }
        Finding::UnequalPinning { groups } => {
            format!("Ranks are {}.", unequal_pinning(groups))
        }
        Finding::Efficiency(efficiency) => computation::efficiency(efficiency),
        Finding::WaitingNotRecorded { because } => {
            let why = match because {
                NotRecorded::OnlyTotals => "is unknown: calls were kept only as totals",
                NotRecorded::MostlyTotals => {
                    "is unknown for most calls: they were kept only as totals"
                }
                NotRecorded::Level0 => "is unknown: calls were recorded without partners (level 0)",
            };
            format!("Who waited for whom {why}.")
        }
        Finding::Transfer { share, at, .. } => transfer::transfer(*share, at.as_ref()),
        Finding::SmallMessages { calls, mean_bytes, share, at, .. } => {
            transfer::small_messages((*calls, *mean_bytes), *share, at.as_ref())
        }
        Finding::NoOverlap(found) => transfer::no_overlap(found),
        Finding::Placement(found) => transfer::placement(found),
        Finding::Waiting(found) => waiting::waiting(found),
        Finding::UncertainWaits { seconds } => waiting::uncertain(*seconds),
        Finding::SlowIterations { slow, of, slowest, slowest_s, median_s } => {
            waiting::slow_iterations((*slow, *of), *slowest, (*slowest_s, *median_s))
        }
        Finding::SlowHost(found) => waiting::slow_host(found),
        Finding::Delay(delay) => waiting::delay(delay),
        Finding::SerialIo(found) => waiting::serial_io(found),
        Finding::Blocked(found) => waiting::blocked(found),
        Finding::NoMainDelay { share } => {
            format!("No single delay accounts for more than {} of the wait time.", percent(*share))
        }
        Finding::Unattributed { share } => {
            format!("{} of the wait time has no known cause.", percent(*share))
        }
        Finding::InTurn { serialisation, places, .. } => waiting::in_turn(*serialisation, places),
        Finding::Overlap(saves) => transfer::overlap(saves),
        Finding::LosesMost(loss) => computation::loses_most(loss),
        Finding::SmallFileCalls(found) => files::small_calls(found),
        Finding::ReadAgain(found) => files::read_again(found),
        Finding::UnalignedReads(found) => files::unaligned_reads(found),
        Finding::FileOfAll(found) => files::file_of_all(found),
        Finding::SlowFiles(found) => files::slow_files(found),
        Finding::ThreadsShareCores(found) => cores::threads_share_cores(found),
        Finding::Asleep(asleep) => computation::asleep(asleep),
    })
}

fn not_begun(ranks: &[(u32, NotBegun)], world: u32) -> String {
    let who = match ranks {
        [(rank, state)] => format!("Rank {rank} {state}"),
        _ => format!(
            "{} of {} never returned from MPI_Init ({})",
            ranks.len(),
            plural(world as usize, "rank"),
            number_list(ranks.iter().map(|(rank, _)| *rank))
        ),
    };
    format!("{who}; all figures cover the remaining ranks only.")
}

/// What stands beside figures that a finding makes invalid.
pub(crate) fn mark(diagnosis: &Diagnosis, figures: Figures) -> Option<&'static str> {
    diagnosis.invalidated_by(figures).map(mark_of)
}

/// What stands beside figures that this finding makes invalid.
pub(crate) fn mark_of(finding: &Finding) -> &'static str {
    match finding {
        Finding::LackOfCores { .. } => "unreliable: ranks lacked cores",
        Finding::Stuck => "unreliable: calls never returned",
        _ => "unreliable: see above",
    }
}

/// Lines with figures, with a mark if a finding makes them invalid.
pub(crate) fn marked(diagnosis: &Diagnosis, figures: Figures, lines: Vec<String>) -> Vec<String> {
    marked_by(diagnosis.invalidated_by(figures), lines)
}

/// Lines with figures, with a mark if this finding makes them invalid.
pub(crate) fn marked_by(finding: Option<&Finding>, mut lines: Vec<String>) -> Vec<String> {
    let mark = finding.map(mark_of).filter(|_| !lines.is_empty());
    lines.extend(mark.map(|mark| format!("({mark})")));
    lines
}

/// A finding, with what it makes invalid: keys of all kinds, and of each.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindingPart<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    /// As on the screen; null: other sentences state it.
    sentence: Option<String>,
    /// The figures that it makes unreliable. Findings about them are left out.
    invalidates: &'static [Figures],
}

impl<'a> FindingPart<'a> {
    /// All findings, in order.
    pub fn all(diagnosis: &'a Diagnosis) -> Vec<Self> {
        Self::from_findings(&diagnosis.findings, diagnosis.of.metrics.unfinished.as_ref())
    }

    /// Findings, with where the ranks stood that did not finish.
    pub fn from_findings(findings: &'a [Finding], unfinished: Option<&Unfinished>) -> Vec<Self> {
        let part = |finding: &'a Finding| Self {
            finding,
            sentence: sentence(finding, unfinished),
            invalidates: finding.invalidates(),
        };
        findings.iter().map(part).collect()
    }
}
