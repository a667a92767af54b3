//! Formats a recorded trace as the lines of an `.expected` file.
//!
//! [`lines`] gives one line per call, by rank and thread. Everything that depends on the MPI
//! library gets a name there: requests `r1`, `r2` … in order of creation, messages of matched
//! probes `m1` …, communicators `world`, `self`, `c1` … in order of definition on that rank,
//! windows `w1`, files `f1`, and MPI's constants.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::trace::{Named, RankTrace, Trace};
use trace_format::header::{Communicator, Definition, ObjectKind};
use trace_format::layout::{CANCELLED, COMPLETED};
use trace_format::meaning::{Class, Meaning};
use trace_format::procedures::{Direction, Procedure, all};
use trace_format::reader::RequestState;

/// Lines of each thread; the key is rank and thread.
pub type Lines = BTreeMap<(usize, u32), Vec<String>>;

/// What identifies a communicator in a run: hash and instance.
type Identity = (u64, u32);

/// Calls that complete requests.
const COMPLETING: &[&str] =
    &["Wait", "Test", "Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome"];

/// Formats all calls of a trace.
///
/// # Panics
/// If definitions contradict each other.
pub fn lines(trace: &Trace) -> Lines {
    let procedures: HashMap<String, Procedure> =
        all().into_iter().map(|procedure| (procedure.name.clone(), procedure)).collect();
    let members = communicators_agree(trace);
    let mut lines = Lines::new();
    for (rank, of_rank) in trace.ranks.iter().enumerate() {
        let mut formatter = Formatter::new(rank, of_rank, &procedures, &members);
        // Requests are numbered across all threads; a call takes effect when it ends.
        let mut order: Vec<(u32, &Named)> = of_rank
            .threads
            .iter()
            .flat_map(|thread| thread.events.iter().map(move |named| (thread.number, named)))
            .filter(|(_, named)| named.is_call())
            .collect();
        order.sort_by_key(|(_, named)| named.event.end);
        for (thread, named) in order {
            let line = formatter.line(named);
            lines.entry((rank, thread)).or_default().push(line);
        }
    }
    lines
}

fn communicators(rank: &RankTrace) -> impl Iterator<Item = &Communicator> {
    rank.file.definitions.iter().filter_map(|definition| match definition {
        Definition::Communicator(communicator) => Some(communicator),
        _ => None,
    })
}

/// World ranks from runs of (first, stride, count).
fn expand(runs: &[(i64, i64, u32)]) -> Vec<i64> {
    let run = |&(first, stride, count): &(i64, i64, u32)| {
        (0..i64::from(count)).map(move |index| first + stride * index)
    };
    runs.iter().flat_map(run).collect()
}

/// Formats a group of world ranks; `x` is a process outside the world.
fn group(ranks: &[i64]) -> String {
    let name = |rank: &i64| if *rank < 0 { "x".to_owned() } else { rank.to_string() };
    ranks.iter().map(name).collect::<Vec<_>>().join(",")
}

/// Local and remote group of each communicator: one entry for an intracommunicator, one per side
/// for an intercommunicator.
type Members = HashMap<Identity, Vec<(Vec<i64>, Vec<i64>)>>;

/// Checks that exactly the members of each communicator defined it, identically and once.
fn communicators_agree(trace: &Trace) -> Members {
    let mut members = Members::new();
    let mut holders: HashMap<Identity, BTreeSet<i64>> = HashMap::new();
    for (rank, of_rank) in trace.ranks.iter().enumerate() {
        for communicator in communicators(of_rank) {
            let identity = (communicator.hash, communicator.instance);
            let is_new = holders.entry(identity).or_default().insert(rank as i64);
            assert!(is_new, "rank {rank} defines {identity:x?} twice: {communicator:?}");
            if communicator.members.is_empty() {
                assert!(communicator.rank != 0, "rank {rank}: {communicator:?}");
            } else {
                // Only the first member of this world lists them.
                let sides = (expand(&communicator.members), expand(&communicator.remote_members));
                let first = sides.0.iter().position(|member| *member >= 0);
                assert_eq!(first, Some(communicator.rank as usize), "{communicator:?}");
                members.entry(identity).or_default().push(sides);
            }
        }
    }
    for (identity, holders) in &holders {
        // Its rank 0 may be a process of another world.
        let Some(sides) = members.get(identity) else { continue };
        let all: BTreeSet<i64> =
            sides.iter().flat_map(|(own, other)| own.iter().chain(other)).copied().collect();
        let in_world: BTreeSet<i64> = all.into_iter().filter(|rank| *rank >= 0).collect();
        assert_eq!(&in_world, holders, "members of {identity:x?} and the ranks that know it");
    }
    members
}

