//! Reads and checks the totals of a thread from their chunk.

use crate::encoding::checksum;
use crate::layout::FUNCTION_MASK;
use crate::plain::{bytes_of, read_plain};
use crate::totals::{
    COLLECTIVES_ON, FAILED_CALLS, MAX_ENTRIES, SELECTOR_AT, SNAPSHOT_CRC_BYTES, SnapshotHeader,
    TotalsEntry, snapshot_at,
};

/// Events of a thread that are not kept one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Sums over all of them, and the range of their chunks.
    pub header: SnapshotHeader,
    /// Calls by function, peer class and size class.
    pub calls: Vec<TotalsEntry>,
    /// Number of collective operations by local id of their communicator. `None` collects those
    /// that have no entry of their own.
    pub collectives: Vec<(Option<u16>, u64)>,
    /// Number of calls that returned an error, by function and error class. Function 0 collects
    /// those that have no entry of their own.
    pub failed: Vec<(u16, u32, u64)>,
}

impl Totals {
    /// Reads the totals from the bytes of a chunk. `None` if nothing has been folded yet.
    pub(super) fn read(chunk: &[u8], selector: u64) -> Result<Option<Self>, String> {
        if selector == 0 {
            return Ok(None);
        }
        debug_assert!(chunk.len() >= SELECTOR_AT);
        let at = snapshot_at((selector & 1) as usize);
        let cut = || "the totals are cut off".to_owned();
        let rest = chunk.get(at..).ok_or_else(cut)?;
        let header: SnapshotHeader = read_plain(rest).ok_or_else(cut)?;
        let entries = header.entries as usize;
        let header_bytes = bytes_of(&header).len();
        let all = header_bytes + entries * size_of::<TotalsEntry>();
        let covered = rest.get(SNAPSHOT_CRC_BYTES..all).filter(|_| entries <= MAX_ENTRIES);
        if checksum(covered.ok_or_else(cut)?) != header.crc {
            return Err("the totals are damaged (checksum)".into());
        }
        if header.first_sequence >= header.next_sequence || header.begin_ticks > header.end_ticks {
            return Err("the totals are invalid (their chunks or times are reversed)".into());
        }
        let mut totals =
            Self { header, calls: Vec::new(), collectives: Vec::new(), failed: Vec::new() };
        for entry in rest[header_bytes..all].chunks_exact(size_of::<TotalsEntry>()) {
            let entry: TotalsEntry = read_plain(entry).ok_or_else(cut)?;
            if entry.function == COLLECTIVES_ON {
                totals.collectives.push((u16::try_from(entry.detail).ok(), entry.count));
            } else if entry.function == FAILED_CALLS {
                let (function, error) = (entry.detail as u16, entry.detail >> 16);
                totals.failed.push((function, error, entry.count));
            } else if entry.function & !FUNCTION_MASK != 0 {
                return Err("the totals name an invalid function".into());
            } else {
                totals.calls.push(entry);
            }
        }
        Ok(Some(totals))
    }
}
