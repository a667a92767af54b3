//! What the arguments of a procedure mean for its event: positions and shapes, made by `build.rs`
//! from the kinds of the table.

/// No such argument.
pub const NONE: u8 = u8::MAX;

/// How many peers a buffer's count stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// The count is the whole buffer's.
    Buffer,
    /// The count is for each rank of the communicator (of the remote group of an
    /// intercommunicator); an array of counts has one for each.
    Rank,
    /// As `Rank`, for each neighbour that is received from.
    InNeighbour,
    /// As `Rank`, for each neighbour that is sent to.
    OutNeighbour,
}

/// One side of a data movement.
#[derive(Debug, Clone, Copy)]
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
    /// What a count stands for.
    pub per: Per,
    /// Significant at the root only.
    pub root_only: bool,
}

/// What kind of call it is, as far as recording differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Attributes by their positions.
    Plain,
    /// A collective operation: bytes by the communicator's size.
    Collective,
    /// MPI_Bcast and kin: the root sends what the others receive.
    Broadcast,
    /// MPI_Reduce_scatter and kin: sends all blocks, receives its own.
    ReduceScatter,
    /// Sends and receives point to point.
    SendReceive,
    /// Completes one request.
    One,
    /// Completes all requests of an array.
    All,
    /// Completes one of an array.
    Any,
    /// Completes some of an array.
    Some,
    /// Works on an array of requests without completing them.
    Requests,
}

/// Positions of a procedure's arguments.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The function's number.
    pub function: u16,
    /// Kind of call.
    pub shape: Shape,
    /// Counts are 64 bits wide (the `_c` twin).
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
    /// MPI_Exscan: rank 0 receives nothing.
    pub first_receives_nothing: bool,
    /// Tag.
    pub tag: u8,
    /// Tag of the receiving half.
    pub receive_tag: u8,
    /// Communicator.
    pub communicator: u8,
    /// Partitions (multiplies the count).
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
    /// Whether the call may find nothing and return at once (MPI_Test, MPI_Iprobe and kin).
    pub polls: bool,
    /// Index (any), or indices (some).
    pub index: u8,
    /// Number of completed requests (some).
    pub completed: u8,
    /// Communicator that the call makes (pointer).
    pub new_communicator: u8,
    /// Whether `new_communicator` may be one that is known already (MPI_Comm_get_parent).
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
    /// Whether windows, not files, are meant.
    pub window: bool,
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
    text: NONE,
};

/// A procedure with its plan.
pub trait Procedure {
    /// Where its arguments stand.
    const PLAN: Plan;
}
