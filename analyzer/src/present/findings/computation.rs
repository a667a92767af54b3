//! Sentences on efficiency, balance, sleep and lost time.

use crate::diagnosis::BALANCED;
use crate::diagnosis::finding::{Asleep, Does, Efficiency, Loss, LostTo};
use crate::metrics::ComputeMode;
use crate::present::context::plural;
use crate::present::quantity::{percent, seconds};

/// Load balance below which a run is called unbalanced.
const UNBALANCED: f64 = 0.85;
pub(super) fn efficiency(of: &Efficiency) -> String {
    let text = parts(of);
    match of.complete {
        true => text,
        false => format!("In the recorded part: {text}"),
    }
}

fn parts(of: &Efficiency) -> String {
    let Some(parallel) = of.parallel else {
        return "The selection has no length, so its efficiency is undefined.".into();
    };
    let share = percent(parallel);
    let what = match of.mode {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "in BLAS",
        ComputeMode::Regions => "in its regions",
    };
    let (Some(balance), Some(longest), Some(shortest)) = (of.load_balance, of.longest, of.shortest)
    else {
        return format!("No rank spent any time {what}: efficiency is 0 %.");
    };
    if of.ranks == 1 {
        return format!("One rank spends {share} of its time {what}.");
    }
    if balance >= BALANCED {
        return format!("{share} efficient, load well balanced.");
    }
    let how = if balance < UNBALANCED { "unbalanced" } else { "somewhat unbalanced" };
    if of.blamed {
        return format!("{share} efficient, {how}.");
    }
    let does = match longest.does {
        Does::Asleep | Does::Unclear | Does::OnFiles => "is outside MPI",
        Does::Computes | Does::InOtherCode | Does::InLibrary => "computes",
    };
    format!(
        "{share} efficient, {how}: rank {} {does} longest ({}), rank {} shortest ({}).",
        longest.rank,
        seconds(longest.seconds),
        shortest.rank,
        seconds(shortest.seconds)
    )
}

pub(super) fn asleep(of: &Asleep) -> String {
    let (who, whose) = match of.ranks {
        1 => (format!("rank {} was", of.rank), "it".to_owned()),
        _ if of.all => ("all ranks were".to_owned(), format!("rank {}", of.rank)),
        count => (format!("{} were", plural(count, "rank")), format!("rank {}", of.rank)),
    };
    format!(
        "Time outside MPI counts as computing, but {who} asleep or blocked for {} of it: {whose} was on a core for at \
         most {} of {}.",
        if of.nearly_all { "nearly all" } else { "part" },
        seconds(of.on_cpu_s),
        seconds(of.compute_s),
    )
}

/// What the rank lost that lost most.
pub(super) fn loses_most(of: &Loss) -> String {
    let call = |(function, time_s): &(String, f64)| format!("{function} {}", seconds(*time_s));
    let calls: Vec<String> = of.calls.iter().map(call).collect();
    let what = |lost_to: LostTo| match lost_to {
        LostTo::Mpi if calls.is_empty() => "in MPI".to_owned(),
        LostTo::Mpi => format!("in MPI ({})", calls.join(", ")),
        LostTo::OtherCode => format!("in code that is neither MPI nor {}", counted(of.mode)),
        LostTo::Recorder => "in the recorder".to_owned(),
        LostTo::StartAndEnd => "before it began or after it ended".to_owned(),
        LostTo::RestOfStretch => "outside its part of the selection".to_owned(),
        LostTo::NotRecorded => "not recorded".to_owned(),
        LostTo::AfterLastEvent => {
            "after its last event (it died then, or kept computing)".to_owned()
        }
    };
    let part = |(to, time_s): &(LostTo, f64)| format!("{} {}", seconds(*time_s), what(*to));
    let parts: Vec<String> = of.parts.iter().map(part).collect();
    let details = match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    };
    format!("Rank {} loses {}{details}.", of.rank, seconds(of.seconds))
}

fn counted(compute: ComputeMode) -> &'static str {
    match compute {
        ComputeMode::Outside => "its own",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "in a region",
    }
}
