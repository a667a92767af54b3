//! How a job ended, from the launcher's exit code and the ranks' positions.

use std::path::Path;

use crate::metrics::{CauseKind, ThreadPosition, Unfinished, UnfinishedRank, WaitsFor};
use crate::trace::ProcessState;
use crate::trace::ended_ranks::EndedRank;
use crate::trace::run_json::{Exit, RunJson};

use super::evidence::Evidence;
use super::finding::{End, Finding, Request};

/// Signals caused by a fault of the process itself.
const CRASH_SIGNALS: [u8; 6] = [4, 6, 7, 8, 11, 5];

const SIGKILL: u8 = 9;

/// Exit code of `timeout` after it ended its command.
const TIMED_OUT: u8 = 124;

/// How the job ended, and who waited for whom at its end, the likelier reason first.
pub(super) fn endings(of: &Evidence) -> Vec<Finding> {
    let unfinished = of.metrics.unfinished.as_ref();
    let description = of.run.description.as_ref();
    let exit = description.and_then(|description| description.exit);
    let asked = description.and_then(request);
    let is_asked = asked.is_some();
    let hang = unfinished.and_then(hang);
    if let Some(aborted) = unfinished.and_then(|unfinished| aborted(unfinished, exit)) {
        return asked.into_iter().chain([aborted]).chain(hang).collect();
    }
    let end = exit.and_then(|exit| end_of(exit, of));
    let died = died(of, end);
    let knows_who = died.is_some();
    let crashed = matches!(end, Some(End::Signal { signal }) if CRASH_SIGNALS.contains(&signal));
    let deadlock = unfinished.is_some_and(|u| u.deadlocks.iter().any(|d| d.certain));
    // A process that is killed so had no time to ask others to end, whoever waited for it.
    let killed = matches!(end, Some(End::Signal { signal: SIGKILL }));
    let ended_early = crashed || killed || knows_who || matches!(end, Some(End::ExitCode { .. }));
    let ended_early = ended_early || is_asked && !has_finished(of);
    let known = unfinished.filter(|_| !deadlock);
    let crashed = known.filter(|_| crashed && !knows_who).and_then(crashed_rank);
    // Who crashed also tells for whom the others waited.
    let hang = hang.filter(|_| crashed.is_none());
    let ended = end.map(|end| Finding::Ended {
        end,
        after_finalize: has_finished(of),
        or_signal: signal_of_mpich(end, of),
    });
    let positions = crashed.or_else(|| known.and_then(|known| positions(known, of)));
    let ended = died.or(asked).or(ended);
    let (first, second) = if ended_early && !deadlock { (ended, hang) } else { (hang, ended) };
    [first, second, positions].into_iter().flatten().collect()
}

/// The rank that died first, if its end was seen and is the reason for the others'.
fn died(of: &Evidence, end: Option<End>) -> Option<Finding> {
    let description = of.run.description.as_ref()?;
    let ended = &description.ended_ranks;
    if matches!(end, Some(End::LauncherKilled { .. } | End::TimedOut)) {
        return None;
    }
    let unfinished = of.metrics.unfinished.as_ref();
    let seen = |rank: &UnfinishedRank| ended.iter().any(|ended| ended.rank == rank.rank);
    let all_seen =
        of.run.missing.is_empty() && unfinished.is_none_or(|of| of.ranks.iter().all(seen));
    let one = match unfinished {
        // One of another host may have been before it.
        Some(_) => EndedRank::first(ended).filter(|one| all_seen || !one.may_be_by_launcher()),
        // If several failed, the program did, not a rank.
        None => {
            ended.first().filter(|one| one.finalized && ended.len() == 1 && of.run.world_size > 1)
        }
    }?;
    let asked_ns = description
        .termination
        .as_ref()
        .map(|asked| description.start.unix_ns.saturating_add((asked.after_s * 1e9) as u64));
    let waited_for = unfinished.is_some_and(|of| of.causes.iter().any(|by| by.rank == one.rank));
    let is_reason = one.code != Some(0) || waited_for;
    let at_s = of.metrics.ranks.iter().find(|rank| rank.rank == one.rank)?.end_s;
    let exit = description.exit.filter(|exit| exit.signal.is_none() && exit.code != 0);
    let launcher = exit.map(|exit| exit.code).filter(|code| Some(*code) != one.code);
    (is_reason && asked_ns.is_none_or(|asked_ns| one.at.unix_ns < asked_ns)).then(|| {
        Finding::Died {
            rank: one.rank,
            at_s: (!one.finalized).then_some(at_s),
            code: one.code,
            signal: one.signal,
            first: all_seen && ended.iter().filter(|ended| !ended.finalized).count() > 1,
            launcher,
        }
    })
}

