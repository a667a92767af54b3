//! What the commands say of a run, made as they make it: each gathers its own evidence.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use gammachi_analyzer::analysis::Analysis;
use gammachi_analyzer::causes::{Causes, MAX_CALLS_FOR_SUMMARY};
use gammachi_analyzer::comparison::{Comparison, Relation, RunRecord};
use gammachi_analyzer::diagnosis::{Diagnosis, Evidence, Why, doubts_depend_on_waits};
use gammachi_analyzer::metrics::activity::bins_for;
use gammachi_analyzer::metrics::activity::detail::PAGE_BUDGET;
use gammachi_analyzer::metrics::activity::index::{ActivityIndex, IndexReader};
use gammachi_analyzer::metrics::{Answer, Metrics, Page, Question, Selection};
use gammachi_analyzer::present::html::view::View;
use gammachi_analyzer::present::text_timeline::{self, TextTimeline};
use gammachi_analyzer::present::{Report, causes, comparison, html, report, whatif};
use gammachi_analyzer::replay::{
    Assembled, Graph, NoIdeal, WhatIf, ideal_and_replay, replayed_aside,
};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::timeline::communicators::CommunicatorTable;
use gammachi_analyzer::trace::Run;
use serde_json::Value;

/// The texts of one command.
#[derive(Debug)]
pub struct Output {
    pub command: &'static str,
    pub screen: String,
    pub document: Value,
}

/// What the viewer answers.
#[derive(Debug)]
pub struct Served {
    /// Summary and panels.
    pub parts: String,
    /// What the timeline shows of waits.
    pub causes: Value,
}

/// What the commands say of a run.
#[derive(Debug)]
pub struct Outputs {
    pub report: Output,
    pub why: Output,
    /// Of runs that can be replayed.
    pub whatif: Option<Output>,
    /// Of runs that can be compared: the run with itself.
    pub compare: Option<Output>,
    pub page: String,
    /// What `view` answers to the browser, if there is time to show.
    pub served: Option<Served>,
    /// What stands above the timeline in a terminal.
    pub timeline: String,
}

impl Outputs {
    /// All outputs; `None` if nothing of the run can be read.
    pub fn read(directory: &Path) -> Option<Self> {
        let run = Run::open(directory).ok()?;
        let timeline = GlobalTimeline::new(&run);
        let analysis = Analysis::new(&run, &timeline);
        let (page, timeline_heading) = of_activity(&analysis);
        Some(Self {
            report: of_report(&analysis),
            why: of_why(&analysis),
            whatif: of_whatif(&analysis),
            compare: of_compare(&analysis),
            page,
            served: of_view(&analysis),
            timeline: timeline_heading,
        })
    }
}

fn output(
    command: &'static str,
    screen: String,
    json: Result<String, serde_json::Error>,
) -> Output {
    let document = serde_json::from_str(&json.expect("a document")).expect("a document");
    Output { command, screen, document }
}

fn of_report(analysis: &Analysis) -> Output {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let metrics =
        Metrics::for_question(analysis, Question::about(&Selection::Whole)).expect("a whole run");
    let causes = Causes::new(analysis);
    let (metrics, causes) = (&metrics, Some(&causes));
    let replayed = whatif::ForReport::new(analysis, causes);
    let (ideal, replay) = (replayed.ideal, replayed.replay.as_ref());
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay });
    let of = Report::new(&diagnosis, &replayed.savings);
    output("report", report::screen(&of, false), report::json(&of))
}

fn of_activity(analysis: &Analysis) -> (String, String) {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let rows = run.ranks.iter().map(|rank| rank.threads.len().max(1)).sum();
    let page = Some(Page { bins: bins_for(rows), windows: &[], budget: PAGE_BUDGET });
    let question = Question { selection: &Selection::Whole, messages: true, exchanges: &[], page };
    let answer = Answer::new(analysis, &question).expect("a whole run");
    let (activity, detail) = answer.page.expect("a page was asked for");
    let causes = Causes::new(analysis);
    let (metrics, causes) = (&answer.metrics, Some(&causes));
    let replayed = whatif::ForReport::new(analysis, causes);
    let (ideal, replay) = (replayed.ideal, replayed.replay.as_ref());
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay });
    let of = Report::new(&diagnosis, &replayed.savings);
    let page = html::page(&of, &activity, &detail, None).expect("a page");
    let rows = (0..activity.rows.len()).collect();
    let drawn = TextTimeline { seconds: 0.0..1.0, rows, columns: 80, colour: false };
    let diagnosis =
        Diagnosis::new(Evidence { ideal: Err(NoIdeal::NotAsked), replay: None, ..diagnosis.of });
    (page, text_timeline::heading(&diagnosis, &activity, &drawn))
}

