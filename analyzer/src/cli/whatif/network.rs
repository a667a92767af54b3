//! Assembles the network that a question is about: that of the run, changed by a measured machine
//! and by options.

use crate::cli::error::CommandError;
use crate::models::machine::{Doubt, Machine};
use crate::present::machine::doubt_sentence;
use crate::replay::{Assembled, Hop, Origin, Placement, WhatIf};

use super::amount::Amount;
use super::arguments::WhatIfArguments;

/// A network, and notes for the reader.
pub(super) struct Network {
    pub assembled: Assembled,
    pub notes: Vec<String>,
}

/// Names of the classes of pairs in `machine.json`, by hop.
const CLASSES: [&str; 2] = ["same-host", "other-host"];

/// Assembles the network.
///
/// # Errors
/// The machine cannot be read, or has no data for the pairs that exist on the hosts of the
/// question.
pub(super) fn assemble(
    arguments: &WhatIfArguments,
    what_if: &WhatIf,
    placement: &Placement,
) -> Result<Network, CommandError> {
    let calibration = &what_if.calibration;
    let (shows, eager_shown) = (what_if.shows(), calibration.samples.eager_shown);
    let mut network = Network {
        assembled: Assembled::of_run(calibration.network, shows, eager_shown),
        notes: Vec::new(),
    };
    let hop = placement.main_hop();
    if let Some(path) = &arguments.machine {
        let machine = Machine::read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !network.apply_machine(&machine, &name, what_if, placement) {
            return Err(CommandError::usage(format!(
                "--machine {}: has no pairs of class {}, which matter here: nothing would change",
                path.display(),
                CLASSES[hop as usize],
            )));
        }
    }
    let assembled = &mut network.assembled;
    if let Some(Amount::Is(seconds)) = arguments.latency {
        assembled.set_latency(hop, seconds, Origin::Given);
    }
    if let Some(Amount::Is(bytes)) = arguments.bandwidth {
        assembled.set_per_byte(hop, 1.0 / bytes, Origin::Given);
    }
    if let Some(Amount::Is(seconds)) = arguments.overhead {
        let per_byte = assembled.network.overhead_per_byte;
        assembled.set_overhead(seconds, per_byte, Origin::Given);
    }
    if let Some(bytes) = arguments.eager {
        for hop in Hop::ALL {
            assembled.set_eager(hop, bytes as f64, Origin::Given);
        }
    }
    Ok(network)
}

/// Checks that the cost of messages is known for every level that they would use.
///
/// # Errors
/// Wrong usage: which level is unknown, and which options provide it.
pub(super) fn check_known(
    assembled: &Assembled,
    placement: &Placement,
    what_if: &WhatIf,
) -> Result<(), CommandError> {
    let used = placement.used_levels(&what_if.graph);
    for hop in Hop::ALL.into_iter().filter(|hop| used[*hop as usize]) {
        let parameters = [
            ("latency", assembled.latency[hop as usize], "--latency"),
            ("bandwidth", assembled.per_byte[hop as usize], "--bandwidth"),
        ];
        let unknown: Vec<_> =
            parameters.iter().filter(|(_, from, _)| *from == Origin::Assumed).collect();
        if unknown.is_empty() {
            continue;
        }
        let joined = |of: Vec<&str>| of.join(" and ");
        let names = joined(unknown.iter().map(|(name, ..)| *name).collect());
        let options = joined(unknown.iter().map(|(.., option)| *option).collect());
        let level = ["within hosts", "between hosts"][hop as usize];
        // Options set the level that matters.
        let options = match hop == placement.main_hop() {
            true => format!(", or {options}"),
            false => String::new(),
        };
        return Err(CommandError::usage(format!(
            "--map: the run has no messages {level}, so their {names} cannot be known: give --machine with \
             pairs of class {}{options}",
            CLASSES[hop as usize]
        )));
    }
    Ok(())
}

impl Network {
    /// Applies what a machine measured for the levels that the run has; returns false if it has
    /// nothing for them. CPU times are those of the level that matters.
    fn apply_machine(
        &mut self,
        machine: &Machine,
        name: &str,
        what_if: &WhatIf,
        placement: &Placement,
    ) -> bool {
        let used = placement.levels();
        let mut applied = false;
        for hop in Hop::ALL.into_iter().filter(|hop| used[*hop as usize]) {
            let class = CLASSES[hop as usize];
            let Some(pairs) = machine.network.class(class) else {
                self.notes.push(format!(
                    "{name} has no pairs of class {class}: latency, bandwidth and eager \
                                         limit stay those of the run."
                ));
                continue;
            };
            let level = pairs.level();
            self.assembled.set_latency(hop, level.latency_s, Origin::Machine);
            self.assembled.set_per_byte(hop, level.s_per_byte, Origin::Machine);
            self.assembled.set_eager(hop, level.eager_bytes, Origin::Machine);
            if hop == placement.main_hop() {
                let (overhead, per_byte) = (level.overhead_s, level.overhead_s_per_byte);
                self.assembled.set_overhead(overhead, per_byte, Origin::Machine);
            }
            if !level.latency_is_known {
                self.notes.push(format!(
                    "{name}: the latency of class {class} cannot be separated from the overheads: \
                                         only their sum is used."
                ));
            }
            applied = true;
        }
        if !applied {
            return false;
        }
        self.assembled.machine = Some(name.to_owned());
        let ranks = &what_if.graph.run.ranks;
        let mpi = ranks.first().map_or("", |rank| rank.file.header.mpi_library.as_str());
        // Other hosts are the subject of the question.
        let doubts = machine.doubts_for(&[], mpi);
        let of_mpi = doubts.iter().filter(|doubt| matches!(doubt, Doubt::OtherMpi { .. }));
        self.notes.extend(of_mpi.map(doubt_sentence));
        let noise = &machine.network.conditions.reasons;
        self.notes.extend(noise.iter().map(|why| format!("{name}: {why}")));
        true
    }
}
