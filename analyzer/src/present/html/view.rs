//! The page in the pieces that `gammachi view` serves: first the page with its timeline, then the answers to `tiles.js`
//! and `served.js`: tiles of shares, sums and single calls between two moments, and, once they are computed, causes of
//! waits, summary and panels.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::time::Duration;

use minijinja::context;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::analysis::Analysis;
use crate::causes::Causes;
use crate::diagnosis::{Diagnosis, Evidence, Why};
use crate::metrics::activity::detail::Budget;
use crate::metrics::activity::index::IndexReader;
use crate::metrics::activity::{self, Kind, bins_for};
use crate::metrics::code::{CodeMetrics, SampledPaths};
use crate::metrics::{Answer, Page, Question, Selection};
use crate::present::context::plural;
use crate::present::dump::Dump;
use crate::present::quantity::seconds;
use crate::present::shown::Report;
use crate::present::text_timeline;
use crate::present::whatif::ForReport;
use crate::replay::NoIdeal;
use crate::string_table::StringTable;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{CollectiveInstance, Message};

use super::communication::Writer;
use super::data::computing_kinds;
use super::markup::{PageError, SHARED_SCRIPT, environment, is_totals_only, kinds_used, safe};
use super::names::{TOOL_NAME, kinds};
use super::parts;
use super::samples::{Samples, VIEW_LIMITS};
use super::sections;

/// Bins of a tile; equals `BINS` in `tiles.js`.
pub const TILE_BINS: usize = 256;
/// Rows that one request may ask for.
pub const MAX_ROWS: usize = 1024;
/// The deepest level of tiles; each level halves the bins of the one above.
pub const MAX_LEVEL: u32 = 48;
/// Single calls that one answer may hold.
const MAX_CALLS: usize = 40_000;
/// Messages, and calls of collective operations, that one answer may hold.
const MAX_MESSAGES: usize = 20_000;
/// The panels need no single calls: the script asks for these when it draws them.
const NO_DETAIL: Budget = Budget { events: 0, messages: 0, regions: 0 };

/// Messages and collective operations between two moments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Communication {
    /// Messages that were sent or completed then.
    pub messages: Vec<Message>,
    /// Collective operations that were under way then.
    pub collectives: Vec<CollectiveInstance>,
    /// What the reader should know: that some are left out, or not matched yet.
    pub note: Option<String>,
}

/// A run that is being viewed.
pub struct View<'a> {
    look: IndexReader<'a>,
    communicators: &'a CommunicatorTable,
    dump: Dump<'a>,
    functions: StringTable,
    row_of: HashMap<(u32, u32), usize>,
    /// Of a run that goes on: how often the page may ask for more.
    every: Option<Duration>,
    /// Why ranks waited, computed at the first request.
    causes: OnceLock<Option<Causes<'a>>>,
    /// Summary and panels, computed at the first request.
    parts: OnceLock<Option<Value>>,
    /// The samples of the code, found with them.
    sampled: OnceLock<Option<(CodeMetrics, SampledPaths)>>,
}

impl<'a> View<'a> {
    pub fn new(look: IndexReader<'a>, communicators: &'a CommunicatorTable) -> Self {
        let mut functions = StringTable::default();
        for rank in &look.run.ranks {
            rank.file.function_names().iter().for_each(|name| {
                functions.number(name);
            });
        }
        functions.number(TOOL_NAME);
        let rows = look.index.rows.iter().enumerate();
        let row_of =
            rows.map(|(index, row)| ((look.run.ranks[row.position].rank, row.thread), index));
        Self {
            look,
            communicators,
            dump: Dump::new(look.run, look.timeline, communicators),
            functions,
            row_of: row_of.collect(),
            every: None,
            causes: OnceLock::new(),
            parts: OnceLock::new(),
            sampled: OnceLock::new(),
        }
    }

    /// The run goes on: the page shows that, and asks for a newer one so often.
    pub fn follow(&mut self, every: Duration) {
        self.every = Some(every);
    }

    pub fn rows(&self) -> usize {
        self.look.index.rows.len()
    }

    pub fn length_s(&self) -> f64 {
        let ends = self.look.timeline.ranks.iter().map(|rank| rank.end_s());
        ends.fold(0.0, f64::max)
    }

