//! Turns calls in order of their beginning into beginnings and ends that nest on every thread, and
//! finds the messages that leave and arrive at them.
//!
//! Every timeline format needs nesting, so what does not nest is cut off:
//!
//! - a call ends at the latest when another call begins that outlasts it, and a run of polls when
//!   another run begins;
//! - a call that did not return ends when the thread's next call begins, or with its rank;
//! - a region that the program ended out of order ends those inside it, which then begin again;
//! - a region that never ended ends with its rank.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::io;
use std::iter::Peekable;

use trace_format::plain::Plain;

use super::content::{Call, Content, What};
use crate::spill::Record;

/// Kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A call, or time of the recorder.
    Call,
    /// The region with this number.
    Region(u32),
    /// A parallel region of OpenMP that begins at the place with this number.
    Team(u32),
}

/// A beginning or end of a call or region.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Time, nanoseconds.
    pub at_ns: i64,
    /// Whether it is a beginning.
    pub begins: bool,
    /// What begins or ends.
    pub kind: Kind,
    /// The call, or the marker that began the region.
    pub call: Call,
}

/// Prefix of the names of recorder time.
pub const RECORDER_PREFIX: &str = "recorder: ";

/// The name of the call or region of a step.
pub fn step_name(content: &Content, step: &Step) -> String {
    match (step.kind, step.call.what) {
        (Kind::Region(region), _) => content.head.regions[region as usize].clone(),
        (Kind::Call, What::Call(function)) => {
            content.head.functions[function as usize].name.clone()
        }
        (Kind::Call, What::Tool(reason)) => {
            format!("{RECORDER_PREFIX}{}", format!("{reason:?}").to_lowercase())
        }
        (Kind::Team(_), _) => "parallel region".into(),
        _ => "?".into(),
    }
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: u64,
    end_ns: i64,
    /// A call that did not return: it ends when the next one begins.
    unreturned: bool,
    kind: Kind,
    call: Call,
}

/// Time of an end (of several at one time, the one that began last comes first), rank and thread.
type Due = (i64, Reverse<u64>, usize, u32);

/// Iterates over the steps of all ranks or of one rank.
pub struct Steps<'a, I: Iterator<Item = Call>> {
    content: &'a Content<'a>,
    calls: Peekable<I>,
    open: HashMap<(usize, u32), Vec<Open>>,
    /// Ends of open calls and regions.
    ends: BinaryHeap<Reverse<Due>>,
    ready: VecDeque<Step>,
    next_id: u64,
    passed: &'a dyn Fn(&Call),
}

impl<'a, I: Iterator<Item = Call>> Steps<'a, I> {
    /// Iterates over the steps of `calls`, which are in order of their beginning.
    ///
    /// Calls `passed` with every call that it reads.
    pub fn new(content: &'a Content<'a>, calls: I, passed: &'a dyn Fn(&Call)) -> Self {
        Self {
            content,
            calls: calls.peekable(),
            open: HashMap::new(),
            ends: BinaryHeap::new(),
            ready: VecDeque::new(),
            next_id: 0,
            passed,
        }
    }

    fn end(&mut self, open: Open, at_ns: i64) {
        self.ready.push_back(Step { at_ns, begins: false, kind: open.kind, call: open.call });
    }

    fn push(&mut self, kind: Kind, call: Call, at_ns: i64, end_ns: i64, unreturned: bool) {
        let id = self.next_id;
        self.next_id += 1;
        let stack = self.open.entry((call.rank, call.thread)).or_default();
        stack.push(Open { id, end_ns, unreturned, kind, call });
        self.ends.push(Reverse((end_ns, Reverse(id), call.rank, call.thread)));
        self.ready.push_back(Step { at_ns, begins: true, kind, call });
    }

    fn pop_top(&mut self, key: (usize, u32)) -> Option<Open> {
        self.open.get_mut(&key).and_then(Vec::pop)
    }

    fn top(&self, key: (usize, u32)) -> Option<Open> {
        self.open.get(&key).and_then(|stack| stack.last().copied())
    }

