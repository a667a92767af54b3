//! The conditions under which a kernel measured, and whether the machine was too noisy for the
//! figures.

use std::fs;

use serde::Serialize;

use crate::sample::Figure;
use crate::world::World;

/// Figures count as disturbed from this share of a rank's time spent ready but without a core.
const MAX_OFF_CPU: f64 = 0.01;
/// Figures count as noisy from this typical ratio of interquartile range to median.
const MAX_SPREAD: f64 = 0.1;

/// One rank's view of its host.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    run_queue_ns: u64,
    involuntary_switches: u64,
}

/// Observes the conditions from its creation on.
pub struct Watch {
    start: Reading,
    load_1min: Option<f64>,
}

/// The conditions of a measurement, gathered from all ranks.
#[derive(Debug, Serialize)]
pub struct Conditions {
    /// Hosts in the order of their lowest ranks.
    pub hosts: Vec<Host>,
    /// Share of time ready to run but without a core, for the rank with the largest share.
    pub off_cpu_share: Option<f64>,
    /// Number of involuntary context switches on all ranks.
    pub involuntary_switches: f64,
    /// Typical (median) interquartile range over median of the kernel's figures.
    pub typical_spread: Option<f64>,
    /// Whether the machine was too noisy for the figures to be taken at face value.
    pub noisy: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// One host.
#[derive(Debug, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Ranks of this job on the host.
    pub ranks: Vec<i32>,
    /// Number of processors online.
    pub processors: usize,
    /// Processors that each rank may run on, as a list per rank, lowest first.
    pub affinity: Vec<String>,
    /// Whether every rank is bound to its own processors.
    pub pinned: bool,
    /// Model name of the processor.
    pub processor: String,
    /// Frequency stated by the system in hertz; `None` if there is none.
    pub stated_hz: Option<f64>,
    /// Frequency governor; `None` if the system shows none (virtual machines).
    pub governor: Option<String>,
    /// Whether the host runs under a hypervisor.
    pub virtual_machine: bool,
    /// Load average over a minute when the kernel began.
    pub load_1min: Option<f64>,
}

impl Watch {
    /// Begins observing.
    pub fn start() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Self { start: Reading::now(), load_1min: load }
    }

    /// Gathers the conditions. Called by all ranks; `figures` are rank 0's.
    pub fn end<'a>(
        &self,
        world: &World,
        figures: impl IntoIterator<Item = &'a Figure>,
    ) -> Conditions {
        let now = Reading::now();
        let elapsed_ns =
            now.ticks.wrapping_sub(self.start.ticks) as f64 * world.seconds_per_tick() * 1e9;
        let waited =
            now.run_queue_ns.saturating_sub(self.start.run_queue_ns) as f64 / elapsed_ns.max(1.0);
        let switches = now.involuntary_switches.saturating_sub(self.start.involuntary_switches);
        let known = now.run_queue_ns > 0;
        let off_cpu = world.largest(if known { waited } else { -1.0 });
        let switches: f64 = world.share(switches as f64).into_iter().sum();
        let processors = world.share(online_processors() as f64);
        let loads = world.share(self.load_1min.unwrap_or(-1.0));
        let stated = world.share(stated_hz().unwrap_or(-1.0));
        let affinities = world.share_text(&affinity());
        let models = world.share_text(&cpuinfo("model name").unwrap_or_default());
        let governors = world.share_text(&governor().unwrap_or_default());
        let flags = world.share(f64::from(u8::from(has_hypervisor())));

        let hosts: Vec<Host> = (0..world.host_names.len())
            .map(|host| {
                let ranks: Vec<i32> =
                    (0..world.size).filter(|rank| world.hosts[*rank as usize] == host).collect();
                let first = ranks[0] as usize;
                let affinity: Vec<String> =
                    ranks.iter().map(|rank| affinities[*rank as usize].clone()).collect();
                let positive = |value: f64| Some(value).filter(|value| *value >= 0.0);
                Host {
                    name: world.host_names[host].clone(),
                    pinned: are_apart(&affinity),
                    affinity,
                    ranks,
                    processors: processors[first] as usize,
                    processor: models[first].clone(),
                    stated_hz: positive(stated[first]),
                    governor: Some(governors[first].clone()).filter(|name| !name.is_empty()),
                    virtual_machine: flags[first] > 0.0,
                    load_1min: positive(loads[first]),
                }
            })
            .collect();
        let mut spreads: Vec<f64> = figures.into_iter().map(Figure::spread).collect();
        spreads.sort_unstable_by(f64::total_cmp);
        let typical_spread = (!spreads.is_empty()).then(|| crate::sample::quantile(&spreads, 0.5));
        let off_cpu_share = Some(off_cpu).filter(|share| *share >= 0.0);
        let reasons = reasons(&hosts, off_cpu_share, typical_spread);
        Conditions {
            hosts,
            off_cpu_share,
            involuntary_switches: switches,
            typical_spread,
            noisy: !reasons.is_empty(),
            reasons,
        }
    }
}