/// The operation that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    Receive,
    File,
    Other,
}

#[derive(Debug)]
struct Request {
    number: usize,
    kind: Kind,
    persistent: bool,
    active: bool,
}

/// Values of MPI's constants in a family of ABIs.
#[derive(Debug, Clone, Copy)]
struct Constants {
    any_source: i32,
    any_tag: i32,
    proc_null: i32,
    root: i32,
    /// MPI_LOCK_EXCLUSIVE and MPI_LOCK_SHARED.
    locks: [u64; 2],
}

impl Constants {
    fn for_library(family: &str) -> Self {
        let ((any_source, any_tag, proc_null, root), locks) = match family {
            "openmpi" => ((-1, -1, -2, -4), [1, 2]),
            "mpich" => ((-2, -1, -1, -3), [234, 235]),
            "abi" => ((-1, -2, -3, -4), [301, 302]),
            _ => panic!("the trace is of an MPI that the recorder does not know: {family}"),
        };
        Self { any_source, any_tag, proc_null, root, locks }
    }
}

/// Formats the calls of a rank, keeping track of its requests and messages.
struct Formatter<'a> {
    rank: &'a RankTrace,
    constants: Constants,
    procedures: &'a HashMap<String, Procedure>,
    /// By local id: time of definition, name, and members with instance.
    communicators: HashMap<u16, Vec<(u64, String, String)>>,
    /// By handle: requests that share a handle complete in order.
    requests: HashMap<u32, VecDeque<Request>>,
    created: usize,
    messages: HashMap<u32, usize>,
    probed: usize,
}

impl<'a> Formatter<'a> {
    fn new(
        world_rank: usize,
        rank: &'a RankTrace,
        procedures: &'a HashMap<String, Procedure>,
        members: &Members,
    ) -> Self {
        let mut by_id: HashMap<u16, Vec<(u64, String, String)>> = HashMap::new();
        for (order, communicator) in communicators(rank).enumerate() {
            let name = match order {
                0 => "world".to_owned(),
                1 => "self".to_owned(),
                _ => format!("c{}", order - 1),
            };
            let whole = describe(world_rank as i64, communicator, members);
            by_id.entry(communicator.id).or_default().push((communicator.ticks, name, whole));
        }
        Self {
            rank,
            constants: Constants::for_library(&rank.file.header.mpi_family),
            procedures,
            communicators: by_id,
            requests: HashMap::new(),
            created: 0,
            messages: HashMap::new(),
            probed: 0,
        }
    }

    /// Name of the communicator that had this id at that time.
    fn communicator(&self, id: u16, ticks: u64) -> &str {
        let known = self.communicators.get(&id).and_then(|all| {
            all.iter().rev().find(|(since, ..)| *since <= ticks).map(|(_, name, _)| name.as_str())
        });
        known.unwrap_or("unknown")
    }

    /// Name, members and instance of the communicator that a call created.
    fn created_communicator(&self, id: u16, end: u64) -> String {
        let known = self.communicators.get(&id).and_then(|all| {
            all.iter()
                .find(|(since, ..)| *since >= end)
                .map(|(_, name, whole)| format!("{name}{whole}"))
        });
        known.unwrap_or_else(|| if id == 0 { "null".to_owned() } else { format!("undefined {id}") })
    }

    fn peer(&self, peer: i32) -> String {
        let Constants { any_source, proc_null, root, .. } = self.constants;
        match peer {
            _ if peer == any_source => "ANY_SOURCE".to_owned(),
            _ if peer == proc_null => "PROC_NULL".to_owned(),
            _ if peer == root => "ROOT".to_owned(),
            _ => peer.to_string(),
        }
    }

    fn tag(&self, tag: i32) -> String {
        if tag == self.constants.any_tag { "ANY_TAG".to_owned() } else { tag.to_string() }
    }

    /// Name of the request that a handle currently refers to.
    fn request(&self, key: u32) -> String {
        match self.requests.get(&key).and_then(VecDeque::front) {
            _ if key == 0 => "null".to_owned(),
            Some(request) => format!("r{}", request.number),
            None => format!("stale {key:x}"),
        }
    }

    fn create(&mut self, key: u32, kind: Kind, persistent: bool) -> String {
        self.created += 1;
        let request = Request { number: self.created, kind, persistent, active: !persistent };
        self.requests.entry(key).or_default().push_back(request);
        if key == 0 { "null".to_owned() } else { format!("r{}", self.created) }
    }

