//! RANKS: what each rank did, or each group of similar ranks.
//!
//! A rank belongs to a group if it ended in the same way as the group's first rank, and if computing (γ), lost (χ), MPI
//! time and time outside are nearly those of that rank.

use crate::causes::{Causes, RankTime};
use crate::diagnosis::{Diagnosis, Finding};
use crate::metrics::{ComputeMode, Metrics, Pinning, RankMetrics, RankState};

use super::table::{Cell, Column, Shown, Table};

/// Share of τ by which similar ranks may differ.
const TOLERANCE: f64 = 0.02;
/// Share of τ from which a rank's time in the recorder, or outside the selected part, has a column.
const NOTABLE_SHARE: f64 = 0.001;

/// What the table is made from.
pub struct Ranks<'a> {
    /// Figures of the ranks.
    metrics: &'a Metrics,
    /// A rank's time in MPI, divided, in seconds; `None` where causes are not known for the selection.
    in_mpi: Option<Vec<InMpi>>,
    shows_sleep: bool,
    /// What is unusual about a rank; empty if nothing is.
    state: fn(&RankMetrics) -> String,
}

#[derive(Clone, Copy)]
struct InMpi {
    waiting_s: f64,
    transfer_s: f64,
    gone_s: f64,
    /// Of the selected part of the run, when the rank was not in it.
    elsewhere_s: f64,
}

/// A rank, and its position.
type Row<'a> = (usize, &'a RankMetrics);

/// What stands for several ranks in a cell.
#[derive(PartialEq)]
enum OfGroup {
    Mean,
    Largest,
    First,
    /// The column is left out.
    Nothing,
}

/// A column of the table.
struct Definition {
    key: &'static str,
    title: &'static str,
    of_group: OfGroup,
    /// Whether it says something about these ranks.
    is_shown: fn(&Ranks) -> bool,
    cell: fn(&Ranks, Row) -> Cell,
}

