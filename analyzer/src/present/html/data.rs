//! The data of the page's timeline, as the JSON that `source.js` reads.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;

use crate::metrics::ComputeMode;
use crate::metrics::activity::detail::Detail;
use crate::metrics::activity::{self, Activity, Kind};
use crate::metrics::code::SampledPaths;
use crate::present::shown::Report;
use crate::string_table::StringTable;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::{GlobalTimeline, whole_ns};
use crate::trace::Run;

use super::super::dump::Dump;
use super::communication::Writer;
use super::lanes::Lanes;
use super::names::{TOOL_NAME, kinds};
use super::packed;
use super::samples::{PAGE_LIMITS, Samples};

#[derive(Debug, Serialize)]
struct Data {
    version: u32,
    length_s: f64,
    bins: usize,
    kinds: Vec<&'static str>,
    functions: Vec<String>,
    function_kinds: Vec<usize>,
    hosts: Vec<String>,
    communicators: Vec<String>,
    rows: Vec<(u32, u32, u32, f64, f64)>,
    packed: String,
    windows: Vec<(f64, f64)>,
    events: Events,
    messages: Vec<Value>,
    collectives: Vec<Value>,
    regions: Vec<(usize, u32, f64, f64)>,
    region_names: Vec<String>,
    longest: Vec<(usize, usize, u32, f64, f64)>,
    /// Calls that never returned: row, function, begin.
    open: Vec<(usize, u32, f64)>,
    /// Whether some calls are kept as totals only, so that the single calls are not all calls.
    summed: bool,
    /// Kinds that count as computing; `None` where regions decide what does.
    computing: Option<Vec<usize>>,
    causes: Option<super::causes::Causes>,
    samples: Option<Samples>,
    lanes: Option<Lanes>,
}

/// Single calls as columns, in nanoseconds. A begin is relative to the call before it in the same row. A call that
/// did not return has −1 − its duration.
#[derive(Debug, Default, Serialize)]
struct Events {
    rows: Vec<(usize, usize)>,
    #[serde(rename = "fn")]
    function: Vec<u32>,
    begin: Vec<i64>,
    dur: Vec<i64>,
    more: Vec<Value>,
}

/// JSON for a `script` element. It holds no `<`, so nothing in it can end the element.
pub(super) fn json(report: &Report, activity: &Activity, detail: &Detail) -> String {
    for_script(&data(report, activity, detail))
}

