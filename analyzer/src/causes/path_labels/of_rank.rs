//! Reads the events of one rank once more, when the critical path is known.

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::{Class, Meaning, Operation};

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::causes::contexts::{LocalContext, LocalContexts};
use crate::causes::integer_timeline::IntegerTimeline;
use crate::causes::line_contexts::{LineContexts, SpanReader, Stretch};
use crate::causes::lines::Lines;
use crate::causes::local_site::ReplacedModules;
use crate::causes::wait::Wait;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::RankTrace;

use super::durations::Durations;
use super::label::OnPath;
use super::sizes::{EventSums, Sizes};

/// A label with the numbers of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LocalLabel {
    pub context: u32,
    /// Position in the run's table of communicators.
    pub communicator: Option<u32>,
    pub first_use: bool,
}

/// What a rank did with a label.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelSums {
    pub all: EventSums,
    /// Of calls.
    pub sizes: Sizes,
    /// Of what is outside calls.
    pub durations: Durations,
}

/// Messages and bytes of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moved {
    messages: u64,
    bytes: u64,
}

/// Sums the labels of all ranks.
pub(super) struct LabelReader<'c> {
    pub clock: &'c IntegerTimeline<'c>,
    pub lines: &'c Lines,
    /// All waits, by line.
    pub waits: &'c [Wait],
    /// The critical path on each line, ascending.
    pub path: &'c [Vec<(i64, i64)>],
    pub communicators: &'c CommunicatorTable,
}

impl<'a, 'c> CallObserver<'a> for LabelReader<'c> {
    type OfRank = LabelsOfRank<'c>;

    fn begin_rank(&self, rank: RankView<'a>) -> LabelsOfRank<'c> {
        LabelsOfRank {
            lines: self.lines,
            waits: self.waits,
            path: self.path,
            communicators: self.communicators,
            meanings: meanings(rank.trace),
            reader: SpanReader {
                clock: self.clock,
                position: rank.position,
                functions: Functions::new(rank.trace),
                replaced: ReplacedModules::new(rank.trace),
            },
            contexts: LocalContexts::default(),
            sums: FxHashMap::default(),
            used: FxHashSet::default(),
            line: LabelledLine::default(),
        }
    }
}

/// The meaning of each function, by its number less the first one.
fn meanings(trace: &RankTrace) -> Vec<&'static Meaning> {
    trace.file.function_names().iter().map(|name| Meaning::by_name(name)).collect()
}

/// Sums the labels of one rank.
pub(super) struct LabelsOfRank<'c> {
    lines: &'c Lines,
    waits: &'c [Wait],
    path: &'c [Vec<(i64, i64)>],
    communicators: &'c CommunicatorTable,
    meanings: Vec<&'static Meaning>,
    reader: SpanReader<'c>,
    contexts: LocalContexts,
    sums: FxHashMap<LocalLabel, LabelSums>,
    /// Functions that were called on a communicator.
    used: FxHashSet<(u16, u32)>,
    line: LabelledLine<'c>,
}

/// The line whose events are being read.
#[derive(Default)]
struct LabelledLine<'c> {
    contexts: LineContexts,
    /// What of the path is still to come.
    path: &'c [(i64, i64)],
    /// Up to when its stretches are known, and its end.
    at: i64,
    end: i64,
    /// Requests that were begun since the last call that completed any.
    begun: Moved,
    stretches: Vec<Stretch>,
}

impl LabelledLine<'_> {
    /// Goes on to a moment. Returns the ticks since the moment before, and those on the path.
    fn go_on(&mut self, to: i64) -> (i64, i64) {
        let from = std::mem::replace(&mut self.at, to);
        let mut on_path = 0;
        while let Some((begin, end)) = self.path.first() {
            on_path += (to.min(*end) - from.max(*begin)).max(0);
            if *end > to {
                break;
            }
            self.path = &self.path[1..];
        }
        (to - from, on_path)
    }
}

