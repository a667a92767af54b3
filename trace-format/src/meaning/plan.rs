//! Derives the positions of a procedure's arguments from the kinds of its parameters.
//!
//! The recorder's build script turns a [`Plan`] into a constant of each wrapper. The significant
//! fields of an event follow from the same plan ([`super::Fields`]).

use super::class::{Class, collective_stem};
use crate::procedures::{Direction, Parameter};

/// No such argument.
pub const NONE: u8 = u8::MAX;

/// What a buffer's count refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// The whole buffer.
    Buffer,
    /// Each rank of the communicator (of the remote group of an intercommunicator). An array of
    /// counts has one for each.
    Rank,
    /// Like `Rank`, for each neighbour received from.
    InNeighbour,
    /// Like `Rank`, for each neighbour sent to.
    OutNeighbour,
}

/// One side of a data movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Position of the buffer.
    pub buffer: u8,
    /// Position of the count or the array of counts.
    pub count: u8,
    /// Position of the datatype or the array of datatypes.
    pub datatype: u8,
    /// Whether `count` is an array.
    pub counts: bool,
    /// Whether `datatype` is an array.
    pub datatypes: bool,
    /// What a count refers to.
    pub per: Per,
    /// Whether it is significant at the root only.
    pub root_only: bool,
}

/// Kind of call, as far as it affects recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Attributes are given by their positions.
    Plain,
    /// A collective operation: its bytes depend on the communicator's size.
    Collective,
    /// MPI_Bcast: the root sends what the others receive.
    Broadcast,
    /// MPI_Reduce_scatter and its variants: sends all blocks, receives its own.
    ReduceScatter,
    /// Sends and receives point to point.
    SendReceive,
    /// Completes one request.
    One,
    /// Completes all requests of an array.
    All,
    /// Completes one request of an array.
    Any,
    /// Completes some requests of an array.
    Some,
    /// Works on an array of requests without completing them.
    Requests,
}

/// Positions of a procedure's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The function's number.
    pub function: u16,
    /// Kind of call.
    pub shape: Shape,
    /// Whether counts are 64 bits wide (the `_c` variant).
    pub large: bool,
    /// What is sent.
    pub send: Side,
    /// What is received.
    pub receive: Side,
    /// Destination, target or root.
    pub peer: u8,
    /// Whether `peer` is a root.
    pub rooted: bool,
    /// Whether the call itself, or its request, receives point to point.
    pub receives: bool,
    /// Source of the receiving half of `Shape::SendReceive`.
    pub source: u8,
    /// Whether rank 0 receives nothing (MPI_Exscan).
    pub first_receives_nothing: bool,
    /// Tag.
    pub tag: u8,
    /// Tag of the receiving half.
    pub receive_tag: u8,
    /// Communicator.
    pub communicator: u8,
    /// Number of partitions, which multiplies the count.
    pub partitions: u8,
    /// Pointer to the request that the call makes.
    pub request_out: u8,
    /// Whether that request is persistent.
    pub persistent: bool,
    /// Request that the call takes.
    pub request: u8,
    /// Whether `request` is passed by value.
    pub request_by_value: bool,
    /// Length of an array of requests.
    pub request_count: u8,
    /// Message handle (pointer).
    pub message: u8,
    /// Status or array of statuses.
    pub status: u8,
    /// Flag of a test or probe.
    pub flag: u8,
    /// Whether the call may find nothing and return at once (MPI_Test, MPI_Iprobe and similar).
    pub polls: bool,
    /// Index (any), or indices (some).
    pub index: u8,
    /// Number of completed requests (some).
    pub completed: u8,
    /// Communicator that the call makes (pointer).
    pub new_communicator: u8,
    /// Whether `new_communicator` may already be known (MPI_Comm_get_parent).
    pub asks_communicator: bool,
    /// Communicator that the call frees (pointer).
    pub freed_communicator: u8,
    /// Whether the call commits a datatype, its only argument.
    pub commits_datatype: bool,
    /// Datatype that the call frees.
    pub frees_datatype: bool,
    /// Window or file, by value.
    pub object: u8,
    /// Window or file that the call makes (pointer).
    pub new_object: u8,
    /// Window or file that the call frees (pointer).
    pub freed_object: u8,
    /// Whether the objects are windows rather than files.
    pub window: bool,
    /// The group of ranks of an epoch (MPI_Win_start, MPI_Win_post).
    pub group: u8,
    /// Whether the call frees a group, its only argument.
    pub frees_group: bool,
    /// Type of a lock.
    pub lock_type: u8,
    /// A string: the name of a file or communicator, or the string tag of a new one.
    pub text: u8,
}

/// No such side.
pub const NO_SIDE: Side = Side {
    buffer: NONE,
    count: NONE,
    datatype: NONE,
    counts: false,
    datatypes: false,
    per: Per::Buffer,
    root_only: false,
};