    /// The page; `nonce` marks its own script and style for the content security policy.
    pub fn page(&self, nonce: &str) -> Result<String, PageError> {
        let run = self.look.run;
        let totals = (0..self.rows()).map(|row| self.look.index.totals_s(row, self.look.timeline));
        let used = totals.fold([false; Kind::ALL.len()], |mut used, totals| {
            used.iter_mut().zip(totals).for_each(|(used, seconds)| *used |= seconds > 0.0);
            used
        });
        let used = (0..Kind::ALL.len()).filter(|kind| used[*kind]);
        let calls = self.look.index.rows.iter().map(|row| row.calls).sum();
        let (name, about) = parts::heading(run);
        let sources = [include_str!("tiles.js"), include_str!("served.js")];
        let script: Vec<&str> = sources.into_iter().chain(SHARED_SCRIPT).collect();
        let context = context! {
            served => true,
            gammachi => env!("CARGO_PKG_VERSION"),
            name => name,
            context => about,
            nonce => nonce,
            kinds => Kind::ALL.map(Kind::name),
            kinds_used => kinds_used(used),
            detail_note => self.detail_note(),
            totals_only => is_totals_only(run, calls),
            lanes => sections::lanes(run),
            note => self.note(),
            every_s => self.every.map(|every| every.as_secs_f64()),
            as_of => seconds(self.length_s()),
            timeline_data => safe(super::data::for_script(&self.data())),
            script => safe(script.join("\n")),
        };
        Ok(environment()?.get_template("page.html")?.render(context)?)
    }

    fn detail_note(&self) -> String {
        let zoom = "Zoom in until single calls, messages and collective operations are drawn";
        let summed = activity::summed(self.look.run, self.look.timeline);
        match text_timeline::summed_note(summed) {
            Some(note) => format!("{zoom}; {note}."),
            None => format!("{zoom}."),
        }
    }

    fn note(&self) -> String {
        match self.look.run.diagnoses.len() {
            0 => String::new(),
            count => {
                format!("The files have {}: gammachi report names them.", plural(count, "fault"))
            }
        }
    }

    /// The data that the page embeds: rows, regions, the longest calls.
    fn data(&self) -> Value {
        let (run, timeline) = (self.look.run, self.look.timeline);
        let (mut hosts, mut names) = (StringTable::default(), StringTable::default());
        let mut regions = Vec::new();
        let rows: Vec<Value> = (self.look.index.rows.iter().enumerate())
            .map(|(index, row)| {
                let (trace, clock) =
                    (&run.ranks[row.position], &timeline.ranks[row.position].clock);
                for region in &row.regions {
                    let name = trace.facts.regions.get(&region.id).cloned();
                    let name = names.number(&name.unwrap_or_else(|| format!("#{}", region.id)));
                    let ends = [region.begin_ticks, region.end_ticks].map(|t| clock.seconds(t));
                    regions.push(json!([index, name, ends[0], ends[1]]));
                }
                json!([
                    trace.rank,
                    row.thread,
                    hosts.number(&trace.file.header.host),
                    clock.seconds(row.begin_ticks),
                    clock.seconds(row.end_ticks),
                    self.look.index.totals_s(index, timeline),
                ])
            })
            .collect();
        let longest = self.look.index.longest(run, timeline).into_iter().map(|call| {
            let position = self.look.index.rows[call.row].position;
            let function = self.function(position, Some(call.function));
            json!([call.row, call.kind as usize, function, call.begin_s, call.duration_s])
        });
        let threads = self.look.index.rows.iter().map(|row| (row.position, row.thread)).enumerate();
        let open = super::data::open_calls(run, timeline, threads).into_iter();
        let number = |name: &str| self.functions.find(name).unwrap_or_default();
        let open = open.map(|(row, name, begin_s)| json!([row, number(&name), begin_s]));
        let open: Vec<Value> = open.collect();
        json!({
            "length_s": self.length_s(),
            "kinds": Kind::ALL.map(Kind::name),
            "functions": self.functions.strings(),
            "function_kinds": kinds(self.functions.strings()),
            "communicators": [],
            "hosts": hosts.strings(),
            "rows": rows,
            "regions": regions,
            "region_names": names.strings(),
            "longest": longest.collect::<Vec<_>>(),
            "open": open,
            "summed": activity::summed(run, timeline).is_some(),
        })
    }

