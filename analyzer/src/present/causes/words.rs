//! Words for contexts, for what made ranks late, and for what is not known.

use crate::causes::{Causes, Context, NO_CONTEXT, PARALLEL_REGION, Unknown};
use crate::diagnosis::{Undivided, Why};
use crate::metrics::{ComputeMode, OwnTime};
use crate::present::context::thread;
use crate::present::quantity::{count, percent, seconds};
use crate::replay::NoIdeal;
use crate::trace::own_program::PATHS_LEVEL;

use super::places::{brief_site, brief_stretch, call_site, short_site};

/// A context in a table: `heat.c:42-61`.
pub(in crate::present) fn brief(found: &Context) -> String {
    match found {
        Context::Between(Some(from), Some(to)) => brief_stretch(from, to),
        Context::Between(None, Some(to)) => format!("before {}", short_site(to)),
        Context::Between(Some(from), None) => format!("after {}", short_site(from)),
        Context::Transfer(site) => brief_site(site),
        Context::InCall(site, outer) => format!("{}, {}", brief_site(site), brief(outer)),
        other => context(other),
    }
}

/// A context in a sentence: `between MPI_Recv at … and MPI_Send at …`.
pub fn context(context: &Context) -> String {
    match context {
        Context::Waiting => "waiting".to_owned(),
        Context::WaitingForUnknown => "waiting, delaying rank unknown".to_owned(),
        Context::Recorder => "the recorder".to_owned(),
        Context::Region(name) => format!("region {name}"),
        Context::Between(None, None) => "the whole run".to_owned(),
        Context::Between(None, Some(to)) => format!("before {}", call_site(to)),
        Context::Between(Some(from), None) => format!("after {}", call_site(from)),
        Context::Between(Some(from), Some(to)) => {
            let (from, to) = (call_site(from), call_site(to));
            match from == to {
                true => format!("between one {from} and the next"),
                false => format!("between {from} and {to}"),
            }
        }
        Context::InCall(site, outer) => {
            let the = if site.function == PARALLEL_REGION { "the " } else { "" };
            format!("in {the}{} {}", call_site(site), where_phrase(outer))
        }
        Context::Transfer(site) => format!("inside {}", call_site(site)),
        Context::Totals => "calls kept only as totals".to_owned(),
    }
}

/// A context's kind of time, as documents name it.
pub(super) fn kind(context: &Context) -> &'static str {
    match context {
        Context::Region(_) | Context::Between(..) | Context::InCall(..) => "computation",
        Context::Transfer(_) | Context::Totals => "transfer",
        Context::Recorder => "recorder",
        Context::Waiting | Context::WaitingForUnknown => "waiting",
    }
}

/// `rank 2`, with its thread unless that is the first.
pub(super) fn line(causes: &Causes, line: u32) -> String {
    let line = causes.lines.all.get(line as usize);
    line.map_or_else(|| "-".to_owned(), |line| thread(line.rank, line.thread))
}

/// The call site of waiting calls.
pub(super) fn place(causes: &Causes, place: u32) -> String {
    match place {
        NO_CONTEXT => "-".to_owned(),
        place => brief(causes.contexts.get(place)),
    }
}

/// What a rank does longer where its own code takes longer.
pub(in crate::present) fn own_verb(own: OwnTime) -> &'static str {
    match own {
        OwnTime::Computes => "computes",
        OwnTime::Asleep => "sleeps or is blocked",
        OwnTime::Unclear => "is outside MPI",
    }
}

pub(super) fn own_verb_past(own: OwnTime) -> &'static str {
    match own {
        OwnTime::Computes => "computed",
        OwnTime::Asleep => "slept or was blocked",
        OwnTime::Unclear => "was outside MPI",
    }
}

/// Where a context is, as the end of a sentence: `in region smooth`, `between …`.
pub(in crate::present) fn where_phrase(found: &Context) -> String {
    match found {
        Context::Region(_) | Context::Recorder | Context::Totals => {
            format!("in {}", context(found))
        }
        Context::Between(None, None) => "from begin to end".to_owned(),
        found => context(found),
    }
}

