//! What a run did by label, for predictions from the structure of runs.

use std::collections::HashMap;
use std::path::Path;

use trace_format::meaning::{Class, Meaning, Movement, Peer};

use crate::analysis::Analysis;
use crate::causes::path_labels::{OfSize, PathLabel};
use crate::causes::{Causes, Context, MAX_CALLS_FOR_SUMMARY};
use crate::models::structure::{
    Abstains, FirstRank, Group, Kind, Label, Library, Pattern, PlaceCounts, RunLabels, Spread,
};
use crate::present::causes::name_of;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// The labels of a run.
///
/// # Errors
/// It cannot be read again, or has too many calls.
pub(super) fn labels_of(directory: &Path) -> Result<RunLabels, Abstains> {
    labels_up_to(directory, MAX_CALLS_FOR_SUMMARY)
}

fn labels_up_to(directory: &Path, most: u64) -> Result<RunLabels, Abstains> {
    let run = Run::open(directory).map_err(|_| Abstains::Unreadable)?;
    if run.calls() > most {
        return Err(Abstains::ManyCalls { p: run.ranks.len() as u32, most });
    }
    let timeline = GlobalTimeline::new(&run);
    let analysis = Analysis::new(&run, &timeline);
    let causes = Causes::new(&analysis);
    let all = causes.path_labels(&analysis);
    run.check_readable().map_err(|_| Abstains::Unreadable)?;
    let mut on_hosts: HashMap<&str, u32> = HashMap::new();
    for rank in &run.ranks {
        *on_hosts.entry(rank.file.header.host.as_str()).or_default() += 1;
    }
    let mut labels: Vec<Label> = Vec::new();
    for label in all.iter().map(|label| label_of(&causes, label, run.ranks.len())) {
        match labels.iter_mut().find(|of| of.key() == label.key()) {
            Some(known) => known.join(&label),
            None => labels.push(label),
        }
    }
    let mut places: Vec<PlaceCounts> = Vec::new();
    for counts in all.iter().filter_map(counts_of) {
        match places.iter_mut().find(|of| of.name == counts.name) {
            Some(known) => {
                known.calls += counts.calls;
                known.bytes += counts.bytes;
            }
            None => places.push(counts),
        }
    }
    let tau_s = causes.clock.seconds(causes.whole.1 - causes.whole.0);
    let uncertain_s = causes.clock.seconds(causes.uncertain);
    Ok(RunLabels {
        p: run.ranks.len() as u32,
        tau_s,
        uncertain: uncertain_s / (tau_s * run.ranks.len() as f64),
        per_host: on_hosts.into_values().max().unwrap_or(1),
        library: run.ranks.first().and_then(|of| Library::named(&of.file.header.mpi_library)),
        counts_only: false,
        first_rank: first_rank_of(&causes, &all, run.ranks.len()),
        labels,
        places,
    })
}

fn first_rank_of(causes: &Causes, labels: &[PathLabel], ranks: usize) -> FirstRank {
    let ticks = labels.iter().map(|of| of.on_ranks.first_rank.1).sum();
    let calls = labels.iter().filter(|of| matches!(of.context, Context::Transfer(_)));
    let (own, all) = calls
        .fold((0, 0), |(own, all), of| (own + of.on_ranks.first_rank.0, all + of.on_ranks.count));
    FirstRank {
        busy_s: causes.clock.seconds(ticks),
        calls: own as f64,
        mean_calls_of_others: (all - own) as f64 / (ranks as f64 - 1.0).max(1.0),
    }
}

fn label_of(causes: &Causes, label: &PathLabel, ranks: usize) -> Label {
    let (path, all) = (&label.on_path, &label.on_ranks);
    let each = |sum: u64| sum as f64 / path.count.max(1) as f64;
    let group =
        label.group.map(|of| Group { ranks: of.ranks.into(), per_host: of.per_host.into() });
    let whole = Label {
        name: name_of(&label.context),
        kind: kind_of(&label.context),
        first_use: label.first_use,
        count: path.count as f64,
        seconds: causes.clock.seconds(path.ticks),
        messages: each(path.messages),
        bytes: each(path.bytes),
        group,
        spread: match label.group {
            Some(of) if of.ranks as usize == ranks => Spread::All,
            Some(of) if of.stride == Some(1) => Spread::Neighbours,
            Some(_) => Spread::Apart,
            None => Spread::All,
        },
        all_bytes: all.bytes as f64,
        all_count: all.count as f64,
        all_seconds: causes.clock.seconds(all.ticks),
        max_count: all.max_count as f64,
        ranks: all.ticks_of_ranks.len() as f64,
        stretches: stretches_of(causes, label),
        size: None,
        by_size: Vec::new(),
    };
    let by_size = label.by_size.iter().map(|of| of_size(causes, &whole, of)).collect();
    Label { by_size, ..whole }
}

/// How long the program is in a place each time, in seconds and how often; nothing of calls.
fn stretches_of(causes: &Causes, label: &PathLabel) -> Vec<(f64, f64)> {
    let means = label.on_ranks.durations.means().filter(|_| label.context.is_computing());
    means.map(|(ticks, count)| (ticks * causes.clock.seconds(1), count as f64)).collect()
}

