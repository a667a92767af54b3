//! The screen of `gammachi top`.

use std::collections::BTreeMap;

use crate::live::{
    Alarm, LiveRun, MemoryGrowth, Moment, RankNow, RankState, Silent, SlowIteration, Unsure,
};
use crate::present::blocks::Blocks;
use crate::present::context::{number_list, plural};
use crate::present::quantity::{percent, seconds, significant, with_prefix};
use crate::present::table;
use crate::tables::{Cell, Table};
use crate::trace::snapshot::Reason;

/// Most ranks that are listed.
const MAX_ROWS: usize = 20;
/// Share of the time that ranks wait for a core from which on the sentence says so.
const NOTABLE_WAIT: f64 = 0.05;

/// What the ranks do.
pub fn screen(run: &LiveRun, moment: &Moment, alarms: &[Alarm], colour: bool) -> String {
    let program = run.ranks().next().map_or("", |rank| rank.program());
    let program = program.rsplit('/').next().unwrap_or(program);
    let ranks = plural(moment.ranks.len(), "rank");
    let head = format!("{program} | {ranks} here | {}", run.directory.display());
    let mut blocks = Blocks::headed(&head, &sentence(moment), colour);
    for alarm in alarms {
        blocks.sentence("ALARM", &alarm_text(alarm, moment.at_s));
    }
    let (rows, left_out) = worst(&moment.ranks);
    let mut lines = table::lines(&ranks_table(&rows, moment.at_s));
    if left_out > 0 {
        lines.push(format!("{} (--once --json lists all)", plural(left_out, "more rank")));
    }
    blocks.block("RANKS", lines);
    if let Some(note) = elsewhere(run) {
        blocks.note(&note);
    }
    blocks.finish()
}

fn sentence(moment: &Moment) -> String {
    if moment.ranks.is_empty() {
        return "No rank of this run is on this host.".into();
    }
    if moment.is_over {
        return "All ranks have finished; gammachi report shows what the run did.".into();
    }
    let count = |state| moment.ranks.iter().filter(|of| of.state == state).count();
    let states = [
        (RankState::Computing, "computing"),
        (RankState::InMpi, "in MPI"),
        (RankState::Stopped, "stopped"),
        (RankState::Dead, "dead"),
        (RankState::Finished, "finished"),
    ];
    let states = states.map(|(state, word)| (count(state), word)).into_iter();
    let states =
        states.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let states = states.collect::<Vec<_>>().join(", ");
    let efficiency =
        moment.efficiency().map(|share| format!("; {share:.2} efficient in the last 10 s"));
    let efficiency = efficiency.unwrap_or_default();
    let iterations = moment.iterations.map_or_else(String::new, |of| match of.per_s >= 1.0 {
        true => format!("; {} iterations per second", significant(of.per_s, 3)),
        false => format!("; {} per iteration", seconds(of.per_s.recip())),
    });
    let short = moment.waits_for_core().filter(|share| *share >= NOTABLE_WAIT);
    let short = short.map_or_else(String::new, |share| {
        format!(" Ranks wait for a core for {} of the time.", percent(share))
    });
    format!("After {}: {states}{efficiency}{iterations}.{short}", seconds(moment.at_s))
}

/// An alarm at a moment.
pub fn alarm_text(alarm: &Alarm, at_s: f64) -> String {
    let rank = alarm.rank.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
    let lasted = alarm.since_s.map(|since_s| seconds((at_s - since_s).max(0.0)));
    let ago =
        || lasted.as_ref().map_or(String::new(), |lasted| format!(", last seen {lasted} ago"));
    let long = || lasted.as_ref().map_or(String::new(), |lasted| format!(" for {lasted}"));
    match alarm.kind {
        Reason::Dead => match &alarm.unsure {
            Some(unsure) => unsure_text(unsure),
            None => format!("{rank} died before MPI_Finalize{}", ago()),
        },
        Reason::Stopped => format!("{rank} is stopped by a signal{}", ago()),
        Reason::Deadlock => {
            format!("deadlock: {rank} and others have waited for each other{}", long())
        }
        Reason::Outside => {
            format!("all others have waited for {rank}, which is outside MPI,{}", long())
        }
        Reason::Exit => "the job has ended before all ranks returned from MPI_Finalize".into(),
        Reason::Signal => "SIGUSR1 was received".into(),
        Reason::Asked => "a snapshot was asked for".into(),
        Reason::Slow => format!("an iteration took far longer than usual; {rank} delayed it"),
        Reason::Memory => format!("memory is about to be used up; {rank} grows most"),
        Reason::Limit => "the batch job is about to end".into(),
        Reason::Vanished => {
            let host = alarm.silent.as_ref().map_or("a host".to_owned(), silent_text);
            format!("no rank has begun or ended a call{}; {host}", long())
        }
        Reason::NoProgress => {
            let cause = alarm.rank.map(|_| format!("; in the end all wait for {rank}"));
            format!("no rank has begun or ended a call{}{}", long(), cause.unwrap_or_default())
        }
    }
}

