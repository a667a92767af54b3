//! Copies events of another file with other times and otherwise unchanged.

use std::io;

use super::RankFileWriter;
use crate::layout::*;
use crate::reader::{Event, RankFile};

impl RankFileWriter {
    /// Adds an event of another file, with a new begin and, if it has one, a new end. Begins must
    /// not decrease.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn moved(
        &mut self,
        thread: u32,
        file: &RankFile,
        event: &Event,
        (begin, end): (u64, u64),
    ) -> io::Result<()> {
        let slots = moved(event, file.slots(event), begin, end);
        self.event(thread, &slots).map(|_| ())
    }
}

fn moved(event: &Event, slots: impl Iterator<Item = Slot>, begin: u64, end: u64) -> Vec<Slot> {
    let is = |slot: &Slot, kind: u32| slot.is_continuation() && slot.duration() == kind;
    let mut all: Vec<Slot> = slots.collect();
    let Some(head) = all.first_mut() else { return all };
    head.begin = begin;
    if let Some((address, behind_binding)) = event.site {
        head.site = address | if behind_binding { SITE_BEHIND_BINDING } else { 0 };
    }
    let Some(before) = event.end else { return all };
    let duration = end.saturating_sub(begin);
    let fits = duration < u64::from(DURATION_ESCAPE);
    let short = if fits { duration as u32 } else { DURATION_ESCAPE };
    let with = |word: u64, duration: u32| word & !u64::from(u32::MAX) | u64::from(duration);
    if let Some((count, inside)) = event.polls {
        if let Some(polls) = all.iter_mut().find(|slot| is(slot, CONTINUES_POLLS)) {
            let was = u128::from(before.saturating_sub(event.begin).max(1));
            let inside = (u128::from(inside) * u128::from(duration) / was) as u64;
            *polls = Continuation::Polls { count, inside, span: duration }.slot();
        }
    } else if let Some(at) = all.iter().position(|slot| is(slot, CONTINUES_DURATION)) {
        all[at].begin = duration;
        all[0].word = with(all[0].word, DURATION_ESCAPE);
    } else {
        all[0].word = with(all[0].word, short);
        if !fits {
            all.insert(1, Continuation::Duration { ticks: duration, error: 0 }.slot());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::header::FileHeader;
    use crate::writer::NewCall;

    fn writer(run: &Path, rank: u32) -> RankFileWriter {
        let fixed = FixedHeader::new(CounterKind::MonotonicRaw, 1, rank, 2);
        let function_names = crate::functions::names().join("\n");
        let header = FileHeader { function_names, ..FileHeader::default() };
        RankFileWriter::create(run, &fixed, &header).unwrap()
    }

    #[test]
    fn moved_events_keep_their_attributes() {
        let run = std::env::temp_dir().join(format!("moved-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&run);
        std::fs::create_dir_all(&run).unwrap();
        let long = 1 << 40;
        let call = |begin: u64, end: u64| NewCall {
            function: FIRST_FUNCTION + 3,
            begin,
            end: Some(end),
            peer: 1,
            tag: 7,
            bytes: 1 << 33,
            receive: Some(Half { peer: 2, tag: 9, bytes: 12 }),
            ..NewCall::default()
        };
        let polls = NewCall { polls: Some((10, 200)), ..call(50_000 + long, 51_000 + long) };
        let open = NewCall { end: None, ..call(60_000 + long, 0) };
        let mut first = writer(&run, 0);
        for call in [call(1_000, 1_500), call(2_000, 2_000 + long), polls, open] {
            first.call(0, &call).unwrap();
        }
        first.region(0, 5, true, 70_000 + long).unwrap();
        let path = first.path().to_owned();
        first.finish(&[]).unwrap();
        let file = RankFile::open(&path).unwrap();

        // The short event becomes long, the long one short, and the polls take half as long.
        let times = [(10, 10 + long), (20 + long, 320 + long), (400 + long, 900 + long)];
        let times = times.into_iter().chain([(1_000 + long, 0), (2_000 + long, 2_000 + long)]);
        let mut second = writer(&run, 1);
        let thread = &file.threads[0];
        for (event, time) in file.events(thread).zip(times.clone()) {
            second.moved(0, &file, &event, time).unwrap();
        }
        let path = second.path().to_owned();
        second.finish(&[]).unwrap();
        let moved = RankFile::open(&path).unwrap();
        let events: Vec<Event> = moved.events(&moved.threads[0]).collect();
        assert_eq!(events.len(), 5);
        for ((before, after), (begin, end)) in file.events(thread).zip(&events).zip(times) {
            assert_eq!((after.begin, after.end), (begin, before.end.map(|_| end)));
            let polls = before.polls.map(|(count, inside)| (count, inside / 2));
            let same = Event {
                begin,
                end: after.end,
                polls,
                offset: after.offset,
                continuations: after.continuations,
                ..before
            };
            assert_eq!(*after, same);
        }
        std::fs::remove_dir_all(run).unwrap();
    }
}
