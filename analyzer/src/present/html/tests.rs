use super::*;
use crate::metrics::Metrics;
use crate::metrics::activity::detail::PAGE_BUDGET;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

const B: u64 = 5_000_000_000;
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";

fn page_of(ranks: &[SyntheticRank], bins: usize) -> (String, serde_json::Value) {
    let directory = RunDirectory::of(ranks);
    let run = Run::open(directory.path()).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    let report = Report { run: &run, timeline: &timeline, metrics: &metrics };
    let activity = Activity::new(&run, &timeline, bins);
    let detail = Detail::new(&run, &timeline, &activity, &[], PAGE_BUDGET);
    let json = serde_json::from_str(&json::text(&report).unwrap()).unwrap();
    (page(&report, &activity, &detail).unwrap(), json)
}

fn rank(number: u32, of: u32) -> SyntheticRank {
    let mut rank = SyntheticRank::complete(number, of, B, B + 1_000_000);
    rank.call(0, "MPI_Barrier", B + 100_000, B + 300_000 + 1000 * u64::from(number));
    rank.finalize(B + 1_000_000, B + 1_001_000);
    rank
}

#[test]
fn text_of_a_trace_never_becomes_markup() {
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
fn the_page_asks_for_nothing() {
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
fn numbers_are_those_of_the_json_report() {
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
        assert!(page.contains(&format!("data-value=\"{gamma}\"")), "{gamma}");
    }
}

#[test]
fn runs_that_are_odd_have_a_page() {
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
fn many_ranks_stay_small() {
    let ranks: Vec<_> = (0..600).map(|number| rank(number, 600)).collect();
    let (page, _) = page_of(&ranks, crate::metrics::activity::bins_for(600));
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(page.contains("lie between"));
}
