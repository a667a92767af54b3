//! How long calls take when one side is late: the tables of Masuguchi et al., from a run of
//! `kernels blocking` or `kernels collectives`.
//!
//! `blocking` marks its messages by tag: 1000 + n in case A (receive late) and 2000 + n in case B
//! (send late), where n is the index of the size. Tag 3000 marks a loop with nothing between its
//! calls, in which the time from the end of one call to the start of the next is the recorder's
//! own. `collectives` creates a communicator for case C (all at the same time), then one for case D
//! (rank 0 late), and makes other calls only on MPI_COMM_WORLD.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::timeline::GlobalTimeline;
use crate::timeline::matching::{
    CollectiveInstance, MatchFinding, MatchSink, Message, MessageEnd, is_possible,
};
use crate::trace::Run;

/// Cases of messages by tag.
const CASE_TAGS: [(char, std::ops::Range<i32>); 2] = [('A', 1000..2000), ('B', 2000..3000)];
/// Tag of the loop with nothing between its calls.
const LOOP_TAG: i32 = 3000;

/// The tables of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatePartner {
    /// Cases A and B, by case and size.
    pub messages: Vec<MessageRow>,
    /// Cases C and D, in the order of the calls.
    pub collectives: Vec<CollectiveRow>,
    /// Time of the recorder itself; `None` if the run has no loop of calls.
    pub own_cost: Option<OwnCost>,
    /// Error bound of times between ranks, seconds; `None` where clocks are not aligned.
    pub bound_s: Option<f64>,
}

/// Seconds from the end of one call to the start of the next in a loop that does nothing else,
/// which is the recorder's time outside its two time stamps. Lists are ascending.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnCost {
    /// Between two calls of MPI_Send.
    pub send_s: Vec<f64>,
    /// Between two calls of MPI_Recv.
    pub receive_s: Vec<f64>,
}

/// All messages of one case and size; seconds, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRow {
    /// `A`: receive late; `B`: send late.
    pub case: char,
    /// Message size.
    pub bytes: u64,
    /// Durations of MPI_Send.
    pub send_s: Vec<f64>,
    /// Durations of MPI_Recv.
    pub receive_s: Vec<f64>,
    /// End of MPI_Recv minus end of MPI_Send.
    pub difference_s: Vec<f64>,
    /// Start of MPI_Send to end of MPI_Recv: in case B, where the receive is posted first, the cost
    /// of the communication itself.
    pub overhead_s: Vec<f64>,
}

/// One collective call of all ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveRow {
    /// `C`: at the same time; `D`: rank 0 late.
    pub case: char,
    pub function: String,
    /// Largest number of bytes that a rank sent or received.
    pub bytes: u64,
    /// Number of the call among equal calls of the case, from 1.
    pub number: u32,
    /// The longest call, seconds.
    pub longest_s: f64,
    pub longest_rank: u32,
    /// Rank 0's call, seconds.
    pub rank0_s: Option<f64>,
}

/// Why a run has no such tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTables {
    /// It is not a run of these kernels.
    OtherProgram,
    /// It was recorded without attributes, so messages are unknown.
    NoMessages,
    /// No call of the experiments was recorded.
    NoCalls,
}

impl LatePartner {
    /// The tables of a run.
    ///
    /// # Errors
    /// The run was not made by these kernels, or without attributes.
    pub fn new(run: &Run, timeline: &GlobalTimeline) -> Result<Self, NoTables> {
        let arguments = run.ranks.first().map(|rank| rank.file.header.arguments.as_slice());
        let is_kernel = arguments.is_some_and(|words| {
            words.iter().skip(1).any(|word| ["blocking", "collectives"].contains(&word.as_str()))
        });
        match () {
            () if !is_kernel => return Err(NoTables::OtherProgram),
            () if !is_possible(run) => return Err(NoTables::NoMessages),
            () => {}
        }
        let mut calls = Calls::default();
        Analysis::new(run, timeline).matches_in_order(&mut calls);
        let mut tables = calls.tables();
        tables.bound_s = timeline.bound_ns.map(|bound| bound * 1e-9).filter(|_| timeline.aligned);
        match tables.messages.is_empty() && tables.collectives.is_empty() {
            true => Err(NoTables::NoCalls),
            false => Ok(tables),
        }
    }
}