    fn start(&mut self, key: u32) -> String {
        let text = self.request(key);
        if let Some(request) = self.requests.get_mut(&key).and_then(VecDeque::front_mut) {
            request.active = true;
        }
        text
    }

    /// Formats a completion and updates the request.
    fn complete(&mut self, state: RequestState) -> String {
        let status = match state.cancelled {
            true => "cancelled".to_owned(),
            false => format!("{}/{}/{}", self.peer(state.peer), self.tag(state.tag), state.bytes),
        };
        if state.request == 0 {
            return "null".to_owned();
        }
        let Some(sharing) = self.requests.get_mut(&state.request) else {
            return format!("stale {:x}", state.request);
        };
        let Some(at) = sharing.iter().position(|request| request.active) else {
            return sharing
                .front()
                .map_or("stale".to_owned(), |r| format!("r{}:inactive", r.number));
        };
        let request = &mut sharing[at];
        let text = match (request.kind, state.cancelled) {
            (_, true) | (Kind::Receive, _) => format!("r{}:{status}", request.number),
            (Kind::Send, _) => format!("r{}:sent", request.number),
            (Kind::File, _) => format!("r{}:file/{}", request.number, state.bytes),
            (Kind::Other, _) => format!("r{}:done", request.number),
        };
        request.active = false;
        if !request.persistent {
            sharing.remove(at);
        }
        text
    }

    fn line(&mut self, named: &Named) -> String {
        let short = named.name.trim_start_matches("MPI_");
        let Some(procedure) = self.procedures.get(&named.name) else { return named.name.clone() };
        let mut line = Line::new(named);
        if let Some((polls, _)) = named.event.polls {
            line.add("polls", polls);
        }
        if COMPLETING.contains(&short) {
            self.completion(short, named, &mut line);
        } else {
            self.attributes(procedure, named, &mut line);
        }
        line.finish()
    }

    fn completion(&mut self, short: &str, named: &Named, line: &mut Line) {
        let event = &named.event;
        if named.event.polls.is_some() {
            return;
        }
        let single = matches!(short, "Wait" | "Test" | "Waitany" | "Testany");
        let completed: Vec<String> = if single {
            let state = RequestState {
                request: event.request,
                completed: event.communicator & COMPLETED != 0,
                cancelled: event.communicator & CANCELLED != 0,
                peer: event.peer,
                tag: event.tag,
                bytes: event.sent,
                error: event.error,
            };
            state.completed.then(|| self.complete(state)).into_iter().collect()
        } else {
            let states: Vec<RequestState> = self.rank.file.requests(event).collect();
            let complete = |state: RequestState| match state.completed {
                true => self.complete(state),
                false => format!("{}:open", self.request(state.request)),
            };
            states.into_iter().map(complete).collect()
        };
        line.add("completes", format!("[{}]", completed.join(" ")));
    }

    fn attributes(&mut self, procedure: &Procedure, named: &Named, line: &mut Line) {
        let (event, class) = (&named.event, Meaning::by_name(&named.name).class);
        let has = |kind: &str| procedure.parameters.iter().any(|p| p.kind == kind);
        let takes = |name: &str| {
            let given = |direction| !matches!(direction, Direction::Out);
            procedure.parameters.iter().any(|p| p.name == name && given(p.direction))
        };
        let makes = |kind: &str| {
            procedure.parameters.iter().any(|p| p.kind == kind && p.direction == Direction::Out)
        };
        let uses = |kind: &str| {
            procedure.parameters.iter().any(|p| p.kind == kind && p.direction != Direction::Out)
        };
        let buffer = |direction| {
            has("DATATYPE")
                && procedure.parameters.iter().any(|p| {
                    p.kind == "BUFFER"
                        && (p.direction == direction || p.direction == Direction::InOut)
                })
        };
        let short = named.name.trim_start_matches("MPI_").to_lowercase();

        // Partners.
        let point_to_point = matches!(class, Class::PointToPoint | Class::Probe);
        let partners = point_to_point || makes("COMMUNICATOR") || class == Class::OneSided;
        if takes("root") {
            line.add("root", self.peer(event.peer));
        } else {
            let names = ["dest", "source", "target_rank", "rank", "remote_leader"];
            if short == "mrecv" || partners && names.iter().any(|name| takes(name)) {
                line.add("peer", self.peer(event.peer));
            }
        }
        if takes("tag") || takes("sendtag") || short == "mrecv" {
            line.add("tag", self.tag(event.tag));
        }

        // Bytes.
        let posted = makes("REQUEST");
        let received = if posted { "posted" } else { "received" };
        if let Some(half) = event.receive {
            line.add("sent", event.sent);
            line.add("source", self.peer(half.peer));
            line.add("recvtag", self.tag(half.tag));
            line.add(received, half.bytes);
        } else if class == Class::Collective {
            if buffer(Direction::In) || buffer(Direction::Out) {
                line.add("sent", event.sent);
                line.add("received", event.received);
            }
        } else if class == Class::Probe && event.polls.is_none() {
            line.add("bytes", event.sent);
        } else if class == Class::Datatypes && (buffer(Direction::In) || buffer(Direction::Out)) {
            line.add("moved", event.sent);
        } else if matches!(class, Class::PointToPoint | Class::OneSided | Class::Io) {
            // The procedure table lists the buffer of MPI_Precv_init as an input.
            let receives = short == "precv_init";
            match (buffer(Direction::In) && !receives, buffer(Direction::Out) || receives) {
                (true, true) => {
                    line.add("sent", event.sent);
                    line.add("received", event.received);
                }
                (true, false) => line.add("sent", event.sent),
                (false, true) => line.add(received, event.sent),
                (false, false) => {}
            }
        }

        self.handles(procedure, named, line, &uses, &makes);
        self.synchronisation(named, line);
    }