    fn begin(&mut self, call: Call) {
        let key = (call.rank, call.thread);
        let at_ns = call.begin_ns;
        let last_ns = self.content.head.ranks[call.rank].last_ns.max(at_ns);
        while let Some(top) = self.top(key).filter(|top| top.unreturned) {
            self.pop_top(key);
            self.end(top, at_ns);
        }
        match call.what {
            What::RegionBegin(region) => {
                self.push(Kind::Region(region), call, at_ns, last_ns, false);
            }
            What::RegionEnd(region) => self.end_region(key, Kind::Region(region), at_ns),
            What::TeamBegin(place) => self.push(Kind::Team(place), call, at_ns, last_ns, false),
            What::TeamEnd(place) => self.end_region(key, Kind::Team(place), at_ns),
            What::Beside => {}
            What::Call(_) | What::Tool(_) => {
                let unreturned = call.end_ns.is_none() && !call.event.abandoned;
                let end_ns = match call.end_ns {
                    Some(end_ns) => end_ns.max(at_ns),
                    None if unreturned => last_ns,
                    None => at_ns,
                };
                // Alternating runs of polls follow each other, none is inside another.
                let polls = call.event.polls.is_some();
                let overlaps = |top: &Open| {
                    top.kind == Kind::Call
                        && !unreturned
                        && (top.end_ns < end_ns || polls && top.call.event.polls.is_some())
                };
                while let Some(top) = self.top(key).filter(overlaps) {
                    self.pop_top(key);
                    self.end(top, at_ns);
                }
                self.push(Kind::Call, call, at_ns, end_ns, unreturned);
            }
        }
    }

    fn end_region(&mut self, key: (usize, u32), region: Kind, at_ns: i64) {
        let is_region = |open: &Open| open.kind == region;
        let stack = self.open.get(&key);
        if !stack.is_some_and(|stack| stack.iter().any(is_region)) {
            // The program ends a region that it never began.
            return;
        }
        let mut again = Vec::new();
        while let Some(top) = self.pop_top(key) {
            self.end(top, at_ns);
            if is_region(&top) {
                break;
            }
            if top.kind != Kind::Call {
                again.push(top);
            }
        }
        for open in again.into_iter().rev() {
            self.push(open.kind, open.call, at_ns, open.end_ns, false);
        }
    }

    /// Ends what is due before the next beginning; returns whether anything was due.
    fn end_due(&mut self) -> bool {
        let Some(&Reverse((at_ns, Reverse(id), rank, thread))) = self.ends.peek() else {
            return false;
        };
        let due = self.calls.peek().is_none_or(|call| at_ns <= call.begin_ns);
        if !due {
            return false;
        }
        self.ends.pop();
        let key = (rank, thread);
        // It may have been cut off already.
        if self.open.get(&key).is_some_and(|stack| stack.iter().any(|open| open.id == id)) {
            while let Some(top) = self.pop_top(key) {
                self.end(top, at_ns);
                if top.id == id {
                    break;
                }
            }
        }
        true
    }
}

impl<I: Iterator<Item = Call>> Iterator for Steps<'_, I> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            if self.end_due() {
                continue;
            }
            let call = self.calls.next()?;
            (self.passed)(&call);
            self.begin(call);
        }
    }
}

/// One end of a message, or a rank's part in a collective operation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Time, nanoseconds.
    pub at_ns: i64,
    /// The rank's counter at that time.
    pub ticks: u64,
    /// Number of the message or of the operation.
    pub number: u64,
    pub bytes: u64,
    /// Position of its rank among the exported ones.
    pub rank: u32,
    /// Position of the other end's rank.
    pub other: u32,
    pub tag: i32,
    /// Position of the communicator.
    pub communicator: u32,
}
// SAFETY: repr(C), integers only, four of 8 bytes and then four of 4: no padding.
unsafe impl Plain for Link {}
const _: () = assert!(size_of::<Link>() == 4 * 8 + 4 * 4);

impl Record for Link {
    type Key = (i64, u64, u32);
    fn key(&self) -> (i64, u64, u32) {
        (self.at_ns, self.number, self.rank)
    }
}

/// Links in order of time; calls take those that belong to them.
pub struct Links<'a> {
    links: Peekable<Box<dyn Iterator<Item = io::Result<Link>> + 'a>>,
    /// Links at the current time, by rank and counter.
    due: BTreeMap<(u32, u64), Vec<Link>>,
    due_ns: i64,
}

impl<'a> Links<'a> {
    /// `links` are in order of time.
    pub fn new(links: impl Iterator<Item = io::Result<Link>> + 'a) -> Self {
        let links: Box<dyn Iterator<Item = io::Result<Link>> + 'a> = Box::new(links);
        Self { links: links.peekable(), due: BTreeMap::new(), due_ns: i64::MIN }
    }

    /// Takes the links of a rank at a value of its counter; times must not decrease.
    ///
    /// # Errors
    /// The links cannot be read.
    pub fn take(&mut self, rank: usize, at_ns: i64, ticks: u64) -> io::Result<Vec<Link>> {
        if at_ns > self.due_ns {
            self.due.clear();
            self.due_ns = at_ns;
        }
        while let Some(link) =
            self.links.next_if(|link| link.as_ref().map_or(true, |link| link.at_ns <= at_ns))
        {
            let link = link?;
            if link.at_ns == at_ns {
                self.due.entry((link.rank, link.ticks)).or_default().push(link);
            }
        }
        Ok(self.due.remove(&(rank as u32, ticks)).unwrap_or_default())
    }
}