pub(super) fn unknown(what: Unknown) -> String {
    match what {
        Unknown::NoAttributes => {
            "who waited for whom: the run was recorded at level 0, which keeps no peers and \
             communicators (record with --level 1)"
                .to_owned()
        }
        Unknown::MissingRanks => "waits for ranks without a file".to_owned(),
        Unknown::Unaligned => {
            "waits between ranks whose clocks are not aligned: their order is unknown".to_owned()
        }
        Unknown::IncompleteCollectives(number) => {
            format!("waits in {} collective operations with missing members", count(number))
        }
        Unknown::Neighbourhoods(number) => {
            format!(
                "waits in {} neighbourhood operations: the neighbours were not recorded",
                count(number)
            )
        }
        Unknown::Violations(number) => {
            format!(
                "waits in {} calls that, by the clocks, returned before their partners began",
                count(number)
            )
        }
        Unknown::Short { count: number, sum_ns, below_ns } => {
            format!(
                "causes of {} waits shorter than {} ({} at most): too numerous to analyse, counted as transfer",
                count(number),
                seconds(below_ns as f64 * 1e-9),
                seconds(sum_ns as f64 * 1e-9)
            )
        }
        Unknown::WrongOrder => {
            "whether messages were received in the wrong order: too many to check".to_owned()
        }
        Unknown::TooLong(number) => {
            format!(
                "causes of {} waits: the ranks' last synchronisation point is too far back to search",
                count(number)
            )
        }
        Unknown::Cut(number) => {
            format!("causes of {} waits whose order contradicts the clocks", count(number))
        }
        Unknown::Totals => "waits in calls kept only as totals".to_owned(),
        Unknown::OneSided(number) => {
            format!(
                "waits in {} one-sided calls: their window, group or lock type was not recorded",
                count(number)
            )
        }
        Unknown::MadeByGroup => {
            "waits where a group made a communicator: its members were not recorded".to_owned()
        }
    }
}

/// Why communication is not divided into serialisation and transfer; `None` if that was not asked for.
pub(in crate::present) fn undivided(why: Undivided) -> Option<String> {
    let because = match why {
        Undivided::NoIdeal(why) => no_ideal(why)?,
        Undivided::Impossible => {
            "the replay on an ideal network gave an impossible time".to_owned()
        }
        Undivided::Mode(_) => "a replay covers all code outside MPI".to_owned(),
    };
    Some(format!("serialisation and transfer, because {because}"))
}

fn no_ideal(why: NoIdeal) -> Option<String> {
    Some(match why {
        NoIdeal::NotAsked => return None,
        NoIdeal::TooManyCalls(calls) => {
            format!("{} calls are replayed by `gammachi whatif` only", count(calls))
        }
        NoIdeal::NotAside(calls) => {
            format!("{} calls are replayed by `gammachi why` only", count(calls))
        }
        NoIdeal::NotReplayable(why) => {
            format!("the run cannot be replayed: {}", crate::present::whatif::words::reason(why))
        }
        NoIdeal::Off(error) => {
            let more = if error.abs() > 1.0 { "more than " } else { "" };
            let error = percent(error.abs().min(1.0));
            format!("the replay differs from the recorded time by {more}{error}")
        }
        NoIdeal::UnequallyOften => "the ranks enter that part unequally often".to_owned(),
    })
}

/// Why places are not those of the Python program, if mpi4py makes the calls.
pub(super) fn no_python_lines(why: &Why) -> Option<String> {
    let is_mpi4py = |context: &Context| match context {
        Context::Transfer(site) => site.caller.is_none() && site.module.contains("/mpi4py/"),
        _ => false,
    };
    let has_no_paths = why.run.ranks.iter().any(|rank| rank.file.fixed.level < PATHS_LEVEL);
    (has_no_paths && why.causes.contexts.all.iter().any(is_mpi4py)).then(|| {
        "which lines of the Python program call MPI: places are inside mpi4py (recording with `--level 2` \
         names them)"
            .to_owned()
    })
}

/// What the tables of regions and phases count, where a report's other figures count less.
pub(in crate::present) fn counted(causes: &Causes) -> Option<&'static str> {
    (causes.compute != ComputeMode::Outside)
        .then_some("all time outside MPI and the recorder counts as computing here")
}

/// The same beside the keys of documents.
pub(in crate::present) fn counted_note(causes: &Causes) -> Option<String> {
    counted(causes).map(|what| format!("regions, phases: {what}"))
}

/// Ticks as seconds with a unit.
pub(super) fn seconds_of(why: &Why, ticks: i64) -> String {
    seconds(why.causes.clock.seconds(ticks))
}

/// A part of a whole, in percent.
pub(super) fn share(part: i64, whole: i64) -> String {
    if whole > 0 { percent(part as f64 / whole as f64) } else { "-".to_owned() }
}

pub(super) fn missing(why: &Why) -> Vec<String> {
    let unknown = why.causes.unknown.iter().map(|what| unknown(*what));
    let unknown = unknown.chain(why.ideal.err().and_then(|why| undivided(Undivided::NoIdeal(why))));
    unknown.chain(no_python_lines(why)).collect()
}