/// The events of one size of a label.
fn of_size(causes: &Causes, whole: &Label, of: &OfSize) -> Label {
    let (path, count) = (&of.on_path, of.count as f64);
    let each = |sum: u64| sum as f64 / path.count.max(1) as f64;
    Label {
        count: path.count as f64,
        seconds: causes.clock.seconds(path.ticks),
        messages: each(path.messages),
        bytes: each(path.bytes),
        all_bytes: of.bytes as f64 * count,
        all_count: count,
        all_seconds: causes.clock.seconds(of.ticks),
        max_count: of.max_count as f64,
        ..whole.clone()
    }
}

/// What all ranks called there; `None` outside calls.
fn counts_of(label: &PathLabel) -> Option<PlaceCounts> {
    let Context::Transfer(site) = &label.context else { return None };
    let completes = Meaning::by_name(&site.function).class == Class::Completion;
    Some(PlaceCounts {
        name: name_of(&label.context),
        calls: label.on_ranks.count as f64,
        bytes: if completes { 0.0 } else { label.on_ranks.bytes as f64 },
    })
}

fn kind_of(context: &Context) -> Kind {
    match context {
        context if context.is_computing() => Kind::Computation,
        Context::Transfer(site) => {
            let meaning = Meaning::by_name(&site.function);
            match meaning.class {
                Class::PointToPoint | Class::Completion => Kind::Messages,
                Class::Collective => {
                    let is_rooted = meaning.fields.peer == Peer::Root;
                    let kind = |movement| kind_of_collective(&site.function, movement, is_rooted);
                    meaning.movement.map_or(Kind::Other, kind)
                }
                // All members agree on it.
                Class::Communicators => Kind::Collective(Pattern::Synchronise),
                _ => Kind::Other,
            }
        }
        _ => Kind::Other,
    }
}

fn kind_of_collective(function: &str, movement: Movement, is_rooted: bool) -> Kind {
    // As MPI_Alltoallv and MPI_Alltoallw.
    let is_uneven = function.ends_with('v') || function.ends_with('w');
    Kind::Collective(match movement {
        Movement::Nothing => Pattern::Synchronise,
        Movement::FromRoot => Pattern::FromRoot,
        Movement::Combined if is_rooted => Pattern::CombineAtRoot,
        Movement::Combined if function.contains("educe_scatter") => Pattern::CombineParts,
        Movement::Combined => Pattern::Combine,
        Movement::Collected if is_rooted => Pattern::ToRoot,
        Movement::Collected if is_uneven => Pattern::CollectUneven,
        Movement::Collected => Pattern::Collect,
        Movement::Exchanged if is_uneven => Pattern::ExchangeUneven,
        Movement::Exchanged => Pattern::Exchange,
        Movement::Neighbours => return Kind::Messages,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use crate::models::structure::{MachineTimes, Structure};
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    use super::*;

    /// Two steps that divide 64 ms of work and end with a sum over all ranks.
    pub(in crate::cli) fn run(p: u32) -> RunDirectory {
        run_of_size(p, 4_000)
    }

    /// The same of a problem N, whose work is that of N² points, 64 ms at 4,000.
    pub(in crate::cli) fn run_of_size(p: u32, size: u64) -> RunDirectory {
        let work = 4 * size * size / u64::from(p);
        let (begin, sum) = (1_000_000, 20_000 * u64::from(p.ilog2()));
        let rank = |rank| {
            let mut rank = SyntheticRank::level_1(rank, p, begin + 2 * (work + sum));
            rank.header.parameters = vec![("N".to_owned(), size.to_string())];
            for step in 0..2 {
                let entered = begin + step * (work + sum) + work;
                rank.call_with("MPI_Allreduce", entered, entered + sum, on_world(0, 0, 8));
            }
            rank
        };
        RunDirectory::with_ranks(&(0..p).map(rank).collect::<Vec<_>>())
    }

    #[test]
    fn what_recorded_runs_do_is_continued() {
        let labels = |p| {
            let directory = run(p);
            labels_of(directory.path()).unwrap()
        };
        let runs = [2, 4, 8, 16, 32].map(labels);
        assert_eq!(
            runs.each_ref().map(|run| (run.p, run.per_host)),
            [2, 4, 8, 16, 32].map(|p| (p, p))
        );
        let structure = Structure::new(runs.to_vec(), MachineTimes::default()).unwrap();
        let forecast = structure.at(64);
        assert!((forecast.tau_s / 2.24e-3 - 1.0).abs() < 0.03, "{forecast:#?}");
        let sums = forecast.parts.iter().find(|part| part.bytes > 0.0).unwrap();
        let law = |of: &Option<String>| of.clone().unwrap();
        assert_eq!((law(&sums.count_law), law(&sums.bytes_law)), ("2".to_owned(), "8".to_owned()));
        assert!((sums.seconds / 0.24e-3 - 1.0).abs() < 0.03, "{sums:?}");
    }

    #[test]
    fn long_runs_and_runs_that_are_gone_are_not_read() {
        let directory = run(4);
        assert_eq!(labels_up_to(directory.path(), 7), Err(Abstains::ManyCalls { p: 4, most: 7 }));
        assert!(labels_of(directory.path()).is_ok());
        let gone = directory.path().join("gone");
        assert_eq!(labels_of(&gone), Err(Abstains::Unreadable));
    }
}