/// A plan without attributes.
pub const NO_PLAN: Plan = Plan {
    function: 0,
    shape: Shape::Plain,
    large: false,
    send: NO_SIDE,
    receive: NO_SIDE,
    peer: NONE,
    rooted: false,
    receives: false,
    source: NONE,
    first_receives_nothing: false,
    tag: NONE,
    receive_tag: NONE,
    communicator: NONE,
    partitions: NONE,
    request_out: NONE,
    persistent: false,
    request: NONE,
    request_by_value: false,
    request_count: NONE,
    message: NONE,
    status: NONE,
    flag: NONE,
    polls: false,
    index: NONE,
    completed: NONE,
    new_communicator: NONE,
    asks_communicator: false,
    freed_communicator: NONE,
    commits_datatype: false,
    frees_datatype: false,
    object: NONE,
    new_object: NONE,
    freed_object: NONE,
    window: false,
    group: NONE,
    frees_group: false,
    lock_type: NONE,
    text: NONE,
};

const COUNT_KINDS: &[&str] = &[
    "POLYXFER_NUM_ELEM_NNI",
    "POLYXFER_NUM_ELEM",
    "XFER_NUM_ELEM_NNI",
    "XFER_NUM_ELEM",
    "POLYDTYPE_NUM_ELEM_NNI",
    "POLYDTYPE_NUM_ELEM",
];

/// What the counts of the send and receive sides refer to. The kinds of the parameters do not tell.
fn per(name: &str) -> (Per, Per) {
    match collective_stem(name).as_deref() {
        Some("allgather" | "allgatherv" | "gather" | "gatherv") => (Per::Buffer, Per::Rank),
        Some("scatter" | "scatterv") => (Per::Rank, Per::Buffer),
        Some("alltoall" | "alltoallv" | "alltoallw") => (Per::Rank, Per::Rank),
        Some("reduce_scatter" | "reduce_scatter_block") => (Per::Rank, Per::Rank),
        Some("neighbor_allgather" | "neighbor_allgatherv") => (Per::Buffer, Per::InNeighbour),
        Some("neighbor_alltoall" | "neighbor_alltoallv" | "neighbor_alltoallw") => {
            (Per::OutNeighbour, Per::InNeighbour)
        }
        _ => (Per::Buffer, Per::Buffer),
    }
}

struct Found {
    buffer: usize,
    count: Option<usize>,
    datatype: usize,
}

/// Buffers with their count and datatype: the first ones between a buffer and the next. Two
/// adjacent buffers share the following ones (reductions).
fn buffers(parameters: &[Parameter]) -> Vec<Found> {
    let at: Vec<usize> =
        (0..parameters.len()).filter(|i| parameters[*i].kind == "BUFFER").collect();
    at.iter()
        .enumerate()
        .filter_map(|(order, &buffer)| {
            let own_end = at.get(order + 1).copied().unwrap_or(parameters.len());
            let find = |end: usize, wanted: &dyn Fn(&Parameter) -> bool| {
                (buffer + 1..end).find(|i| wanted(&parameters[*i]))
            };
            let is_type = |p: &Parameter| p.kind == "DATATYPE" && p.direction == Direction::In;
            let is_count = |p: &Parameter| COUNT_KINDS.contains(&p.kind.as_str());
            let end = if find(own_end, &is_type).is_some() { own_end } else { parameters.len() };
            let datatype = find(end, &is_type)?;
            Some(Found { buffer, count: find(datatype, &is_count), datatype })
        })
        .collect()
}

/// A position as stored in a plan.
fn at(position: usize) -> u8 {
    u8::try_from(position).expect("no procedure has that many parameters")
}

fn side(parameters: &[Parameter], found: &Found, per: Per) -> Side {
    let Found { buffer, count, datatype } = *found;
    let is_array = |position: usize| parameters[position].array.is_some();
    Side {
        buffer: at(buffer),
        count: count.map_or(NONE, at),
        datatype: at(datatype),
        counts: count.is_some_and(is_array),
        datatypes: is_array(datatype),
        per,
        root_only: parameters[buffer].root_only,
    }
}

fn shape(name: &str) -> Shape {
    match name {
        "MPI_Wait" | "MPI_Test" | "MPI_Request_get_status" => return Shape::One,
        "MPI_Waitall" | "MPI_Testall" => return Shape::All,
        "MPI_Waitany" | "MPI_Testany" => return Shape::Any,
        "MPI_Waitsome" | "MPI_Testsome" => return Shape::Some,
        "MPI_Startall" => return Shape::Requests,
        _ => {}
    }
    if name.to_lowercase().contains("sendrecv") {
        return Shape::SendReceive;
    }
    match collective_stem(name).as_deref() {
        None => Shape::Plain,
        Some("bcast") => Shape::Broadcast,
        Some("reduce_scatter" | "reduce_scatter_block") => Shape::ReduceScatter,
        Some(_) => Shape::Collective,
    }
}

