use super::study::Study;
use super::*;
use crate::analysis::Analysis;
use crate::diagnosis::{Diagnosis, Evidence};
use crate::metrics::activity::detail::PAGE_BUDGET;
use crate::metrics::exchanges::Exchanges;
use crate::metrics::{Metrics, Selection};
use crate::models::Observations;
use crate::models::machine::tests::machine;
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::roofs::DataSheet;
use crate::models::roofline::{Point, Roofs, Verdict};
use crate::models::scaling::{Options, Scaling};
use crate::present::{self, roofline};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use crate::trace::study_json::StudyJson;

const B: u64 = 5_000_000_000;
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";

fn page_of(ranks: &[SyntheticRank], bins: usize) -> (String, serde_json::Value) {
    let directory = RunDirectory::with_ranks(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    let activity = Activity::new(&run, &timeline, bins);
    let detail = Detail::new(&run, &timeline, &activity, &[], PAGE_BUDGET);
    let json = serde_json::from_str(&present::report::json(&report).unwrap()).unwrap();
    (page(&report, &activity, &detail, None).unwrap(), json)
}

/// Whether a cell holds the value. A JSON parser may be off by the last bit.
fn holds(page: &str, value: f64) -> bool {
    let cells = page.split("data-value=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut numbers = cells.filter_map(|cell| cell.parse::<f64>().ok());
    numbers.any(|number| (number - value).abs() <= 1e-14 * value.abs())
}

fn rank(number: u32, of: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(number, of, B, B + 1_000_000);
    rank.call(0, "MPI_Barrier", B + 100_000, B + 300_000 + 1000 * u64::from(number));
    rank.finalize(B + 1_000_000, B + 1_001_000);
    rank
}

#[test]
fn escapes_text_of_the_trace() {
    let mut rank = rank(0, 1);
    rank.header.host = HOSTILE.into();
    rank.header.program = format!("/bin/{HOSTILE}");
    rank.header.arguments = vec!["x".into(), HOSTILE.into()];
    rank.header.mpi_library = HOSTILE.into();
    rank.header.parameters = vec![(HOSTILE.into(), HOSTILE.into())];
    rank.region_name(1, HOSTILE);
    rank.region_begin(0, 1, B + 10);
    rank.region_end(0, 1, B + 500);
    let (page, _) = page_of(&[rank], 64);
    assert!(!page.contains("<img") && !page.contains("<script>alert"));
    assert_eq!(page.matches("<script").count(), 2, "the data and the code");
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn page_makes_no_requests() {
    let (page, _) = page_of(&[rank(0, 2), rank(1, 2)], 64);
    for forbidden in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count() + page.matches("http-equiv").count()
    );
}

#[test]
fn shows_the_numbers_of_the_json_report() {
    let (page, json) = page_of(&[rank(0, 2), rank(1, 2)], 64);
    let value = |id: &str| {
        let start = page.find(&format!("id=\"{id}\" data-value=\"")).unwrap();
        let rest = &page[start..];
        rest.split('"').nth(3).unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(value("efficiency"), json["efficiency"]["parallel"].as_f64().unwrap());
    assert_eq!(value("elapsed"), json["elapsed_s"].as_f64().unwrap());
    for rank in json["ranks"].as_array().unwrap() {
        let gamma = rank["compute_s"].as_f64().unwrap();
        assert!(holds(&page, gamma), "{gamma}");
    }
}

#[test]
fn makes_a_page_of_odd_runs() {
    // One rank without a call, a missing file, a rank that died inside a call.
    let mut idle = SyntheticRank::complete(0, 3, B, B + 1000);
    idle.threads = vec![Vec::new()];
    let mut dead = rank(2, 3);
    dead.killed();
    dead.open_call(0, "MPI_Recv", B + 2_000_000);
    let (page, _) = page_of(&[idle.clone(), dead], 64);
    assert!(
        page.contains("never returned from MPI_Finalize")
            && page.contains("without a readable file")
    );
    let mut alone = SyntheticRank::new(0, 1);
    alone.threads = vec![Vec::new()];
    let (page, _) = page_of(&[alone], 64);
    assert!(page.contains("</html>"));
}

#[test]
fn page_of_many_ranks_stays_small() {
    let ranks: Vec<_> = (0..600).map(|number| rank(number, 600)).collect();
    let (page, _) = page_of(&ranks, crate::metrics::activity::bins_for(600));
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(page.contains("lie between"));
}

#[test]
fn names_every_table_and_picture() {
    let (page, _) = page_of(&[rank(0, 2), rank(1, 2)], 64);
    assert_eq!(page.matches("<table").count(), page.matches("<caption").count());
    assert!(!page.contains("<title></title>") && !page.contains("aria-label=\"\""));
}

#[test]
fn tables_of_many_columns_take_the_whole_width() {
    // Seven columns and names fit into half of 1400 pixels, more do not.
    let (page, _) = page_of(&[rank(0, 2), rank(1, 2)], 32);
    for section in page.split("<section class=\"panel").skip(1) {
        let (class, rest) = section.split_once('"').unwrap();
        for head in rest.split("<thead>").skip(1).filter_map(|of| of.split("</thead>").next()) {
            let names = head.matches("class=\"name\" data-sort").count();
            let many = head.matches("<th ").count() > 7 && names > 0;
            assert!(!many || class.contains("broad") || class.contains("wide"), "{class}: {head}");
        }
    }
}

#[test]
fn shows_calls_that_never_returned_below_and_in_the_timeline() {
    let mut dead = rank(1, 2);
    dead.killed();
    dead.open_call(0, "MPI_Recv", B + 2_000_000);
    let (page, json) = page_of(&[rank(0, 2), dead], 64);
    let inside = &json["unfinished"]["ranks"][0]["threads"][0]["inside"];
    assert_eq!(inside["function"], "MPI_Recv");
    let since_s = inside["begin_s"].as_f64().unwrap();
    let section = page.split("id=\"unfinished\"").nth(1).unwrap().split("</section>").next();
    let section = section.unwrap();
    assert!(section.contains("in MPI_Recv") && holds(section, since_s), "{section}");
    let data = page.split("id=\"timeline-data\">").nth(1).unwrap().split("</script>").next();
    let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
    let open = data["open"].as_array().unwrap();
    assert_eq!((open.len(), &open[0][0]), (1, &1.into()), "{open:?}");
    assert_eq!(data["functions"][open[0][1].as_u64().unwrap() as usize], "MPI_Recv");
    assert!(!page_of(&[rank(0, 2), rank(1, 2)], 64).0.contains("What did not finish"));
}

#[test]
fn shows_the_numbers_of_the_roofline_document() {
    let mut rank = SyntheticRank::complete(0, 1, B, B + 1_000_000);
    rank.call(0, "MPI_Barrier", B + 100_000, B + 300_000);
    rank.compute("cblas_dgemm", B + 400_000, B + 900_000, 6.4e6, 4096);
    rank.finalize(B + 1_000_000, B + 1_001_000);
    let directory = RunDirectory::with_ranks(&[rank]);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let exchanges =
        Exchanges::for_selection(&Analysis::new(&run, &timeline), &Selection::Whole).unwrap();
    let placed = Point::from_exchanges("whole run <b>", &exchanges).into_iter().map(|point| {
        let size = (point.ranks, point.hosts);
        let roofs =
            Roofs::new(Some(&machine()), &DataSheet::default(), size, point.locality, &point.sizes);
        let verdict = Verdict::new(&point, &roofs);
        Assessment { point, roofs, verdict }
    });
    let run_findings = RunFindings {
        name: "run".into(),
        assessed: placed.collect(),
        work: exchanges.work(),
        notes: vec!["a note".into()],
    };
    let findings = Findings {
        source: Some("machine.json".into()),
        runs: vec![run_findings],
        ..Findings::default()
    };
    let activity = Activity::new(&run, &timeline, 64);
    let detail = Detail::new(&run, &timeline, &activity, &[], PAGE_BUDGET);
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    let page = page(&report, &activity, &detail, Some(&findings)).unwrap();
    let document: serde_json::Value =
        serde_json::from_str(&roofline::json(&findings).unwrap()).unwrap();
    let point = &document["runs"][0]["points"][0];
    assert_eq!(point["flops"], 6.4e6);
    for key in ["flops", "attained_flops_per_s", "rate_while_computing_flops_per_s"] {
        let value = point[key].as_f64().unwrap();
        assert!(holds(&page, value), "{key}");
    }
    assert!(page.contains("a note") && !page.contains("<b>"));
}

fn study_page(csv: &str, region: Option<&str>) -> (String, serde_json::Value) {
    let table = Observations::from_csv("study", csv.as_bytes()).unwrap();
    let scaling = Scaling::new(&table, &Options::default());
    let notes = vec!["left out: <i>one</i>".to_owned()];
    let study_json = StudyJson {
        format: crate::trace::study_json::FORMAT.into(),
        format_version: 1,
        gammachi_version: "0".into(),
        argv: vec!["mpirun".into(), HOSTILE.into()],
        level: 1,
        compute: "outside".into(),
        region: None,
        seed: 1,
        runs: Vec::new(),
    };
    let study = Study {
        directory: std::path::Path::new("/somewhere/study"),
        json: &study_json,
        region,
        table: &table,
        scaling: scaling.as_ref(),
        notes: &notes,
    };
    let json = match &scaling {
        Ok(scaling) => present::scaling::json(scaling, &notes).unwrap(),
        Err(_) => "null".into(),
    };
    (study::page(&study).unwrap(), serde_json::from_str(&json).unwrap())
}

#[test]
fn study_shows_the_numbers_of_the_scaling_document() {
    let csv = "p,tau_s,sum_gamma_s,chi_s,run\n1,100.5,97,3.5,<b>r1\n2,52,97.5,3.25,r2\n4,28,98,3.5,r4\n8,17,99,\
               4.6,r8\n16,13,100,6.7,r16\n";
    let (page, json) = study_page(csv, Some(HOSTILE));
    let fit = &json["fits"][0];
    for key in ["a_s", "chi0_s", "chi1_s", "p_c", "tau_min_s"] {
        let value = fit[key].as_f64().unwrap();
        assert!(holds(&page, value), "{key} {value}");
    }
    for point in fit["points"].as_array().unwrap() {
        let value = point["model_tau_s"].as_f64().unwrap();
        assert!(holds(&page, value), "{value}");
    }
    assert!(page.contains("data-value=\"100.5\""), "the table's cells as they are");
    assert!(page.matches("<svg").count() >= 4, "the figures of the scaling");
    let at = |id: &str| page.find(&format!("id=\"{id}\"")).unwrap();
    assert!(at("verdict-head") < at("figures-head") && at("figures-head") < at("fit-1"));
    let figure = |title: &str| page.find(&format!("<title>{title}</title>")).unwrap();
    assert!(figure("Elapsed time, measured and modelled") < figure("τ–χ space"));
    assert!(!page.contains("χ_i"), "no symbol that the page does not explain");
    assert!(!page.contains("<img") && !page.contains("<b>") && !page.contains("<i>"));
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn study_without_a_model_says_why() {
    let csv = "p,tau_s,sum_gamma_s,N,run\n1,10,9,100,r1\n2,10.5,19,200,r2\n4,11,38,400,r4\n";
    let (page, _) = study_page(csv, None);
    assert!(page.contains("No efficiency model") && page.contains("--work"));
    assert!(page.contains("data-value=\"10.5\""));
    let (page, json) = study_page("p,tau_s,sum_gamma_s,run\n2,10,9,r\n", None);
    assert!(json["fits"][0]["c0"].is_null() && page.contains("cannot be identified"));
    assert!(
        page.contains("<title>Elapsed time</title>"),
        "what was measured is drawn without a model, too"
    );
}

#[test]
fn missing_parts_leave_no_trace() {
    // Without messages, calls or call sites, no empty figure and no "none" of the template engine may appear.
    let mut silent = SyntheticRank::complete(0, 1, B, B + 1000);
    silent.finalize(B + 1000, B + 2000);
    let (page, _) = page_of(&[silent], 64);
    let body = page.split("<main>").nth(1).unwrap().split("<script").next().unwrap();
    assert!(!body.contains(">None") && !body.contains(">none"), "{body}");
    let rest = page.split("id=\"ranks\"").nth(1).unwrap().split("<script>").next().unwrap();
    assert!(!rest.contains(">None") && !rest.contains("undefined"), "{rest}");
}
