//! Threads and parallel regions of OpenMP ([`OpenMpMetrics`]), for the screen and the document.

use serde::Serialize;

use crate::metrics::{Frame, Hybrid, NO_REGION, OpenMpMetrics, ParallelRegion};
use crate::present::context::plural;
use crate::present::quantity::{percent, seconds};
use crate::present::table;
use crate::tables::openmp;
use crate::trace::symbols::SourceLocation;

/// Maximum number of rows of each table.
const MAX_ROWS: usize = 8;
/// Parts of the time of all threads below which no sentence names them.
const NOTABLE: f64 = 0.005;

/// How efficient the threads are, and where they have no work; or why that is not known.
pub(in crate::present) fn sentences(metrics: &OpenMpMetrics, elapsed_s: f64) -> Vec<String> {
    match (&metrics.hybrid, metrics.unknown) {
        _ if metrics.missed > 0 => vec![format!(
            "{} of the run not recorded: more than 256 threads of a rank began regions, or a team had more than 1,024",
            plural(metrics.missed as usize, "parallel region")
        )],
        (Some(hybrid), _) => of_hybrid(hybrid, elapsed_s),
        (None, Some(why)) if why == NO_REGION => vec![nothing_recorded(metrics)],
        (None, Some(why)) => vec![format!("efficiency of the threads not known: {why}")],
        (None, None) => vec!["efficiency of the threads not known: nothing is computed".into()],
    }
}

fn nothing_recorded(metrics: &OpenMpMetrics) -> String {
    let runtimes = match metrics.runtimes.as_slice() {
        [] => "no OpenMP runtime was loaded as a shared library".to_owned(),
        all => format!("loaded: {}", all.join("; ")),
    };
    format!(
        "no parallel region was recorded ({runtimes}); those of GNU's, LLVM's and Intel's runtimes are, as shared \
         libraries, unless OMP_TOOL=disabled"
    )
}

fn of_hybrid(hybrid: &Hybrid, elapsed_s: f64) -> Vec<String> {
    let Hybrid { parallel, threads, mpi, openmp } = hybrid;
    let first = format!(
        "{parallel:.2} = MPI {:.2} x OpenMP {:.2} (serial parts {:.2} x parallel regions {:.2})",
        mpi.efficiency, openmp.efficiency, openmp.serial, openmp.regions
    );
    let all_s = *threads as f64 * elapsed_s;
    let parts = [
        (openmp.serial_s, "with nothing to do outside parallel regions"),
        (openmp.idle.ends_s, "at the begin or end of a region"),
        (openmp.idle.barriers_s, "at barriers"),
        (openmp.idle.locks_s, "waiting for locks, critical or ordered sections"),
        (mpi.idle_threads_s, "waiting for their first thread, which is in MPI"),
        (openmp.tasks_s, "running tasks or waiting for them (not divided)"),
    ];
    let mut parts: Vec<_> = parts.into_iter().filter(|(s, _)| *s >= NOTABLE * all_s).collect();
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let named: Vec<String> =
        parts.iter().map(|(part_s, what)| format!("{} {what}", percent(part_s / all_s))).collect();
    let mut lines = vec![first];
    if !named.is_empty() {
        let all = plural(*threads as usize, "thread");
        lines.push(format!("of {} of {all}, they spend {}", seconds(all_s), named.join(", ")));
    }
    lines
}

/// The threads of each rank.
pub(super) fn thread_lines(metrics: &OpenMpMetrics) -> Vec<String> {
    let shown = &metrics.ranks[..metrics.ranks.len().min(MAX_ROWS)];
    let mut lines = table::lines(&openmp::threads(shown));
    lines.extend(table::more(metrics.ranks.len() - shown.len(), "rank"));
    lines
}

/// The regions with the most idle time.
pub(super) fn region_lines(metrics: &OpenMpMetrics) -> Vec<String> {
    let shown = &metrics.regions[..metrics.regions.len().min(MAX_ROWS)];
    let mut lines = table::lines(&openmp::regions(metrics, shown));
    lines.extend(table::more(metrics.regions.len() - shown.len(), "region"));
    lines
}

/// A parallel region.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RegionDocument<'a> {
    #[serde(flatten)]
    region: &'a ParallelRegion,
    /// Program or library; null: unknown code.
    module: Option<&'a str>,
    /// Return address of the call that begins it, in that file.
    address: u64,
    #[serde(flatten)]
    place: &'a SourceLocation,
}

impl<'a> RegionDocument<'a> {
    pub fn all(metrics: &'a OpenMpMetrics) -> Vec<Self> {
        let document = |region: &'a ParallelRegion| {
            let Frame { module, address, place } = &region.begins_at;
            let module = (!module.is_empty()).then_some(module.as_str());
            Self { region, module, address: *address, place }
        };
        metrics.regions.iter().map(document).collect()
    }
}
