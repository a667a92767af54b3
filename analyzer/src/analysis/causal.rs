//! A corrected timeline on which no message arrives before it is sent.

use crate::timeline::matching::{self, MatchFinding, MatchSink};
use crate::timeline::{GlobalTimeline, Link};
use crate::trace::Run;

use super::views::Analysis;

/// Collects the messages whose receive has a known end.
struct Links<'a> {
    run: &'a Run,
    links: Vec<Link>,
}

impl MatchSink for Links<'_> {
    fn take(&mut self, finding: &MatchFinding) {
        let MatchFinding::Message(message) = finding else { return };
        let (send, receive) = (&message.send, &message.receive);
        let position = |rank| self.run.position_of(rank);
        let ends = receive.end_ticks.zip(receive.end_s);
        if let (Some(from), Some(to), Some((end_ticks, end_s))) =
            (position(send.rank), position(receive.rank), ends)
        {
            self.links.push(Link {
                ranks: (from, to),
                ticks: (send.begin_ticks, end_ticks),
                seconds: (send.begin_s, end_s),
            });
        }
    }
}

impl Analysis<'_> {
    /// A copy of the timeline on which no message arrives before it is sent;
    /// [`GlobalTimeline::causal`] tells what was changed. A run recorded at level 0 has no
    /// messages, so its copy is unchanged.
    #[must_use]
    pub fn causal_timeline(&self) -> GlobalTimeline {
        let mut links = Links { run: self.run, links: Vec::new() };
        if matching::is_possible(self.run) {
            self.matches_in_order(&mut links);
        }
        self.timeline.corrected(links.links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    const MS: u64 = 1_000_000;

    /// Rank 0 sends at 100, 200 … ms, and rank 1 in truth receives 1 ms later. Its clock is
    /// `behind` ns behind, which its clock exchanges do not show.
    fn run(behind: u64, receives: usize) -> RunDirectory {
        let mut sender = SyntheticRank::level_1(0, 2, 2000 * MS);
        let mut receiver = SyntheticRank::level_1(1, 2, 2000 * MS);
        for index in 1..=receives as u64 {
            let at = index * 100 * MS;
            sender.call_with("MPI_Send", at, at + MS / 2, on_world(1, 5, 8));
            let end = at + MS - behind;
            receiver.call_with("MPI_Recv", end - MS / 2, end, on_world(0, 5, 8));
            // Its answer, well before the next message.
            receiver.call_with("MPI_Send", end + 50 * MS, end + 51 * MS, on_world(0, 6, 8));
            sender.call_with("MPI_Recv", at + 60 * MS, at + 70 * MS, on_world(1, 6, 8));
        }
        RunDirectory::with_ranks(&[sender, receiver])
    }

    #[test]
    fn a_timeline_without_early_messages_is_unchanged() {
        let directory = run(0, 3);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let corrected = Analysis::new(&run, &timeline).causal_timeline();
        let causal = corrected.causal.unwrap();
        assert_eq!((causal.messages, causal.early_before, causal.changed_ranks), (6, 0, 0));
        assert_eq!(corrected.ranks, timeline.ranks);
        assert_eq!(timeline.causal, None);
    }

    #[test]
    fn receives_move_after_their_sends_and_nothing_moves_backwards() {
        let directory = run(3 * MS, 4);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let corrected = Analysis::new(&run, &timeline).causal_timeline();
        let causal = corrected.causal.unwrap();
        assert_eq!((causal.early_before, causal.early_after), (4, 0));
        assert_eq!(causal.changed_ranks, 1);
        // The first moves by 2 ms; until the next, the correction shrinks by 1 % of the elapsed
        // time.
        assert!((causal.largest_jump_ns - 2e6).abs() < 10.0, "{causal:?}");
        assert_eq!(corrected.ranks[0], timeline.ranks[0], "the sender's times are right");
        let (before, after) = (&timeline.ranks[1].clock, &corrected.ranks[1].clock);
        let mut last = f64::NEG_INFINITY;
        for ticks in (MS..2000 * MS).step_by(MS as usize / 4) {
            let moved = after.seconds(ticks) - before.seconds(ticks);
            assert!((-1e-12..=2.1e-3).contains(&moved), "{ticks}: {moved}");
            assert!(after.seconds(ticks) > last, "time never runs backwards");
            last = after.seconds(ticks);
        }
        // Long before the first jump and long after the last one, nothing is changed.
        for ticks in [MS, 1500 * MS] {
            assert!((after.seconds(ticks) - before.seconds(ticks)).abs() < 1e-4, "{ticks}");
        }
    }
}
