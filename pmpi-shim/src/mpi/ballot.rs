//! Decides over a new communicator of all processes whether they compare their clocks on it now.
//!
//! For processes that began with a session. Nothing else brings them together, and any of them may be
//! unable to compare: it does not record, or another of its threads is about to compare on another
//! communicator. So all vote each time, whatever they know by then. Who takes part follows from marks that
//! never change ([`presence::look_for_sessions`]), so that nobody sends a message to a rank that does not
//! expect it:
//!
//! 1. each rank sends its vote to its host's lowest rank;
//! 2. these report to rank 0, if they see that it takes part;
//! 3. rank 0 decides, and the decision goes back the same way.
//!
//! Every wait has a deadline. A rank that was silent once is left out from then on.
//!
//! [`presence::look_for_sessions`]: crate::host::presence::look_for_sessions

use std::time::{Duration, Instant};

use crate::host::lock::Lock;
use crate::host::presence::Presence;
use crate::mpi::library::Job;
use crate::mpi::messages::Messages;

const TAG_VOTE: i32 = 31_163;
const TAG_REPORT: i32 = 31_164;
const TAG_DECISION: i32 = 31_165;

/// Time that a host's lowest rank waits for a vote. Who waits for it in turn waits longer.
const VOTE: Duration = Duration::from_secs(30);
const REPORT: Duration = Duration::from_secs(60);
const DECISION: Duration = Duration::from_secs(90);
const LOCAL_DECISION: Duration = Duration::from_secs(120);
/// Time that rank 0 waits for the next host until it knows which hosts report.
const NEXT_HOST: Duration = Duration::from_secs(2);
/// A host whose votes came together later than this does not report, because rank 0 may have ceased to wait.
const LATE: Duration = Duration::from_secs(1);

/// Ranks that this one does not wait for any more.
static SILENT: Lock<Vec<u32>> = Lock::new(Vec::new());
/// On rank 0: the lowest ranks of the hosts that report.
static REPORTING: Lock<Option<Vec<u32>>> = Lock::new(None);

/// What a rank tells the others.
#[derive(Debug, Clone, Copy)]
pub struct Vote {
    pub host: u64,
    /// Whether it can compare its clock now.
    pub willing: bool,
}

/// The votes that a rank knows.
struct Count {
    willing: bool,
    /// Rank and its host.
    voters: Vec<(u32, u64)>,
}

impl Count {
    fn add(&mut self, rank: u32, vote: Vote) {
        self.willing &= vote.willing;
        self.voters.push((rank, vote.host));
    }

    fn to_words(&self) -> Vec<u64> {
        let voters = self.voters.iter().flat_map(|(rank, host)| [u64::from(*rank), *host]);
        [u64::from(self.willing)].into_iter().chain(voters).collect()
    }

    fn add_words(&mut self, words: &[u64]) {
        let [willing, voters @ ..] = words else { return };
        self.willing &= *willing == 1;
        self.voters.extend(voters.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1])));
    }

    /// The host of every rank if all of the job have voted and are willing. Empty otherwise.
    fn decision(mut self, size: u32) -> Vec<u64> {
        self.voters.sort_unstable();
        self.voters.dedup_by_key(|voter| voter.0);
        match self.willing && self.voters.len() == size as usize {
            true => self.voters.iter().map(|voter| voter.1).collect(),
            false => Vec::new(),
        }
    }
}

fn is_silent(rank: u32) -> bool {
    SILENT.lock().contains(&rank)
}

fn leave_out(rank: u32) {
    SILENT.lock().push(rank);
}

/// Votes. Gives the host of every rank if all compare their clocks now, on all ranks or on none, unless one
/// misses a deadline. The communicator was made at `made`; the program has not used it yet.
pub fn vote(job: &Job, present: &Presence, own: Vote, made: Instant) -> Option<Vec<u64>> {
    let Presence { local, rank_zero, one_host } = present;
    let everyone_is_here = local.len() == job.size as usize;
    if *one_host && !everyone_is_here {
        return None;
    }
    let (messages, leader) = (Messages::new(job)?, *local.first()?);
    let hosts = if job.rank != leader {
        vote_to(&messages, leader, own, job.size)
    } else {
        let mut count = Count { willing: true, voters: Vec::new() };
        count.add(job.rank, own);
        let voters = collect(&messages, &local[1..], &mut count);
        let reporters = match job.rank == 0 && !everyone_is_here {
            true => gather(&messages, &mut count, job.size),
            false => Vec::new(),
        };
        let decision = if job.rank == 0 {
            count.decision(job.size)
        } else if *rank_zero && !is_silent(0) {
            report(&messages, &count, made, job.size)
        } else {
            Vec::new()
        };
        for other in reporters.iter().chain(&voters) {
            messages.send_words(*other, TAG_DECISION, &decision, REPORT);
        }
        decision
    };
    (hosts.len() == job.size as usize).then_some(hosts)
}

