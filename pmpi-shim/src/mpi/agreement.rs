//! Agreement on which ranks record together.
//!
//! From what each rank knows about the others ([`presence`]) follow the [`Participants`], the same
//! on all members. A rank that does not load the recorder (MPMD with `gammachi exec` before some
//! programs, a host without the library, a launcher that forwards nothing) takes part in nothing
//! that the others do together. So nobody waits for it, and nobody sends it a message, which its
//! program might receive.
//!
//! If all ranks of the job are present on one host, every rank sees that for itself. Otherwise the
//! lowest present rank of each host tells rank 0 which ranks are present, and rank 0 replies with
//! the full list.

use std::path::Path;
use std::time::Duration;

use crate::host::presence::{self, Presence};
use crate::mpi::library::Job;
use crate::mpi::messages::Messages;

/// Messages to rank 0, and its replies. Receives that the program posts with tags of its own never
/// match them.
const TAG_UP: i32 = 31_161;
const TAG_DOWN: i32 = 31_162;
/// Time that rank 0 waits for the next host to report.
const NEXT_HOST: Duration = Duration::from_secs(2);
/// Time that a host waits for rank 0, and that a rank waits for the lowest rank of its host.
const ANSWER: Duration = Duration::from_secs(30);
const LOCAL_ANSWER: Duration = Duration::from_secs(60);

/// The ranks that record together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Participants {
    /// All of the job.
    Everyone,
    /// Only these, ascending: rank and number of its host.
    Some(Vec<(u32, u64)>),
}

impl Participants {
    /// The member that decides for the others.
    pub fn root(&self) -> u32 {
        match self {
            Self::Everyone => 0,
            Self::Some(members) => members.first().map_or(0, |member| member.0),
        }
    }

    /// The members other than the root, if not all ranks take part.
    pub fn others(&self) -> impl Iterator<Item = u32> {
        let members: &[(u32, u64)] = match self {
            Self::Everyone => &[],
            Self::Some(members) => members,
        };
        members.iter().skip(1).map(|member| member.0)
    }

    fn from_words(words: &[u64]) -> Self {
        if words.is_empty() {
            return Self::Everyone;
        }
        Self::Some(words.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1])).collect())
    }

    fn words(&self) -> Vec<u64> {
        match self {
            Self::Everyone => Vec::new(),
            Self::Some(members) => {
                members.iter().flat_map(|(rank, host)| [u64::from(*rank), *host]).collect()
            }
        }
    }
}

/// Finds the ranks that record together with this one. Runs before the program uses the job's
/// communicator. Every wait has a deadline.
pub fn agree(job: &Job, host: u64, out: Option<&Path>) -> Participants {
    let (rank, size) = (job.rank, job.size);
    if size == 1 {
        return Participants::Everyone;
    }
    let Some(messages) = Messages::new(job) else {
        return Participants::Some(vec![(rank, host)]);
    };
    let Presence { local, rank_zero, one_host } = presence::look(rank, size, out);
    if local.len() as u32 == size {
        return Participants::Everyone;
    }
    let leader = local[0];
    let most = 2 * size as usize;
    if rank != leader {
        let reply = messages.receive_words(Some(leader), TAG_DOWN, most, LOCAL_ANSWER);
        return reply.map_or(Participants::Some(vec![(rank, host)]), |words| {
            Participants::from_words(&words)
        });
    }
    let this_host = || local.iter().map(|rank| (*rank, host)).collect::<Vec<_>>();
    let participants = if rank == 0 && !one_host {
        gather(&messages, this_host(), size)
    } else {
        let reply = (rank_zero && rank != 0).then(|| ask(&messages, &local, host, most)).flatten();
        reply.unwrap_or_else(|| Participants::Some(this_host()))
    };
    let words = participants.words();
    for other in &local[1..] {
        messages.send_words(*other, TAG_DOWN, &words, ANSWER);
    }
    participants
}

/// Tells rank 0 who is present on this host, and returns rank 0's reply.
fn ask(messages: &Messages, local: &[u32], host: u64, most: usize) -> Option<Participants> {
    let words: Vec<u64> = [host].into_iter().chain(local.iter().map(|r| u64::from(*r))).collect();
    if !messages.send_words(0, TAG_UP, &words, ANSWER) {
        return None;
    }
    messages
        .receive_words(Some(0), TAG_DOWN, most, ANSWER)
        .map(|words| Participants::from_words(&words))
}

/// On rank 0: receives the reports of the other hosts and replies to each.
fn gather(messages: &Messages, mut members: Vec<(u32, u64)>, size: u32) -> Participants {
    let mut leaders: Vec<u64> = Vec::new();
    while members.len() < size as usize {
        let Some(words) = messages.receive_words(None, TAG_UP, size as usize + 1, NEXT_HOST) else {
            break;
        };
        let [host, ranks @ ..] = &words[..] else { continue };
        leaders.extend(ranks.first());
        members.extend(ranks.iter().map(|rank| (*rank as u32, *host)));
    }
    members.sort_unstable();
    members.dedup_by_key(|member| member.0);
    let participants = match members.len() == size as usize {
        true => Participants::Everyone,
        false => Participants::Some(members),
    };
    let words = participants.words();
    for leader in leaders {
        messages.send_words(leader as u32, TAG_DOWN, &words, ANSWER);
    }
    participants
}

/// Sends bytes (a multiple of 8) from the root to the other participants if not all ranks take
/// part. Returns whether they arrived.
pub fn send_to_others(job: &Job, participants: &Participants, bytes: &mut [u8]) -> bool {
    let Some(messages) = Messages::new(job) else { return false };
    let (pieces, _) = bytes.as_chunks_mut::<8>();
    if job.rank == participants.root() {
        let words: Vec<u64> = pieces.iter().map(|piece| u64::from_ne_bytes(*piece)).collect();
        for other in participants.others() {
            messages.send_words(other, TAG_DOWN, &words, ANSWER);
        }
        return true;
    }
    let most = pieces.len();
    let Some(words) =
        messages.receive_words(Some(participants.root()), TAG_DOWN, most, LOCAL_ANSWER)
    else {
        return false;
    };
    for (piece, word) in pieces.iter_mut().zip(words) {
        *piece = word.to_ne_bytes();
    }
    true
}

/// Ascending numbers as text, such as `0, 2-5`.
pub fn number_list(numbers: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_participants_sent_by_rank_zero() {
        for participants in
            [Participants::Everyone, Participants::Some(vec![(1, u64::MAX), (3, 0)])]
        {
            assert_eq!(Participants::from_words(&participants.words()), participants);
        }
        assert_eq!(Participants::Some(vec![(2, 7), (3, 7)]).root(), 2);
        assert_eq!(number_list([0, 2, 3, 4, 9].into_iter()), "0, 2-4, 9");
    }

    #[test]
    fn lowest_member_is_root() {
        assert_eq!(Participants::Everyone.root(), 0);
        assert_eq!(Participants::Everyone.others().count(), 0);
        let some = Participants::Some(vec![(1, 7), (4, 7), (5, 9)]);
        assert_eq!((some.root(), some.others().collect::<Vec<_>>()), (1, vec![4, 5]));
        let alone = Participants::Some(vec![(6, 7)]);
        assert_eq!((alone.root(), alone.others().count()), (6, 0));
    }

    #[test]
    fn lists_numbers_as_ranges() {
        let list = |numbers: &[u32]| number_list(numbers.iter().copied());
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[7]), "7");
        assert_eq!(list(&[0, 1]), "0-1");
        assert_eq!(list(&[1, 3, 5, 6]), "1, 3, 5-6");
    }
}