impl Conditions {
    /// Whether a host has more ranks than processors. If so, times are meaningless.
    pub fn oversubscribed(&self) -> bool {
        self.hosts.iter().any(|host| host.ranks.len() > host.processors)
    }
}

fn reasons(hosts: &[Host], off_cpu: Option<f64>, spread: Option<f64>) -> Vec<String> {
    let mut reasons = Vec::new();
    for host in hosts.iter().filter(|host| host.ranks.len() > host.processors) {
        reasons.push(format!(
            "{} ranks share {} processors on {}: times are meaningless, only counts and results are valid",
            host.ranks.len(),
            host.processors,
            host.name
        ));
    }
    if let Some(share) = off_cpu.filter(|share| *share > MAX_OFF_CPU) {
        reasons.push(format!(
            "a rank was kept from its processor for {:.1} % of the time: something else runs here",
            share * 100.0
        ));
    }
    if let Some(spread) = spread.filter(|spread| *spread > MAX_SPREAD) {
        reasons.push(format!(
            "repetitions vary: the typical figure has an interquartile range of {:.0} % of its median",
            spread * 100.0
        ));
    }
    reasons
}

impl Reading {
    fn now() -> Self {
        // Only for this thread: helper threads of the MPI library are not our concern.
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let run_queue_ns = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: guaranteed here: room for one rusage, which is plain numbers, zeroed before.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self {
            ticks: crate::counter::read(),
            run_queue_ns: run_queue_ns.unwrap_or(0),
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

/// Whether no two ranks may run on the same processor.
fn are_apart(affinities: &[String]) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    affinities.iter().flat_map(|list| list.split(',')).all(|processor| seen.insert(processor))
}

fn online_processors() -> usize {
    // SAFETY: guaranteed here: no pointers.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize
}

/// Processors that this thread may run on: `0,1`.
fn affinity() -> String {
    // SAFETY: guaranteed here: a bit set, for which zero is a valid value, and its actual size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    let most = libc::CPU_SETSIZE as usize;
    // SAFETY: guaranteed here: the number is within the set.
    let allowed = (0..most).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) });
    allowed.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

fn cpuinfo(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn stated_hz() -> Option<f64> {
    Some(cpuinfo("cpu MHz")?.parse::<f64>().ok()? * 1e6)
}

fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned())
}

fn has_hypervisor() -> bool {
    let flags = cpuinfo("flags").unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
        || fs::exists("/sys/hypervisor/type").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(ranks: i32, processors: usize) -> Host {
        Host {
            name: "n1".into(),
            ranks: (0..ranks).collect(),
            processors,
            affinity: Vec::new(),
            pinned: false,
            processor: String::new(),
            stated_hz: None,
            governor: None,
            virtual_machine: false,
            load_1min: None,
        }
    }

    #[test]
    fn reports_noisy_machine_with_reasons() {
        assert!(reasons(&[host(2, 2)], Some(0.0), Some(0.02)).is_empty());
        let all = reasons(&[host(16, 2)], Some(0.4), Some(0.5));
        assert_eq!(all.len(), 3);
        assert!(all[0].contains("16 ranks share 2 processors"), "{all:?}");
        assert!(all[1].contains("40.0 %") && all[2].contains("50 %"), "{all:?}");
    }

    #[test]
    fn pinned_ranks_have_their_own_processors() {
        assert!(are_apart(&["0".into(), "1,2".into()]));
        assert!(!are_apart(&["0,1".into(), "0,1".into()]));
    }
}
