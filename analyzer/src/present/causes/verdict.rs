//! Says in a few sentences how much was waited, and what cost most.

use crate::causes::Cost;

use super::Why;
use super::words::{self, seconds_of, share};

/// Share of the waiting below which a cause is not worth a sentence.
const WORTH_A_WORD: f64 = 0.05;

/// Total waiting against p·τ, and the dearest cause.
pub(crate) fn sentences(why: &Why) -> Vec<String> {
    let causes = why.causes;
    let elapsed = why.elapsed();
    let all = elapsed * causes.lines.all.iter().filter(|line| line.thread == 0).count() as i64;
    let waiting = causes.waiting();
    if waiting == 0 {
        return vec!["No rank is known to have waited for another.".to_owned()];
    }
    let mut sentences = vec![format!(
        "{} of the ranks' time is waiting ({} of {}).",
        share(waiting, all),
        seconds_of(why, waiting),
        seconds_of(why, all)
    )];
    let dearest = causes.charges.causes.iter().max_by_key(|(_, cost)| cost.total());
    if let Some(((line, context), cost)) = dearest
        && cost.total() as f64 >= WORTH_A_WORD * waiting as f64
    {
        let found = causes.contexts.get(*context);
        let whose = words::line(causes, *line);
        let whose = whose.replacen("rank", "Rank", 1);
        let what = match words::kind(found) {
            "computation" => format!("it computes longer {}", words::in_or(found)),
            _ => format!("it is longer {}", words::context(found)),
        };
        sentences.push(format!(
            "{whose} makes others wait: {what} than those who wait for it. That costs {} ({} of the \
             waiting){}.",
            seconds_of(why, cost.total()),
            share(cost.total(), waiting),
            indirectly(why, *cost)
        ));
    }
    let unattributed = causes.charges.unattributed;
    if unattributed as f64 >= WORTH_A_WORD * waiting as f64 {
        sentences
            .push(format!("For {} of it nobody's delay is known.", share(unattributed, waiting)));
    }
    sentences
}

fn indirectly(why: &Why, cost: Cost) -> String {
    match cost.indirect {
        0 => String::new(),
        indirect => format!(
            ", {} of it on ranks that waited for those who waited",
            seconds_of(why, indirect)
        ),
    }
}
