//! Makes a procedure's plan, as Rust text, from the kinds of its parameters.

use std::collections::BTreeMap;

use trace_format::functions::{Class, class_of};
use trace_format::procedures::{Direction, Parameter};

const COUNT_KINDS: &[&str] = &[
    "POLYXFER_NUM_ELEM_NNI",
    "POLYXFER_NUM_ELEM",
    "XFER_NUM_ELEM_NNI",
    "XFER_NUM_ELEM",
    "POLYDTYPE_NUM_ELEM_NNI",
    "POLYDTYPE_NUM_ELEM",
];

/// Fields of a plan that differ from `NO_PLAN`, as Rust source.
pub struct PlanText {
    /// Counts are 64 bits wide in the base procedure, too.
    large: bool,
    fields: BTreeMap<String, String>,
}

impl PlanText {
    fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.fields.insert(name.to_owned(), value.to_string());
    }

    fn set_position(&mut self, name: &str, position: Option<usize>) {
        if let Some(position) = position {
            self.set(name, position);
        }
    }

    /// The plan's expression; `None` where nothing but function and times can be known.
    pub fn expression(&self, function: u16, twin: bool) -> Option<String> {
        if self.fields.is_empty() {
            return None;
        }
        let fields: Vec<String> =
            self.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let fields = fields.join(", ");
        let large = twin || self.large;
        Some(format!("Plan {{ function: {function}, large: {large}, {fields}, ..NO_PLAN }}"))
    }
}

/// Stem of a collective's name: `MPI_Iallgatherv_init` gives `allgatherv`.
fn collective_stem(name: &str) -> String {
    let lower = name.trim_start_matches("MPI_").to_lowercase();
    let stem = lower.strip_suffix("_init").unwrap_or(&lower).to_owned();
    match stem.strip_prefix('i') {
        Some(rest) if class_of(&format!("MPI_{rest}")) == Class::Collective => rest.to_owned(),
        _ => stem,
    }
}

/// What a count of the send and receive side stands for: the kinds do not say it.
fn per(name: &str) -> (&'static str, &'static str) {
    if class_of(name) != Class::Collective {
        return ("Per::Buffer", "Per::Buffer");
    }
    let stem = collective_stem(name);
    match stem.as_str() {
        "allgather" | "allgatherv" | "gather" | "gatherv" => ("Per::Buffer", "Per::Rank"),
        "scatter" | "scatterv" => ("Per::Rank", "Per::Buffer"),
        "alltoall" | "alltoallv" | "alltoallw" => ("Per::Rank", "Per::Rank"),
        "reduce_scatter" | "reduce_scatter_block" => ("Per::Rank", "Per::Rank"),
        "neighbor_allgather" | "neighbor_allgatherv" => ("Per::Buffer", "Per::InNeighbour"),
        "neighbor_alltoall" | "neighbor_alltoallv" | "neighbor_alltoallw" => {
            ("Per::OutNeighbour", "Per::InNeighbour")
        }
        _ => ("Per::Buffer", "Per::Buffer"),
    }
}

struct Found {
    buffer: usize,
    count: Option<usize>,
    datatype: Option<usize>,
}

/// Buffers with the count and datatype that belong to them: the first ones behind a buffer and
/// before the next; two buffers in a row share what follows (reductions).
fn buffers(parameters: &[Parameter]) -> Vec<Found> {
    let at: Vec<usize> =
        (0..parameters.len()).filter(|i| parameters[*i].kind == "BUFFER").collect();
    at.iter()
        .enumerate()
        .map(|(order, &buffer)| {
            let own_end = at.get(order + 1).copied().unwrap_or(parameters.len());
            let find = |end: usize, wanted: &dyn Fn(&Parameter) -> bool| {
                (buffer + 1..end).find(|i| wanted(&parameters[*i]))
            };
            let is_type = |p: &Parameter| p.kind == "DATATYPE" && p.direction == Direction::In;
            let is_count = |p: &Parameter| COUNT_KINDS.contains(&p.kind.as_str());
            let end = if find(own_end, &is_type).is_some() { own_end } else { parameters.len() };
            let datatype = find(end, &is_type);
            let count = datatype.and_then(|datatype| find(datatype, &is_count));
            Found { buffer, count, datatype }
        })
        .filter(|found| found.datatype.is_some())
        .collect()
}

fn side(parameters: &[Parameter], found: &Found, per: &str) -> String {
    let array = |position: Option<usize>| position.is_some_and(|p| parameters[p].array.is_some());
    let number = |position: Option<usize>| position.map_or("NONE".to_owned(), |p| p.to_string());
    format!(
        "Side {{ buffer: {}, count: {}, datatype: {}, counts: {}, datatypes: {}, per: {per}, \
         root_only: {} }}",
        found.buffer,
        number(found.count),
        number(found.datatype),
        array(found.count),
        array(found.datatype),
        parameters[found.buffer].root_only,
    )
}

fn shape(name: &str, class: Class) -> &'static str {
    match name {
        "MPI_Wait" | "MPI_Test" | "MPI_Request_get_status" => return "Shape::One",
        "MPI_Waitall" | "MPI_Testall" => return "Shape::All",
        "MPI_Waitany" | "MPI_Testany" => return "Shape::Any",
        "MPI_Waitsome" | "MPI_Testsome" => return "Shape::Some",
        "MPI_Startall" => return "Shape::Requests",
        _ => {}
    }
    if name.to_lowercase().contains("sendrecv") {
        return "Shape::SendReceive";
    }
    if class != Class::Collective {
        return "Shape::Plain";
    }
    match collective_stem(name).as_str() {
        "bcast" => "Shape::Broadcast",
        "reduce_scatter" | "reduce_scatter_block" => "Shape::ReduceScatter",
        _ => "Shape::Collective",
    }
}

