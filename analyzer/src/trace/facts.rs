//! Collects the facts that a rank's definitions state.

use std::collections::BTreeMap;

use trace_format::header::{
    ClockAnchor, ClockBound, ClockExchange, Counter, CounterReading, Definition, Phase,
    ProcessLife, ProcessUsage, SystemClock, ThreadCores, ThreadUsage, UsageReading,
};

/// The facts that a rank's definitions state.
#[derive(Debug, Clone, Default)]
pub struct RankFacts {
    /// Counter when τ_i began: MPI_Init, or the first MPI_Session_init, returned.
    pub begin_ticks: Option<u64>,
    /// Counter when τ_i ended: MPI_Finalize, or the last MPI_Session_finalize, was entered.
    pub end_ticks: Option<u64>,
    /// Counter when recording ended before the program did, and why.
    pub stopped: Option<(u64, String)>,
    /// Number of event slots that could not be written; `None` if the rank's file was never completed.
    pub lost_events: Option<u64>,
    /// Simultaneous readings of the counter and the system's clocks.
    pub anchors: Vec<ClockAnchor>,
    /// Comparisons of this rank's counter with another rank's.
    pub exchanges: Vec<ClockExchange>,
    /// Bounds of the exchanges, summed over the hops by the recorder.
    pub clock_bounds: Vec<ClockBound>,
    /// When the process began and ended.
    pub life: Option<ProcessLife>,
    /// State of the system clock, from the kernel.
    pub system_clock: Option<SystemClock>,
    /// Resource usage of the threads, from the operating system.
    pub usages: Vec<ThreadUsage>,
    /// Cores on which threads may run that were read at the end.
    pub thread_cores: Vec<ThreadCores>,
    /// CPU time of the whole process.
    pub process_usages: Vec<ProcessUsage>,
    /// What the process had used at its begin, at its end and now and then between.
    pub usage_readings: Vec<UsageReading>,
    /// Region names by id.
    pub regions: BTreeMap<u32, String>,
    /// Hardware counters that were asked for.
    pub counters: Vec<Counter>,
    /// Readings of these counters at begin and end.
    pub counter_readings: Vec<CounterReading>,
    /// Model of the host's processor.
    pub processor: Option<String>,
    /// Environment variables that matter for performance.
    pub environment: Vec<(String, String)>,
    /// Number of communicators, and of windows and files, whose definitions were dropped after they
    /// were freed.
    pub left_out: (u64, u64),
    /// Whether, according to the counter, MPI_Finalize was entered before MPI_Init returned. Then
    /// `end_ticks` is `None`.
    pub end_before_begin: bool,
}

impl RankFacts {
    /// Nanoseconds in which a thread was ready to run but had no core, from the rank's begin to the
    /// last reading of the thread; `None` if a reading is missing. The first thread of a rank that
    /// did not reach its end was last read some time before.
    pub fn off_cpu_ns(&self, thread: u32) -> Option<u64> {
        let mut usages = self.usages.iter();
        let end = usages.rfind(|of| of.thread == thread && of.phase == Phase::Finalize);
        let is_it = |of: &&ThreadUsage| {
            let same = |end: &ThreadUsage| of.thread_os_id == end.thread_os_id;
            of.phase == Phase::Init && (of.thread == thread || end.is_some_and(same))
        };
        let start = self.usages.iter().find(is_it).map(|start| start.run_queue_ns);
        if thread != 0 {
            // A thread that has no first reading began later.
            return end?.run_queue_ns.checked_sub(start.unwrap_or(0));
        }
        let last = || self.last_before_death().map(|last| last.first_thread_run_queue_ns);
        end.map(|end| end.run_queue_ns).or_else(last)?.checked_sub(start?)
    }

    /// Cores on which a thread may run, as it was at the end; `None` if that was not recorded.
    pub fn cores_of(&self, thread_os_id: u32) -> Option<&[u32]> {
        let mut all = self.thread_cores.iter().rev();
        all.find(|of| of.thread_os_ids.contains(&thread_os_id)).map(|of| of.cores.as_slice())
    }

    /// The counter at the first thread's readings between which [`Self::off_cpu_ns`] counts.
    pub fn read_stretch(&self) -> Option<(u64, u64)> {
        let of = |phase| {
            let mut usages = self.usages.iter();
            usages.find(|of| of.thread == 0 && of.phase == phase).map(|of| of.ticks)
        };
        let last = || self.last_before_death().map(|last| last.ticks);
        Some((of(Phase::Init)?, of(Phase::Finalize).or_else(last)?))
    }

