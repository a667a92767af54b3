//! Sentences on waiting.

use crate::causes::CallSite;
use crate::diagnosis::finding::{
    Blocked, Delay, Does, LongerFunction, SerialIo, SlowHost, Waiting,
};
use crate::metrics::OwnTime;
use crate::present::causes::{places, words};
use crate::present::code_place::source;
use crate::present::context::{number_list, plural};
use crate::present::quantity::{percent, seconds, significant};

/// Part of a delay from which it lies in one function.
const NEARLY_ALL: f64 = 0.9;

pub(super) fn waiting(found: &Waiting) -> String {
    let Waiting { share, seconds: waiting_s, at_least, at_most, .. } = found;
    if *waiting_s <= 0.0 {
        return "No rank is known to have waited for another.".to_owned();
    }
    let of_time = percent(*share);
    match at_most {
        None => {
            let at_least = if *at_least { "at least " } else { "" };
            format!("The ranks wait for {at_least}{of_time} of their time.")
        }
        Some((most, below_s)) => format!(
            "The ranks wait for at least {of_time} of their time, and for at most {}: waits shorter than {} were too \
             numerous to analyse.",
            percent(*most),
            seconds(*below_s)
        ),
    }
}

pub(super) fn uncertain(of_short_s: f64) -> String {
    format!(
        "Delays cannot be attributed: another {} is in waits shorter than the clock uncertainty.",
        seconds(of_short_s)
    )
}

pub(super) fn slow_iterations(
    (slow, of): (usize, usize),
    slowest: usize,
    (slowest_s, median_s): (f64, f64),
) -> String {
    format!(
        "Most of that is due to {} of {of}: #{slowest} takes {}, the median {}.",
        plural(slow, "slow iteration"),
        seconds(slowest_s),
        seconds(median_s)
    )
}

pub(super) fn delay(delay: &Delay) -> String {
    let who = |rank: &str| numbered(rank, delay.rank, delay.thread);
    let others = if delay.ranks == 2 { "rank" } else { "ranks" };
    let longer = delay.function.as_ref().map(|longer| longer_in(delay.does, longer));
    let place = words::where_phrase(&delay.place);
    let thread = delay.slowest_thread;
    let thread = thread.map(|of| format!("; thread {of} of its team works longest there"));
    let thread = thread.unwrap_or_default();
    let why = match (&longer, delay.does) {
        (Some(longer), _) => format!("it {longer}"),
        (None, Does::Computes) => format!("its computation {place} takes longer{thread}"),
        (None, does) => format!("it {} longer {place}{thread}", verb(does)),
    };
    let delays = match (delay.mutual, longer) {
        (true, _) => format!("The ranks delay each other, {} most: {why}", who("rank")),
        (false, Some(longer)) => format!("{} {longer} and delays the other {others}", who("Rank")),
        (false, None) => format!("{} delays the other {others}: {why}", who("Rank")),
    };
    format!("{delays}. This accounts for {} of the wait time.", percent(delay.share))
}

/// `computes longer in solve (heat.c:42)`, with its part of the delay unless that is nearly all.
fn longer_in(does: Does, longer: &LongerFunction) -> String {
    let does = if does == Does::InOtherCode { "spends longer" } else { "computes longer" };
    let LongerFunction { function, module, file, line, part, .. } = longer;
    let part = match *part {
        part if part < NEARLY_ALL => format!(" ({} of its delay)", percent(part)),
        _ => String::new(),
    };
    format!("{does} in {function} ({}){part}", source(module, file.as_deref(), *line))
}

/// A rank and, unless it is the first, its thread.
fn numbered(word: &str, rank: u32, thread: u32) -> String {
    match thread {
        0 => format!("{word} {rank}"),
        thread => format!("{word} {rank}, thread {thread}"),
    }
}

/// What a rank does.
fn verb(does: Does) -> &'static str {
    match does {
        Does::Computes => words::own_verb(OwnTime::Computes),
        Does::Asleep => words::own_verb(OwnTime::Asleep),
        Does::Unclear => words::own_verb(OwnTime::Unclear),
        Does::InOtherCode => "is in other code",
        Does::InLibrary | Does::OnFiles => "spends",
    }
}

/// A host whose ranks make the others wait.
pub(super) fn slow_host(found: &SlowHost) -> String {
    let ranks = number_list(found.ranks.iter().copied());
    let place = found.place.as_ref().map(words::where_phrase);
    let place = place.map_or(String::new(), |place| format!(", mostly {place}"));
    let (host, share) = (&found.host, percent(found.share));
    let Some(times) = found.times else {
        return format!(
            "The ranks of host {host} ({ranks}) together account for {share} of the wait time{place}."
        );
    };
    format!(
        "Host {host} delays the others: each of its ranks ({ranks}) {} longer than any elsewhere ({} times as long). This \
         accounts for {share} of the wait time{place}.",
        verb(found.does),
        significant(times, 2)
    )
}

/// A rank that accesses files with MPI while others wait.
pub(super) fn serial_io(found: &SerialIo) -> String {
    let who = numbered("Rank", found.rank, found.thread);
    let accesses = match found.part {
        ..0.995 => format!("makes {} of the file accesses", percent(found.part)),
        _ => "alone accesses files".to_owned(),
    };
    format!(
        "{who} {accesses} while {} wait{}: {}, most of it in {}. This accounts for {} of the wait time ({}).",
        if found.ranks == 2 { "the other" } else { "the others" },
        if found.ranks == 2 { "s" } else { "" },
        seconds(found.seconds),
        places::call_site(&found.at),
        percent(found.share),
        seconds(found.cost_s)
    )
}

/// Follows the delay of this rank.
pub(super) fn blocked(found: &Blocked) -> String {
    format!(
        "There, rank {} is asleep or blocked for at least {} of {}.",
        found.rank,
        seconds(found.asleep_s),
        seconds(found.seconds)
    )
}

pub(super) fn in_turn(serialisation: f64, places: &[CallSite]) -> String {
    let places: Vec<String> = places.iter().map(places::call_site).collect();
    let place = match places.is_empty() {
        true => String::new(),
        false => format!(", and wait in {}", places.join(" and ")),
    };
    format!("The ranks run one after another (serialisation {serialisation:.2}){place}.")
}