/// All columns, from left to right.
const COLUMNS: [Definition; 20] = [
    Definition {
        key: "host",
        title: "host",
        of_group: OfGroup::Nothing,
        is_shown: |ranks| ranks.any(|rank| rank.host != ranks.metrics.ranks[0].host),
        cell: |_, (_, rank)| Cell::Text(rank.host.clone()),
    },
    Definition {
        key: "compute_s",
        title: "computing (γ)",
        of_group: OfGroup::Mean,
        is_shown: |_| true,
        cell: |_, (_, rank)| Cell::Seconds(rank.compute_s),
    },
    Definition {
        key: "lost_s",
        title: "lost (χ)",
        of_group: OfGroup::Mean,
        is_shown: |_| true,
        cell: |_, (_, rank)| Cell::Seconds(rank.lost_s),
    },
    Definition {
        key: "waiting_s",
        title: "waiting",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.in_mpi.is_some(),
        cell: |ranks, (at, _)| ranks.divided(at, |of| of.waiting_s),
    },
    Definition {
        key: "transfer_s",
        title: "transfer",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.in_mpi.is_some(),
        cell: |ranks, (at, _)| ranks.divided(at, |of| of.transfer_s),
    },
    Definition {
        key: "gone_s",
        title: "gone",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.in_mpi.iter().flatten().any(|of| of.gone_s > 0.0),
        cell: |ranks, (at, _)| ranks.divided(at, |of| of.gone_s),
    },
    Definition {
        key: "elsewhere_s",
        title: "elsewhere",
        of_group: OfGroup::Mean,
        is_shown: |ranks| {
            let notable_s = NOTABLE_SHARE * ranks.metrics.elapsed_s;
            ranks.in_mpi.iter().flatten().any(|of| of.elsewhere_s > notable_s)
        },
        cell: |ranks, (at, _)| ranks.divided(at, |of| of.elsewhere_s),
    },
    Definition {
        key: "mpi_s",
        title: "in MPI",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.in_mpi.is_none(),
        cell: |_, (_, rank)| Cell::Seconds(rank.mpi_s),
    },
    Definition {
        key: "outside_s",
        title: "start and end",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.in_mpi.is_none(),
        cell: |_, (_, rank)| Cell::Seconds(rank.outside_s),
    },
    Definition {
        key: "other_s",
        title: "other code",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.metrics.compute != ComputeMode::Outside,
        cell: |_, (_, rank)| Cell::Seconds(rank.other_s),
    },
    Definition {
        key: "recorder_s",
        title: "recorder",
        of_group: OfGroup::Mean,
        // TRUST says how much time it took altogether.
        is_shown: |ranks| {
            let notable_s = NOTABLE_SHARE * ranks.metrics.elapsed_s;
            ranks.any(|rank| rank.recorder_s >= notable_s)
        },
        cell: |_, (_, rank)| Cell::Seconds(rank.recorder_s),
    },
    Definition {
        key: "threads",
        title: "threads",
        of_group: OfGroup::Largest,
        is_shown: |ranks| ranks.any(|rank| rank.threads > 1),
        cell: |_, (_, rank)| Cell::Count(rank.threads as u64),
    },
    Definition {
        key: "core",
        title: "core",
        of_group: OfGroup::Nothing,
        // The core of a rank that may use several is that of one moment.
        is_shown: |ranks| {
            !matches!(ranks.metrics.pinning, Pinning::Equal { pinned: false, .. })
                && ranks.any(|rank| rank.core.is_some())
        },
        cell: |_, (_, rank)| rank.core.map_or(Cell::Unknown, |core| Cell::Count(core.into())),
    },
    Definition {
        key: "off_cpu_s",
        title: "waited for a core",
        of_group: OfGroup::Largest,
        is_shown: |ranks| ranks.any(|rank| rank.off_cpu_s.is_some()),
        cell: |_, (_, rank)| rank.off_cpu_s.map_or(Cell::Unknown, Cell::Seconds),
    },
    Definition {
        key: "slept_s",
        title: "asleep",
        of_group: OfGroup::Largest,
        // Not a part of the computing: how much of it lies inside MPI is not known.
        is_shown: |ranks| ranks.shows_sleep,
        cell: |_, (_, rank)| rank.cpu_time.map_or(Cell::Unknown, |of| Cell::Seconds(of.slept_s)),
    },
    Definition {
        key: "peak_bytes",
        title: "peak memory",
        of_group: OfGroup::Largest,
        is_shown: |ranks| ranks.any(|rank| rank.memory.is_some()),
        cell: |_, (_, rank)| {
            rank.memory.map_or(Cell::Unknown, |memory| Cell::Bytes(memory.peak_bytes as f64))
        },
    },
    Definition {
        key: "flops_per_s",
        title: "flop per s",
        of_group: OfGroup::Mean,
        is_shown: |ranks| ranks.any(|rank| rank.flops.is_some()),
        cell: |_, (_, rank)| {
            rank.flops
                .filter(|_| rank.elapsed_s > 0.0)
                .map_or(Cell::Unknown, |flops| Cell::Rate(flops / rank.elapsed_s))
        },
    },
    Definition {
        key: "events",
        title: "calls",
        of_group: OfGroup::Mean,
        is_shown: |_| true,
        cell: |_, (_, rank)| Cell::Count(rank.events),
    },
    Definition {
        key: "failed",
        title: "failed calls",
        of_group: OfGroup::Largest,
        is_shown: |ranks| ranks.any(|rank| rank.failed > 0),
        cell: |_, (_, rank)| Cell::Count(rank.failed),
    },
    Definition {
        key: "state",
        title: "state",
        of_group: OfGroup::First,
        // POSITIONS says more about ranks that did not finish.
        is_shown: |ranks| {
            ranks.metrics.unfinished.is_none() && ranks.any(|rank| !(ranks.state)(rank).is_empty())
        },
        cell: |ranks, (_, rank)| Cell::Text((ranks.state)(rank)),
    },
];

/// Similar ranks; the first is the reference for all.
pub struct RankGroup<'a> {
    /// Their positions, ascending, and their figures.
    pub members: Vec<(usize, &'a RankMetrics)>,
}

