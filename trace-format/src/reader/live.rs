//! Follows the windows of a process that is still running.
//!
//! Each look reads what the windows of its threads gained since the last one, and the headers of the chunks that the file
//! grew by, so its cost does not grow with the trace. Nothing is mapped: a file that something cuts off cannot end the
//! reader.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::event::BriefEvent;
use super::head::Head;
use super::{HOLD_TRIES, MAX_HELD_BYTES, held, is_sound, regular_file};
use crate::layout::*;
use crate::slot::More;

/// Bytes without chunks that are read at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// Slots that are read at first from where a window may have changed.
const FEW_SLOTS: usize = 64;
/// New windows are looked for so often, and at so many looks after the file grew.
const SEARCH: Duration = Duration::from_millis(500);
const LOOKS: u32 = 10;

/// The windows of a rank file whose process may be running.
#[derive(Debug)]
pub struct LiveWindows {
    pub(super) source: File,
    /// Up to where the chunks are known.
    known_to: u64,
    /// Length when it was last asked for, and how many looks are left that follow its growth.
    length: u64,
    fresh: u32,
    /// When windows were looked for.
    searched: Option<Instant>,
    /// Granted before `known_to`, but without a chunk when it was looked at: a window that was being made, perhaps.
    empty: Vec<Range<u64>>,
    /// Where the windows lie.
    pub(super) windows: Vec<Range<u64>>,
    /// Where the area for stacks lies.
    pub(super) stacks: Option<Range<u64>>,
    /// What the last look found in each of the windows; `None`: it was being reused.
    contents: Vec<Option<LiveWindow>>,
}

/// The contents of a thread's window.
#[derive(Debug)]
pub struct LiveWindow {
    /// Number of the thread in the file.
    pub thread: u32,
    /// Operating system's id of the thread.
    pub os_id: u32,
    /// Number of windows that the thread has filled before.
    pub sequence: u32,
    /// Counter when the thread began to fill it.
    pub opened_ticks: u64,
    header: ChunkHeader,
    slots: Vec<Slot>,
    /// From which slot on it may differ from what the last look found.
    changed_from: usize,
    /// From which slot on it may differ at the next look.
    settled_to: usize,
    /// Whether it was read when the thread wrote to another one already, so that it changes no more until it is used again.
    is_settled: bool,
}

/// What a window has since the last look.
#[derive(Clone, Copy)]
enum Found {
    Same,
    More,
    /// It was used again.
    Other,
}

