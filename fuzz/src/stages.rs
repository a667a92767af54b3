//! Runs all stages of a report on a made-up run.

use std::path::PathBuf;
use std::sync::OnceLock;

use gammachi_analyzer::diagnosis::{Diagnosis, Evidence};
use gammachi_analyzer::metrics::{Metrics, Selection};
use gammachi_analyzer::present::Report;
use gammachi_analyzer::present::report::{json, screen};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use trace_format::files::rank_file_path;
use trace_format::layout::CHUNK_DEFINITIONS;

use crate::{Pieces, chunk_header, framed, push_chunk, sound_area};

/// Number of ranks of a made-up run.
pub const RANKS: u32 = 2;

/// A directory in memory, one per process.
fn directory() -> &'static PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let path = PathBuf::from(format!("/dev/shm/gammachi-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("ranks-000")).expect("/dev/shm is writable");
        path
    })
}

/// Runs all stages on a run of ranks with any definitions; `push` adds the other chunks to a rank's file.
pub fn run_of_data(data: &[u8], push: impl Fn(&mut Vec<u8>, &mut Pieces<'_>)) {
    let mut pieces = Pieces(data);
    let (level, chosen) = (pieces.byte() & 1, pieces.byte());
    let images = [0, 1].map(|rank| {
        let mut image = sound_area(level, rank, RANKS);
        let content = framed(&mut Pieces(pieces.counted()));
        push_chunk(&mut image, chunk_header(CHUNK_DEFINITIONS, 0, 0, content.len()), &content);
        push(&mut image, &mut pieces);
        image
    });
    through_all_stages(&images, chosen);
}

/// Opens the files of a run's ranks and makes timeline, figures and report from them, for the whole
/// run or for the selection that `chosen` encodes.
pub fn through_all_stages(images: &[Vec<u8>; RANKS as usize], chosen: u8) {
    for (rank, image) in images.iter().enumerate() {
        std::fs::write(directory().join(rank_file_path(0, rank as u32)), image)
            .expect("/dev/shm has space");
    }
    let Ok(run) = Run::open(directory()) else { return };
    let timeline = GlobalTimeline::new(&run);
    let selection = match chosen {
        0..=9 => Selection::Region(run.region_names().first().unwrap_or(&"none").to_string()),
        10..=19 => Selection::parse_window("0.1,2").expect("the window is valid"),
        20..=29 => {
            Selection::parse_window("MPI_Barrier#1,MPI_Barrier#2").expect("the window is valid")
        }
        _ => Selection::Whole,
    };
    let Ok(metrics) = Metrics::new(&run, &timeline, &selection) else { return };
    let diagnosis = Diagnosis::new(Evidence::of_metrics(&run, &timeline, &metrics));
    let report = Report::new(&diagnosis, &[]);
    assert!(!screen(&report, false).is_empty());
    let text = json(&report).expect("a report is JSON");
    serde_json::from_str::<serde_json::Value>(&text).expect("the report can be parsed");
}