/// The calls of the experiments.
#[derive(Debug, Default)]
struct Calls {
    messages: BTreeMap<(char, i32), Vec<Message>>,
    /// Start and end of the sends and of the receives of the loop, seconds.
    sends: Vec<(f64, f64)>,
    receives: Vec<(f64, f64)>,
    /// All collective operations; the earliest is on MPI_COMM_WORLD.
    instances: Vec<CollectiveInstance>,
}

impl MatchSink for Calls {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.instances.push(instance.clone()),
            _ => {}
        }
    }
}

impl Calls {
    fn message(&mut self, message: &Message) {
        let case = CASE_TAGS.iter().find(|(_, tags)| tags.contains(&message.tag));
        if let Some((case, _)) = case {
            self.messages.entry((*case, message.tag)).or_default().push(*message);
        }
        if message.tag == LOOP_TAG {
            let times = |call: &MessageEnd| Some((call.begin_s, call.end_s?));
            self.sends.extend(times(&message.send));
            self.receives.extend(times(&message.receive));
        }
    }
}

impl Calls {
    fn tables(mut self) -> LatePartner {
        let mut tables = LatePartner::default();
        for ((case, _), mut messages) in std::mem::take(&mut self.messages) {
            messages.sort_by(|a, b| a.send.begin_s.total_cmp(&b.send.begin_s));
            let bytes = messages[0].bytes;
            let mut row = MessageRow {
                case,
                bytes,
                send_s: Vec::new(),
                receive_s: Vec::new(),
                difference_s: Vec::new(),
                overhead_s: Vec::new(),
            };
            for message in messages {
                let (Some(sent), Some(received)) = (message.send.end_s, message.receive.end_s)
                else {
                    continue;
                };
                row.send_s.push(sent - message.send.begin_s);
                row.receive_s.push(received - message.receive.begin_s);
                row.difference_s.push(received - sent);
                row.overhead_s.push(received - message.send.begin_s);
            }
            if !row.send_s.is_empty() {
                tables.messages.push(row);
            }
        }
        tables.collectives = self.collective_rows();
        let (send_s, receive_s) = (gaps_between(&mut self.sends), gaps_between(&mut self.receives));
        tables.own_cost = (!send_s.is_empty()).then_some(OwnCost { send_s, receive_s });
        tables
    }

    fn collective_rows(&mut self) -> Vec<CollectiveRow> {
        let begin = |instance: &CollectiveInstance| {
            instance.members.iter().map(|member| member.begin_s).fold(f64::INFINITY, f64::min)
        };
        self.instances.sort_by(|a, b| begin(a).total_cmp(&begin(b)));
        // The first calls of all are on MPI_COMM_WORLD; those on duplicated communicators come
        // later.
        let Some(world) = self.instances.first().map(|instance| instance.communicator) else {
            return Vec::new();
        };
        let mut cases: Vec<u32> = Vec::new();
        let mut counts: BTreeMap<(u32, String, u64), u32> = BTreeMap::new();
        let mut rows = Vec::new();
        for instance in self.instances.iter().filter(|instance| instance.communicator != world) {
            let known = cases.iter().position(|known| *known == instance.communicator);
            let at = known.unwrap_or_else(|| {
                cases.push(instance.communicator);
                cases.len() - 1
            });
            let Some(case) = ['C', 'D'].get(at).copied() else { continue };
            let members = instance.members.iter();
            let bytes = members.map(|m| m.sent_bytes.max(m.received_bytes)).max().unwrap_or(0);
            let key = (instance.communicator, instance.function.clone(), bytes);
            let number = counts.entry(key).and_modify(|count| *count += 1).or_insert(1);
            let durations: Vec<(u32, f64)> = (instance.members.iter())
                .filter_map(|member| Some((member.rank, member.end_s? - member.begin_s)))
                .collect();
            let longest = durations.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some(&(longest_rank, longest_s)) = longest else { continue };
            rows.push(CollectiveRow {
                case,
                function: instance.function.clone(),
                bytes,
                number: *number,
                longest_s,
                longest_rank,
                rank0_s: durations.iter().find(|(rank, _)| *rank == 0).map(|(_, s)| *s),
            });
        }
        rows
    }
}

/// Times from the end of each call to the start of the next, ascending.
fn gaps_between(calls: &mut [(f64, f64)]) -> Vec<f64> {
    calls.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut gaps: Vec<f64> = calls.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_do_not_depend_on_the_order_of_matching() {
        let mut calls = [(5.0, 6.0), (0.0, 1.0), (1.5, 4.75)];
        assert_eq!(gaps_between(&mut calls), [0.25, 0.5]);
        assert!(gaps_between(&mut []).is_empty());
    }
}
