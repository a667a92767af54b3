//! Tests of what a reader makes of a window at every moment.
//!
//! A process may die, and a reader look, between any two instructions. So the tests run what fills,
//! clears and reuses a window one instruction at a time (the processor traps after each), and keep
//! the window's memory whenever it has changed. The processor keeps the order of stores, so a reader
//! sees these states and no others. Miri checks the order on others (`slots`).

use std::arch::asm;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::ptr::null_mut;

use trace_format::header::FileHeader;
use trace_format::layout::*;
use trace_format::reader::{Event, RankFile, held};
use trace_format::writer::header_area;

use crate::state::thread_block::ThreadBlock;
use crate::store::chunk_headers::event_header;
use crate::store::mapping::Window;
use crate::store::slots::{append, close, open, take_back};
use crate::store::trace_file::Memory;

/// A header, and the slots of two events.
const WINDOW_BYTES: usize = 320;
const WINDOW_WORDS: usize = WINDOW_BYTES / 8;
/// The words that a reader loads, in order, while it copies a window: all of them three times.
const LOADS: usize = 3 * WINDOW_WORDS;

type State = [u64; WINDOW_WORDS];

/// Memory under observation.
struct Watched {
    memory: *const State,
    states: Vec<State>,
}

thread_local! {
    static WATCHED: Cell<*mut Watched> = const { Cell::new(null_mut()) };
}

/// Handles the trap after an instruction. The recorder's allocator may be called in a handler.
extern "C" fn look(_: libc::c_int) {
    // SAFETY: set by `states`, which does not touch it while instructions are stepped, and the memory is
    // its own.
    unsafe {
        let watched = &mut *WATCHED.get();
        let now = watched.memory.read_volatile();
        if watched.states.last() != Some(&now) {
            watched.states.push(now);
        }
    }
}

/// The states of a window while `work` fills it.
fn states(work: impl FnOnce(&mut State)) -> Vec<State> {
    let mut memory: State = [0; WINDOW_WORDS];
    let mut watched = Watched { memory: &raw const memory, states: vec![memory] };
    WATCHED.set(&raw mut watched);
    // SAFETY: a handler of its own for a signal that nothing else raises; the trap flag is this thread's,
    // and is set for `work` alone. Both blocks may change the memory, as far as the compiler knows.
    unsafe {
        let handler: extern "C" fn(libc::c_int) = look;
        libc::signal(libc::SIGTRAP, handler as libc::sighandler_t);
        asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
        work(&mut memory);
        asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq");
    }
    watched.states
}

/// Opens a window.
fn open_window(memory: &mut State, opened_ticks: u64) -> Window {
    let mapping = memory.as_mut_ptr().cast();
    let memory = Memory { mapping, bytes: WINDOW_BYTES, offset: None };
    Window::open(memory, event_header((0, 1), 0, opened_ticks, WINDOW_BYTES, 0))
}

/// Begins a call in the window's next slot.
fn begin(block: &ThreadBlock, begin: u64, function: u16) -> *mut Slot {
    // SAFETY: the window has room for the slots, and nobody else stores to it.
    unsafe {
        let slot = block.cursor.get();
        block.cursor.set(slot.add(1));
        open(slot, begin, function, 1);
        (*slot).peer = begin as i32;
        append(block, Continuation::Message(begin as u32));
        slot
    }
}

/// Records two calls in a window, one of them long.
fn fill(window: &mut Window, block: &ThreadBlock) {
    let opened = window.header.opened_ticks;
    // SAFETY: as in `begin`.
    unsafe {
        block.cursor.set(window.memory.mapping.add(CHUNK_HEADER_BYTES).cast());
        let slot = begin(block, opened + 10, FIRST_FUNCTION);
        close(block, slot, 30, FIRST_FUNCTION, 1);
        let slot = begin(block, opened + 50, FIRST_FUNCTION + 1);
        close(block, slot, 1 << 40, FIRST_FUNCTION + 1, 1);
    }
    window.used = 5 * SLOT_BYTES;
}

fn block() -> Box<ThreadBlock> {
    // SAFETY: a thread's block is all zero when the thread starts.
    unsafe { Box::new(std::mem::zeroed()) }
}

/// The events and the problems in a file that ends with this window.
fn read(window: &[u8]) -> (Vec<Event>, Vec<String>) {
    let header =
        FileHeader { function_names: "MPI_Send\nMPI_Recv".into(), ..FileHeader::default() };
    let fixed = FixedHeader::new(CounterKind::Tsc, 1, 0, 1);
    let mut bytes = header_area(&fixed, &header).expect("the header fits");
    bytes.extend(window);
    let file = RankFile::from_bytes(Path::new("window"), &bytes).expect("the header is valid");
    let mut problems = file.diagnoses.clone();
    let events = file.threads.iter().flat_map(|thread| {
        let mut events = file.events(thread);
        let found: Vec<Event> = events.by_ref().collect();
        problems.extend(events.damage().cloned());
        found
    });
    let events = events.collect();
    (events, problems.into_iter().map(|problem| problem.what).collect())
}

