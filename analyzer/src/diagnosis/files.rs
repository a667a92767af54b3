//! What calls on files cost, outside MPI and inside.

use crate::metrics::{FileMetrics, FileUse, RankFiles};
use crate::statistics::median;

use super::evidence::Evidence;
use super::finding::{FileOfAll, Finding, ReadAgain, SlowFiles, SmallFileCalls, UnalignedReads};

/// Share of the ranks' time, or of τ, from which calls on files are mentioned.
const NOTABLE_FILES: f64 = 0.05;
/// Calls that move less than so many bytes on average are small: a page.
const FEW_BYTES: u64 = 4096;
/// From so many of them on they are many.
const MANY_CALLS: u64 = 1_000;
/// How many times as long as the median of the others a rank spends that is slower.
const MUCH_LONGER: f64 = 2.0;

/// What calls on files cost, in order.
pub(super) fn costs(of: &Evidence) -> Vec<Finding> {
    let Some(files) = &of.metrics.files else { return Vec::new() };
    let all = [
        slow_rank(of, files),
        small_calls(of, files),
        read_again(of, files),
        unaligned_reads(of, files),
        opened_by_all(of, files),
    ];
    all.into_iter().flatten().collect()
}

/// Time of all ranks.
fn all_s(of: &Evidence) -> f64 {
    of.metrics.participants().count() as f64 * of.metrics.elapsed_s
}

/// The file on which small reads or writes take most time, if that is a notable part of the ranks' time.
fn small_calls(of: &Evidence, files: &FileMetrics) -> Option<Finding> {
    let kinds = files.files.iter().flat_map(|file| {
        [
            (file, true, file.writes, file.written_bytes, file.write_s),
            (file, false, file.reads, file.read_bytes, file.read_s),
        ]
    });
    let are_small = |calls: u64, bytes: u64| calls >= MANY_CALLS && bytes < calls * FEW_BYTES;
    let small = kinds.filter(|(_, _, calls, bytes, _)| are_small(*calls, *bytes));
    let (file, writes, calls, bytes, seconds) = small.max_by(|a, b| a.4.total_cmp(&b.4))?;
    let share = seconds / all_s(of);
    (share >= NOTABLE_FILES).then(|| {
        Finding::SmallFileCalls(SmallFileCalls {
            file: file.number,
            name: file.name.clone(),
            writes,
            calls,
            mean_bytes: bytes as f64 / calls as f64,
            seconds,
            share,
        })
    })
}

/// The file that takes most time to read again. Of one that is written, too, its contents may have been new.
fn read_again(of: &Evidence, files: &FileMetrics) -> Option<Finding> {
    let again_s = |file: &FileUse| {
        file.read_s * (file.read_again_bytes as f64 / file.read_bytes.max(1) as f64).min(1.0)
    };
    let is_again =
        |file: &&FileUse| file.written_bytes == 0 && 2 * file.read_again_bytes >= file.read_bytes;
    let again = files.files.iter().filter(is_again);
    let file = again.max_by(|a, b| again_s(a).total_cmp(&again_s(b)))?;
    let (seconds, share) = (again_s(file), again_s(file) / all_s(of));
    (share >= NOTABLE_FILES).then(|| {
        Finding::ReadAgain(ReadAgain {
            file: file.number,
            name: file.name.clone(),
            bytes: file.read_bytes,
            again_bytes: file.read_again_bytes,
            seconds,
            share,
        })
    })
}

/// The file that takes most time to read, if most of many reads begin inside a page and are no small ones, which are
/// another finding.
fn unaligned_reads(of: &Evidence, files: &FileMetrics) -> Option<Finding> {
    let is_unaligned = |file: &&FileUse| {
        file.placed_reads >= MANY_CALLS
            && 2 * file.unaligned_reads >= file.reads
            && file.read_bytes >= file.reads * FEW_BYTES
    };
    let unaligned = files.files.iter().filter(is_unaligned);
    let file = unaligned.max_by(|a, b| a.read_s.total_cmp(&b.read_s))?;
    let share = file.read_s / all_s(of);
    (share >= NOTABLE_FILES).then(|| {
        Finding::UnalignedReads(UnalignedReads {
            file: file.number,
            name: file.name.clone(),
            reads: file.placed_reads,
            unaligned: file.unaligned_reads,
            seconds: file.read_s,
            share,
        })
    })
}

/// A file that all ranks open by themselves, if that takes a notable part of their time.
fn opened_by_all(of: &Evidence, files: &FileMetrics) -> Option<Finding> {
    let ranks = of.metrics.participants().count() as u64;
    let is_of_all = |file: &&FileUse| {
        ranks > 1 && file.ranks == ranks && file.opens >= ranks && file.inside_mpi_s == 0.0
    };
    let file = files.files.iter().filter(is_of_all).max_by(|a, b| a.open_s.total_cmp(&b.open_s))?;
    let share = file.open_s / all_s(of);
    (share >= NOTABLE_FILES).then(|| {
        Finding::FileOfAll(FileOfAll {
            file: file.number,
            name: file.name.clone(),
            ranks,
            opens: file.opens,
            seconds: file.open_s,
            share,
        })
    })
}

/// Seconds of a rank's own threads outside MPI.
fn outside_mpi_s(rank: &RankFiles) -> f64 {
    rank.seconds - rank.inside_mpi_s - rank.other_threads_s
}

/// A rank that spends much longer on files than the others, which wait meanwhile as far as that is known.
fn slow_rank(of: &Evidence, files: &FileMetrics) -> Option<Finding> {
    let takes_part = |rank: &&RankFiles| of.metrics.participants().any(|one| one.rank == rank.rank);
    let ranks: Vec<&RankFiles> = files.ranks.iter().filter(takes_part).collect();
    let slowest =
        ranks.iter().max_by(|a, b| outside_mpi_s(a).total_cmp(&outside_mpi_s(b))).copied()?;
    let others = ranks.iter().filter(|rank| rank.rank != slowest.rank);
    let others_s = median(&mut others.map(|rank| outside_mpi_s(rank)).collect::<Vec<f64>>())?;
    let seconds = outside_mpi_s(slowest);
    let longer_s = seconds - others_s;
    if longer_s < NOTABLE_FILES * of.metrics.elapsed_s || seconds < MUCH_LONGER * others_s {
        return None;
    }
    let others_wait_s = of.waiting_s().map(|waiting| {
        let others = waiting.iter().filter(|(rank, _)| **rank != slowest.rank);
        let (sum, count) = others.fold((0.0, 0), |(sum, count), (_, of)| (sum + of, count + 1));
        sum / f64::from(count.max(1))
    });
    // Where nobody waits for it, it costs nothing.
    if others_wait_s.is_some_and(|waited_s| waited_s < longer_s / 2.0) {
        return None;
    }
    let of_it = |file: &&FileUse| file.slowest.is_some_and(|of| of.rank == slowest.rank);
    let by_its_time = |file: &&FileUse| file.slowest.map_or(0.0, |of| of.seconds);
    let its = files.files.iter().filter(of_it);
    let file = its.max_by(|a, b| by_its_time(a).total_cmp(&by_its_time(b)))?;
    Some(Finding::SlowFiles(SlowFiles {
        rank: slowest.rank,
        ranks: ranks.len() as u64,
        seconds,
        others_s,
        others_wait_s,
        read_bytes: slowest.read_bytes,
        written_bytes: slowest.written_bytes,
        file: file.number,
        name: file.name.clone(),
    }))
}
