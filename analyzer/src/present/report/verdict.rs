//! Writes the few sentences that matter most, the gravest first.

use std::collections::BTreeSet;

use crate::metrics::{
    Competitor, ComputeMode, CoreUse, Oversubscription, OwnTime, RankMetrics, Selection,
};
use crate::timeline::Ending;
use crate::trace::{FileFault, NotBegun};

use super::basis::{
    hardly_lacks_cores, hides_waiting, is_stuck, keeps_mostly_totals, lacks_cores,
    serialisation_and_transfer, waits_for_other_programs,
};
use super::job_end::JobEnd;
use crate::present::Report;
use crate::present::causes;
use crate::present::context::{number_list, plural, range_list};
use crate::present::quantity::{percent, seconds};
use crate::present::unfinished;

/// Load balance at or above which a run is called well balanced.
const BALANCED: f64 = 0.95;
/// Load balance below which a run is called unbalanced.
const UNBALANCED: f64 = 0.85;
/// Efficiency at or above which the causes of what is lost are left to the tables.
const HARDLY_LOST: f64 = 0.97;
/// Share of τ below which a part of the lost time is not mentioned.
const NOTABLE_SHARE: f64 = 0.01;

/// Share of the ranks' time from which transfer is mentioned before the causes of waiting.
const NOTABLE_TRANSFER: f64 = 0.05;
/// How many times the waiting transfer must take for the causes of waiting to be left to the tables.
const DOMINANT_TRANSFER: f64 = 3.0;
/// Serialisation below which waiting in turn is mentioned.
const NOTABLE_SERIALISATION: f64 = 0.9;

/// If more than this share of p·τ is the program's own code and does not count as computing, then the chosen
/// `--compute` mode does not fit the program.
const MISFIT_SHARE: f64 = 0.5;
/// Share of τ that a rank must sleep within its computing time before the verdict mentions it.
const ASLEEP_SHARE: f64 = 0.05;
/// Seconds that it must sleep at least: the kernel counts CPU time in ticks of some milliseconds.
const ASLEEP_MIN_S: f64 = 0.02;

/// The verdict: the sentences at the head of a report.
pub(super) fn sentences(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(damage(report));
    sentences.extend(ranks_without_begin(report));
    sentences.extend(missing_ranks(report));
    let end = JobEnd::new(report);
    sentences.extend(end.first);
    let unfinished = report.metrics.unfinished.as_ref().filter(|_| !end.names_culprit);
    sentences.extend(unfinished.and_then(unfinished::short));
    sentences.extend(end.later);
    sentences.extend(compute_mode_misfit(report));
    let oversubscribed = oversubscription(report);
    let cores_come_first = lacks_cores(report);
    sentences.extend(oversubscribed.clone().filter(|_| cores_come_first));
    if is_stuck(report) {
        return sentences;
    }
    if cores_come_first {
        sentences.push("So the other figures say little.".to_owned());
        sentences.extend(super::job::unequal_pinning(report));
        return sentences;
    }
    let efficiency = efficiency(report);
    sentences.push(match is_whole(report) {
        true => efficiency,
        false => format!("Of what was recorded: {efficiency}"),
    });
    let hardly_lost = report.metrics.efficiency.is_some_and(|one| one.parallel >= HARDLY_LOST);
    let why = report.why();
    let transfer = why.as_ref().and_then(Transfer::new);
    match why {
        _ if hardly_lost => {}
        _ if hides_waiting(report) => {
            let why = match keeps_mostly_totals(report) {
                true => "calls were kept only as totals (--profile-only)",
                false => "calls were recorded without partners (level 0)",
            };
            sentences.push(format!("Who waited for whom is not known: {why}."));
        }
        Some(why) if waiting_is_notable(&why) || transfer.is_some() => {
            let dominates = transfer.as_ref().is_some_and(|transfer| transfer.dominates);
            sentences.extend(transfer.map(|transfer| transfer.sentence));
            if waiting_is_notable(&why) {
                let of_waiting = waiting(report, &why);
                sentences.extend(of_waiting.into_iter().take(if dominates {
                    1
                } else {
                    usize::MAX
                }));
            }
            sentences.extend(hidden_transfer(&why).filter(|_| is_complete(report)));
        }
        _ => sentences.extend(worst_rank(report)),
    }
    sentences.extend(oversubscribed.filter(|_| !hardly_lacks_cores(report)));
    sentences.extend(super::job::unequal_pinning(report));
    sentences.extend(sleeping(report));
    sentences
}