/// The events of a window before it was cleared.
fn whole(states: &[State]) -> Vec<Event> {
    let events = states.iter().rev().map(|state| read(bytes_of(state)).0);
    events.into_iter().find(|events| events.len() == 2).expect("the window was filled")
}

/// Whether these are the first of all events, as far as they had got.
fn begin_like(events: &[Event], all: &[Event]) -> bool {
    events.len() <= all.len()
        && events.iter().zip(all).all(|(event, whole)| match event.end {
            Some(_) => event == whole,
            None => (event.function, event.begin) == (whole.function, whole.begin),
        })
}

#[test]
fn process_may_die_after_any_instruction() {
    let block = block();
    let states = states(|memory| {
        let mut window = open_window(memory, 0);
        fill(&mut window, &block);
        window.clear();
    });
    let all = whole(&states);
    assert_eq!(all.iter().map(|event| event.continuations).collect::<Vec<_>>(), [1, 2]);
    for (step, state) in states.iter().enumerate() {
        let (events, problems) = read(bytes_of(state));
        assert!(begin_like(&events, &all), "{step}: {events:?}");
        assert_eq!(problems, Vec::<String>::new(), "{step}: {state:x?}");
    }
}

/// What a reader copies that finds the first state, the second from a load on, and the third from another.
fn copy_during(states: [&State; 3], from: [usize; 2]) -> Option<Vec<u8>> {
    let mut load = 0;
    let copy = held::copy(WINDOW_BYTES, |bytes| {
        for (at, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
            let state = states[from.iter().filter(|from| **from <= load).count()];
            *word = state[at].to_le_bytes();
            load += 1;
        }
        Ok(())
    });
    copy.map(|(_, bytes)| bytes)
}

/// All that a reader may copy while the process goes on twice. Moments between which the reader loads
/// nothing that differs are the same.
fn copies(states: &[State]) -> BTreeSet<Vec<u8>> {
    let differing = |one: &State, other: &State, from: usize| {
        let (one, other) = (*one, *other);
        (from..LOADS).filter(move |load| one[load % WINDOW_WORDS] != other[load % WINDOW_WORDS])
    };
    let mut found = BTreeSet::new();
    for (at, one) in states.iter().enumerate() {
        for (behind, two) in states.iter().enumerate().skip(at) {
            for first in differing(one, two, 0) {
                for three in &states[behind..] {
                    for second in differing(two, three, first + 1).chain([LOADS]) {
                        found.extend(copy_during([one, two, three], [first, second]));
                    }
                }
            }
        }
    }
    found
}

#[test]
fn copy_of_reused_window_is_of_one_use() {
    let block = block();
    let states = states(|memory| {
        for opened in [1000, 2000] {
            let mut window = open_window(memory, opened);
            fill(&mut window, &block);
            if opened == 1000 {
                window.clear();
            }
        }
    });
    let opened = |window: &[u8]| read_plain::<ChunkHeader>(window).map_or(0, |it| it.opened_ticks);
    let uses = [1000, 2000].map(|use_| {
        let of = states.iter().filter(|state| opened(bytes_of(*state)) == use_);
        whole(&of.copied().collect::<Vec<_>>())
    });
    let copies = copies(&states);
    assert!(copies.len() > 10, "{} copies of {} states", copies.len(), states.len());
    for mut copy in copies {
        copy.resize(WINDOW_BYTES, 0);
        let (events, problems) = read(&copy);
        assert!(begin_like(&events, &uses[opened(&copy) as usize / 1000 - 1]), "{events:?}");
        assert_eq!(problems, Vec::<String>::new());
    }
}

#[test]
fn copy_has_no_mixture_of_calls_that_took_a_slot_in_turn() {
    let block = block();
    let calls = [(1010, FIRST_FUNCTION), (1050, FIRST_FUNCTION + 1)];
    let states = states(|memory| {
        let mapping = open_window(memory, 1000).memory.mapping;
        // SAFETY: as in `begin`.
        unsafe {
            block.cursor.set(mapping.add(CHUNK_HEADER_BYTES).cast());
            let polled = begin(&block, calls[0].0, calls[0].1);
            take_back(&block, polled);
        }
        let slot = begin(&block, calls[1].0, calls[1].1);
        // SAFETY: as in `begin`.
        unsafe { close(&block, slot, 30, calls[1].1, 1) };
    });
    for mut copy in copies(&states) {
        copy.resize(WINDOW_BYTES, 0);
        let (events, problems) = read(&copy);
        for event in events {
            assert!(calls.contains(&(event.begin, event.function)), "{event:?}");
        }
        assert_eq!(problems, Vec::<String>::new());
    }
}
