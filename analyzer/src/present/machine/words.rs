//! Describes the differences between machines.

use crate::models::machine::{Difference, Doubt, HostKind};

pub fn difference_sentence(difference: &Difference) -> String {
    match difference {
        Difference::Hosts(own, other) => format!("hosts: {} and {}", hosts(own), hosts(other)),
        Difference::Mpi(own, other) => format!("MPI: {own} and {other}"),
    }
}

fn hosts(hosts: &[HostKind]) -> String {
    let host = |HostKind { processor, processors, ranks }: &HostKind| {
        format!("{processors} x {processor} with {ranks} ranks")
    };
    hosts.iter().map(host).collect::<Vec<_>>().join(" + ")
}

/// Why a machine's figures may not apply to a run.
pub fn doubt_sentence(doubt: &Doubt) -> String {
    match doubt {
        Doubt::OtherHosts { used, measured } => format!(
            "the run used {}, machine.json was measured on {}",
            used.join(", "),
            measured.join(", ")
        ),
        Doubt::OtherMpi { used, measured } => {
            format!("the run used {used}, machine.json was measured under {measured}")
        }
    }
}