/// Sentences on how long ranks waited, and why.
fn waiting(report: &Report, why: &causes::Why) -> Vec<String> {
    let mut sentences = causes::sentences(why);
    // In a chain of ranks that wait in turn, the first is as little to blame as the others.
    if let Some(in_turn) = waiting_in_turn(report) {
        sentences.truncate(1);
        sentences.push(in_turn);
    }
    sentences
}

/// Whether ranks waited long enough for the causes to be worth explaining.
fn waiting_is_notable(why: &causes::Why) -> bool {
    let (found, ranks) = (why.causes, why.run.ranks.len() as f64);
    let all = ranks * (found.whole.1 - found.whole.0) as f64;
    found.ranks_waited() as f64 >= NOTABLE_SHARE * all
}

/// Transfer that takes more of the ranks' time than waiting does.
struct Transfer {
    sentence: String,
    /// Whether it takes so much more that the causes of waiting do not belong into the verdict.
    dominates: bool,
}

impl Transfer {
    fn new(why: &causes::Why) -> Option<Self> {
        let found = why.causes;
        let ranks = why.run.ranks.len();
        let all = ranks as f64 * (found.whole.1 - found.whole.0).max(1) as f64;
        let transfer: f64 = found.rank_times.iter().map(|time| time.transfer as f64).sum();
        let waiting = found.ranks_waited() as f64;
        (transfer > waiting && transfer >= NOTABLE_TRANSFER * all).then(|| {
            let place = causes::largest_transfer(why).map_or(String::new(), |(site, share)| {
                format!(", {} of that in {site}", percent(share))
            });
            let share = percent(transfer / all);
            Self {
                sentence: format!("Transfer takes {share} of the ranks' time{place}."),
                dominates: transfer >= DOMINANT_TRANSFER * waiting,
            }
        })
    }
}

/// A sentence on ranks that compute equally long and wait all the same, as in a pipeline.
pub(super) fn waiting_in_turn(report: &Report) -> Option<String> {
    let balance = report.metrics.efficiency?.load_balance?;
    let (serialisation, _) = serialisation_and_transfer(report)?;
    let places = report.why().map(|why| causes::longest_wait_places(&why)).unwrap_or_default();
    let place = match places.is_empty() {
        true => String::new(),
        false => format!(", and wait in {}", places.join(" and ")),
    };
    let barrier = match report.why().is_some_and(|why| causes::waits_at_repeated_barrier(&why)) {
        true => {
            " If the program does not need MPI_Barrier, the first ranks can begin their next pieces while the \
             last still compute."
        }
        false => "",
    };
    (balance >= BALANCED && serialisation < NOTABLE_SERIALISATION).then(|| {
        format!(
            "They compute equally long, but one after the other (serialisation {serialisation:.2}){place}. \
             Smaller pieces, each sent as soon as it is ready, let the next rank begin sooner.{barrier}"
        )
    })
}

/// An upper bound on what overlapping all transfers with computation would save: the smallest share, over all ranks,
/// of time inside MPI that is not waiting, or of computation if that is less.
fn hidden_transfer(why: &causes::Why) -> Option<String> {
    let found = why.causes;
    let overlapped = found.rank_times.iter().map(|time| time.transfer.min(time.computing));
    let least = overlapped.min()?;
    let gain = least as f64 / (found.whole.1 - found.whole.0).max(1) as f64;
    (gain >= NOTABLE_SHARE).then(|| {
        format!("Overlapping transfers with computation would save at most {}.", percent(gain))
    })
}

/// Whether the run finished and was recorded completely.
fn is_complete(report: &Report) -> bool {
    is_whole(report) && report.metrics.unfinished.is_none()
}

/// Whether every rank was recorded up to its end.
fn is_whole(report: &Report) -> bool {
    let cut = |rank: &RankMetrics| matches!(rank.ending, Ending::Damaged | Ending::Stopped);
    report.run.missing.is_empty() && !report.metrics.ranks.iter().any(cut)
}