    /// The group of an epoch's ranks, and the kind of a lock.
    fn synchronisation(&self, named: &Named, line: &mut Line) {
        let event = &named.event;
        match named.name.as_str() {
            "MPI_Win_start" | "MPI_Win_post" => line.add("group", self.group(event.sent)),
            "MPI_Win_lock" => {
                let [exclusive, shared] = self.constants.locks;
                let kind = match event.sent {
                    kind if kind == exclusive => "exclusive".to_owned(),
                    kind if kind == shared => "shared".to_owned(),
                    other => other.to_string(),
                };
                line.add("lock", kind);
            }
            _ => {}
        }
    }

    /// World ranks of a group of MPI_Win_start and MPI_Win_post.
    fn group(&self, wanted: u64) -> String {
        let members = self.rank.file.definitions.iter().find_map(|definition| match definition {
            Definition::Group { number, members } => {
                (u64::from(*number) == wanted).then_some(members)
            }
            _ => None,
        });
        let runs = members.into_iter().flatten();
        let ranks = runs.flat_map(|(first, stride, count)| {
            (0..i64::from(*count)).map(move |at| first + at * stride)
        });
        ranks.map(|rank| rank.to_string()).collect::<Vec<_>>().join(",")
    }

    fn handles(
        &mut self,
        procedure: &Procedure,
        named: &Named,
        line: &mut Line,
        uses: &dyn Fn(&str) -> bool,
        makes: &dyn Fn(&str) -> bool,
    ) {
        let (event, class) = (&named.event, Meaning::by_name(&named.name).class);
        let end = event.end.unwrap_or(u64::MAX);
        let object = uses("WINDOW") && class == Class::OneSided || uses("FILE");
        if uses("COMMUNICATOR") || object {
            line.add("comm", self.communicator(event.communicator, event.begin).to_owned());
        }
        if object {
            let letter = if uses("WINDOW") { 'w' } else { 'f' };
            line.add(
                if letter == 'w' { "win" } else { "file" },
                format!("{letter}{}", event.object),
            );
        }
        if makes("COMMUNICATOR") {
            line.add("new", self.created_communicator(event.sent as u16, end));
        } else if makes("WINDOW") || makes("FILE") {
            line.add("new", self.object(event.sent as u32));
        }
        if named.name == "MPI_Comm_set_name" {
            let name = self.rank.file.definitions.iter().find_map(|definition| match definition {
                Definition::CommunicatorName { id, ticks, name } => {
                    (*id == event.communicator && *ticks >= end).then_some(name.clone())
                }
                _ => None,
            });
            line.add("name", name.unwrap_or_else(|| "missing".to_owned()));
        }
        if makes("MESSAGE") && event.polls.is_none() {
            self.probed += 1;
            self.messages.insert(event.request, self.probed);
            line.add("message", format!("m{}", self.probed));
        } else if uses("MESSAGE") {
            let key = self.rank.file.message(event).unwrap_or(event.request);
            let number = self.messages.get(&key).map(|number| format!("m{number}"));
            line.add("message", number.unwrap_or_else(|| "unknown".to_owned()));
        }
        let several = procedure.parameters.iter().any(|p| p.kind == "REQUEST" && p.array.is_some());
        if makes("REQUEST") {
            let short = named.name.trim_start_matches("MPI_").to_lowercase();
            let kind = match class {
                // MPICH 4.0 does not report what such a request received.
                Class::PointToPoint if short.contains("sendrecv") => Kind::Other,
                Class::PointToPoint if short.contains("recv") => Kind::Receive,
                Class::PointToPoint => Kind::Send,
                Class::Io => Kind::File,
                _ => Kind::Other,
            };
            line.add("request", self.create(event.request, kind, short.ends_with("_init")));
        } else if several {
            let states: Vec<RequestState> = self.rank.file.requests(event).collect();
            let started = states.iter().map(|state| self.start(state.request));
            let started: Vec<String> = started.collect();
            line.add("requests", format!("[{}]", started.join(" ")));
        } else if uses("REQUEST") {
            line.add("request", self.request(event.request));
            match named.name.as_str() {
                "MPI_Start" => {
                    self.start(event.request);
                }
                "MPI_Request_free" => {
                    self.requests.entry(event.request).or_default().pop_front();
                }
                "MPI_Request_get_status" if event.polls.is_none() => {
                    let status =
                        format!("{}/{}/{}", self.peer(event.peer), self.tag(event.tag), event.sent);
                    line.add("says", status);
                }
                _ => {}
            }
        }
    }