fn of_view(analysis: &Analysis) -> Option<Served> {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let index = ActivityIndex::new(run, timeline, &AtomicU64::new(0));
    let communicators = CommunicatorTable::new(run);
    let view = View::new(IndexReader { run, timeline, index: &index }, &communicators);
    if view.rows() == 0 || view.length_s() <= 0.0 {
        return None;
    }
    let parts = view.parts(MAX_CALLS_FOR_SUMMARY).expect("a whole run");
    let parts = parts["html"].as_str().expect("a part of the page").to_owned();
    Some(Served { parts, causes: view.causes(MAX_CALLS_FOR_SUMMARY) })
}

fn of_why(analysis: &Analysis) -> Output {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let metrics =
        Metrics::for_question(analysis, Question::about(&Selection::Whole)).expect("a whole run");
    let causes = Causes::new(analysis);
    let ((ideal, replay), metrics) = (ideal_and_replay(analysis, None), &metrics);
    let why = Why { run, timeline, causes: &causes, ideal, rank: None };
    let ideal = replayed_aside(run).and(ideal);
    let (causes, replay) = (Some(&causes), replay.as_ref());
    let diagnosis = Diagnosis::new(Evidence { run, timeline, metrics, causes, ideal, replay });
    let labels = why.causes.path_labels(analysis);
    let document = causes::json(&why, &diagnosis, Some(&labels));
    output("why", causes::screen(&why, &diagnosis, false), document)
}

fn of_whatif(analysis: &Analysis) -> Option<Output> {
    let (run, timeline) = (analysis.run, analysis.timeline);
    let what_if = WhatIf::new(Graph::new(analysis).ok()?);
    let asked = if what_if.is_accurate() { what_if.standard() } else { Vec::new() };
    let answers: Vec<_> = asked.iter().map(|question| what_if.ask(question)).collect();
    let metrics =
        Metrics::for_question(analysis, Question::about(&Selection::Whole)).expect("a whole run");
    let causes = Causes::new(analysis);
    let ideal = replayed_aside(run).and_then(|()| what_if.ideal_if_exact());
    let causes = Some(&causes);
    let replay = replayed_aside(run).ok().map(|()| &what_if);
    let evidence = Evidence { run, timeline, metrics: &metrics, causes, ideal, replay };
    let diagnosis = Diagnosis::new(evidence);
    let tolerance = whatif::Tolerance { slowdown: 0.01, latency_s: Some(1e-6), replays: 1 };
    let tolerances = if answers.is_empty() { vec![] } else { vec![tolerance] };
    // The screen is made without causes where what it doubts does not depend on them.
    let causes = causes.filter(|_| doubts_depend_on_waits(&metrics));
    let for_screen = Diagnosis::new(Evidence { causes, ..evidence });
    let network = Assembled::of_run(what_if.calibration.network, [true; 2], [true; 2]);
    let results = |diagnosis| whatif::WhatIfResults {
        run,
        timeline,
        what_if: &what_if,
        answers: &answers,
        tolerances: &tolerances,
        placement: &what_if.placement,
        network: &network,
        notes: &[],
        diagnosis,
    };
    let (screen, all) = (whatif::screen(&results(&for_screen), false), results(&diagnosis));
    assert_eq!(screen, whatif::screen(&all, false));
    Some(output("whatif", screen, whatif::json(&all)))
}

fn of_compare(analysis: &Analysis) -> Option<Output> {
    let record = RunRecord::reduce(analysis.run, analysis.timeline).ok()?;
    // As a baseline would give it back.
    let record = RunRecord::parse(&record.text().expect("a text")).expect("its own text");
    let (before, after) = (vec![record.clone()], vec![record]);
    let relation = Relation::between(&before, &after).ok()?;
    let of = Comparison::new(&before, &after, relation);
    Some(output("compare", comparison::screen(&of, false), comparison::json(&of)))
}