fn damage(report: &Report) -> Option<String> {
    let files: BTreeSet<_> = report.damage().map(|diagnosis| diagnosis.file).collect();
    match files.len() {
        0 => None,
        1 => Some("1 file is damaged (see DAMAGE).".to_owned()),
        several => Some(format!("{} are damaged (see DAMAGE).", plural(several, "file"))),
    }
}

/// The ranks that never returned from MPI_Init.
fn not_begun(report: &Report) -> Vec<(u32, NotBegun)> {
    let ranks = report.run.diagnoses.iter().filter_map(|diagnosis| match diagnosis.what {
        FileFault::NotBegun { rank, state } => Some((rank, state)),
        _ => None,
    });
    ranks.collect()
}

fn ranks_without_begin(report: &Report) -> Option<String> {
    let ranks = not_begun(report);
    let who = match ranks[..] {
        [] => return None,
        [(rank, state)] => format!("Rank {rank} {state}"),
        _ => format!(
            "{} of {} never returned from MPI_Init ({})",
            ranks.len(),
            plural(report.run.world_size as usize, "rank"),
            number_list(ranks.iter().map(|(rank, _)| *rank))
        ),
    };
    Some(format!("{who}; all figures are those of the others."))
}

fn missing_ranks(report: &Report) -> Option<String> {
    let not_begun: BTreeSet<u32> = not_begun(report).into_iter().map(|(rank, _)| rank).collect();
    let mut without_file: Vec<(u32, u32)> = Vec::new();
    for range in &report.run.missing {
        let mut next = *range.start();
        for rank in not_begun.range(range.clone()) {
            without_file.extend((next < *rank).then(|| (next, rank - 1)));
            next = rank + 1;
        }
        without_file.extend((next <= *range.end()).then(|| (next, *range.end())));
    }
    let missing = (report.run.missing_count() as usize).saturating_sub(not_begun.len());
    (missing > 0).then(|| {
        format!(
            "{} of {} left no readable file ({}); all figures are those of the others.",
            missing,
            plural(report.run.world_size as usize, "rank"),
            range_list(without_file)
        )
    })
}

fn oversubscription(report: &Report) -> Option<String> {
    let found = &report.metrics.oversubscription;
    let Some(shared) = shared_cores(report, found.first()?) else {
        return waited_for_cores(report, found);
    };
    if waits_for_other_programs(report) {
        let waited = waited_for_cores(report, found)?;
        return Some(format!("{waited} Besides, {shared}."));
    }
    let waiting = match report.metrics.share_off_cpu().filter(|share| *share >= NOTABLE_SHARE) {
        Some(share) => format!("they wait for a core for {} of their time", percent(share)),
        None => "part of the time is waiting for cores".to_owned(),
    };
    Some(format!("Oversubscribed: {shared}, so {waiting}."))
}

/// Which ranks share which cores; `None` for a rank that waited for a core.
fn shared_cores(report: &Report, found: &Oversubscription) -> Option<String> {
    // Ranks without a file may be on the host, too.
    let at_least = if report.run.missing.is_empty() { "" } else { "at least " };
    match found {
        Oversubscription::FewCores { host, ranks, cores } => Some(format!(
            "{at_least}{} share {} of {host}",
            plural(*ranks, "rank"),
            plural(*cores, "core")
        )),
        Oversubscription::OneCore { host, core, ranks } => Some(format!(
            "ranks {} share core {core} of {host}",
            number_list(ranks.iter().copied())
        )),
        Oversubscription::Waited { .. } => None,
    }
}

/// How much of its computing time a rank was off the CPU.
fn off_cpu_while_computing(report: &Report, rank: u32) -> String {
    let Some(rank) = report.metrics.participants().find(|one| one.rank == rank) else {
        return String::new();
    };
    let waited_s = rank.off_cpu_s.unwrap_or(0.0);
    let at_least_s = (waited_s - rank.overhead_s).max(0.0);
    let at_most_s = waited_s.min(rank.compute_s).max(at_least_s);
    if at_most_s < NOTABLE_SHARE * report.metrics.elapsed_s {
        return String::new();
    }
    let (at_least, at_most) = (seconds(at_least_s), seconds(at_most_s));
    let how_long = match at_least_s > 0.0 {
        _ if at_least == at_most => at_most,
        true => format!("{at_least} to {at_most}"),
        false => format!("at most {at_most}"),
    };
    format!(" ({how_long} of it in what counts as computation)")
}

