//! The threads of the trace: their numbers, and what is kept of them besides their windows.
//!
//! A thread whose events are folded has a totals chunk of its own. Where many threads live short lives, one after the
//! other, these would exceed every limit. So under a limit the record of an ended thread is continued by the next thread
//! that begins, under the same number. The time between them is an event of the tool.

use trace_format::layout::CHUNK_GRANULE;
use trace_format::totals::TOTALS_CHUNK_BYTES;

use crate::host::lock::Lock;
use crate::store::keeping::Archive;
use crate::store::trace_file;

/// What is kept of a thread besides its windows.
#[derive(Debug)]
pub struct ThreadRecord {
    /// Number of the thread in the trace, and the operating system's id.
    pub thread: (u32, u32),
    /// Sequence of the next window.
    pub sequence: u32,
    pub archive: Archive,
    /// Whether its totals have no room to grow, because the file was completed.
    is_compact: bool,
    /// When the thread before it ended, if it continues that one's record.
    pub continues_since: Option<u64>,
}

/// Operating system's ids of the threads that have windows, indexed by thread number.
static OS_IDS: Lock<Vec<u32>> = Lock::new(Vec::new());
/// Records of ended threads that may be continued, and when each ended.
static ENDED: Lock<Vec<(ThreadRecord, u64)>> = Lock::new(Vec::new());

/// The record of the thread that ended recording, if it may be resumed.
static FINISHED: Lock<Option<ThreadRecord>> = Lock::new(None);

/// Operating system's ids of the recorded threads; the index is the thread's number.
pub fn os_ids() -> Vec<u32> {
    OS_IDS.lock().clone()
}

/// The record of a thread whose first window is opened at `opened_ticks`: a new one, or, if memory
/// is limited, that of a thread that had ended by then.
pub fn begin(os_id: u32, opened_ticks: u64) -> Result<ThreadRecord, String> {
    if let Some(mut finished) = FINISHED.lock().take() {
        finished.thread.1 = os_id;
        finished.archive.resume(finished.thread)?;
        return Ok(ThreadRecord { continues_since: None, ..finished });
    }
    if Archive::reuses()
        && let Some((mut ended, at_ticks)) = ended_by(opened_ticks)
    {
        if std::mem::take(&mut ended.is_compact) {
            ended.archive.resume(ended.thread)?;
        }
        let thread = (ended.thread.0, os_id);
        if let Some(id) = OS_IDS.lock().get_mut(thread.0 as usize) {
            *id = os_id;
        }
        return Ok(ThreadRecord { thread, continues_since: Some(at_ticks), ..ended });
    }
    let mut ids = OS_IDS.lock();
    let thread = (ids.len() as u32, os_id);
    ids.push(os_id);
    drop(ids);
    let archive = Archive::begin(thread)?;
    Ok(ThreadRecord { thread, sequence: 0, archive, is_compact: false, continues_since: None })
}

fn ended_by(ticks: u64) -> Option<(ThreadRecord, u64)> {
    let mut ended = ENDED.lock();
    let at = ended.iter().rposition(|(_, at_ticks)| *at_ticks <= ticks)?;
    Some(ended.remove(at))
}

/// Moves the totals of all other threads, if all of them have ended, into the space behind the totals
/// of the last thread, which begin and end there in the file. Returns the same of the last ones;
/// `None` if a thread lives or they do not fit.
pub fn gather_totals((chunk, used_end): (u64, u64)) -> Option<(u64, u64)> {
    let threads = OS_IDS.lock().len();
    let mut ended = ENDED.lock();
    if ended.len() + 1 != threads {
        return None;
    }
    let whole = |bytes: u64| bytes.next_multiple_of(CHUNK_GRANULE);
    let sizes = ended.iter().map(|(record, _)| record.archive.compact_bytes().map(whole));
    let needed: u64 = sizes.sum::<Option<u64>>()?;
    if whole(used_end) + needed > chunk + TOTALS_CHUNK_BYTES as u64 {
        return None;
    }
    let (mut last, mut end) = (chunk, used_end);
    for (record, _) in ended.iter_mut() {
        let offset = whole(end);
        let bytes = record.archive.compact_bytes()?;
        record.archive.move_compacted(record.thread, offset).ok()?;
        record.is_compact = true;
        trace_file::end_chunk_at(last, offset).ok()?;
        (last, end) = (offset, offset + bytes);
    }
    Some((last, end))
}

/// Keeps the record of the thread that ended recording for the thread that resumes it.
pub fn finish(record: ThreadRecord) {
    *FINISHED.lock() = Some(record);
}

/// Keeps the record of a thread that has ended, all of whose events are archived, for another one.
pub fn end(record: ThreadRecord, ticks: u64) {
    if record.archive.may_continue() {
        ENDED.lock().push((record, ticks));
    }
}
