//! The batch job around a run and the programs of an MPMD run, for the screen and the document.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{Pinning, RankMetrics};
use crate::plain_text::printable;
use crate::present::context::{number_list, shortened};
use crate::present::findings::unequal_pinning;
use crate::present::quantity::{TimeUnit, percent};
use crate::present::shown::Report;
use crate::present::table::Table;

/// The batch job, as described by its environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Job {
    /// `Slurm`, `PBS`, `LSF` or `SGE`; null: none.
    system: Option<&'static str>,
    /// Its number.
    id: Option<String>,
    /// The step of `srun` in it.
    step: Option<String>,
    /// Its name.
    name: Option<String>,
    /// Its nodes, as the batch system writes them.
    nodes: Option<String>,
    /// Number of tasks requested.
    tasks: Option<String>,
    /// Variables that tell the launcher how to pin, with their values.
    pinning_asked: BTreeMap<String, String>,
}

/// Each batch system's variables for job, step, name, nodes and tasks.
const SYSTEMS: [(&str, [&str; 5]); 4] = [
    (
        "Slurm",
        ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_NTASKS"],
    ),
    ("PBS", ["PBS_JOBID", "", "PBS_JOBNAME", "PBS_NUM_NODES", "PBS_NP"]),
    ("LSF", ["LSB_JOBID", "", "LSB_JOBNAME", "LSB_HOSTS", "LSB_DJOB_NUMPROC"]),
    ("SGE", ["JOB_ID", "", "JOB_NAME", "NHOSTS", "NSLOTS"]),
];

/// Variables with which users tell launchers, or launchers tell ranks, how to pin.
const PINNING: [&str; 12] = [
    "SLURM_CPU_BIND",
    "SLURM_CPU_BIND_TYPE",
    "SLURM_DISTRIBUTION",
    "OMPI_MCA_hwloc_base_binding_policy",
    "OMPI_MCA_rmaps_base_mapping_policy",
    "PRTE_MCA_hwloc_default_binding_policy",
    "HYDRA_BINDING",
    "I_MPI_PIN",
    "I_MPI_PIN_DOMAIN",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
];

/// All ranks that run the same program with the same arguments; times are means over them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ProgramGroup {
    /// Path of the program.
    program: String,
    /// Its arguments.
    arguments: Vec<String>,
    /// The ranks.
    ranks: Vec<u32>,
    /// Mean computing (γ).
    compute_s: f64,
    /// Mean lost time (χ).
    lost_s: f64,
    /// Mean time in MPI.
    mpi_s: f64,
}

fn environment<'a>(report: &Report<'a>) -> BTreeMap<&'a str, &'a str> {
    let run = report.run;
    let described = run.description.iter().flat_map(|description| &description.environment);
    let recorded = run.ranks.iter().find(|rank| !rank.facts.environment.is_empty());
    let recorded = recorded.into_iter().flat_map(|rank| &rank.facts.environment);
    // The rank's own environment wins: it names the rank's job step; `gammachi run` may run outside of it.
    described
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .chain(recorded.map(|(name, value)| (name.as_str(), value.as_str())))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// The job, as far as the recorded environment tells.
pub(super) fn job(report: &Report) -> Job {
    let environment = environment(report);
    let value = |name: &str| environment.get(name).map(|value| printable(value));
    let pinning_asked = PINNING
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), value(name)?)))
        .collect::<BTreeMap<_, _>>();
    let found = SYSTEMS.iter().find(|(_, names)| environment.contains_key(names[0]));
    let Some((system, [id, step, name, nodes, tasks])) = found else {
        return Job { pinning_asked, ..Job::default() };
    };
    Job {
        system: Some(system),
        id: value(id),
        step: value(step),
        name: value(name),
        nodes: value(nodes),
        tasks: value(tasks),
        pinning_asked,
    }
}

