//! Writes a few sentences on how much ranks waited, and what cost most.

use crate::causes::Cost;

use super::Why;
use super::words::{self, seconds_of, share};

/// Share of the waiting below which a cause is not mentioned.
const NOTABLE_SHARE: f64 = 0.05;

/// Sentences on total waiting as a share of p·τ, and on the costliest cause.
pub(crate) fn sentences(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let elapsed = why.elapsed();
    let ranks = causes.lines.all.iter().filter(|line| line.thread == 0).count().max(1) as i64;
    let waiting = causes.waiting();
    if waiting == 0 {
        return vec!["No rank is known to have waited for another.".to_owned()];
    }
    let mut sentences = vec![format!(
        "The ranks wait for {} of their time, {} each on average.",
        share(waiting, ranks * elapsed),
        seconds_of(why, waiting / ranks)
    )];
    let costliest = causes.charges.causes.iter().max_by_key(|(_, cost)| cost.total());
    if let Some(((line, context), cost)) = costliest
        && cost.total() as f64 >= NOTABLE_SHARE * waiting as f64
    {
        let found = causes.contexts.get(*context);
        let whose = words::line(causes, *line).replacen("rank", "Rank", 1);
        let what = match words::kind(found) {
            "computation" => format!("it computes longer {}", words::where_phrase(found)),
            _ => format!("it is longer {}", words::context(found)),
        };
        sentences.push(format!(
            "{whose} makes {} wait: {what}. That causes {} of the waiting{}.",
            if ranks == 2 { "the other" } else { "the others" },
            share(cost.total(), waiting),
            indirectly(why, *cost)
        ));
    }
    let unattributed = causes.charges.unattributed;
    if unattributed as f64 >= NOTABLE_SHARE * waiting as f64 {
        sentences.push(format!(
            "What caused {} of the waiting is not known.",
            share(unattributed, waiting)
        ));
    }
    sentences
}

fn indirectly(why: &Why, cost: Cost) -> String {
    match cost.indirect {
        0 => String::new(),
        indirect => {
            format!(
                " ({} of it passed on by ranks that waited themselves)",
                seconds_of(why, indirect)
            )
        }
    }
}