impl<'a> Ranks<'a> {
    /// What the table needs of a run's figures, its causes, if known, and its diagnosis. `state` words what is unusual
    /// about a rank.
    pub fn new(
        metrics: &'a Metrics,
        causes: Option<&Causes>,
        diagnosis: &Diagnosis,
        state: fn(&RankMetrics) -> String,
    ) -> Self {
        let causes = causes.filter(|causes| {
            !diagnosis.of.hides_waiting() && causes.rank_times.len() == metrics.ranks.len()
        });
        let in_mpi = causes.map(|causes| {
            let s = |ticks: i64| causes.clock.seconds(ticks);
            let divided = |(position, of): (usize, &RankTime)| {
                let takes_part = causes.part.as_ref().is_none_or(|part| part.has(position));
                let all = of.computing + of.waiting + of.transfer + of.recorder + of.gone;
                InMpi {
                    waiting_s: s(of.waiting),
                    transfer_s: s(of.transfer),
                    gone_s: s(of.gone),
                    elsewhere_s: if takes_part { s(causes.elapsed() - all) } else { 0.0 },
                }
            };
            causes.rank_times.iter().enumerate().map(divided).collect()
        });
        let slept = |finding: &Finding| matches!(finding, Finding::Asleep(_) | Finding::Blocked(_));
        Self { metrics, in_mpi, shows_sleep: diagnosis.findings.iter().any(slept), state }
    }

    /// The ranks at these positions, a row each.
    pub fn table(&self, positions: &[usize]) -> Table {
        let ranks = &self.metrics.ranks;
        let rank = Column {
            key: "rank",
            title: "rank".to_owned(),
            shown: Shown::Always,
            cells: positions.iter().map(|at| Cell::Count(ranks[*at].rank.into())).collect(),
        };
        let rows: Vec<Row> = positions.iter().map(|at| (*at, &ranks[*at])).collect();
        let others = COLUMNS.iter().filter(|column| (column.is_shown)(self)).map(|column| {
            let cells = rows.iter().map(|row| (column.cell)(self, *row)).collect();
            column.filled(column.title.to_owned(), cells)
        });
        Table { columns: std::iter::once(rank).chain(others).collect() }
    }

    /// Groups of similar ranks, a row each: means over their ranks, the largest where the title says "most", the state
    /// of the first.
    pub fn table_of_groups(&self, groups: &[RankGroup]) -> Table {
        let shown = |column: &&Definition| {
            column.of_group != OfGroup::Nothing
                && ((column.is_shown)(self) || column.of_group == OfGroup::First)
        };
        let columns = COLUMNS.iter().filter(shown).map(|column| {
            let cells = groups.iter().map(|group| {
                let cells = group.members.iter().map(|row| (column.cell)(self, *row));
                of_group(&column.of_group, cells.collect())
            });
            let title = match column.of_group {
                OfGroup::Largest => format!("{} (most)", column.title),
                OfGroup::First => format!("{} of the first", column.title),
                OfGroup::Mean | OfGroup::Nothing => column.title.to_owned(),
            };
            column.filled(title, cells.collect())
        });
        let mut table = Table { columns: columns.collect() };
        let is_empty = |cell: &Cell| matches!(cell, Cell::Text(text) if text.is_empty());
        table.columns.retain(|column| !column.cells.iter().all(is_empty));
        table
    }

    /// Groups of similar ranks, those that lose most first.
    pub fn groups(&self) -> Vec<RankGroup<'a>> {
        let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * self.metrics.elapsed_s;
        let similar = |a: &RankMetrics, b: &RankMetrics| {
            end_of(a) == end_of(b)
                && near(a.compute_s, b.compute_s)
                && near(a.lost_s, b.lost_s)
                && near(a.mpi_s, b.mpi_s)
                && near(a.outside_s, b.outside_s)
        };
        let mut groups: Vec<RankGroup> = Vec::new();
        for row in self.metrics.ranks.iter().enumerate() {
            match groups.iter_mut().find(|group| similar(group.members[0].1, row.1)) {
                Some(group) => group.members.push(row),
                None => groups.push(RankGroup { members: vec![row] }),
            }
        }
        let lost_s = |group: &RankGroup| {
            let lost_s = group.members.iter().map(|(_, rank)| rank.lost_s);
            lost_s.sum::<f64>() / group.members.len() as f64
        };
        groups.sort_by(|a, b| lost_s(b).total_cmp(&lost_s(a)));
        groups
    }

    fn any(&self, is: impl Fn(&RankMetrics) -> bool) -> bool {
        self.metrics.ranks.iter().any(is)
    }

    fn divided(&self, at: usize, part: fn(&InMpi) -> f64) -> Cell {
        self.in_mpi.as_ref().map_or(Cell::Unknown, |in_mpi| Cell::Seconds(part(&in_mpi[at])))
    }
}