/// Any value as JSON for a `script` element.
pub(super) fn for_script(value: &impl Serialize) -> String {
    // These types always serialise.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn data(report: &Report, activity: &Activity, detail: &Detail) -> Data {
    let run = report.run;
    let table = CommunicatorTable::new(run);
    let dump = Dump::new(run, report.timeline, &table);
    let (mut functions, mut hosts, mut communicators, mut region_names) = (
        StringTable::default(),
        StringTable::default(),
        StringTable::default(),
        StringTable::default(),
    );
    let rows = activity.rows.iter().map(|row| {
        let host = hosts.number(&run.ranks[row.position].file.header.host);
        (row.rank, row.thread, host, row.begin_s, row.end_s)
    });
    let rows: Vec<_> = rows.collect();
    let row_of: HashMap<(u32, u32), usize> =
        rows.iter().enumerate().map(|(index, row)| ((row.0, row.1), index)).collect();
    let mut name_of = |position: usize, function: Option<u16>| {
        let name = match function {
            None => TOOL_NAME,
            Some(function) => run.ranks[position].file.function_name(function).unwrap_or("unknown"),
        };
        functions.number(name)
    };
    let mut events = Events::default();
    let mut previous_ns = 0;
    for detail in &detail.events {
        let row = &activity.rows[detail.row];
        match events.rows.last_mut() {
            Some((last, count)) if *last == detail.row => *count += 1,
            _ => {
                events.rows.push((detail.row, 1));
                previous_ns = 0;
            }
        }
        let begin_ns = whole_ns(detail.begin_s);
        let duration_ns = whole_ns(detail.end_s - detail.begin_s).max(0);
        let open = detail.event.end.is_none();
        events.begin.push(begin_ns - std::mem::replace(&mut previous_ns, begin_ns));
        events.dur.push(if open { -1 - duration_ns } else { duration_ns });
        events.function.push(name_of(row.position, detail.function()));
        events.more.push(dump.for_page((row.position, row.thread), &detail.event, |name| {
            communicators.number(name)
        }));
    }
    let writer =
        Writer { row_of: &row_of, table: &table, time: |seconds| whole_ns(seconds).into() };
    let messages = detail.messages.iter();
    let messages = messages.filter_map(|message| writer.message(message, &mut communicators));
    let messages = messages.collect();
    let collectives = detail.collectives.iter().map(|instance| {
        let function = functions.number(&instance.function);
        writer.collective(instance, function, &mut communicators)
    });
    let collectives = collectives.collect();
    let regions = detail.regions.iter().map(|region| {
        (region.row, region_names.number(&region.name), region.seconds.start, region.seconds.end)
    });
    let regions = regions.collect();
    let longest = activity.longest.iter().map(|call| {
        let position = activity.rows[call.row].position;
        let name = run.ranks[position].file.function_name(call.function).unwrap_or("unknown");
        (call.row, call.kind as usize, functions.number(name), call.begin_s, call.duration_s)
    });
    let longest = longest.collect();
    let threads = activity.rows.iter().map(|row| (row.position, row.thread)).enumerate();
    let open = open_calls(run, report.timeline, threads).into_iter();
    let open = open.map(|(row, name, begin_s)| (row, functions.number(&name), begin_s)).collect();
    Data {
        version: 1,
        length_s: activity.length_s,
        bins: activity.bins,
        kinds: Kind::ALL.iter().map(|kind| kind.name()).collect(),
        function_kinds: kinds(functions.strings()),
        functions: functions.into_strings(),
        hosts: hosts.into_strings(),
        communicators: communicators.into_strings(),
        rows,
        packed: packed::rows(activity),
        windows: detail.windows.iter().map(|window| (window.start, window.end)).collect(),
        events,
        messages,
        collectives,
        regions,
        region_names: region_names.into_strings(),
        longest,
        open,
        summed: activity.summed_s.is_some(),
        computing: computing_kinds(report.metrics.compute),
        causes: report.why().map(|why| super::causes::data(&why, &row_of)),
        samples: samples(report, activity.length_s),
        lanes: lanes(report, activity),
    }
}

/// Parallel regions and calls on files.
fn lanes(report: &Report, activity: &Activity) -> Option<Lanes> {
    let rows: Vec<_> = activity.rows.iter().map(|row| (row.position, row.thread)).collect();
    let lanes = activity::lanes::Lanes::new(report.run, report.timeline, &rows)?;
    Some(Lanes::new(&lanes))
}

/// The samples of the report's selection.
fn samples(report: &Report, length_s: f64) -> Option<Samples> {
    let (run, metrics) = (report.run, report.metrics);
    let code = metrics.code.as_ref()?;
    let all = SampledPaths::new(run, report.timeline, code, &metrics.stretches, length_s);
    Some(Samples::new(run, code, &all.between((0.0, length_s), PAGE_LIMITS)))
}

/// Calls that never returned: row, function, and begin in global seconds. `rows` yields each row with its rank's
/// position and its thread.
pub(super) fn open_calls(
    run: &Run,
    timeline: &GlobalTimeline,
    rows: impl Iterator<Item = (usize, (usize, u32))>,
) -> Vec<(usize, String, f64)> {
    let open = |(row, (position, thread)): (usize, (usize, u32))| {
        let trace = &run.ranks[position];
        let extent = trace.threads.iter().find(|extent| extent.number == thread)?;
        let call = extent.last_call.as_ref().filter(|call| call.open)?;
        let name = trace.file.function_name(call.function)?;
        Some((row, name.to_owned(), timeline.ranks[position].clock.seconds(call.begin_ticks)))
    };
    rows.filter_map(open).collect()
}

pub(super) fn kinds_used(activity: &Activity) -> BTreeSet<usize> {
    let used = |kind: usize| activity.rows.iter().any(|row| row.totals_s[kind] > 0.0);
    (0..Kind::ALL.len()).filter(|kind| used(*kind)).collect()
}

/// The kinds of the timeline that count as computing; `None` where regions decide what does.
pub(super) fn computing_kinds(mode: ComputeMode) -> Option<Vec<usize>> {
    match mode {
        ComputeMode::Outside => Some(vec![Kind::Own as usize, Kind::Compute as usize]),
        ComputeMode::Blas => Some(vec![Kind::Compute as usize]),
        ComputeMode::Regions => None,
    }
}
