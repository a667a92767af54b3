//! Reduces a run to its record.
//!
//! | file | task |
//! |---|---|
//! | `time` | where the ranks' time went, in whole nanoseconds |
//! | `iterations` | the loops |
//! | `code` | the samples of its code |
//! | `beside` | parallel regions and calls on files |
//! | `exchanged` | messages and collective operations |

mod beside;
mod code;
mod exchanged;
mod iterations;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use thiserror::Error;
use trace_format::meaning::Class;

use super::counts::is_poll;
use super::place::SiteTable;
use super::record::{Counts, FORMAT, FORMAT_VERSION, Factors, Machine, RunRecord};
use crate::analysis::Analysis;
use crate::causes::{CallSite, Causes};
use crate::diagnosis::{Diagnosis, Evidence, Finding};
use crate::metrics::{Metrics, Question, Selection};
use crate::replay::{NoIdeal, WhatIf, ideal_and_replay, replayed_aside};
use crate::timeline::GlobalTimeline;
use crate::trace::{Run, TraceError};

use exchanged::Exchanged;

/// Maximum number of host names in a record.
const MAX_HOSTS: usize = 4;
/// Maximum number of groups of ranks with a figure of their own.
const MAX_GROUPS: u32 = 32;

/// Why a run cannot be compared with others.
#[derive(Debug, Error)]
pub enum NotComparable {
    /// It cannot be read.
    #[error(transparent)]
    Run(#[from] TraceError),
    /// Some ranks have no file.
    #[error("{0}: {1} of its {2} ranks have no file, so their times are unknown; run it again")]
    RanksMissing(PathBuf, usize, u32),
    /// It is a moment of a job that went on.
    #[error(
        "{0}: is a snapshot: a run that has not ended has no elapsed time, and messages of ranks that were at different \
         points count on one side only; compare what `gammachi report --json` says of both: efficiency, and each rank's \
         `compute_s` and `mpi_s` over its `elapsed_s`"
    )]
    Snapshot(PathBuf),
    /// Some ranks did not end properly.
    #[error(
        "{0}: rank {1} did not return from MPI_Finalize, so the run has no elapsed time; `gammachi report` shows how it \
         ended; run it again"
    )]
    Unfinished(PathBuf, u32),
    /// A file is damaged.
    #[error("{0}: damaged: {1}; `gammachi report` shows what is left of it; run it again")]
    Damaged(PathBuf, String),
    /// Not every call was kept.
    #[error(
        "{0}: has totals instead of single calls, which do not show where time was lost; record without \
         --profile-only and --max-bytes to compare"
    )]
    TotalsOnly(PathBuf),
    /// It took no time.
    #[error("{0}: took no time between MPI_Init and MPI_Finalize: there is nothing to compare")]
    Empty(PathBuf),
}

impl RunRecord {
    /// Reads a run directory and reduces the run.
    ///
    /// # Errors
    /// Why it cannot be compared with other runs.
    pub fn of_directory(directory: &Path) -> Result<Self, NotComparable> {
        let run = Run::open(directory)?;
        let timeline = GlobalTimeline::new(&run);
        let record = Self::reduce(&run, &timeline)?;
        run.check_readable()?;
        Ok(record)
    }

    /// Reduces a run.
    ///
    /// # Errors
    /// Why it cannot be compared with other runs.
    pub fn reduce(run: &Run, timeline: &GlobalTimeline) -> Result<Self, NotComparable> {
        check(run, timeline)?;
        let analysis = Analysis::new(run, timeline);
        let causes = Causes::new(&analysis);
        let elapsed = causes.whole.1 - causes.whole.0;
        let elapsed_ns = time::nanoseconds(&causes, elapsed);
        if elapsed_ns <= 0 {
            return Err(NotComparable::Empty(run.directory.clone()));
        }
        let ranks = run.ranks.len() as u32;
        let ranks_per_group = ranks.div_ceil(MAX_GROUPS).max(1);
        let mut sites = SiteTable::default();
        let parts = time::parts(&causes, (elapsed, elapsed_ns), ranks_per_group, &mut sites);
        let (iterations, phases) = iterations::loops(&causes, &mut sites);
        let exchanged = Exchanged::count(&analysis);
        let question = Question::about(&Selection::Whole).without_messages();
        let metrics = Metrics::for_question(&analysis, question).ok();
        let mut counts = metrics.as_ref().map(|of| counts(of, &mut sites)).unwrap_or_default();
        let partners = exchanged.map(|found| found.into_counts(run, &mut counts));
        for region in &causes.regions.all {
            counts.regions.insert(region.name.clone(), region.count);
        }
        let (ideal, replay) = ideal_and_replay(&analysis, None);
        let replayed = (ideal, replay.as_ref());
        let findings =
            metrics.as_ref().map(|metrics| findings(&analysis, metrics, &causes, replayed));
        let sampled = metrics.as_ref().and_then(|metrics| metrics.code.as_ref());
        let header = &run.ranks[0].file.header;
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let directory = run.directory.file_name().unwrap_or(run.directory.as_os_str());
        Ok(Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            gammachi_version: env!("CARGO_PKG_VERSION").to_owned(),
            run: directory.to_string_lossy().into_owned(),
            begun_ns: run.begun_ns(),
            program: name(&header.program),
            build_id: header.build_id.clone(),
            arguments: header.arguments.iter().skip(1).cloned().collect(),
            params: run.parameters().into_iter().collect(),
            mpi: header.mpi_library.lines().next().unwrap_or_default().to_owned(),
            level: run.ranks[0].file.fixed.level,
            compute: header.compute.clone(),
            ranks,
            machine: machine(run, timeline),
            elapsed_ns,
            tree: factors(&causes, run, ideal.ok()),
            ranks_per_group,
            sites: sites.finish(),
            parts,
            iterations,
            phases,
            counts,
            partners,
            lacked_cores: metrics.as_ref().and_then(Metrics::share_off_cpu),
            code: sampled.map(|code| code::sampled(run, code, ranks_per_group)),
            parallel_regions: metrics.as_ref().and_then(|of| of.openmp.as_ref()).map(beside::teams),
            files: metrics.as_ref().and_then(|of| of.files.as_ref()).and_then(beside::files),
            each_file: metrics
                .as_ref()
                .and_then(|of| of.files.as_ref())
                .map_or_else(Vec::new, beside::each_file),
            findings: findings.unwrap_or_default(),
            simulated: run.is_simulated(),
        })
    }
}