    /// What the process had used when it was last read, if it did not reach its end (or has not
    /// yet).
    pub fn last_before_death(&self) -> Option<&UsageReading> {
        let last = self.usage_readings.iter().max_by_key(|reading| reading.ticks)?;
        // Other threads are also read when they end.
        let at_end = |usage: &ThreadUsage| usage.thread == 0 && usage.phase == Phase::Finalize;
        let is_read = self.usages.iter().any(at_end);
        (last.phase == Phase::During && !is_read).then_some(last)
    }

    /// Collects the facts from definitions.
    pub fn from_definitions(definitions: &[Definition]) -> Self {
        let mut facts = Self::default();
        for definition in definitions {
            facts.add(definition);
        }
        if let (Some(begin), Some(end)) = (facts.begin_ticks, facts.end_ticks)
            && end < begin
        {
            facts.end_ticks = None;
            facts.end_before_begin = true;
        }
        facts
    }

    /// Takes back what was said of the end: another session resumed the recording.
    fn resume(&mut self) {
        (self.end_ticks, self.lost_events) = (None, None);
        self.usages.retain(|of| of.phase != Phase::Finalize);
        self.thread_cores.clear();
        self.process_usages.retain(|of| of.phase != Phase::Finalize);
        self.counter_readings.retain(|of| of.phase != Phase::Finalize);
        for reading in &mut self.usage_readings {
            if reading.phase == Phase::Finalize {
                reading.phase = Phase::During;
            }
        }
        for exchange in &mut self.exchanges {
            if exchange.phase == Phase::Finalize {
                exchange.phase = Phase::During;
            }
        }
        for bound in &mut self.clock_bounds {
            if bound.phase == Phase::Finalize {
                bound.phase = Phase::During;
            }
        }
    }

    fn add(&mut self, definition: &Definition) {
        match definition {
            Definition::ClockAnchor(anchor) => self.anchors.push(*anchor),
            Definition::ClockExchange(exchange) => self.exchanges.push(*exchange),
            Definition::ClockBound(bound) => self.clock_bounds.push(*bound),
            Definition::ProcessLife(life) => self.life = Some(*life),
            Definition::SystemClock(clock) => self.system_clock = Some(*clock),
            Definition::Region { id, name } => {
                self.regions.insert(*id, name.clone());
            }
            Definition::ThreadUsage(usage) => self.usages.push(*usage),
            Definition::ThreadCores(of) => self.thread_cores.push(of.clone()),
            Definition::ProcessUsage(usage) => self.process_usages.push(*usage),
            Definition::UsageReading(reading) => self.usage_readings.push(*reading),
            Definition::RankBegin { .. } if self.end_ticks.is_some() => self.resume(),
            Definition::RankBegin { ticks } => self.begin_ticks = Some(*ticks),
            Definition::RankEnd { ticks } => self.end_ticks = Some(*ticks),
            Definition::Stopped { ticks, reason } => {
                self.stopped.get_or_insert((*ticks, reason.clone()));
            }
            Definition::Finalized { lost_events } => self.lost_events = Some(*lost_events),
            Definition::Counter(counter) => self.counters.push(counter.clone()),
            Definition::CounterReading(reading) => self.counter_readings.push(reading.clone()),
            Definition::Processor { model } => self.processor = Some(model.clone()),
            Definition::Environment(variables) => self.environment.clone_from(variables),
            Definition::LeftOut { communicators, objects } => {
                self.left_out = (*communicators, *objects);
            }
            // Needed only by message matching.
            _ => {}
        }
    }

    /// Whether MPI_Finalize returned and the file is complete.
    pub fn finalized(&self) -> bool {
        self.lost_events.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_taken_back_when_another_session_resumes() {
        let usage = |phase, ticks| {
            let (on_cpu_ns, ended_threads_ns) = (0, 0);
            Definition::ProcessUsage(ProcessUsage { phase, ticks, on_cpu_ns, ended_threads_ns })
        };
        let once = [
            Definition::RankBegin { ticks: 10 },
            Definition::RankEnd { ticks: 20 },
            usage(Phase::Finalize, 21),
            Definition::Finalized { lost_events: 0 },
        ];
        let resumed = [&once[..], &[Definition::RankBegin { ticks: 30 }]].concat();
        let facts = RankFacts::from_definitions(&resumed);
        assert_eq!((facts.begin_ticks, facts.end_ticks), (Some(10), None));
        assert!(!facts.finalized() && facts.process_usages.is_empty());
        let ended = [Definition::RankEnd { ticks: 40 }, Definition::Finalized { lost_events: 0 }];
        let facts = RankFacts::from_definitions(&[&resumed[..], &ended].concat());
        assert_eq!((facts.begin_ticks, facts.end_ticks), (Some(10), Some(40)));
        assert!(facts.finalized());
    }
}