    fn function(&self, position: usize, function: Option<u16>) -> u32 {
        let file = &self.look.run.ranks[position].file;
        let name = match function {
            None => TOOL_NAME,
            Some(function) => file.function_name(function).unwrap_or_default(),
        };
        self.functions.find(name).unwrap_or_default()
    }

    /// A tile: the shares of each row in [`TILE_BINS`] bins, as little-endian `f32`; `None` if there is no such tile.
    pub fn shares(&self, level: u32, tile: u64, rows: RangeInclusive<usize>) -> Option<Vec<u8>> {
        let is_valid = level <= MAX_LEVEL
            && tile < 1 << level
            && *rows.end() < self.rows()
            && rows.clone().count() <= MAX_ROWS;
        if !is_valid {
            return None;
        }
        let tile_s = self.length_s() / (1u64 << level) as f64;
        let (from, to) = (tile as f64 * tile_s, (tile + 1) as f64 * tile_s);
        let row_shares = |row: usize| {
            let shares = self.look.shares(row, from, to, TILE_BINS);
            shares.into_iter().flatten().flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
        };
        Some(rows.into_par_iter().map(row_shares).collect::<Vec<_>>().concat())
    }

    /// Single calls of rows between two moments, and what `communication` finds there; `{"too_many": true}` if there are
    /// too many to draw.
    pub fn calls(
        &self,
        (from_s, to_s): (f64, f64),
        rows: RangeInclusive<usize>,
        communication: impl FnOnce(f64, f64) -> Communication,
    ) -> Option<Value> {
        if *rows.end() >= self.rows() || rows.clone().count() > MAX_ROWS || from_s > to_s {
            return None;
        }
        let mut communicators = StringTable::default();
        let mut shown = Vec::new();
        let mut remaining = MAX_CALLS;
        for row in rows {
            let Some(events) = self.look.events(row, from_s, to_s, remaining) else {
                return Some(json!({ "too_many": true }));
            };
            remaining -= events.len();
            let facts = &self.look.index.rows[row];
            let events: Vec<Value> = events
                .iter()
                .map(|detail| {
                    let duration_ns = ((detail.end_s - detail.begin_s) * 1e9).round() as i64;
                    let open = detail.event.end.is_none();
                    let line = (facts.position, facts.thread);
                    let number = |name: &str| communicators.number(name);
                    let more = self.dump.for_page(line, &detail.event, number);
                    let function = self.function(facts.position, detail.function());
                    let duration = if open { -1 - duration_ns } else { duration_ns };
                    json!([function, detail.begin_s, duration, more])
                })
                .collect();
            shown.push(json!([row, events]));
        }
        let found = communication(from_s, to_s);
        let (row_of, table) = (&self.row_of, self.communicators);
        let writer = Writer { row_of, table, time: Value::from };
        let messages = found.messages.iter().take(MAX_MESSAGES);
        let messages: Vec<Value> =
            messages.filter_map(|message| writer.message(message, &mut communicators)).collect();
        let mut members = 0;
        let fits = |instance: &&CollectiveInstance| {
            members += instance.members.len();
            members <= MAX_MESSAGES && !instance.members.is_empty()
        };
        let collectives = found.collectives.iter().filter(fits).map(|instance| {
            let function = self.functions.find(&instance.function).unwrap_or_default();
            writer.collective(instance, function, &mut communicators)
        });
        let collectives: Vec<Value> = collectives.collect();
        Some(json!({
            "functions": self.functions.strings(),
            "function_kinds": kinds(self.functions.strings()),
            "rows": shown,
            "messages": messages,
            "collectives": collectives,
            "messages_note": found.note,
            "communicators": communicators.strings(),
        }))
    }