/// Checks that the run has everything that is compared.
fn check(run: &Run, timeline: &GlobalTimeline) -> Result<(), NotComparable> {
    let directory = || run.directory.clone();
    if run.description.as_ref().is_some_and(|run| run.snapshot.is_some()) {
        return Err(NotComparable::Snapshot(directory()));
    }
    if !run.missing.is_empty() {
        let missing = run.world_size as usize - run.ranks.len();
        return Err(NotComparable::RanksMissing(directory(), missing, run.world_size));
    }
    let in_words =
        |what: &dyn std::fmt::Display, file: &Path| format!("{}: {what}", file.display());
    let of_run = run.diagnoses.iter().map(|found| in_words(&found.what, &found.file));
    let of_times = timeline.diagnoses.iter().map(|found| in_words(&found.what, &found.file));
    let unfinished = run.ranks.iter().find(|rank| !rank.facts.finalized());
    if let Some(rank) = unfinished {
        return Err(NotComparable::Unfinished(directory(), rank.rank));
    }
    if let Some(what) = of_run.chain(of_times).next() {
        return Err(NotComparable::Damaged(directory(), what));
    }
    let lost: u64 = run.ranks.iter().filter_map(|rank| rank.facts.lost_events).sum();
    if lost > 0 {
        return Err(NotComparable::Damaged(directory(), format!("{lost} events were lost")));
    }
    let mut threads = run.ranks.iter().flat_map(|rank| &rank.file.threads);
    match threads.any(|thread| thread.totals.is_some()) {
        true => Err(NotComparable::TotalsOnly(directory())),
        false => Ok(()),
    }
}

fn machine(run: &Run, timeline: &GlobalTimeline) -> Machine {
    let mut hosts: BTreeMap<(&str, &str), (u32, BTreeSet<u32>)> = BTreeMap::new();
    for rank in &run.ranks {
        let header = &rank.file.header;
        let host = hosts.entry((&header.host, &header.boot_id)).or_default();
        host.0 += 1;
        host.1.extend(&header.affinity);
    }
    let cores = || hosts.values().map(|(_, cores)| cores.len() as u32);
    let rate = timeline.ranks.iter().map(|rank| rank.frequency.ticks_per_s).fold(0.0, f64::max);
    let processors: BTreeSet<&String> =
        run.ranks.iter().filter_map(|rank| rank.facts.processor.as_ref()).collect();
    Machine {
        hosts: hosts.keys().map(|(host, _)| (*host).to_owned()).take(MAX_HOSTS).collect(),
        host_count: hosts.len() as u32,
        ranks_per_host: hosts.values().map(|(ranks, _)| *ranks).max().unwrap_or(0),
        cores_per_host: (cores().min().unwrap_or(0), cores().max().unwrap_or(0)),
        counter_mhz: (rate / 1e6).round() as u32,
        processors: processors.into_iter().cloned().collect(),
    }
}

/// What the run's figures mean, as a report judges them.
fn findings(
    analysis: &Analysis,
    metrics: &Metrics,
    causes: &Causes,
    (ideal, replay): (Result<f64, NoIdeal>, Option<&WhatIf>),
) -> Vec<Finding> {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let (causes, ideal) = (Some(causes), replayed_aside(run).and(ideal));
    Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay }).findings
}

fn factors(causes: &Causes, run: &Run, ideal: Option<f64>) -> Option<Factors> {
    let tree = causes.tree(run, ideal)?;
    Some(Factors {
        parallel: tree.parallel,
        load_balance: tree.load_balance,
        within_hosts: tree.within_hosts,
        between_hosts: tree.between_hosts,
        communication: tree.communication,
        serialisation: tree.serialisation,
        moving_imbalance: tree.moving_imbalance,
        transfer: tree.transfer,
    })
}

fn counts(metrics: &Metrics, sites: &mut SiteTable) -> Counts {
    let mut counts = Counts::default();
    let calls = metrics.calls.iter().filter(|row| row.class != Class::Compute);
    for row in calls.filter(|row| !is_poll(&row.function)) {
        counts.calls.insert(row.function.clone(), row.count);
        if let Some(bytes) = row.bytes.filter(|bytes| *bytes > 0) {
            counts.bytes.insert(row.function.clone(), bytes);
        }
    }
    let rows = metrics.sites.iter().flat_map(|of| &of.rows);
    for row in
        rows.filter(|row| !is_poll(&row.function) && counts.calls.contains_key(&row.function))
    {
        let site = CallSite {
            function: row.function.clone(),
            module: row.module.clone(),
            address: row.address,
            place: row.place.clone(),
            ..CallSite::default()
        };
        counts.sites.push((sites.site(&site), row.count));
    }
    counts.sites.sort_unstable();
    counts
}