/// Sends this rank's vote to the lowest rank of its host, and returns the decision.
fn vote_to(messages: &Messages, leader: u32, own: Vote, size: u32) -> Vec<u64> {
    if is_silent(leader) {
        return Vec::new();
    }
    messages.send_words(leader, TAG_VOTE, &[u64::from(own.willing), own.host], VOTE);
    let decision =
        messages.receive_words(Some(leader), TAG_DECISION, size as usize, LOCAL_DECISION);
    decision.unwrap_or_else(|| {
        leave_out(leader);
        Vec::new()
    })
}

/// On the lowest rank of a host: receives the votes of the others, and returns who has voted.
fn collect(messages: &Messages, others: &[u32], count: &mut Count) -> Vec<u32> {
    let mut voters = Vec::new();
    for other in others.iter().filter(|other| !is_silent(**other)) {
        match messages.receive_words(Some(*other), TAG_VOTE, 2, VOTE).as_deref() {
            Some([willing, host]) => {
                count.add(*other, Vote { host: *host, willing: *willing == 1 });
                voters.push(*other);
            }
            _ => leave_out(*other),
        }
    }
    voters
}

/// On the lowest rank of another host than rank 0's: reports the votes, and returns the decision.
fn report(messages: &Messages, count: &Count, made: Instant, size: u32) -> Vec<u64> {
    let sent = made.elapsed() < LATE && messages.send_words(0, TAG_REPORT, &count.to_words(), VOTE);
    let decision = sent
        .then(|| messages.receive_words(Some(0), TAG_DECISION, size as usize, DECISION))
        .flatten();
    decision.unwrap_or_else(|| {
        leave_out(0);
        Vec::new()
    })
}

/// On rank 0: receives the reports of the other hosts, and returns who has reported. The first time it waits
/// until no further host reports, then for those that did.
fn gather(messages: &Messages, count: &mut Count, size: u32) -> Vec<u32> {
    let expected = REPORTING.lock().clone();
    let mut reporters: Vec<u32> = Vec::new();
    while count.voters.len() < size as usize {
        let deadline = match &expected {
            None => NEXT_HOST,
            Some(hosts) if hosts.iter().all(|host| reporters.contains(host)) => break,
            Some(_) => REPORT,
        };
        let most = 2 * size as usize + 1;
        let Some(words) = messages.receive_words(None, TAG_REPORT, most, deadline) else { break };
        reporters.extend(words.get(1).map(|leader| *leader as u32));
        count.add_words(&words);
    }
    *REPORTING.lock() = Some(reporters.clone());
    reporters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(votes: &[(u32, u64, bool)]) -> Count {
        let mut count = Count { willing: true, voters: Vec::new() };
        for &(rank, host, willing) in votes {
            count.add(rank, Vote { host, willing });
        }
        count
    }

    #[test]
    fn clocks_are_compared_only_if_all_have_voted_for_it() {
        assert_eq!(count(&[(0, 7, true), (2, 9, true), (1, 7, true)]).decision(3), [7, 7, 9]);
        for votes in [
            &[(0, 7, true), (1, 7, false), (2, 9, true)][..],
            &[(0, 7, true), (2, 9, true)],
            &[(0, 7, true), (2, 9, true), (2, 9, true)],
        ] {
            assert_eq!(count(votes).decision(3), [0; 0], "{votes:?}");
        }
    }

    #[test]
    fn report_tells_votes_of_a_host() {
        for willing in [true, false] {
            let mut all = count(&[(0, 7, true)]);
            all.add_words(&count(&[(1, u64::MAX, true), (2, 9, willing)]).to_words());
            assert_eq!(all.voters, [(0, 7), (1, u64::MAX), (2, 9)]);
            assert_eq!(all.willing, willing);
        }
        let mut all = count(&[(0, 7, true)]);
        all.add_words(&[]);
        assert_eq!(all.decision(1), [7]);
    }
}
