//! Completing calls of messages, and random runs that are matched both in shares and all at once.

use super::*;

/// Like [`Found`], but also asks for completions and polls.
#[derive(Debug, Default)]
struct All {
    found: Found,
    polls: Vec<Polls>,
}

impl MatchSink for All {
    fn wants(&self) -> MatchInterest {
        MatchInterest { completions: true, polls: true, waiting: false }
    }

    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Polls(polls) => self.polls.push(*polls),
            MatchFinding::Active(_) => {}
            other => self.found.take(other),
        }
    }
}

impl All {
    /// Everything as sorted text, so that the order does not matter.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.found.messages.iter().map(|m| format!("{m:?}")).collect();
        lines.extend(self.found.unmatched.iter().map(|u| format!("{u:?}")));
        lines.extend(self.polls.iter().map(|p| format!("{p:?}")));
        for instance in &self.found.instances {
            let mut members: Vec<_> = instance.members.iter().map(|m| format!("{m:?}")).collect();
            members.sort();
            lines.push(format!("{} {} {members:?}", instance.communicator, instance.number));
        }
        lines.sort();
        lines
    }
}

/// Matches all at once, and asserts that shares find the same.
fn all_of(ranks: &[SyntheticRank], seed: u64) -> All {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let mut all = All::default();
    match_run(&run, &timeline, &communicators, &mut all);
    for (shares, most) in in_one_to_three_shares::<All>(&run).into_iter().zip(1..) {
        let mut together = All::default();
        for (_, share) in shares.unwrap() {
            together.found.messages.extend(share.found.messages);
            together.found.unmatched.extend(share.found.unmatched);
            together.found.instances.extend(share.found.instances);
            together.polls.extend(share.polls);
        }
        assert_eq!(together.lines(), all.lines(), "seed {seed}, at most {most} shares");
    }
    all
}

#[test]
fn message_has_the_calls_that_posted_and_completed_it() {
    let [mut a, mut b, c] = world::<3>();
    a.call_with("MPI_Isend", at(1), at(2), on_world(1, 5, 8).request(6));
    a.call_with("MPI_Wait", at(50), at(60), completed(6, 0, 0, 0));
    b.call_with("MPI_Irecv", at(3), at(4), on_world(0, 5, 8).request(7));
    b.polls("MPI_Test", at(5), at(15), 4, 3);
    b.call_with("MPI_Wait", at(20), at(30), completed(7, 0, 5, 8));
    let all = all_of(&[a, b, c], 0);
    let [message] = all.found.messages.as_slice() else { panic!("{:?}", all.found.messages) };
    let times = |call: Call| (call.begin_ticks - T, call.end_ticks().unwrap() - T);
    let (send, receive) = (message.send, message.receive);
    assert_eq!((times(send.posted), times(send.completed.unwrap())), ((1, 2), (50, 60)));
    assert_eq!((times(receive.posted), times(receive.completed.unwrap())), ((3, 4), (20, 30)));
    assert_ne!(send.posted.event, send.completed.unwrap().event);
    assert_eq!((all.polls.len(), all.polls[0].rank, all.polls[0].count), (1, 1, 4));
}

#[test]
fn completions_of_sends_are_reported_only_if_asked_for() {
    let [mut a, mut b] = world::<2>();
    a.call_with("MPI_Isend", at(1), at(2), on_world(1, 5, 8).request(6));
    a.call_with("MPI_Wait", at(50), at(60), completed(6, 0, 0, 0));
    b.call_with("MPI_Recv", at(3), at(9), on_world(0, 5, 8));
    let (found, _) = match_ranks(&[a, b]);
    assert_eq!((found.messages.len(), found.messages[0].send.completed), (1, None));
}

/// A random run with many messages, wildcards, persistent requests, cancelled sends and collective
/// operations. Some of its ranks die.
fn random_run(seed: u64) -> Vec<SyntheticRank> {
    const P: usize = 4;
    let mut random = fastrand::Rng::with_seed(seed);
    type Call = (u64, u64, &'static str, Attributes);
    let mut calls: [Vec<Call>; P] = Default::default();
    for i in 0..60u64 {
        let base = at(1000 * i);
        let request = 100 + 2 * i as u32;
        let (from, to) = (random.usize(..P), random.usize(..P));
        let tag = random.i32(1..3);
        if random.u8(..8) == 0 {
            let name = if random.bool() { "MPI_Barrier" } else { "MPI_Allreduce" };
            for rank in &mut calls {
                rank.push((base + 700, base + 720, name, on_world(0, 0, 8)));
            }
        }
        let late = base + 100 + 1000 * random.u64(..4);
        let sent = Attributes::default().request(request);
        match random.u8(..5) {
            0 => {
                let cancelled = &mut calls[from];
                cancelled.push((
                    base,
                    base + 1,
                    "MPI_Isend",
                    on_world(to as i32, tag, 4).request(request),
                ));
                cancelled.push((base + 2, base + 3, "MPI_Cancel", sent));
                let mut done = completed(request, 0, 0, 0);
                done.communicator |= CANCELLED;
                cancelled.push((base + 4, base + 5, "MPI_Wait", done));
                continue;
            }
            1 => {
                let persistent = &mut calls[from];
                let made = on_world(to as i32, tag, 4).request(request);
                persistent.push((base, base + 1, "MPI_Send_init", made));
                persistent.push((base + 2, base + 3, "MPI_Start", sent));
                persistent.push((late, late + 1, "MPI_Wait", completed(request, 0, 0, 0)));
                persistent.push((late + 2, late + 3, "MPI_Request_free", sent));
            }
            2 => calls[from].push((base, base + 5, "MPI_Ssend", on_world(to as i32, tag, 4))),
            _ => {
                let made = on_world(to as i32, tag, 4).request(request);
                calls[from].push((base, base + 1, "MPI_Isend", made));
                if random.u8(..8) > 0 {
                    calls[from].push((late, late + 1, "MPI_Wait", completed(request, 0, 0, 0)));
                }
            }
        }
        let source = if random.bool() { from as i32 } else { -1 };
        let receive = request + 1;
        let posted = on_world(source, tag, 4).request(receive);
        calls[to].push((base + 10, base + 11, "MPI_Irecv", posted));
        let done = completed(receive, from as i32, tag, 4);
        calls[to].push((base + 20, base + 30, "MPI_Wait", done));
    }
    let mut ranks = world::<P>();
    for (events, mut calls) in ranks.iter_mut().zip(calls) {
        calls.sort_by_key(|call| call.0);
        let dies = random.u8(..4) == 0;
        let until = if dies { at(random.u64(..60_000)) } else { u64::MAX };
        for (begin, end, name, arguments) in calls.into_iter().filter(|call| call.0 < until) {
            events.call_with(name, begin, end, arguments);
        }
        match dies {
            true => events.killed(),
            false => events.finalize(END, END + 10),
        };
    }
    let mut ranks = Vec::from(ranks);
    if random.u8(..6) == 0 {
        ranks.remove(random.usize(..P));
    }
    ranks
}

#[test]
fn shares_find_the_same_as_matching_all_at_once() {
    for seed in 0..60 {
        let all = all_of(&random_run(seed), seed);
        assert!(!all.lines().is_empty());
    }
}
