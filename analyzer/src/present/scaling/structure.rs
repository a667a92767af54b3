//! What the structure of a fit's runs predicts: on the screen, and in the JSON document.

use serde::Serialize;

use crate::models::scaling::{Believed, ByStructure, Speaks, Structural};
use crate::models::structure::{Change, Forecast, HeldBack, Part, Regime};
use crate::tables::scaling as tables;

use super::super::paragraph::wrapped;
use super::super::quantity::{percent, seconds};
use super::super::table;

/// Parts of a predicted time that are shown.
const MAX_PARTS: usize = 10;

/// Times from what the program does ([how](../guide/predict.md#from-what-the-program-does)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::present) struct StructureDocument {
    /// Why there are none.
    abstains: Option<String>,
    /// The largest run, predicted from the others.
    held_back: Option<HeldBackDocument>,
    /// The run with most ranks and the largest problem, predicted from smaller problems; null: the problem size was
    /// measured.
    held_back_size: Option<HeldBackDocument>,
    /// Whether every run was on one host: what messages between hosts take is then not known.
    one_host: bool,
    /// At the rank counts of `predictions`.
    predictions: Vec<ForecastDocument>,
}

/// A run that the others predict.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HeldBackDocument {
    p: u32,
    predicted_s: f64,
    measured_s: f64,
}

impl HeldBackDocument {
    fn new(HeldBack { p, predicted_s, measured_s }: &HeldBack) -> Self {
        Self { p: *p, predicted_s: *predicted_s, measured_s: *measured_s }
    }
}

/// A predicted time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ForecastDocument {
    p: u32,
    /// Elapsed time.
    tau_s: f64,
    /// Lower end of its 90 % interval.
    lo_s: f64,
    /// Upper end.
    hi_s: f64,
    believed: BelievedDocument,
    /// The ten that take longest.
    parts: Vec<PartDocument>,
}

/// What is believed of a rank count.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BelievedDocument {
    /// `structure`; `curves` (structure is more than 10 % off the largest run, or its interval ends beyond
    /// twice the time, but contains the time of the curves of `gammachi scaling`, or of the model for a problem size
    /// that was not measured); or `neither`.
    speaks: &'static str,
    /// Elapsed time; null: only the interval is known.
    tau_s: Option<f64>,
    /// Lower end of its 90 % interval; that of structure, or one that contains its and that of the curves.
    lo_s: f64,
    /// Upper end.
    hi_s: f64,
    /// Whether the intervals of structure and of the curves have nothing in common.
    apart: bool,
}

/// What takes part of a predicted time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PartDocument {
    /// What is done, as in `critical_path.labels` of `gammachi why --json`.
    context: String,
    /// The first calls of the function on a communicator.
    first_use: bool,
    part_s: f64,
    /// Its share of the time.
    share: f64,
    /// Events on the critical path.
    count: f64,
    /// As a formula of p that every run meets; null: there is none.
    count_law: Option<String>,
    /// Bytes of an event.
    bytes: f64,
    /// As `count_law`.
    bytes_law: Option<String>,
    /// Bytes of the nearest message that was measured, if libraries may send these, which are smaller or
    /// larger, in another way.
    nearest_bytes: Option<f64>,
    /// Where its calls begin to be carried out in another way than in any run; null where nothing says so.
    regime: Option<RegimeDocument>,
}

/// Another way to carry out calls.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RegimeDocument {
    /// The first rank count.
    from_p: u32,
    /// The algorithm that the library chooses from there on, or `eager` or `rendezvous` of messages.
    way: &'static str,
}

pub(in crate::present) fn document(structure: &Structural) -> StructureDocument {
    match structure {
        Err(why) => StructureDocument {
            abstains: Some(why.to_string()),
            held_back: None,
            held_back_size: None,
            one_host: false,
            predictions: Vec::new(),
        },
        Ok(ByStructure { held_back, held_back_size, one_host, forecasts }) => StructureDocument {
            abstains: None,
            held_back: Some(HeldBackDocument::new(held_back)),
            held_back_size: held_back_size.as_ref().map(HeldBackDocument::new),
            one_host: *one_host,
            predictions: forecasts.iter().map(|(of, believed)| forecast(of, believed)).collect(),
        },
    }
}

fn forecast(of: &Forecast, believed: &Believed) -> ForecastDocument {
    let part = |part: &Part| PartDocument {
        context: part.name.clone(),
        first_use: part.first_use,
        part_s: part.seconds,
        share: part.seconds / of.tau_s,
        count: part.count,
        count_law: part.count_law.clone(),
        bytes: part.bytes,
        bytes_law: part.bytes_law.clone(),
        nearest_bytes: part.leaves_sizes.map(|(nearest, _)| nearest),
        regime: part.regime.map(|Regime { p, change }| RegimeDocument {
            from_p: p,
            way: match change {
                Change::Algorithm { to, .. } => to,
                Change::Eager { is_below: true, .. } => "eager",
                Change::Eager { is_below: false, .. } => "rendezvous",
            },
        }),
    };
    ForecastDocument {
        p: of.p,
        tau_s: of.tau_s,
        lo_s: of.interval_s.0,
        hi_s: of.interval_s.1,
        believed: BelievedDocument {
            speaks: believed.speaks.name(),
            tau_s: believed.tau_s,
            lo_s: believed.interval_s.0,
            hi_s: believed.interval_s.1,
            apart: believed.apart,
        },
        parts: of.parts.iter().take(MAX_PARTS).map(part).collect(),
    }
}