/// How the program ended; `None` if normally, or in an unknown way.
fn end_of(exit: Exit, of: &Evidence) -> Option<End> {
    let argv = of.run.description.as_ref().and_then(|description| description.argv.first());
    let timeout =
        argv.is_some_and(|word| Path::new(word).file_name().is_some_and(|name| name == "timeout"));
    Some(match (exit.signal, exit.code) {
        (Some(signal), _) => End::LauncherKilled { signal },
        (None, 0) => return None,
        (None, TIMED_OUT) if timeout => End::TimedOut,
        (None, code @ 129..=192) => End::Signal { signal: code - 128 },
        (None, code) => End::ExitCode { code },
    })
}

/// Who asked the run to end.
fn request(run: &RunJson) -> Option<Finding> {
    let received = run.termination.clone()?;
    let launcher = run.argv.first().map_or("", String::as_str);
    let launcher = Path::new(launcher).file_name().unwrap_or_default();
    // How much later it ended tells whether the signal was the reason.
    let later_s = run.duration_s.map(|duration_s| (duration_s - received.after_s).max(0.0));
    Some(Finding::EndRequested(Request {
        received,
        launcher: launcher.to_string_lossy().into_owned(),
        later_s,
        exit: run.exit,
    }))
}

/// The signal of a crash that an exit code may stand for: MPICH's launcher gives the bare number.
fn signal_of_mpich(end: End, of: &Evidence) -> Option<u8> {
    let End::ExitCode { code } = end else { return None };
    let first = of.run.ranks.first();
    let is_mpich = first.is_some_and(|rank| rank.file.header.mpi_family == "mpich");
    let is_signal = code == SIGKILL || CRASH_SIGNALS.contains(&code);
    (is_mpich && is_signal && !has_finished(of)).then_some(code)
}

/// Whether every rank finalized MPI.
fn has_finished(of: &Evidence) -> bool {
    of.metrics.unfinished.is_none() && of.run.missing.is_empty()
}

/// The ranks that called MPI_Abort.
fn aborted(unfinished: &Unfinished, exit: Option<Exit>) -> Option<Finding> {
    let since = |rank: &UnfinishedRank| {
        let aborting = |thread: &&ThreadPosition| thread.waits_for == Some(WaitsFor::Aborts);
        let call = rank.threads.iter().find(aborting)?.last_calls.last()?;
        Some((call.begin_s, rank.rank))
    };
    let all: Vec<(f64, u32)> = unfinished.ranks.iter().filter_map(since).collect();
    let (at_s, rank) = all.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let code = exit.filter(|exit| exit.code != 0 && exit.signal.is_none()).map(|exit| exit.code);
    Some(Finding::Aborted { rank, at_s, ranks: all.len(), exit_code: code })
}

/// The rank that probably crashed: the only one outside MPI, for which others waited.
fn crashed_rank(unfinished: &Unfinished) -> Option<Finding> {
    let mut outside = unfinished.causes.iter().filter(|cause| cause.kind == CauseKind::OutsideMpi);
    let (cause, None) = (outside.next()?, outside.next()) else { return None };
    unfinished.rank(cause.rank)?;
    Some(Finding::Crashed { rank: cause.rank, waiting: cause.waiting.0.clone() })
}

/// Where the ranks are that did not finish.
fn positions(unfinished: &Unfinished, of: &Evidence) -> Option<Finding> {
    let known = unfinished.ranks.iter().filter(|rank| rank.known).map(|rank| rank.rank);
    let ranks: Vec<u32> = known.collect();
    let ended = of.run.description.as_ref().is_some_and(|description| description.end.is_some());
    let gone = unfinished.ranks.iter().all(|rank| rank.process == ProcessState::Gone);
    let over = !unfinished.running && (ended || gone);
    (!ranks.is_empty()).then_some(Finding::Unfinished { ranks, over })
}

/// The gravest reason why ranks do not go on: a circle, or a rank that does not come.
fn hang(unfinished: &Unfinished) -> Option<Finding> {
    if let Some(deadlock) = unfinished.deadlocks.first() {
        let mut ranks = deadlock.ranks.clone();
        ranks.sort_unstable();
        return Some(Finding::Deadlock { ranks, certain: deadlock.certain });
    }
    let cause = unfinished.causes.first()?;
    Some(Finding::Hang { by: cause.rank, waiting: cause.waiting.0.clone() })
}