/// A sentence on ranks that waited for cores although there are enough for all.
fn waited_for_cores(report: &Report, found: &[Oversubscription]) -> Option<String> {
    let waits: Vec<(u32, f64, &Competitor)> = found
        .iter()
        .filter_map(|one| match one {
            Oversubscription::Waited { rank, share, competitor: behind } => {
                Some((*rank, *share, behind))
            }
            _ => None,
        })
        .collect();
    let (rank, share, behind) = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = match waits.len() {
        1 => String::new(),
        count => format!(", as did {}", plural(count - 1, "more rank")),
    };
    let share = percent(*share);
    let inside = off_cpu_while_computing(report, *rank);
    let waited = format!("rank {rank} waited for a core for {share} of the run{inside}{others}");
    Some(match behind {
        Competitor::Ranks => format!("Oversubscribed: {waited}."),
        Competitor::Threads(core_use) => format!(
            "Oversubscribed: the ranks' threads used {} on average, and {waited}.",
            used_cores(core_use)
        ),
        Competitor::OtherPrograms(core_use) => {
            let waited = waited.replacen("rank", "Rank", 1);
            let used = match core_use.cores {
                0 => String::new(),
                _ => format!(": this job used {} on average", used_cores(core_use)),
            };
            format!("{waited}, because other programs ran there{used}.")
        }
    })
}

/// `0.09 of 2 cores`.
fn used_cores(CoreUse { used, cores }: &CoreUse) -> String {
    format!("{used:.2} of {}", plural(*cores, "core"))
}

fn efficiency(report: &Report) -> String {
    let metrics = report.metrics;
    let Some(efficiency) = metrics.efficiency else {
        return "The selected stretch has no length, so it has no efficiency.".into();
    };
    let share = percent(efficiency.parallel);
    let participants: Vec<_> = metrics.participants().collect();
    let what = match metrics.compute {
        ComputeMode::Outside => "outside MPI",
        ComputeMode::Blas => "in BLAS",
        ComputeMode::Regions => "in its regions",
    };
    let by_compute = |a: &&&RankMetrics, b: &&&RankMetrics| a.compute_s.total_cmp(&b.compute_s);
    let (most, least) =
        (participants.iter().max_by(by_compute), participants.iter().min_by(by_compute));
    let (Some(balance), Some(most), Some(least)) = (efficiency.load_balance, most, least) else {
        return format!("No rank spent any time {what}: efficiency is 0 %.");
    };
    if participants.len() == 1 {
        return format!("One rank spends {share} of its time {what}.");
    }
    if balance >= BALANCED {
        return format!("{share} efficient, load well balanced.");
    }
    let how = if balance < UNBALANCED { "unbalanced" } else { "somewhat unbalanced" };
    let does = match own_time(most) {
        OwnTime::Asleep | OwnTime::Unclear => "is outside MPI",
        OwnTime::Computes => "computes",
    };
    format!(
        "{share} efficient, {how}: rank {} {does} longest ({}), rank {} shortest ({}).",
        most.rank,
        seconds(most.compute_s),
        least.rank,
        seconds(least.compute_s)
    )
}

/// A warning that the chosen `--compute` mode counts only little of the program as computing.
fn compute_mode_misfit(report: &Report) -> Option<String> {
    let metrics = report.metrics;
    let (asked, what) = match metrics.compute {
        ComputeMode::Outside => return None,
        ComputeMode::Blas => ("blas", "BLAS and LAPACK"),
        ComputeMode::Regions => ("regions", "its regions"),
    };
    let total_s = metrics.elapsed_s * metrics.participants().count() as f64;
    let other_s: f64 = metrics.participants().map(|rank| rank.other_s).sum();
    (total_s > 0.0 && other_s > MISFIT_SHARE * total_s).then(|| {
        format!(
            "--compute {asked} does not fit this program: {} of its time is its own code outside MPI and \
             outside {what}, which this choice does not count as computation; record with --compute \
             outside.",
            percent(other_s / total_s)
        )
    })
}

