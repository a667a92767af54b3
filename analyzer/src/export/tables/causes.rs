//! Tables of the causes of waiting, for whole runs that are not too large.

use crate::analysis::Analysis;
use crate::causes::{CallSite, Causes, Context, NO_CONTEXT, PathLabel, Phase};
use crate::export::error::ExportError;
use crate::export::progress::Progress;
use crate::statistics::quantile;
use crate::timeline::matching;

use super::super::content::Content;
use super::schemas::{
    CAUSES, CRITICAL_PATH, Cell, ITERATIONS, PATH_LABEL_SIZES, PATH_LABELS, Tables, WAITS, maybe,
    whole,
};

/// Runs with more events have no tables of causes, because data of every wait is kept in memory.
pub const MAX_EVENTS: u64 = 50_000_000;

/// Why the tables of causes are left out; `None` if they are written.
pub fn left_out(content: &Content) -> Option<&'static str> {
    if content.choice.ranks.is_some() || content.choice.window_s.is_some() {
        return Some("they are written for whole runs only");
    }
    if !matching::is_possible(content.run) {
        return Some("the run was recorded at level 0");
    }
    (content.most_events() > MAX_EVENTS).then_some("the run has more than 50 million events")
}

struct Rows<'c, 'a> {
    causes: &'c Causes<'a>,
    tables: &'c mut dyn Tables,
}

/// Four cells of a call site: MPI function, calling function, file, line.
fn site(site: Option<&CallSite>) -> [Cell<'_>; 4] {
    let Some(CallSite { function, place, .. }) = site else { return [Cell::Empty; 4] };
    [
        Cell::Name(function),
        place.function.as_deref().map_or(Cell::Empty, Cell::Name),
        place.file.as_deref().map_or(Cell::Empty, Cell::Name),
        maybe(place.line),
    ]
}

/// Eight cells of a stretch: its kind, its region, and function, file and line of the calls between
/// which it lies.
fn stretch(context: &Context) -> [Cell<'_>; 8] {
    let (kind, region, from, to) = match context.outer() {
        Context::Region(name) => ("computation", Some(name), None, None),
        Context::Between(from, to) => ("computation", None, from.as_ref(), to.as_ref()),
        // Its stretch is that of `outer`.
        Context::InCall(..) => ("computation", None, None, None),
        Context::Transfer(site) => ("transfer", None, Some(site), Some(site)),
        Context::Totals => ("transfer", None, None, None),
        Context::Recorder => ("recorder", None, None, None),
        Context::Waiting | Context::WaitingForUnknown => ("waiting", None, None, None),
    };
    let [from, _, from_file, from_line] = site(from);
    let [to, _, to_file, to_line] = site(to);
    let region = region.map_or(Cell::Empty, |name| Cell::Name(name));
    [Cell::Name(kind), region, from, from_file, from_line, to, to_file, to_line]
}

fn call_at<'c>(causes: &'c Causes, place: u32) -> Option<&'c CallSite> {
    match causes.contexts.all.get(place as usize).filter(|_| place != NO_CONTEXT)? {
        Context::Transfer(site) => Some(site),
        _ => None,
    }
}

