//! What a record keeps of parallel regions and of calls on files.

use crate::comparison::teams_and_files::{FileRecord, FilesRecord, TeamRecord};
use crate::metrics::{FileMetrics, OpenMpMetrics, ParallelRegion, RankFiles};

/// Files of a run beyond which only their sum is kept.
const MAX_FILES: usize = 256;

fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Parallel regions.
pub fn teams(metrics: &OpenMpMetrics) -> Vec<TeamRecord> {
    let team = |of: &ParallelRegion| {
        let place = &of.begins_at.place;
        let file = place.file.as_deref().and_then(|file| file.rsplit('/').next());
        TeamRecord {
            function: place.function.clone(),
            file: file.map(str::to_owned),
            line: place.line,
            count: of.count,
            threads: of.threads,
            span_ns: ns(of.span_s),
            idle_ns: ns(of.idle.seconds()),
        }
    };
    metrics.regions.iter().map(team).collect()
}

/// Calls on files; `None` if some are missing.
pub fn files(metrics: &FileMetrics) -> Option<FilesRecord> {
    if !metrics.is_loaded || metrics.is_partial {
        return None;
    }
    let sum = |of: fn(&RankFiles) -> u64| metrics.ranks.iter().map(of).sum();
    Some(FilesRecord {
        opens: sum(|of| of.opens),
        reads: sum(|of| of.reads),
        read_bytes: sum(|of| of.read_bytes),
        writes: sum(|of| of.writes),
        written_bytes: sum(|of| of.written_bytes),
        ns: ns(metrics.ranks.iter().map(|of| of.seconds).sum()),
    })
}

/// Each file by its number; empty if some calls are missing, or there are too many files.
pub fn each_file(metrics: &FileMetrics) -> Vec<FileRecord> {
    if files(metrics).is_none() || metrics.files.len() > MAX_FILES {
        return Vec::new();
    }
    let mut all: Vec<FileRecord> = metrics
        .files
        .iter()
        .map(|of| FileRecord { number: of.number, name: of.name.clone(), ns: ns(of.seconds) })
        .collect();
    all.sort_by_key(|of| of.number);
    all
}