impl LabelsOfRank<'_> {
    /// What was summed, with the rank's contexts.
    pub fn finish(self) -> (Vec<LocalContext>, Vec<(LocalLabel, LabelSums)>) {
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(label, _)| *label);
        (self.contexts.into_all(), sums)
    }

    /// Adds what the program did outside calls.
    fn add_outside(&mut self, stretch: Stretch) {
        let (ticks, on_path) = self.line.go_on(stretch.to);
        let label = LocalLabel { context: stretch.context, communicator: None, first_use: false };
        let sums = self.sums.entry(label).or_default();
        sums.all.count += 1;
        sums.all.ticks += ticks;
        sums.durations.add(ticks);
        if on_path > 0 {
            sums.all.on_path.count += 1;
            sums.all.on_path.ticks += on_path;
        }
    }

    /// Adds the last `of_call` stretches as those of one call.
    fn add_call(&mut self, label: LocalLabel, of_call: &[Stretch], moved: Moved) {
        let (mut own, mut on_path) = (0, 0);
        for stretch in of_call {
            let (ticks, of_path) = self.line.go_on(stretch.to);
            own += if stretch.wait.is_none() { ticks } else { 0 };
            on_path += of_path;
        }
        let Moved { messages, bytes } = moved;
        let on_path = match on_path > 0 {
            true => OnPath { count: 1, ticks: on_path, messages, bytes },
            false => OnPath::default(),
        };
        let one = EventSums { on_path, count: 1, ticks: own, messages, bytes };
        let sums = self.sums.entry(label).or_default();
        sums.all.add(&one);
        sums.sizes.add(bytes, &one);
    }

    /// What a call moves. A completion moves what was begun since the one before.
    fn moved(&mut self, meaning: &Meaning, bytes: u64) -> Moved {
        let one = Moved { messages: 1, bytes };
        match meaning.operation {
            Operation::Isend
            | Operation::Ireceive
            | Operation::IsendReceive
            | Operation::MatchedIreceive => {
                self.line.begun.messages += 1;
                self.line.begun.bytes += bytes;
                one
            }
            Operation::CompleteOne | Operation::CompleteSeveral => {
                std::mem::take(&mut self.line.begun)
            }
            Operation::Send
            | Operation::Receive
            | Operation::SendReceive
            | Operation::MatchedReceive => one,
            _ if meaning.class == Class::Collective => Moved { messages: 0, bytes },
            _ => Moved::default(),
        }
    }

    /// The label of a call with this context, and what it moves.
    fn labelled(&mut self, span: &Span, function: u16, context: u32) -> (LocalLabel, Moved) {
        let index = function.checked_sub(FIRST_FUNCTION);
        let meaning = index.and_then(|index| self.meanings.get(usize::from(index)).copied());
        let Some(meaning) = meaning else {
            let label = LocalLabel { context, communicator: None, first_use: false };
            return (label, Moved::default());
        };
        let resolve = || {
            let position = self.reader.position;
            self.communicators.resolve(position, span.communicator, span.begin_ticks)
        };
        let membership = meaning.fields.communicator.then(resolve).flatten();
        let communicator = membership.map(|membership| membership.communicator);
        let first_use = communicator.is_some_and(|of| self.used.insert((function, of)));
        let moved = self.moved(meaning, span.bytes.max(span.received));
        (LocalLabel { context, communicator, first_use }, moved)
    }
}

impl<'a> RankObserver<'a> for LabelsOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.line = LabelledLine::default();
        let number = self.lines.number_of(self.reader.position, thread.thread.number);
        let Some(number) = number else { return };
        let line = &self.lines.all[number as usize];
        let first = self.waits.partition_point(|wait| wait.line < number);
        let waits = (first as u32..).zip(self.waits[first..].iter().copied());
        let waits = waits.take_while(|(_, wait)| wait.line == number);
        self.line.contexts = LineContexts::new((line.begin, line.end), waits);
        (self.line.at, self.line.end) = (line.begin, line.end);
        self.line.path = &self.path[number as usize];
    }

    fn span(&mut self, span: &Span) {
        let mut stretches = std::mem::take(&mut self.line.stretches);
        let mut take = |stretch| stretches.push(stretch);
        let called = self.line.contexts.span(span, &self.reader, &mut self.contexts, &mut take);
        let of_call = called.filter(|called| !called.polls).map(|called| {
            let begin = stretches.partition_point(|stretch| stretch.to <= called.begin);
            (begin, called.context)
        });
        let outside = of_call.map_or(stretches.len(), |(begin, _)| begin);
        for stretch in &stretches[..outside] {
            self.add_outside(*stretch);
        }
        if let (Some((_, context)), SpanKind::Call(function)) = (of_call, span.kind)
            && self.reader.functions.entry(function).1 == Activity::Mpi
        {
            let (label, moved) = self.labelled(span, function, context);
            self.add_call(label, &stretches[outside..], moved);
        }
        stretches.clear();
        // Its memory is used again.
        self.line.stretches = stretches;
    }

    fn end_thread(&mut self) {
        let mut stretches = std::mem::take(&mut self.line.stretches);
        let end = self.line.end;
        self.line.contexts.finish(end, &mut self.contexts, &mut |stretch| stretches.push(stretch));
        stretches.into_iter().for_each(|stretch| self.add_outside(stretch));
    }
}