impl LiveWindows {
    /// Begins to follow a rank file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn follow(path: &Path) -> io::Result<Self> {
        let source = regular_file::open(path)?;
        let (empty, windows, contents) = Default::default();
        let (known_to, length, fresh, searched, stacks) = (HEADER_BYTES, 0, 0, None, None);
        Ok(Self { source, known_to, length, fresh, searched, empty, windows, stacks, contents })
    }

    /// The windows as they are now. One that is being reused at every attempt to read it is missing. If the threads that
    /// the last look found have slept since before it, what it found is not read again.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn look(
        &mut self,
        have_slept: bool,
    ) -> io::Result<impl Iterator<Item = &LiveWindow> + Clone> {
        let is_newest = self.newest();
        self.look_for_windows(&is_newest, have_slept)?;
        if have_slept && self.contents.iter().flatten().count() == self.windows.len() {
            self.contents.iter_mut().flatten().for_each(LiveWindow::stay);
        } else {
            self.read_windows(&is_newest);
        }
        Ok(self.contents.iter().flatten())
    }

    fn read_windows(&mut self, is_newest: &[bool]) {
        self.contents.resize_with(self.windows.len(), || None);
        // A thread that goes on where it wrote before has not used its other window again.
        let mut stay = Vec::new();
        for of_newest in [true, false] {
            let all = self.windows.iter().zip(&mut self.contents).enumerate();
            for (number, (at, known)) in all {
                let is_newest = is_newest.get(number).is_some_and(|is_newest| *is_newest);
                if is_newest != of_newest {
                    continue;
                }
                let found = match known {
                    Some(known) if known.is_settled && stay.contains(&known.thread) => {
                        known.stay();
                        Found::Same
                    }
                    Some(known) => known.follow(&self.source, at, is_newest),
                    None => Found::Other,
                };
                match (found, &known) {
                    (Found::More, Some(known)) if is_newest && known.has_room() => {
                        stay.push(known.thread);
                    }
                    (Found::Other, _) => {
                        let bytes = (at.end - at.start) as usize;
                        let from = |bytes: &mut [u8]| self.source.read_exact_at(bytes, at.start);
                        let held = (0..HOLD_TRIES).find_map(|_| held::copy(bytes, from));
                        *known = held.map(|(header, bytes)| LiveWindow::new(&header, &bytes));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Looks for new windows if there may be some: threads fill theirs, or seldom. One is published right after the file grew
    /// for it.
    fn look_for_windows(&mut self, is_newest: &[bool], have_slept: bool) -> io::Result<()> {
        let has_room = |of: &Option<LiveWindow>| of.as_ref().is_some_and(LiveWindow::has_room);
        let mut newest = self.contents.iter().zip(is_newest).filter(|(_, is_newest)| **is_newest);
        let all_have_room = !is_newest.is_empty() && newest.all(|(of, _)| has_room(of));
        let is_due = self.searched.is_none_or(|at| at.elapsed() >= SEARCH);
        if is_due || !(all_have_room || have_slept) {
            let length = self.source.metadata()?.len();
            if std::mem::replace(&mut self.length, length) != length {
                self.fresh = LOOKS;
            }
        }
        if is_due || self.fresh > 0 {
            self.searched = Some(Instant::now());
            self.fresh = self.fresh.saturating_sub(1);
            self.find_windows_in(self.length)?;
        }
        Ok(())
    }

    /// Which windows are the newest of their threads, as far as the last look showed.
    fn newest(&self) -> Vec<bool> {
        let all = || self.contents.iter().flatten();
        let is_newest = |of: &LiveWindow| {
            !all().any(|other| other.thread == of.thread && other.sequence > of.sequence)
        };
        self.contents.iter().map(|of| of.as_ref().is_some_and(is_newest)).collect()
    }

    /// Finds what the process has made since the last look, which does not always search.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find_windows(&mut self) -> io::Result<()> {
        let length = self.source.metadata()?.len();
        self.find_windows_in(length)
    }

    fn find_windows_in(&mut self, length: u64) -> io::Result<()> {
        for empty in std::mem::take(&mut self.empty) {
            let end = empty.end;
            let behind_last = self.walk(empty)?;
            self.keep_empty(behind_last..end);
        }
        let end = length / CHUNK_GRANULE * CHUNK_GRANULE;
        self.known_to = self.walk(self.known_to..end)?.max(self.known_to);
        Ok(())
    }

    /// Notes a range that may become a window. A shorter one only lies before one.
    fn keep_empty(&mut self, range: Range<u64>) {
        if range.end.saturating_sub(range.start) >= MAPPING_GRANULE {
            self.empty.push(range);
        }
    }

    /// Notes the windows of a range. Returns the end of its last chunk.
    fn walk(&mut self, range: Range<u64>) -> io::Result<u64> {
        let mut at = range.start;
        let mut behind_last = at;
        while let Some((found, chunk)) = self.next_chunk(at..range.end)? {
            let is_window = chunk.kind == CHUNK_EVENTS && chunk.flags & CHUNK_IS_WINDOW != 0;
            if is_window && chunk.length <= MAX_HELD_BYTES as u64 {
                self.windows.push(found..found + chunk.length);
            }
            if chunk.kind == CHUNK_STACKS {
                self.stacks = Some(found..found.saturating_add(chunk.length));
            }
            self.keep_empty(behind_last..found);
            at = found.saturating_add(chunk.length);
            behind_last = at;
        }
        Ok(behind_last)
    }

    /// The first chunk that begins in a range, and where. `None`: there is none yet.
    pub(super) fn next_chunk(&self, range: Range<u64>) -> io::Result<Option<(u64, ChunkHeader)>> {
        let mut at = range.start;
        let mut header = [0; CHUNK_HEADER_BYTES];
        let mut block = Vec::new();
        while at + CHUNK_HEADER_BYTES as u64 <= range.end {
            self.source.read_exact_at(&mut header, at)?;
            if let Some(chunk) = read_plain(&header).filter(|chunk| is_sound(chunk, &header)) {
                return Ok(Some((at, chunk)));
            }
            at += CHUNK_GRANULE;
            // Space between chunks can be long.
            while at < range.end {
                block.resize((range.end - at).min(BLOCK_BYTES as u64) as usize, 0);
                self.source.read_exact_at(&mut block, at)?;
                let is_used = |granule: &[u8]| granule.iter().any(|byte| *byte != 0);
                let used = block.chunks(CHUNK_GRANULE as usize).position(is_used);
                at += used.map_or(block.len() as u64, |used| used as u64 * CHUNK_GRANULE);
                if used.is_some() {
                    break;
                }
            }
        }
        Ok(None)
    }
}

impl LiveWindow {
    fn new(header: &ChunkHeader, bytes: &[u8]) -> Self {
        let ChunkHeader { thread, sequence, opened_ticks, thread_os_id: os_id, .. } = *header;
        let (header, slots) = (*header, slots(bytes));
        let mut window = Self {
            thread,
            os_id,
            sequence,
            opened_ticks,
            header,
            slots,
            changed_from: 0,
            settled_to: 0,
            is_settled: false,
        };
        window.settled_to = window.may_change_from();
        window
    }

    /// Whether many events still fit in it.
    fn has_room(&self) -> bool {
        let most = (self.header.length as usize).saturating_sub(CHUNK_HEADER_BYTES) / SLOT_BYTES;
        self.slots.len() + FEW_SLOTS < most
    }

    /// Nothing has changed since the last look.
    fn stay(&mut self) {
        self.changed_from = self.settled_to;
    }

    /// Reads what has changed since the last look.
    fn follow(&mut self, source: &File, at: &Range<u64>, is_newest: bool) -> Found {
        let first = self.settled_to;
        let begin = at.start + (CHUNK_HEADER_BYTES + first * SLOT_BYTES) as u64;
        let most = (at.end.saturating_sub(begin) as usize) / SLOT_BYTES;
        let is_settled = self.is_settled && !is_newest;
        // Reading once is enough to see that nothing has changed: no two events begin at the same moment, so the same ones are
        // those of the same window. What is read otherwise is the first of three readings.
        let known = self.slots.len() - first;
        let goes_on = self.changed_from < first;
        let least = if goes_on { FEW_SLOTS } else { 0 };
        let slots_read = least.max(known + 1).min(FEW_SLOTS + 1).min(most);
        let mut once = [0; (FEW_SLOTS + 1) * SLOT_BYTES];
        let once = &mut once[..slots_read * SLOT_BYTES];
        let is_same = match is_settled {
            true => self.has_same_header(source, at),
            false => {
                let is_read = source.read_exact_at(once, begin).is_ok();
                let (before, behind) = once.split_at(once.len().min(known * SLOT_BYTES));
                is_read
                    && before == bytes_of_all(&self.slots[first..])
                    && read_plain(behind).is_none_or(|next: Slot| next.word == 0)
                    && (known > 0 || self.has_same_header(source, at))
            }
        };
        if is_same {
            self.stay();
            self.is_settled = self.can_settle(is_newest);
            return Found::Same;
        }
        if is_settled {
            return Found::Other;
        }
        let mut count = FEW_SLOTS;
        loop {
            let bytes = CHUNK_HEADER_BYTES + most.min(count) * SLOT_BYTES;
            // Were it used again meanwhile, it would have another header in the end.
            let mut readings = 0;
            let read = |bytes: &mut [u8]| {
                let (header, slots) = bytes.split_at_mut(CHUNK_HEADER_BYTES);
                readings += 1;
                match readings {
                    1 if slots.len() == once.len() => slots.copy_from_slice(once),
                    _ => source.read_exact_at(slots, begin)?,
                }
                match readings {
                    3 => source.read_exact_at(header, at.start),
                    _ => {
                        header.copy_from_slice(bytes_of(&self.header));
                        Ok(())
                    }
                }
            };
            let Some((_, copy)) = held::copy(bytes, read) else { return Found::Other };
            let found = slots(&copy);
            if found.len() < count || count >= most {
                self.slots.truncate(first);
                self.slots.extend(found);
                self.changed_from = first;
                self.settled_to = self.may_change_from();
                self.is_settled = self.can_settle(is_newest);
                return Found::More;
            }
            count *= 8;
        }
    }

    fn has_same_header(&self, source: &File, at: &Range<u64>) -> bool {
        let mut header = [0; CHUNK_HEADER_BYTES];
        let is_read = source.read_exact_at(&mut header, at.start).is_ok();
        is_read && read_plain(&header) == Some(self.header)
    }

    /// Whether it changes no more, as it was read when the thread wrote to another one, and has no call that goes on.
    fn can_settle(&self, is_newest: bool) -> bool {
        let is_open = |slot: &Slot| !slot.is_continuation() && Head(*slot).is_open();
        !is_newest && !self.slots[self.settled_to..].iter().any(is_open)
    }

    /// The first of the last slots that the process may still change.
    fn may_change_from(&self) -> usize {
        let last = self.slots.len().saturating_sub(FEW_SLOTS);
        let heads = (last..self.slots.len()).filter(|at| !self.slots[*at].is_continuation());
        let is_open = |at: &usize| Head(self.slots[*at]).is_open();
        let first_open = heads.clone().find(is_open).or(heads.clone().next_back()).unwrap_or(last);
        // An empty poll is taken back and counted in the event before it.
        heads.take_while(|at| *at < first_open).last().unwrap_or(first_open)
    }

    /// Its events, in order of their begin.
    pub fn events(&self) -> impl Iterator<Item = BriefEvent> + Clone {
        self.events_from(0)
    }

    /// Its events from the first on that the last look may not have found as they are now, in order of their begin.
    pub fn changed_events(&self) -> impl Iterator<Item = BriefEvent> + Clone {
        self.events_from(self.changed_from)
    }

    /// Its events that the next look may find otherwise.
    pub fn unsettled_events(&self) -> impl Iterator<Item = BriefEvent> + Clone {
        self.events_from(self.settled_to)
    }

    fn events_from(&self, first: usize) -> impl Iterator<Item = BriefEvent> + Clone {
        let mut slots = self.slots.iter().enumerate().skip(first).peekable();
        std::iter::from_fn(move || {
            let (number, slot) = slots.find(|(_, slot)| !slot.is_continuation())?;
            let mut more = More::default();
            while let Some((_, slot)) = slots.next_if(|(_, slot)| slot.is_continuation()) {
                more.add(slot);
            }
            let ticks = more.ticks(slot).filter(|_| slot.returned()).unwrap_or(0);
            let (sent, received) = more.moved_in_brief(slot);
            Some(BriefEvent {
                head: Head(*slot),
                offset: number * SLOT_BYTES,
                end: slot.begin.saturating_add(ticks),
                sent,
                received,
                polls: more.polls,
                error: more.error,
            })
        })
    }
}

/// The used slots of a window's copy.
fn slots(copy: &[u8]) -> Vec<Slot> {
    let slots = copy.get(CHUNK_HEADER_BYTES..).unwrap_or_default().chunks(SLOT_BYTES);
    // What is zero at the end was left out.
    let whole = |slot: &[u8]| {
        let mut whole = [0; SLOT_BYTES];
        whole[..slot.len()].copy_from_slice(slot);
        read_plain(&whole)
    };
    slots.filter_map(whole).take_while(|slot: &Slot| slot.word != 0).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::encoding::checksum;

    const WINDOW_BYTES: u64 = MAPPING_GRANULE;

    /// The header of a thread's window, as the recorder publishes it.
    fn header(thread: u32) -> ChunkHeader {
        let mut header: ChunkHeader = read_plain(&[0; CHUNK_HEADER_BYTES]).unwrap();
        (header.magic, header.kind, header.flags) = (CHUNK_MAGIC, CHUNK_EVENTS, CHUNK_IS_WINDOW);
        (header.thread, header.length, header.opened_ticks) = (thread, WINDOW_BYTES, 5);
        let (from, to) = CHUNK_CRC_COVERS;
        header.crc = checksum(&bytes_of(&header)[from..to]);
        header
    }

    #[test]
    fn finds_windows_that_are_published_out_of_order() {
        let path = std::env::temp_dir().join(format!("live-{}", std::process::id()));
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = options.unwrap();
        let [first, second] = [0, 1].map(|thread| HEADER_BYTES + thread * WINDOW_BYTES);
        file.set_len(first + WINDOW_BYTES).unwrap();
        let mut live = LiveWindows::follow(&path).unwrap();
        let threads = |live: &mut LiveWindows| {
            live.look(false).unwrap().map(|window| window.thread).collect::<Vec<_>>()
        };
        assert_eq!(threads(&mut live), []);
        file.set_len(second + WINDOW_BYTES).unwrap();
        file.write_all_at(bytes_of(&header(1)), second).unwrap();
        assert_eq!(threads(&mut live), [1]);
        assert_eq!(threads(&mut live), [1]);
        file.write_all_at(bytes_of(&header(0)), first).unwrap();
        assert_eq!(threads(&mut live), [1, 0]);
        // A call that goes on, behind one that took 7 ticks.
        for (number, begin, word) in [(0, 10, 7 | 9 << 32), (1, 20, 0x8009 << 32)] {
            let slot = Slot { begin, word, ..Slot::default() };
            let at = first + (CHUNK_HEADER_BYTES + number * SLOT_BYTES) as u64;
            file.write_all_at(bytes_of(&slot), at).unwrap();
        }
        let events = |live: &mut LiveWindows, of: fn(&LiveWindow) -> Vec<(u64, bool)>| {
            of(live.look(false).unwrap().nth(1).unwrap())
        };
        let all = |window: &LiveWindow| {
            window.events().map(|of| (of.end, of.head.is_open())).collect::<Vec<_>>()
        };
        let changed = |window: &LiveWindow| {
            window.changed_events().map(|of| (of.end, of.head.is_open())).collect::<Vec<_>>()
        };
        assert_eq!(live.look(false).unwrap().nth(1).unwrap().opened_ticks, 5);
        let open = vec![(17, false), (20, true)];
        assert_eq!((events(&mut live, all), events(&mut live, changed)), (open.clone(), open));
        // It returns, and more calls than are read at first follow.
        for number in 1..300 {
            let slot = Slot { begin: 20 * number, word: 7 | 9 << 32, ..Slot::default() };
            let at = first + (CHUNK_HEADER_BYTES + number as usize * SLOT_BYTES) as u64;
            file.write_all_at(bytes_of(&slot), at).unwrap();
        }
        assert_eq!(events(&mut live, changed)[..2], [(17, false), (27, false)]);
        assert_eq!((events(&mut live, all).len(), events(&mut live, changed).len()), (300, 2));
        // The window is used again.
        let mut reused = header(0);
        (reused.sequence, reused.opened_ticks) = (2, 9000);
        let (from, to) = CHUNK_CRC_COVERS;
        reused.crc = checksum(&bytes_of(&reused)[from..to]);
        file.write_all_at(&[0; 20_000], first).unwrap();
        file.write_all_at(bytes_of(&reused), first).unwrap();
        assert_eq!((events(&mut live, all), events(&mut live, changed)), (vec![], vec![]));
        // The area for stacks is made between two searches.
        let third = second + WINDOW_BYTES;
        file.set_len(third + WINDOW_BYTES).unwrap();
        let mut area = ChunkHeader { kind: CHUNK_STACKS, flags: 0, ..header(0) };
        area.crc = checksum(&bytes_of(&area)[from..to]);
        file.write_all_at(bytes_of(&area), third).unwrap();
        live.find_windows().unwrap();
        assert!(live.answers().unwrap().is_some());
        // What is cut off is not found again, and nothing fails.
        file.set_len(HEADER_BYTES).unwrap();
        assert_eq!(threads(&mut live), []);
        std::fs::remove_file(path).unwrap();
    }
}