fn own_time(rank: &RankMetrics) -> OwnTime {
    rank.cpu_time.map_or(OwnTime::default(), |cpu_time| cpu_time.own_time(rank.compute_s))
}

fn asleep_s(rank: &RankMetrics) -> f64 {
    rank.cpu_time.map_or(0.0, |cpu_time| cpu_time.asleep_s)
}

/// Ranks that slept for a notable part of the run in what counts as computing.
fn slept_long<'a>(report: &Report<'a>) -> Vec<&'a RankMetrics> {
    let min_s = (ASLEEP_SHARE * report.metrics.elapsed_s).max(ASLEEP_MIN_S);
    report.metrics.participants().filter(|rank| asleep_s(rank) > min_s).collect()
}

/// Whether the verdict says that ranks slept in what counts as computing.
pub(super) fn anyone_slept(report: &Report) -> bool {
    !slept_long(report).is_empty()
}

/// A sentence on ranks that slept in what counts as computing.
fn sleeping(report: &Report) -> Option<String> {
    let metrics = report.metrics;
    let found = slept_long(report);
    let worst = found.iter().max_by(|a, b| asleep_s(a).total_cmp(&asleep_s(b)))?;
    let on_cpu_s = worst.cpu_time.map_or(0.0, |cpu_time| cpu_time.compute_on_cpu_s);
    let (who, whose) = match found.len() {
        1 => (format!("rank {} was", worst.rank), "it".to_owned()),
        count if count == metrics.participants().count() => {
            ("all ranks were".to_owned(), format!("rank {}", worst.rank))
        }
        count => (format!("{} were", plural(count, "rank")), format!("rank {}", worst.rank)),
    };
    let part = match own_time(worst) {
        OwnTime::Asleep => "nearly all",
        OwnTime::Unclear | OwnTime::Computes => "part",
    };
    Some(format!(
        "Time outside MPI counts as computing, but {who} asleep or blocked for {part} of it: of {}, {whose} was on a \
         core for {} at most.",
        seconds(worst.compute_s),
        seconds(on_cpu_s),
    ))
}

fn worst_rank(report: &Report) -> Option<String> {
    let metrics = report.metrics;
    let elapsed_s = metrics.elapsed_s;
    let worst = metrics.participants().max_by(|a, b| a.overhead_s.total_cmp(&b.overhead_s))?;
    if metrics.efficiency.is_none() || worst.overhead_s < NOTABLE_SHARE * elapsed_s {
        return None;
    }
    let whole = matches!(metrics.selection, Selection::Whole);
    let outside = match worst.ending {
        _ if !whole => "outside its part of the stretch",
        Ending::Damaged | Ending::Stopped => "of which nothing is recorded",
        Ending::LastStamp => "after its last event (it died there, or computed on)",
        Ending::Finalize | Ending::LastSign => "before it began or after it ended",
    };
    let mut parts = [
        (worst.mpi_s, format!("in MPI{}", top_calls(worst))),
        (worst.other_s, format!("in code that is neither MPI nor {}", counted(metrics.compute))),
        (worst.outside_s, outside.to_owned()),
        (worst.tool_s, "in the recorder".to_owned()),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts
        .iter()
        .filter(|(time_s, _)| *time_s >= NOTABLE_SHARE * elapsed_s)
        .map(|(time_s, what)| format!("{} {what}", seconds(*time_s)))
        .collect();
    let details = match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    };
    Some(format!("Rank {} loses {}{details}.", worst.rank, seconds(worst.overhead_s)))
}

fn counted(compute: ComputeMode) -> &'static str {
    match compute {
        ComputeMode::Outside => "its own",
        ComputeMode::Blas => "BLAS",
        ComputeMode::Regions => "in a region",
    }
}

fn top_calls(rank: &RankMetrics) -> String {
    // Calls of several threads overlap: their times are no parts of the rank's.
    if rank.threads > 1 {
        return String::new();
    }
    let worth = |call: &&(String, f64)| call.1 >= 0.1 * rank.mpi_s;
    let calls: Vec<String> = rank
        .top_calls
        .iter()
        .filter(worth)
        .map(|(function, time_s)| format!("{function} {}", seconds(*time_s)))
        .collect();
    if calls.is_empty() { String::new() } else { format!(" ({})", calls.join(", ")) }
}
