//! How much a call communicates.

use super::machine::MachineTimes;

/// As many as there are.
pub(super) const ALL: f64 = f64::INFINITY;

/// Messages of one size, as one rank sends them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Messages {
    pub count: f64,
    /// Of each.
    pub bytes: f64,
    /// How many ranks of a host send them to other hosts at once; `None` within a host.
    pub off_host: Option<f64>,
    /// How many of a rank's are under way at once; the next so many follow when all of them have arrived.
    pub at_once: f64,
}

/// Messages one after another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    /// What libraries call it; nothing where it is the same at every size.
    pub algorithm: &'static str,
    pub messages: Vec<Messages>,
}

impl Work {
    pub fn usual(messages: Vec<Messages>) -> Self {
        Self { algorithm: "", messages }
    }

    /// Those between hosts, for others take much less time; all of them if none is.
    fn slowest(&self) -> impl Iterator<Item = &Messages> {
        let all = || self.messages.iter().filter(|of| of.count > 0.0);
        let any = all().any(|of| of.off_host.is_some());
        all().filter(move |of| !any || of.off_host.is_some())
    }

    pub fn messages(&self) -> f64 {
        self.slowest().map(|of| of.count).sum()
    }

    pub fn bytes(&self) -> f64 {
        self.slowest().map(|of| of.count * of.bytes).sum()
    }

    /// The time of these messages on a machine; `None` if it was not measured between such ranks.
    pub fn seconds(&self, machine: &MachineTimes) -> Option<f64> {
        let seconds_of = |of: &Messages| {
            let (times, senders) = match of.off_host {
                None => (machine.same_host.as_ref().or(machine.other_host.as_ref())?, 1.0),
                Some(senders) => (machine.other_host.as_ref()?, senders.max(1.0)),
            };
            let (whole, gap) = (times.at(of.bytes), times.gap(of.bytes));
            let batches = match of.at_once > 1.0 {
                true => (of.count / of.at_once).ceil().max(1.0),
                false => of.count,
            };
            // Messages that leave a host at once follow each other.
            Some(batches * whole + (of.count * senders - batches) * gap)
        };
        self.messages.iter().filter(|of| of.count > 0.0).map(seconds_of).sum()
    }
}
