//! Sentences on waiting and transfer.

use crate::causes::CallSite;
use crate::diagnosis::finding::{Delay, Does, Waiting};
use crate::metrics::OwnTime;
use crate::present::causes::{places, words};
use crate::present::context::plural;
use crate::present::quantity::{count, percent, seconds, significant};

pub(super) fn waiting(found: &Waiting) -> String {
    let Waiting { share, seconds: waiting_s, per_rank_s, at_least, at_most } = found;
    if *waiting_s <= 0.0 {
        return "No rank is known to have waited for another.".to_owned();
    }
    let (of_time, each) = (percent(*share), seconds(*per_rank_s));
    match at_most {
        None => {
            let at_least = if *at_least { "at least " } else { "" };
            format!("The ranks wait for {at_least}{of_time} of their time, {each} each on average.")
        }
        Some((most, below_s)) => format!(
            "The ranks wait for at least {of_time} of their time, {each} each on average, and for at most {}: waits \
             shorter than {} were too numerous to analyse.",
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
    let who = match delay.thread {
        0 => format!("Rank {}", delay.rank),
        thread => format!("Rank {}, thread {thread}", delay.rank),
    };
    let place = words::where_phrase(&delay.place);
    let longer = |does: &str| format!("it {does} longer {place}");
    let why = match delay.does {
        Does::Computes => format!("its computation {place} takes longer"),
        Does::Asleep => longer(words::own_verb(OwnTime::Asleep)),
        Does::Unclear => longer(words::own_verb(OwnTime::Unclear)),
        Does::InOtherCode => longer("is in other code"),
        Does::InLibrary => longer("spends"),
    };
    format!(
        "{who} delays the other {}: {why}. This accounts for {} of the wait time.",
        if delay.ranks == 2 { "rank" } else { "ranks" },
        percent(delay.share)
    )
}

pub(super) fn transfer(share: f64, at: Option<&(CallSite, f64)>) -> String {
    let place = at.map_or(String::new(), |(site, part)| {
        format!(", {} of that in {}", percent(*part), places::call_site(site))
    });
    format!("Transfer takes {} of the ranks' time{place}.", percent(share))
}

pub(super) fn small_messages(
    (calls, mean_bytes): (u64, f64),
    (cost_s, share): (f64, f64),
    at: Option<&(CallSite, f64)>,
) -> String {
    let place = at.map_or(String::new(), |(site, part)| {
        format!(", {} of it in {}", percent(*part), places::call_site(site))
    });
    format!(
        "Many small messages: {} sends and receives averaging {} B take {} of the ranks' time (waiting excluded), \
         {}{place}.",
        count(calls),
        significant(mean_bytes, 2),
        percent(share),
        seconds(cost_s)
    )
}

pub(super) fn in_turn(serialisation: f64, places: &[CallSite], at_barrier: bool) -> String {
    let places: Vec<String> = places.iter().map(places::call_site).collect();
    let place = match places.is_empty() {
        true => String::new(),
        false => format!(", and wait in {}", places.join(" and ")),
    };
    let barrier = match at_barrier {
        true => {
            " If MPI_Barrier is not needed, the first ranks can begin their next blocks while the last ones still \
             compute."
        }
        false => "",
    };
    format!(
        "The load is balanced, but the ranks run one after another (serialisation {serialisation:.2}){place}. Send \
         smaller blocks as they become ready, so that the next rank can start earlier.{barrier}"
    )
}