/// The lines of a screen; `size` is the problem size, where it is a variable.
pub(in crate::present) fn lines(
    structure: &Structural,
    size: Option<&(String, f64)>,
    bold: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let is_measured = structure.as_ref().is_ok_and(|by| by.held_back_size.is_none());
    let (at, laws) = match size {
        Some((name, value)) if is_measured => (format!(" at {name} = {value}"), "p".to_owned()),
        Some((name, value)) => (format!(" at {name} = {value}"), format!("{name} and p")),
        None => (String::new(), "p".to_owned()),
    };
    let title =
        format!("FROM WHAT THE PROGRAM DOES{at}  the critical path, continued by laws of {laws}");
    let mut lines = vec![bold(&title)];
    match structure {
        Err(why) => lines.extend(wrapped("  ", &format!("No time: {why}."))),
        Ok(by) => lines.extend(found(by, size)),
    }
    lines.push(String::new());
    lines
}

/// How runs that were held back are predicted.
fn checked(by: &ByStructure, size: Option<&(String, f64)>) -> String {
    let off = |of: &HeldBack| format!("{}, {} off", seconds(of.predicted_s), percent(of.error()));
    let (of, measured) = (&by.held_back, seconds(by.held_back.measured_s));
    match (&by.held_back_size, size) {
        (Some(largest), Some((name, _))) => format!(
            "The run with the largest {name} (p = {}, {}), predicted from those with smaller ones: {}. At p = {} laws of \
             {name} give {measured}, and the smaller rank counts {}.",
            largest.p,
            seconds(largest.measured_s),
            off(largest),
            of.p,
            off(of)
        ),
        _ => format!(
            "The largest run (p = {}, {measured}), predicted from the others: {}.",
            of.p,
            off(of)
        ),
    }
}

fn found(by: &ByStructure, size: Option<&(String, f64)>) -> Vec<String> {
    let ByStructure { held_back_size, one_host, forecasts, .. } = by;
    let curves = match held_back_size {
        Some(_) => "the curves of this model",
        None => "the curves of scaling",
    };
    let mut lines = wrapped("  ", &checked(by, size));
    lines.extend(
        table::lines(&tables::structure(forecasts)).into_iter().map(|line| format!("  {line}")),
    );
    let who = |which: Speaks| forecasts.iter().any(|(_, of)| of.speaks == which);
    let believed = [
        (
            Speaks::Structure,
            "structure: it is right about the largest run, and believed.".to_owned(),
        ),
        (
            Speaks::Curves,
            format!(
                "curves: structure is more than 10 % off the largest run, or its interval is too wide; the time is \
                 that of {curves}, the interval contains both."
            ),
        ),
        (
            Speaks::Neither,
            format!(
                "neither: structure and {curves} do not agree on a time that is sure enough; the interval contains \
                 both. Measure a larger run."
            ),
        ),
    ];
    let believed = believed.iter().filter(|(which, _)| who(*which));
    lines.extend(believed.flat_map(|(_, text)| wrapped("  ", text)));
    let apart = forecasts.iter().filter(|(_, of)| of.apart && of.speaks == Speaks::Structure);
    let apart: Vec<String> = apart.map(|(of, _)| of.p.to_string()).collect();
    if !apart.is_empty() {
        let text = format!(
            "At p = {} {curves} exclude it; they know times alone. A larger run would tell.",
            apart.join(", ")
        );
        lines.extend(wrapped("  ", &text));
    }
    if *one_host {
        lines.extend(wrapped(
            "  ",
            "All runs were on one host; messages between hosts take longer than this says.",
        ));
    }
    // The largest rank count is what one wants to know about.
    let Some((largest, _)) = forecasts.iter().max_by_key(|(of, _)| of.p) else { return lines };
    lines.push(String::new());
    lines.push(format!("  What takes the time at p = {}:", largest.p));
    let parts = &largest.parts[..largest.parts.len().min(MAX_PARTS)];
    let parts = table::lines(&tables::structural_parts(parts, largest.tau_s));
    lines.extend(parts.into_iter().map(|line| format!("  {line}")));
    // What takes little of the time is not worth a doubt.
    let worth = |part: &&Part| part.seconds > 0.1 * largest.tau_s;
    for part in largest.parts.iter().take(MAX_PARTS).filter(worth) {
        if let Some(regime) = part.regime {
            lines.extend(wrapped("  ", &format!("{}: {}", part.name, words(regime))));
        }
        if let Some((nearest, asked)) = part.leaves_sizes {
            let doubt = format!(
                "{}: messages of {asked:.0} bytes, where runs have {nearest:.0}. Libraries change how they \
                 send between these sizes; the interval allows for it.",
                part.name
            );
            lines.extend(wrapped("  ", &doubt));
        }
    }
    lines
}

/// What a regime is, after the name of what it is about.
fn words(Regime { p, change }: Regime) -> String {
    match change {
        Change::Algorithm { library, from, to } => format!(
            "from p = {p} on {} chooses another algorithm ({to} instead of {from}), which no run shows; the interval \
             allows for it.",
            library.name()
        ),
        Change::Eager { limit, is_below } => {
            let now = if is_below { "at most" } else { "more than" };
            format!(
                "from p = {p} on messages have {now} {limit:.0} bytes, up to which they are sent at once; in the \
                 largest run they have not."
            )
        }
    }
}