    fn object(&self, wanted: u32) -> String {
        let found = self.rank.file.definitions.iter().find_map(|definition| match definition {
            Definition::Object { kind, id, communicator, name, .. } if *id == wanted => {
                let base = name.rsplit('/').next().unwrap_or_default();
                let parent = self.communicator(*communicator, u64::MAX);
                Some(match kind {
                    ObjectKind::Window => format!("w{id}@{parent}"),
                    ObjectKind::File => format!("f{id}@{parent}={base}"),
                })
            }
            _ => None,
        });
        found.unwrap_or_else(|| format!("undefined {wanted}"))
    }
}

/// `[0,1,2]#0` or, for an intercommunicator, `[0|1,2]#0`: members and instance.
fn describe(world_rank: i64, communicator: &Communicator, members: &Members) -> String {
    let Some(sides) = members.get(&(communicator.hash, communicator.instance)) else {
        return format!("[?]#{}", communicator.instance);
    };
    let own = sides.iter().find(|(own, _)| own.contains(&world_rank));
    let Some((own, other)) = own else {
        return format!("(rank {world_rank} is not a member of {sides:?})");
    };
    assert_eq!(own.len(), communicator.size as usize, "{communicator:?}");
    assert_eq!(own.get(communicator.rank as usize), Some(&world_rank), "{communicator:?}");
    assert_eq!(other.len(), communicator.remote_size as usize, "{communicator:?}");
    let bar = if communicator.inter { format!("|{}", group(other)) } else { String::new() };
    format!("[{}{bar}]#{}", group(own), communicator.instance)
}

/// A line under construction; remembers which fields of the slot it shows.
struct Line {
    text: String,
    shown: Vec<&'static str>,
    event: trace_format::reader::Event,
}

impl Line {
    fn new(named: &Named) -> Self {
        Self { text: named.name.clone(), shown: Vec::new(), event: named.event }
    }

    fn add(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.text.push_str(&format!(" {name}={value}"));
        self.shown.push(name);
    }

    /// The line, followed by fields of the slot that are set but should not be.
    fn finish(mut self) -> String {
        let event = &self.event;
        let is_shown = |names: &[&str]| names.iter().any(|name| self.shown.contains(name));
        let mut stray = String::new();
        let completes = is_shown(&["completes", "says"]) || event.polls.is_some();
        if event.peer != 0 && !completes && !is_shown(&["peer", "root"]) {
            stray.push_str(&format!(" stray-peer={}", event.peer));
        }
        let tag = &["tag", "win", "file", "sent", "received", "posted"];
        let detail = event.payload[0] >> 32;
        if detail != 0 && !completes && !is_shown(tag) {
            stray.push_str(&format!(" stray-tag={detail}"));
        }
        let bytes = &["sent", "received", "posted", "bytes", "moved", "new", "group", "lock"];
        if event.sent != 0 && !completes && !is_shown(bytes) {
            stray.push_str(&format!(" stray-bytes={}", event.sent));
        }
        if event.received != 0 && !completes && !is_shown(&["received"]) {
            stray.push_str(&format!(" stray-received={}", event.received));
        }
        if event.request != 0 && !completes && !is_shown(&["request", "message"]) {
            stray.push_str(&format!(" stray-request={:x}", event.request));
        }
        self.text.push_str(&stray);
        self.text
    }
}
