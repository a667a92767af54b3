//! A made-up run through everything that a report takes.

use std::path::PathBuf;
use std::sync::OnceLock;

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::present::Report;
use gammachi_analyzer::present::report::{json, screen};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use trace_format::files::rank_file_path;

/// Ranks of a made-up run.
pub const RANKS: u32 = 2;

/// A place in memory, one a process.
fn directory() -> &'static PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let place = PathBuf::from(format!("/dev/shm/gammachi-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("ranks-000")).expect("/dev/shm is writable");
        place
    })
}

/// Opens the files of a run's ranks, and makes timeline, figures and report of them, of the whole run or of
/// what `chosen` stands for.
pub fn through_all_stages(images: &[Vec<u8>; RANKS as usize], chosen: u8) {
    for (rank, image) in images.iter().enumerate() {
        std::fs::write(directory().join(rank_file_path(0, rank as u32)), image).expect("there is room");
    }
    let Ok(run) = Run::open(directory()) else { return };
    let timeline = GlobalTimeline::new(&run);
    let selection = match chosen {
        0..=9 => Selection::Region(run.region_names().first().unwrap_or(&"none").to_string()),
        10..=19 => Selection::parse_window("0.1,2").expect("it is valid"),
        20..=29 => Selection::parse_window("MPI_Barrier#1,MPI_Barrier#2").expect("it is valid"),
        _ => Selection::Whole,
    };
    let Ok(metrics) = Metrics::new(&run, &timeline, &selection) else { return };
    let report = Report { run: &run, timeline: &timeline, metrics: &metrics };
    assert!(!screen(&report, false).is_empty());
    let text = json(&report).expect("a report is JSON");
    serde_json::from_str::<serde_json::Value>(&text).expect("what is written can be read");
}
