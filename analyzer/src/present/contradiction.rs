//! The sentence on a measured time that contradicts the curve through the others.

use crate::models::evidence::Contradiction;
use crate::models::observations::LackOfCores;

use super::context::plural;
use super::quantity::{percent, seconds};

/// The sentence, with the reason. `variable` is the name of the rank count.
pub(super) fn sentence(variable: &str, of: &Contradiction, lack: Option<LackOfCores>) -> String {
    format!(
        "{variable} = {} contradicts the other points: it took {}, the curve through them gives {}; {}.",
        of.p,
        seconds(of.measured_s),
        seconds(of.curves_s),
        lack.map_or_else(|| "the recording does not show why".to_owned(), lack_of_cores)
    )
}

/// How the ranks of a run lacked cores.
fn lack_of_cores(lack: LackOfCores) -> String {
    let waited = lack
        .waited_share
        .map(|share| format!("they waited for a core for {} of their time", percent(share)));
    match (lack.shared, waited) {
        (Some((ranks, cores)), waited) => {
            let waited = waited.map_or_else(String::new, |waited| format!(", and {waited}"));
            format!("{ranks} of its ranks shared {}{waited}", plural(cores, "core"))
        }
        (None, Some(waited)) => format!("its ranks lacked cores: {waited}"),
        (None, None) => "its ranks lacked cores".to_owned(),
    }
}