/// Deaths on several hosts, of which the first is not known.
fn unsure_text(unsure: &Unsure) -> String {
    let first = match &unsure.ranks[..] {
        [] => "a rank died before MPI_Finalize".to_owned(),
        [one] => format!("rank {one} died before MPI_Finalize"),
        ranks => format!(
            "ranks died before MPI_Finalize, first one of {}",
            number_list(ranks.iter().copied())
        ),
    };
    match &unsure.hosts[..] {
        [] => format!("{first}; who died before all others is not known"),
        hosts => format!(
            "{first}; nobody watches {}, whose ranks may have died before",
            hosts.join(", ")
        ),
    }
}

/// An iteration that took far longer than usual.
pub fn slow_text(slow: &SlowIteration) -> String {
    let SlowIteration { length_s, usual_s, rank, waited_for_core, .. } = *slow;
    let why = match (rank, waited_for_core) {
        (Some(rank), true) => format!("rank {rank} waited for a core"),
        (Some(rank), false) => format!("rank {rank} took longer outside MPI"),
        (None, _) => "no rank took that much longer outside MPI".to_owned(),
    };
    let times = length_s / usual_s.max(f64::MIN_POSITIVE);
    format!(
        "an iteration took {}, {times:.1} times as long as usual ({}): {why}",
        seconds(length_s),
        seconds(usual_s)
    )
}

/// Memory that will be used up.
pub fn memory_text(growth: &MemoryGrowth) -> String {
    let MemoryGrowth { rank, bytes_per_s, left_bytes } = *growth;
    let who = rank.map_or("several ranks".to_owned(), |rank| format!("most by rank {rank}"));
    format!(
        "memory grows by {} a second, {who}; the {} that are left last for {}",
        with_prefix(bytes_per_s) + "B",
        with_prefix(left_bytes as f64) + "B",
        seconds(growth.lasts_s())
    )
}

/// A host that is not heard of.
pub fn silent_text(silent: &Silent) -> String {
    let Silent { host, ranks, since_s } = silent;
    let ranks = match &ranks[..] {
        [one] => format!("rank {one}"),
        _ => format!("ranks {}", number_list(ranks.iter().copied())),
    };
    format!("host {host} with {ranks} has not been heard of for {}", seconds(*since_s))
}

/// Those that have lost most, and how many others there are.
fn worst(ranks: &[RankNow]) -> (Vec<&RankNow>, usize) {
    let mut rows: Vec<&RankNow> = ranks.iter().collect();
    let grave = |of: &RankNow| matches!(of.state, RankState::Dead | RankState::Stopped);
    let share = |of: &RankNow| of.efficiency.unwrap_or(1.0);
    rows.sort_by(|a, b| grave(b).cmp(&grave(a)).then(share(a).total_cmp(&share(b))));
    let left_out = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    rows.sort_by_key(|of| of.rank);
    (rows, left_out)
}

fn ranks_table(rows: &[&RankNow], at_s: f64) -> Table {
    let mut table = Table::default();
    let mut add = |key, title, cell: &dyn Fn(&RankNow) -> Cell| {
        table.add(key, title, rows.iter().map(|of| cell(of)));
    };
    let share = |share: Option<f64>| share.map_or(Cell::Unknown, Cell::Share);
    add("rank", "rank", &|of| Cell::Count(of.rank.into()));
    add("state", "state", &|of| {
        Cell::Text(match (of.state, &of.call) {
            (RankState::InMpi, Some(call)) => format!("in {call}"),
            (RankState::InMpi, None) => "in MPI".into(),
            (RankState::Computing, _) => "computing".into(),
            (RankState::Stopped, _) => "stopped".into(),
            (RankState::Dead, _) => "dead".into(),
            (RankState::Finished, _) => "finished".into(),
        })
    });
    add("for_s", "for", &|of| match (of.state, of.since_s) {
        (RankState::Finished, _) => Cell::Nothing,
        (_, Some(since_s)) => Cell::Seconds((at_s - since_s).max(0.0)),
        (_, None) => Cell::Unknown,
    });
    add("waits_for", "waits for", &|of| match (&of.waits_for, &of.call) {
        (Some(ranks), _) if !ranks.is_empty() => Cell::Text(number_list(ranks.iter().copied())),
        (_, Some(_)) => Cell::Unknown,
        _ => Cell::Nothing,
    });
    add("efficiency", "computing", &|of| share(of.efficiency));
    add("waits_for_core", "waits for a core", &|of| share(of.waits_for_core));
    table
}

fn elsewhere(run: &LiveRun) -> Option<String> {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    run.elsewhere().for_each(|host| *hosts.entry(host).or_default() += 1);
    if hosts.is_empty() {
        return None;
    }
    let hosts = hosts.iter().map(|(host, ranks)| format!("{} on {host}", plural(*ranks, "rank")));
    let hosts = hosts.collect::<Vec<_>>().join(", ");
    Some(format!("{hosts}: only ranks of this host can be followed; run gammachi top there, too"))
}