/// The screen's line; `None` for a run outside a batch system whose ranks are pinned alike.
pub(super) fn job_line(report: &Report) -> Option<(&'static str, String)> {
    let job = job(report);
    let mut parts = Vec::new();
    if let (Some(system), Some(id)) = (job.system, &job.id) {
        let step = job.step.as_ref().map_or(String::new(), |step| format!(".{step}"));
        let name = job.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        parts.push(format!("{system} job {id}{step}{name}"));
        parts.extend(job.nodes.as_ref().map(|nodes| format!("nodes {}", shortened(nodes))));
        parts.extend(job.tasks.as_ref().map(|tasks| format!("{tasks} tasks")));
    }
    let unequal = matches!(report.metrics.pinning, Pinning::Unequal(_));
    if parts.is_empty() && !unequal && job.pinning_asked.is_empty() {
        return None;
    }
    parts.push(pinning(&report.metrics.pinning));
    let asked = job.pinning_asked.iter().map(|(name, value)| format!("{name}={value}"));
    let asked: Vec<String> = asked.collect();
    if !asked.is_empty() {
        parts.push(format!("set by {}", shortened(&asked.join(" "))));
    }
    Some(("JOB", parts.join(" | ")))
}

fn pinning(pinning: &Pinning) -> String {
    match pinning {
        Pinning::Unknown => "pinning not recorded".into(),
        Pinning::Equal { cores: 1, .. } => "each rank pinned to one core".into(),
        Pinning::Equal { cores, pinned: false } => {
            format!("not pinned: every rank may use all {cores} cores")
        }
        Pinning::Equal { cores, .. } => format!("each rank pinned to {cores} cores"),
        Pinning::Unequal(groups) => unequal_pinning(groups),
    }
}

/// Ranks by program and arguments, in the order of their lowest ranks.
pub(super) fn program_groups(report: &Report) -> Vec<ProgramGroup> {
    let mut groups: Vec<(ProgramGroup, Vec<&RankMetrics>)> = Vec::new();
    for (trace, metrics) in report.run.ranks.iter().zip(&report.metrics.ranks) {
        let header = &trace.file.header;
        let arguments = header.arguments.get(1..).unwrap_or_default();
        let same =
            |group: &ProgramGroup| group.program == header.program && group.arguments == arguments;
        match groups.iter_mut().find(|(group, _)| same(group)) {
            Some((group, members)) => {
                group.ranks.push(trace.rank);
                members.push(metrics);
            }
            None => groups.push((
                ProgramGroup {
                    program: header.program.clone(),
                    arguments: arguments.to_vec(),
                    ranks: vec![trace.rank],
                    compute_s: 0.0,
                    lost_s: 0.0,
                    mpi_s: 0.0,
                },
                vec![metrics],
            )),
        }
    }
    let mean = |members: &[&RankMetrics], of: fn(&RankMetrics) -> f64| {
        members.iter().map(|rank| of(rank)).sum::<f64>() / members.len() as f64
    };
    let with_means = groups.into_iter().map(|(group, members)| ProgramGroup {
        compute_s: mean(&members, |rank| rank.compute_s),
        lost_s: mean(&members, |rank| rank.lost_s),
        mpi_s: mean(&members, |rank| rank.mpi_s),
        ..group
    });
    with_means.collect()
}

/// The screen's table of programs; empty if all ranks run the same one.
pub(super) fn program_lines(report: &Report) -> Vec<String> {
    /// More groups than this are not an MPMD run, but ranks with arguments of their own.
    const MAX_GROUPS: usize = 12;
    let groups = program_groups(report);
    if groups.len() < 2 || groups.len() > MAX_GROUPS {
        return Vec::new();
    }
    let elapsed_s = report.metrics.elapsed_s;
    let unit = TimeUnit::for_seconds(elapsed_s);
    let time = |seconds: f64| unit.column(seconds, elapsed_s);
    let name = |group: &ProgramGroup| {
        let name = group.program.rsplit('/').next().unwrap_or_default();
        shortened(&printable(format!("{name} {}", group.arguments.join(" ")).trim_end()))
    };
    let mut table = Table::default();
    table.left("program", groups.iter().map(name));
    table.left("ranks", groups.iter().map(|group| number_list(group.ranks.iter().copied())));
    table.right(
        &format!("computing (γ), mean {}", unit.name),
        groups.iter().map(|g| time(g.compute_s)),
    );
    table.right("lost (χ)", groups.iter().map(|g| time(g.lost_s)));
    table.right("in MPI", groups.iter().map(|g| time(g.mpi_s)));
    let share = |group: &ProgramGroup| match elapsed_s > 0.0 {
        true => percent(group.compute_s / elapsed_s),
        false => "?".into(),
    };
    table.right("computing", groups.iter().map(share));
    table.lines()
}
