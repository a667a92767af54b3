//! A run of two ranks with any definitions and events, through all stages: open, timeline, metrics,
//! report as text and JSON.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::present::{Report, json, terminal};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use images::{Pieces, chunk_header, framed, push_chunk, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::{CHUNK_DEFINITIONS, CHUNK_EVENTS, rank_file_path};

const RANKS: u32 = 2;

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

fuzz_target!(|data: &[u8]| {
    let mut pieces = Pieces(data);
    let (level, chosen) = (pieces.byte() & 1, pieces.byte());
    for rank in 0..RANKS {
        let mut image = sound_area(level, rank, RANKS);
        let content = framed(&mut Pieces(pieces.counted()));
        push_chunk(&mut image, chunk_header(CHUNK_DEFINITIONS, 0, 0, content.len()), &content);
        for thread in 0..2 {
            let slots = pieces.counted();
            if thread == 0 || !slots.is_empty() {
                push_chunk(&mut image, chunk_header(CHUNK_EVENTS, thread, 0, slots.len()), slots);
            }
        }
        std::fs::write(directory().join(rank_file_path(0, rank)), image).expect("there is room");
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
    assert!(!terminal::screen(&report, false).is_empty());
    let text = json::text(&report).expect("a report is JSON");
    serde_json::from_str::<serde_json::Value>(&text).expect("what is written can be read");
});