impl Definition {
    fn filled(&self, title: String, cells: Vec<Cell>) -> Column {
        let shown = if self.key == "events" { Shown::Detail } else { Shown::Always };
        Column { key: self.key, title, shown, cells }
    }
}

fn end_of(rank: &RankMetrics) -> (bool, bool, u8) {
    (rank.takes_part, rank.state == RankState::Finalized, rank.ending as u8)
}

/// The cell that stands for those of a group; unknown cells are left out.
fn of_group(kind: &OfGroup, cells: Vec<Cell>) -> Cell {
    let first = cells.iter().find(|cell| cell.number().is_some()).unwrap_or(&cells[0]);
    let numbers = || cells.iter().filter_map(Cell::number);
    let known = numbers().count();
    match kind {
        OfGroup::Mean if known > 0 => first.with_number(numbers().sum::<f64>() / known as f64),
        OfGroup::Largest if known > 0 => first.with_number(numbers().fold(f64::MIN, f64::max)),
        _ => cells[0].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Evidence;
    use crate::metrics::Selection;
    use crate::synthetic_messages::on_world;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};
    use crate::timeline::GlobalTimeline;
    use crate::trace::Run;

    const NOT_KNOWN: [Cell; 2] = [Cell::Unknown, Cell::Unknown];

    #[test]
    fn group_has_the_mean_or_the_largest_of_what_is_known() {
        let times = || vec![Cell::Seconds(1.0), Cell::Unknown, Cell::Seconds(4.0)];
        assert_eq!(of_group(&OfGroup::Mean, times()), Cell::Seconds(2.5));
        assert_eq!(of_group(&OfGroup::Largest, times()), Cell::Seconds(4.0));
        assert_eq!(of_group(&OfGroup::Largest, NOT_KNOWN.to_vec()), Cell::Unknown);
        assert_eq!(of_group(&OfGroup::Mean, vec![Cell::Count(1), Cell::Count(2)]), Cell::Count(2));
        let states = ["in MPI_Recv", ""].map(|state| Cell::Text(state.to_owned()));
        assert_eq!(of_group(&OfGroup::First, states.to_vec()), states[0]);
    }

    /// The cells of a column in the table of these ranks.
    fn column_of(ranks: &[SyntheticRank], key: &str) -> Option<Vec<Cell>> {
        let directory = RunDirectory::with_ranks(ranks);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
        let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
        let all = Vec::from_iter(0..ranks.len());
        let table = Ranks::new(&metrics, None, &diagnosis, |_| String::new()).table(&all);
        table.columns.into_iter().find(|column| column.key == key).map(|column| column.cells)
    }

    #[test]
    fn failed_calls_are_counted_by_rank_if_there_are_any() {
        const END: u64 = 5_000_000;
        let mut ranks = [0, 1].map(|rank| SyntheticRank::level_1(rank, 2, END));
        ranks[1].failed_call_with("MPI_Send", (2_000_000, 2_000_100), on_world(0, 7, 8), 6);
        for rank in &mut ranks {
            rank.finalize(END, END + 10);
        }
        assert_eq!(column_of(&ranks, "failed"), Some(vec![Cell::Count(0), Cell::Count(1)]));
        assert_eq!(column_of(&ranks[..1], "failed"), None);
    }

    #[test]
    fn every_column_has_a_key_and_a_title_of_its_own() {
        for (at, column) in COLUMNS.iter().enumerate() {
            let others = || COLUMNS[..at].iter();
            assert!(others().all(|other| other.key != column.key), "{}", column.key);
            assert!(others().all(|other| other.title != column.title), "{}", column.title);
        }
    }
}