/// The plan of a procedure, from its name and the parameters of the base or the `_c` twin.
pub fn plan(name: &str, parameters: &[Parameter]) -> PlanText {
    let class = class_of(name);
    let position = |wanted: &dyn Fn(&Parameter) -> bool| parameters.iter().position(wanted);
    let named = |names: &[&str]| position(&|p: &Parameter| names.contains(&p.name.as_str()));
    let of = |kind: &str, direction: Direction, array: bool| {
        position(&|p: &Parameter| {
            p.kind == kind && p.direction == direction && p.array.is_some() == array
        })
    };
    let mut text = PlanText { large: false, fields: BTreeMap::new() };
    let shape = shape(name, class);
    if shape != "Shape::Plain" {
        text.set("shape", shape);
    }

    let (send_per, receive_per) = per(name);
    for found in buffers(parameters) {
        let wide = found.count.is_some_and(|count| parameters[count].kind.starts_with("XFER_"));
        text.large |= wide;
        match parameters[found.buffer].direction {
            // What is unpacked is counted where it is received.
            Direction::In if name.starts_with("MPI_Unpack") => {}
            Direction::In if name != "MPI_Compare_and_swap" || found.buffer == 0 => {
                text.set("send", side(parameters, &found, send_per));
            }
            Direction::In => {}
            Direction::Out => text.set("receive", side(parameters, &found, receive_per)),
            Direction::InOut => {
                text.set("send", side(parameters, &found, send_per));
                text.set("receive", side(parameters, &found, receive_per));
            }
        }
    }

    let communicator_call = matches!(class, Class::PointToPoint | Class::Probe)
        || name.contains("Intercomm_create")
        || name == "MPI_Comm_create_group";
    if communicator_call {
        text.set_position("peer", named(&["dest"]).or(named(&["source", "remote_leader"])));
        text.set_position("tag", named(&["sendtag", "tag"]));
        if shape == "Shape::SendReceive" {
            text.set_position("source", named(&["source"]));
            text.set_position("receive_tag", named(&["recvtag"]));
        }
    }
    if class == Class::OneSided {
        text.set_position("peer", named(&["target_rank", "rank"]));
    }
    if let Some(root) = named(&["root"]) {
        text.set("peer", root);
        text.set("rooted", true);
    }
    let receives = matches!(class, Class::PointToPoint | Class::Probe | Class::Completion)
        || class == Class::Io && name.contains("read");
    if receives && (named(&["dest"]).is_none() || shape == "Shape::SendReceive") {
        text.set("receives", true);
    }

    text.set_position("communicator", of("COMMUNICATOR", Direction::In, false));
    text.set_position("partitions", named(&["partitions"]));
    text.set_position("request_out", of("REQUEST", Direction::Out, false));
    if name.contains("_init") && of("REQUEST", Direction::Out, false).is_some() {
        text.set("persistent", true);
    }
    let by_value = name != "MPI_Cancel";
    if let Some(request) = of("REQUEST", Direction::In, false) {
        text.set("request", request);
        text.set("request_by_value", by_value);
    }
    text.set_position("request", of("REQUEST", Direction::InOut, false));
    if let Some(request) = of("REQUEST", Direction::InOut, true) {
        text.set("request", request);
        text.set_position("request_count", named(&["count", "incount"]));
    }
    text.set_position(
        "message",
        of("MESSAGE", Direction::Out, false).or(of("MESSAGE", Direction::InOut, false)),
    );
    let several = of("REQUEST", Direction::InOut, true).is_some();
    let statuses = of("STATUS", Direction::Out, false).or(of("STATUS", Direction::Out, true));
    // An array of statuses is only understood beside the requests that the call completes: memory of
    // ours in its place must be long enough.
    text.set_position(
        "status",
        statuses.filter(|at| receives && (several || parameters[*at].array.is_none())),
    );
    if class == Class::Collective && collective_stem(name) == "exscan" {
        text.set("first_receives_nothing", true);
    }
    let tests = matches!(class, Class::Completion | Class::Probe);
    if tests || matches!(name, "MPI_Parrived" | "MPI_Win_test") {
        text.set_position("flag", of("LOGICAL", Direction::Out, false));
        let waits = name.contains("Wait") || matches!(name, "MPI_Probe" | "MPI_Mprobe");
        if !waits && (class != Class::Completion || shape != "Shape::Plain") {
            text.set("polls", true);
        }
        text.set_position("index", named(&["index", "array_of_indices"]));
        text.set_position("completed", named(&["outcount"]));
    }
    text.set_position("new_communicator", of("COMMUNICATOR", Direction::Out, false));
    text.set_position("freed_communicator", of("COMMUNICATOR", Direction::InOut, false));
    if name == "MPI_Comm_get_parent" {
        text.set("asks_communicator", true);
    }
    if name == "MPI_Type_commit" {
        text.set("commits_datatype", true);
    }
    if name == "MPI_Type_free" {
        text.set("frees_datatype", true);
    }
    let objects = if class == Class::Io { "FILE" } else { "WINDOW" };
    if objects == "WINDOW" && class == Class::OneSided {
        text.set("window", true);
    }
    text.set_position("object", of(objects, Direction::In, false));
    text.set_position("new_object", of(objects, Direction::Out, false));
    text.set_position("freed_object", of(objects, Direction::InOut, false));
    let texts = ["filename", "comm_name", "stringtag"];
    text.set_position(
        "text",
        position(&|p: &Parameter| p.direction == Direction::In && texts.contains(&p.name.as_str())),
    );
    text
}