impl Rows<'_, '_> {
    fn ns(&self, ticks: i64) -> Cell<'static> {
        Cell::Whole((self.causes.clock.seconds(ticks) * 1e9).round() as i64)
    }

    /// Rank and thread of a line.
    fn line(&self, line: u32) -> [Cell<'static>; 2] {
        match self.causes.lines.all.get(line as usize) {
            Some(line) => [whole(line.rank), whole(line.thread)],
            None => [Cell::Empty; 2],
        }
    }

    fn waits(&mut self) -> Result<(), ExportError> {
        self.tables.begin(&WAITS)?;
        let causes = self.causes;
        for (number, wait) in (0u32..).zip(&causes.waits) {
            let at = number as usize;
            let position = causes.lines.all[wait.line as usize].position;
            let phase = causes.phases.first();
            let iteration = phase.and_then(|phase| phase.iteration_of(position, wait.until));
            let region = causes.regions.of_wait(number).map(|region| region.name.as_str());
            let [rank, thread] = self.line(wait.line);
            let [delayed_by, delayed_by_thread] = self.line(wait.delayed_by);
            let [function, caller, file, line] = site(call_at(causes, causes.wait_contexts[at]));
            let [of_delaying, ..] = site(call_at(causes, causes.delayed_by_contexts[at]));
            let row = [
                whole(number),
                rank,
                thread,
                self.ns(wait.begin),
                self.ns(wait.ticks),
                Cell::Name(wait.state.key()),
                delayed_by,
                delayed_by_thread,
                function,
                caller,
                file,
                line,
                of_delaying,
                region.map_or(Cell::Empty, Cell::Name),
                maybe(iteration),
            ];
            self.tables.row(&row)?;
        }
        Ok(())
    }

    fn causes(&mut self) -> Result<(), ExportError> {
        self.tables.begin(&CAUSES)?;
        let causes = self.causes;
        for ((line, context), cost) in &causes.charges.causes {
            let [rank, thread] = self.line(*line);
            let [kind, region, from, from_file, from_line, to, to_file, to_line] =
                stretch(causes.contexts.get(*context));
            let row = [
                rank,
                thread,
                kind,
                region,
                from,
                from_file,
                from_line,
                to,
                to_file,
                to_line,
                self.ns(cost.direct),
                self.ns(cost.indirect),
            ];
            self.tables.row(&row)?;
        }
        Ok(())
    }

    fn iterations(&mut self) -> Result<(), ExportError> {
        self.tables.begin(&ITERATIONS)?;
        let causes = self.causes;
        let mut phases: Vec<&Phase> = causes.phases.iter().collect();
        phases.sort_by_key(|phase| phase.begin());
        for (number, phase) in phases.into_iter().enumerate() {
            for (index, iteration) in phase.iterations.iter().enumerate() {
                let slowest = causes.lines.first_of(iteration.slowest);
                let row = [
                    whole(number),
                    whole(index),
                    self.ns(phase.bounds[index]),
                    self.ns(iteration.ticks),
                    self.ns(iteration.computing),
                    self.ns(iteration.waiting),
                    self.line(slowest)[0],
                    iteration.delayed_by.map_or(Cell::Empty, |line| self.line(line)[0]),
                ];
                self.tables.row(&row)?;
            }
        }
        Ok(())
    }

    fn critical_path(&mut self) -> Result<(), ExportError> {
        self.tables.begin(&CRITICAL_PATH)?;
        for stretch in &self.causes.path.stretches {
            let [rank, thread] = self.line(stretch.line);
            let row = [rank, thread, self.ns(stretch.from), self.ns(stretch.to)];
            self.tables.row(&row)?;
        }
        Ok(())
    }

    fn path_labels(&mut self, labels: &[PathLabel]) -> Result<(), ExportError> {
        self.tables.begin(&PATH_LABELS)?;
        for (number, label) in labels.iter().enumerate() {
            let (path, all) = (&label.on_path, &label.on_ranks);
            let [kind, region, from, from_file, from_line, to, to_file, to_line] =
                stretch(&label.context);
            let of_ranks: Vec<f64> = all.ticks_of_ranks.iter().map(|ticks| *ticks as f64).collect();
            let at = |share: f64| match of_ranks.is_empty() {
                true => Cell::Empty,
                false => self.ns(quantile(&of_ranks, share).round() as i64),
            };
            let row = [
                whole(number),
                kind,
                region,
                from,
                from_file,
                from_line,
                to,
                to_file,
                to_line,
                maybe(label.group.map(|of| of.ranks)),
                maybe(label.group.and_then(|of| of.stride)),
                maybe(label.group.map(|of| of.per_host)),
                Cell::Flag(label.first_use),
                whole(path.count),
                self.ns(path.ticks),
                whole(path.messages),
                whole(path.bytes),
                whole(all.count),
                whole(all.max_count),
                self.ns(all.ticks),
                whole(all.messages),
                whole(all.bytes),
                whole(of_ranks.len()),
                at(0.0),
                at(0.5),
                at(1.0),
            ];
            self.tables.row(&row)?;
        }
        self.tables.begin(&PATH_LABEL_SIZES)?;
        for (number, label) in labels.iter().enumerate() {
            for size in &label.on_ranks.sizes {
                let row = [whole(number), whole(size.from), whole(size.count), whole(size.bytes)];
                self.tables.row(&row)?;
            }
        }
        Ok(())
    }
}

/// What `of` makes of the causes, or why they are left out.
pub(super) fn explained<T>(
    content: &Content,
    progress: &dyn Progress,
    of: impl FnOnce(&Analysis, &Causes) -> T,
) -> Result<T, &'static str> {
    if let Some(why) = left_out(content) {
        return Err(why);
    }
    progress.stage("causes", None);
    let analysis = Analysis::new(content.run, content.timeline);
    Ok(of(&analysis, &Causes::new(&analysis)))
}

/// Writes the tables of causes.
pub(super) fn write(
    analysis: &Analysis,
    causes: &Causes,
    tables: &mut dyn Tables,
) -> Result<(), ExportError> {
    let mut rows = Rows { causes, tables };
    rows.waits()?;
    rows.causes()?;
    rows.iterations()?;
    rows.critical_path()?;
    rows.path_labels(&causes.path_labels(analysis))
}