    /// Seconds by kind of each row between two moments, as little-endian `f32`; `None` if there are no such rows.
    pub fn sums(&self, (from_s, to_s): (f64, f64), rows: RangeInclusive<usize>) -> Option<Vec<u8>> {
        if *rows.end() >= self.rows() || rows.clone().count() > MAX_ROWS || from_s > to_s {
            return None;
        }
        let row_sums = |row: usize| {
            let shares = self.look.shares(row, from_s, to_s, 1).into_iter().flatten();
            let seconds = shares.map(|share| (f64::from(share) * (to_s - from_s)) as f32);
            seconds.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
        };
        Some(rows.into_par_iter().map(row_sums).collect::<Vec<_>>().concat())
    }

    /// Why ranks waited, computed at the first request; `None` for runs of more than `most_calls` calls.
    fn causes_of(&self, most_calls: u64) -> Option<&Causes<'a>> {
        let found = self.causes.get_or_init(|| {
            let (run, timeline) = (self.look.run, self.look.timeline);
            let threads = run.ranks.iter().flat_map(|rank| &rank.threads);
            let calls = threads.map(|thread| thread.calls).sum::<u64>();
            (calls <= most_calls).then(|| Causes::new(&Analysis::new(run, timeline)))
        });
        found.as_ref()
    }

    /// Why ranks waited, as the page embeds it; null for runs of more than `most_calls` calls.
    pub fn causes(&self, most_calls: u64) -> Value {
        let (run, timeline) = (self.look.run, self.look.timeline);
        let Some(causes) = self.causes_of(most_calls) else { return Value::Null };
        let (ideal, rank) = (Err(NoIdeal::NotAsked), None);
        let why = Why { run, timeline, causes, ideal, rank };
        json!(super::causes::data(&why, &self.row_of))
    }

    /// Parallel regions and calls on files, as the page embeds them; null if they were not recorded.
    pub fn lanes(&self) -> Value {
        let (run, timeline) = (self.look.run, self.look.timeline);
        let rows = self.look.index.rows.iter().map(|row| (row.position, row.thread));
        let lanes = activity::lanes::Lanes::new(run, timeline, &rows.collect::<Vec<_>>());
        json!(lanes.map(|lanes| super::lanes::Lanes::new(&lanes)))
    }

    /// Summary and panels as the page holds them, computed at the first request; `None` if the run cannot be reported.
    pub fn parts(&self, most_calls: u64) -> Option<&Value> {
        let found = self.parts.get_or_init(|| {
            let (run, timeline) = (self.look.run, self.look.timeline);
            let analysis = Analysis::new(run, timeline);
            let page = Page { bins: bins_for(self.rows()), windows: &[], budget: NO_DETAIL };
            let selection = &Selection::Whole;
            let question = Question { selection, messages: true, exchanges: &[], page: Some(page) };
            let Answer { metrics, page, .. } = Answer::new(&analysis, &question).ok()?;
            let (activity, _) = page?;
            let causes = self.causes_of(most_calls);
            let replayed = ForReport::new(&analysis, causes);
            let metrics = &metrics;
            let (ideal, replay) = (replayed.ideal, replayed.replay.as_ref());
            let evidence = Evidence { run, timeline, metrics, causes, ideal, replay };
            let diagnosis = Diagnosis::new(evidence);
            let report = Report::new(&diagnosis, &replayed.savings);
            let context = parts::parts(&report, &activity, None);
            let html = environment().ok()?.get_template("parts.html").ok()?.render(context).ok()?;
            self.sampled.get_or_init(|| {
                let (code, ranks) = (metrics.code.clone()?, &metrics.stretches);
                let paths = SampledPaths::new(run, timeline, &code, ranks, self.length_s());
                Some((code, paths))
            });
            Some(json!({ "html": html, "computing": computing_kinds(metrics.compute) }))
        });
        found.as_ref()
    }

    /// The samples of the code between two moments; null if it was not sampled.
    pub fn samples(&self, (from_s, to_s): (f64, f64), most_calls: u64) -> Option<Value> {
        let _ = self.parts(most_calls).filter(|_| from_s < to_s)?;
        let sampled = self.sampled.get()?;
        let samples = sampled.as_ref().map(|(code, paths)| {
            Samples::new(self.look.run, code, &paths.between((from_s, to_s), VIEW_LIMITS))
        });
        Some(json!(samples))
    }
}
