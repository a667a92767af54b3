//! Calls of all ranks at other rank counts: on the screen, and in the JSON document.

use serde::Serialize;

use crate::models::scaling::Fit;
use crate::models::structure::{Counts, Place, Quantity};
use crate::tables::scaling as tables;

use super::super::paragraph::wrapped;
use super::super::table;

/// Places that are shown.
const MAX_PLACES: usize = 12;

/// Calls of all ranks, continued by laws of p ([how](../guide/predict.md#how-often-it-calls)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CountsDocument {
    /// Rank counts of the runs, those for counts only included.
    rank_counts: Vec<u32>,
    checked: CheckedDocument,
    /// Those that the largest run has, most calls first.
    places: Vec<PlaceDocument>,
}

/// What the other runs say of the largest.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CheckedDocument {
    p: u32,
    /// Laws of calls and bytes that the others give.
    laws: usize,
    /// How many of them the largest run meets.
    met: usize,
}

/// A place in the program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlaceDocument {
    /// As in `critical_path.labels` of `gammachi why --json`.
    context: String,
    /// As a formula of p that every run meets; null: there is none.
    calls_law: Option<String>,
    /// As `calls_law`; null as well where no bytes are named.
    bytes_law: Option<String>,
    /// At the rank counts of `predictions`.
    at: Vec<CountDocument>,
}

/// Calls of all ranks at a place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountDocument {
    p: u32,
    /// Null without a law, and where laws that are as simple disagree.
    calls: Option<f64>,
    /// Bytes that they name, completions none; null as `calls`, and where none are named.
    bytes: Option<f64>,
}

pub(super) fn document(fit: &Fit) -> Option<CountsDocument> {
    let Counts { rank_counts, checked, places } = fit.counts.as_ref()?;
    let place = |Place { name, calls, bytes }: &Place| PlaceDocument {
        context: name.clone(),
        calls_law: calls.law.clone(),
        bytes_law: bytes.as_ref().and_then(|bytes| bytes.law.clone()),
        at: fit
            .predictions
            .iter()
            .enumerate()
            .map(|(at, of)| CountDocument {
                p: of.p,
                calls: calls.at[at].map(f64::round),
                bytes: bytes.as_ref().and_then(|bytes| bytes.at[at]).map(f64::round),
            })
            .collect(),
    };
    Some(CountsDocument {
        rank_counts: rank_counts.clone(),
        checked: CheckedDocument { p: checked.p, laws: checked.laws, met: checked.met },
        places: places.iter().map(place).collect(),
    })
}

/// The lines of a screen, for the largest rank count that was asked for; none where nothing was asked.
pub(super) fn lines(fit: &Fit, bold: &dyn Fn(&str) -> String) -> Vec<String> {
    let largest = fit.predictions.iter().enumerate().max_by_key(|(_, of)| of.p);
    let (Some(Counts { rank_counts, checked, places }), Some((at, asked))) = (&fit.counts, largest)
    else {
        return Vec::new();
    };
    let mut lines = vec![bold("HOW OFTEN IT CALLS  all ranks, continued by laws of p")];
    let ends = (rank_counts.first().unwrap_or(&1), rank_counts.last().unwrap_or(&1));
    let of_runs = format!("{} rank counts, {} to {}.", rank_counts.len(), ends.0, ends.1);
    let held = match checked.laws {
        0 => "Without the largest, the runs give no law.".to_owned(),
        laws => format!(
            "Without the largest, the runs give {laws} {}; at p = {} {} met.",
            if laws == 1 { "law" } else { "laws" },
            checked.p,
            match laws - checked.met {
                0 => "all are".to_owned(),
                _ => format!("{} of them are", checked.met),
            }
        ),
    };
    lines.extend(wrapped("  ", &format!("{of_runs} {held}")));
    lines.push(String::new());
    lines.push(format!("  At p = {}:", asked.p));
    let shown = &places[..places.len().min(MAX_PLACES)];
    let rows = table::lines(&tables::counts(shown, at));
    lines.extend(rows.into_iter().map(|line| format!("    {line}")));
    let lawless = |of: &Quantity| of.law.is_none();
    let (more, without) =
        (places.len() - shown.len(), places.iter().filter(|place| lawless(&place.calls)).count());
    let more = (more > 0).then(|| format!("{more} more places: --json."));
    let without = (without > 0).then(|| {
        let places = if without == 1 { "place" } else { "places" };
        format!("Calls of {without} {places} meet no law, such as those that are repeated until something has come.")
    });
    let notes: Vec<String> = more.into_iter().chain(without).collect();
    if !notes.is_empty() {
        lines.extend(wrapped("  ", &notes.join(" ")));
    }
    lines.push(String::new());
    lines
}

#[cfg(test)]
mod tests {
    use crate::models::scaling::{Options, Scaling};
    use crate::models::structure::{FirstRank, MachineTimes, PlaceCounts, RunLabels};
    use crate::models::{Observations, structure::Abstains};
    use crate::present::scaling::{json, screen};

    fn run(p: u32) -> RunLabels {
        let place = |name: &str, calls: u32, bytes: u32| PlaceCounts {
            name: name.to_owned(),
            calls: calls.into(),
            bytes: bytes.into(),
        };
        let polls = (p * 7919) % 101 + 1;
        RunLabels {
            p,
            tau_s: 1.0,
            per_host: p,
            library: None,
            uncertain: 0.0,
            counts_only: p > 4,
            first_rank: FirstRank::default(),
            labels: Vec::new(),
            places: vec![place("in MPI_Send", 100 * p, 800 * p), place("in MPI_Iprobe", polls, 0)],
        }
    }

    /// Times of three rank counts, and counts of these and of two more.
    fn fitted(runs: Result<Vec<RunLabels>, Abstains>) -> Scaling {
        let text = "p,tau_s,sum_gamma_s\n1,4,4\n2,2.1,4\n4,1.2,4\n";
        let table = Observations::from_csv("t.csv", text.as_bytes()).unwrap();
        let options = Options { predict: vec![8, 64], ..Options::default() };
        let mut scaling = Scaling::new(&table, &options).unwrap();
        scaling.fits[0].add_structure(runs, &MachineTimes::default());
        scaling
    }

    #[test]
    fn calls_are_said_where_no_time_is_predicted() {
        let scaling = fitted(Ok([1, 2, 4, 8, 16].map(run).to_vec()));
        let shown = screen(&scaling, &[], false);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "No time: timed runs at 3 rank counts are too few",
            "5 rank counts, 1 to 16. Without the largest, the runs give 2 laws; at p = 16 all are met.",
            "At p = 64:",
            "6,400 51.20 kB 100·p 800·p in MPI_Send",
            "? - none - in MPI_Iprobe",
            "Calls of 1 place meet no law",
        ] {
            assert!(words.contains(said), "{said}: {shown}");
        }
        let document: serde_json::Value =
            serde_json::from_str(&json(&scaling, &[]).unwrap()).unwrap();
        let counts = &document["fits"][0]["counts"];
        assert_eq!(counts["places"][0]["at"][1]["calls"], 6400.0);
        assert_eq!(counts["places"][1]["at"][1]["calls"], serde_json::Value::Null);
        let unreadable = screen(&fitted(Err(Abstains::Unreadable)), &[], false);
        assert!(!unreadable.contains("HOW OFTEN"), "{unreadable}");
    }
}
