//! Parts of a run: REGIONS that the program marked, PHASES, and the slow iterations of the longest phase.

use crate::causes::{Causes, Context, Iteration, NO_CONTEXT, Phase, Region, Tree};
use crate::trace::Run;

use super::table::{Cell, Table};

/// Adds the factors of efficiencies. Where nobody calls MPI, only the balance of the load means something.
fn add_factors(table: &mut Table, trees: &[(Option<Tree>, bool)]) {
    let factor = |value: Option<f64>| Cell::or_unknown(value, Cell::Factor);
    let where_called = |of: fn(&Tree) -> f64| {
        let cell = move |(tree, calls_mpi): &(Option<Tree>, bool)| match calls_mpi {
            true => factor(tree.as_ref().map(of)),
            false => Cell::Nothing,
        };
        trees.iter().map(cell)
    };
    table.add("parallel", "efficiency", where_called(|tree| tree.parallel));
    let balance = trees.iter().map(|(tree, _)| tree.as_ref().and_then(|tree| tree.load_balance));
    table.add("load_balance", "load balance", balance.map(factor));
    table.add("communication", "communication", where_called(|tree| tree.communication));
}

/// Regions, a row each.
pub fn regions(run: &Run, causes: &Causes, regions: &[Region]) -> Table {
    let s = |ticks| Cell::Seconds(causes.clock.seconds(ticks));
    let of_rank = |region: &Region| s(region.inside / region.computing.len().max(1) as i64);
    let trees = regions.iter().map(|region| (region.tree(run), region.in_mpi > 0));
    let mut table = Table::default();
    table.add("name", "region", regions.iter().map(|region| Cell::Text(region.name.clone())));
    table.add("count", "times", regions.iter().map(|region| Cell::Count(region.count)));
    table.add("seconds", "time per rank", regions.iter().map(of_rank));
    add_factors(&mut table, &trees.collect::<Vec<_>>());
    table.add("waiting_s", "waiting", regions.iter().map(|region| s(region.waiting)));
    table.mark("region", regions.iter().map(|region| Cell::Text(region.name.clone())));
    table
}

/// Phases in order of time.
pub fn phases(run: &Run, causes: &Causes) -> Table {
    let mut phases: Vec<&Phase> = causes.phases.iter().collect();
    phases.sort_by_key(|phase| phase.begin());
    let rows = || phases.iter();
    let s = |ticks| Cell::Seconds(causes.clock.seconds(ticks));
    let moving = rows().map(|of| Cell::or_unknown(of.moving_imbalance(), Cell::Factor));
    let begins_at = |phase: &&Phase| match phase.context {
        NO_CONTEXT => Cell::Unknown,
        context => match causes.contexts.get(context) {
            site @ Context::Transfer(_) => Cell::Context(site.clone()),
            _ => Cell::Unknown,
        },
    };
    let mut table = Table::default();
    table.add("count", "iterations", rows().map(|of| Cell::Count(of.iterations.len() as u64)));
    table.add("begin_s", "from", rows().map(|phase| s(phase.begin())));
    table.add("seconds", "time", rows().map(|phase| s(phase.ticks())));
    table.add("median_s", "median", rows().map(|phase| s(phase.statistics().median)));
    add_factors(&mut table, &rows().map(|phase| (phase.tree(run), true)).collect::<Vec<_>>());
    table.add("moving_imbalance", "moving imbalance", moving);
    table.add("place", "begin at", rows().map(begins_at));
    table.mark("from", rows().map(|phase| s(phase.begin())));
    table.mark("to", rows().map(|phase| s(phase.begin() + phase.ticks())));
    table
}

/// Iterations of a phase, a row each.
pub fn iterations(causes: &Causes, phase: &Phase, numbers: &[usize]) -> Table {
    let rows = || numbers.iter().map(|number| &phase.iterations[*number]);
    let s = |ticks| Cell::Seconds(causes.clock.seconds(ticks));
    let begins = || numbers.iter().map(|number| phase.bounds[*number]);
    let delayed_by =
        |of: &Iteration| of.delayed_by.map_or(Cell::Nothing, |line| Cell::thread(causes, line));
    let slowest = |of: &Iteration| Cell::thread(causes, causes.lines.first_of(of.slowest));
    let mut table = Table::default();
    table.add("index", "iteration", numbers.iter().map(|number| Cell::Count(*number as u64)));
    table.detail("begin_s", "begin", begins().map(s));
    table.add("seconds", "time", rows().map(|of| s(of.ticks)));
    table.add("waiting_s", "waiting", rows().map(|of| s(of.waiting)));
    table.add("delayed_by", "mostly delayed by", rows().map(delayed_by));
    table.add("slowest", "computes longest", rows().map(slowest));
    table.mark("from", begins().map(s));
    table.mark("to", begins().zip(rows()).map(|(begin, of)| s(begin + of.ticks)));
    table
}
