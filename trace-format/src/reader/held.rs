//! Copies a window of a process that may still be running, so that it cannot change any more.
//!
//! Meanwhile the process fills the window, takes its last event back (an empty poll, which it counts
//! elsewhere), clears the window and fills it again. So the window is read three times. The second
//! reading is a copy if all three have the same header. Its events are those that had begun in the
//! first one and are still there in the third one. Slots are read in ascending order, so an event that
//! has ended in the copy has its continuations there, which were published before.

use std::io;

use crate::encoding::checksum;
use crate::layout::*;

/// One attempt to copy a window of so many bytes: its header, and its bytes up to the last that is not
/// zero. `None` if it is being reused or cannot be read. `read` reads from the window's begin on.
pub fn copy(
    bytes: usize,
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> Option<(ChunkHeader, Vec<u8>)> {
    let [mut first, mut copy, mut last] = [(); 3].map(|()| vec![0; bytes]);
    for reading in [&mut first, &mut copy, &mut last] {
        read(reading).ok()?;
    }
    let header: ChunkHeader = read_plain(&copy)?;
    // The word with the magic is stored last; the header is marked before anything is cleared.
    let (from, to) = CHUNK_CRC_COVERS;
    let sound = header.magic == CHUNK_MAGIC && header.crc == checksum(copy.get(from..to)?);
    let is_same = |reading: &[u8]| read_plain(reading) == Some(header);
    if !sound || header.clearing != 0 || !is_same(&first) || !is_same(&last) {
        return None;
    }
    // For a process that has ended, also what was not published counts.
    if first != copy || copy != last {
        let kept = slots(&first).zip(slots(&copy)).zip(slots(&last)).take_while(|all| {
            let ((first, copy), last) = all;
            copy.is_continuation() || first.word != 0 && first.begin == last.begin
        });
        copy.truncate(CHUNK_HEADER_BYTES + kept.count() * SLOT_BYTES);
    }
    copy.truncate(copy.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    Some((header, copy))
}

fn slots(window: &[u8]) -> impl Iterator<Item = Slot> {
    window[CHUNK_HEADER_BYTES..].chunks_exact(SLOT_BYTES).filter_map(read_plain)
}
