//! Unfinished sends whose messages another share matches: only that share knows whether they met a
//! receive.

use std::collections::HashSet;

use crate::processes::Processes;
use crate::timeline::matching::channel_key::{ChannelKey, UNKNOWN_INDEX};
use crate::timeline::matching::state::Matching;
use crate::timeline::matching::unfinished::MatchedSends;

use super::division::Division;

/// The unfinished sends of each share of this process that met a receive, when all rounds are over.
/// All processes call this.
pub(super) fn met_sends(
    shares: &[&Matching],
    division: &Division,
    processes: &Processes,
) -> Vec<MatchedSends> {
    // A question: the share that matches the send, its channel and number.
    let mut questions: Vec<Vec<(usize, ChannelKey, u64)>> = vec![Vec::new(); processes.count()];
    for matching in shares {
        for ((key, _), number) in matching.unfinished.sends() {
            let there = matching.share.as_ref().map_or(0, |s| s.of_rank(key.destination));
            questions[division.process_of(there)].push((there, key, number));
        }
    }
    let is_unmet = |(share, key, number): (usize, ChannelKey, u64)| {
        let matching = shares[share - division.own.start];
        matching.channels.is_unmet_send((key, UNKNOWN_INDEX), number).then_some(number)
    };
    let asked = processes.exchange(questions).into_iter();
    let answers = asked.map(|questions| questions.into_iter().filter_map(is_unmet).collect());
    let answers: Vec<Vec<u64>> = processes.exchange(answers.collect());
    let unmet: HashSet<u64> = answers.into_iter().flatten().collect();
    let met = |matching: &&Matching| matching.matched_sends(|_, number| unmet.contains(&number));
    shares.iter().map(met).collect()
}