impl Plan {
    /// The plan of a procedure, from its number, its name, and the parameters of the base or `_c`
    /// variant.
    pub fn new(
        function: u16,
        name: &str,
        class: Class,
        parameters: &[Parameter],
        twin: bool,
    ) -> Self {
        let position = |wanted: &dyn Fn(&Parameter) -> bool| {
            parameters.iter().position(wanted).map_or(NONE, at)
        };
        let named = |names: &[&str]| position(&|p: &Parameter| names.contains(&p.name.as_str()));
        let of = |kind: &str, direction: Direction, array: bool| {
            position(&|p: &Parameter| {
                p.kind == kind && p.direction == direction && p.array.is_some() == array
            })
        };
        let or = |first: u8, second: u8| if first == NONE { second } else { first };
        let shape = shape(name);
        let mut plan = Self { function, shape, large: twin, ..NO_PLAN };

        let (send_per, receive_per) = per(name);
        for found in buffers(parameters) {
            plan.large |= found.count.is_some_and(|at| parameters[at].kind.starts_with("XFER_"));
            match parameters[found.buffer].direction {
                // Unpacked data count where they are received.
                Direction::In if name.starts_with("MPI_Unpack") => {}
                Direction::In if name != "MPI_Compare_and_swap" || found.buffer == 0 => {
                    plan.send = side(parameters, &found, send_per);
                }
                Direction::In => {}
                Direction::Out => plan.receive = side(parameters, &found, receive_per),
                Direction::InOut => {
                    plan.send = side(parameters, &found, send_per);
                    plan.receive = side(parameters, &found, receive_per);
                }
            }
        }

        let point_to_point = matches!(class, Class::PointToPoint | Class::Probe);
        if point_to_point || name.contains("Intercomm_create") || name == "MPI_Comm_create_group" {
            plan.peer = or(named(&["dest"]), named(&["source", "remote_leader"]));
            plan.tag = named(&["sendtag", "tag"]);
            if shape == Shape::SendReceive {
                plan.source = named(&["source"]);
                plan.receive_tag = named(&["recvtag"]);
            }
        }
        if class == Class::OneSided {
            plan.peer = named(&["target_rank", "rank"]);
        }
        let root = named(&["root"]);
        if root != NONE {
            (plan.peer, plan.rooted) = (root, true);
        }
        let may_receive = point_to_point
            || class == Class::Completion
            || class == Class::Io && name.contains("read");
        plan.receives = may_receive && (named(&["dest"]) == NONE || shape == Shape::SendReceive);

        plan.communicator = of("COMMUNICATOR", Direction::In, false);
        plan.partitions = named(&["partitions"]);
        plan.request_out = of("REQUEST", Direction::Out, false);
        plan.persistent = name.contains("_init") && plan.request_out != NONE;
        let several = of("REQUEST", Direction::InOut, true);
        let taken = of("REQUEST", Direction::In, false);
        plan.request_by_value = taken != NONE && name != "MPI_Cancel";
        plan.request = or(several, or(of("REQUEST", Direction::InOut, false), taken));
        if several != NONE {
            plan.request_count = named(&["count", "incount"]);
        }
        plan.message =
            or(of("MESSAGE", Direction::Out, false), of("MESSAGE", Direction::InOut, false));
        let statuses = or(of("STATUS", Direction::Out, false), of("STATUS", Direction::Out, true));
        // An array of statuses is supported only with the requests that the call completes, because
        // the recorder's substitute must be long enough.
        if may_receive
            && statuses != NONE
            && (several != NONE || parameters[usize::from(statuses)].array.is_none())
        {
            plan.status = statuses;
        }
        plan.first_receives_nothing = collective_stem(name).as_deref() == Some("exscan");
        let tests = matches!(class, Class::Completion | Class::Probe);
        if tests || matches!(name, "MPI_Parrived" | "MPI_Win_test") {
            plan.flag = of("LOGICAL", Direction::Out, false);
            let waits = name.contains("Wait") || matches!(name, "MPI_Probe" | "MPI_Mprobe");
            plan.polls = !waits && (class != Class::Completion || shape != Shape::Plain);
            plan.index = named(&["index", "array_of_indices"]);
            plan.completed = named(&["outcount"]);
        }
        plan.new_communicator = of("COMMUNICATOR", Direction::Out, false);
        plan.freed_communicator = of("COMMUNICATOR", Direction::InOut, false);
        plan.asks_communicator = name == "MPI_Comm_get_parent";
        plan.commits_datatype = name == "MPI_Type_commit";
        plan.frees_datatype = name == "MPI_Type_free";
        plan.window = class == Class::OneSided;
        if class == Class::OneSided {
            plan.group = if name == "MPI_Win_get_group" { NONE } else { named(&["group"]) };
            plan.lock_type = named(&["lock_type"]);
        }
        plan.frees_group = name == "MPI_Group_free";
        let objects = if class == Class::Io { "FILE" } else { "WINDOW" };
        plan.object = of(objects, Direction::In, false);
        plan.new_object = of(objects, Direction::Out, false);
        plan.freed_object = of(objects, Direction::InOut, false);
        plan.text = position(&|p: &Parameter| {
            p.direction == Direction::In
                && ["filename", "comm_name", "stringtag"].contains(&p.name.as_str())
        });
        plan
    }

    /// Whether a call's record has only function and times.
    pub fn is_empty(&self) -> bool {
        Self { function: 0, large: false, ..*self } == NO_PLAN
    }
}
