//! Writes the samples of the program's code as calling contexts.

use std::collections::{BTreeMap, HashMap};

use crate::export::content::Content;
use crate::export::samples::{Frame, SampledThread, Samples};
use crate::formats::otf2::library::{Object, Otf2Error, Otf2Library, UNDEFINED_32};

use super::location::location;
use super::records::At;
use super::regions::Regions;

/// The only interrupt generator.
pub(super) const GENERATOR: u32 = 0;

// OTF2_InterruptGeneratorMode and OTF2_Base: by time, in powers of ten.
const TIME: u8 = 0;
const DECIMAL: u8 = 1;

/// A function in which, and below which, there are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Context {
    pub region: u32,
    /// The line that was run, or that calls the next function.
    pub line: Option<u32>,
    /// Number of the caller's context, or undefined.
    pub parent: u32,
}

/// Calling contexts, numbered in order of their first use; callers come first.
#[derive(Default)]
pub(super) struct Contexts {
    numbers: HashMap<Context, u32>,
    pub found: Vec<Context>,
}

impl Contexts {
    /// The contexts of a stack, the outermost first.
    fn number(&mut self, frames: &[Frame], regions: &mut Regions) -> Vec<u32> {
        let mut parent = UNDEFINED_32;
        let contexts = frames.iter().map(|frame| {
            let context = Context { region: regions.function(frame), line: frame.line, parent };
            parent = *self.numbers.entry(context).or_insert_with(|| {
                self.found.push(context);
                self.found.len() as u32 - 1
            });
            parent
        });
        contexts.collect()
    }
}

/// The samples of a thread that are still to be written.
struct Rest<'a> {
    thread: &'a SampledThread,
    next: usize,
    /// Those of the last sample.
    contexts: Vec<u32>,
}

/// The samples of a rank's threads.
pub(super) struct RankSamples<'a> {
    library: &'a Otf2Library,
    content: &'a Content<'a>,
    all: &'a Samples,
    threads: BTreeMap<u32, Rest<'a>>,
    known: HashMap<u32, Vec<u32>>,
}

impl<'a> RankSamples<'a> {
    pub fn new(
        library: &'a Otf2Library,
        content: &'a Content<'a>,
        all: &'a Samples,
        rank: usize,
    ) -> Self {
        let threads = all.threads.iter().filter(|thread| thread.rank == rank);
        let threads = threads
            .map(|thread| (number_of(thread), Rest { thread, next: 0, contexts: Vec::new() }));
        Self { library, content, all, threads: threads.collect(), known: HashMap::new() }
    }

    /// When the next sample of a thread was taken, if there is another one before this time.
    pub fn next_before(&self, thread: u32, time: u64) -> Option<u64> {
        let rest = self.threads.get(&thread)?;
        let (at_ns, _) = rest.thread.samples.get(rest.next)?;
        Some((at_ns - self.content.head.first_ns).max(0) as u64).filter(|at| *at < time)
    }

    /// Writes the next sample of a thread, not before what was written last.
    pub fn write_next(
        &mut self,
        thread: u32,
        at: At,
        contexts: &mut Contexts,
        regions: &mut Regions,
    ) -> Result<(), Otf2Error> {
        let Some(rest) = self.threads.get_mut(&thread) else { return Ok(()) };
        let (_, stack) = rest.thread.samples[rest.next];
        rest.next += 1;
        let of_stack = self
            .known
            .entry(stack)
            .or_insert_with(|| contexts.number(&self.all.frames(rest.thread, stack), regions));
        let Some(&innermost) = of_stack.last() else { return Ok(()) };
        let common = of_stack.iter().zip(&rest.contexts).take_while(|(a, b)| a == b).count();
        // The innermost function was left and entered again, or went on.
        let unwound = (of_stack.len() - common).max(1) as u32;
        rest.contexts.clone_from(of_stack);
        let write = self.library.EvtWriter_CallingContextSample;
        let none = std::ptr::null_mut();
        // SAFETY: the writer is open, and no attributes are given.
        self.library
            .check(unsafe { write(at.writer, none, at.time, innermost, unwound, GENERATOR) })
    }

    /// The threads without calls, which have no other events.
    pub fn without_calls(&self) -> Vec<u32> {
        let of = self.threads.iter().filter(|(_, rest)| rest.thread.thread.is_none());
        of.map(|(number, _)| *number).collect()
    }
}

/// The number of a thread in the archive; those without calls have none in the rank's file.
fn number_of(thread: &SampledThread) -> u32 {
    thread.thread.unwrap_or((1 << 20) + thread.index as u32)
}

/// The locations of a rank's threads that made no calls.
pub(super) fn further_locations(samples: Option<&Samples>, place: usize, rank: u32) -> Vec<u64> {
    let threads = samples.into_iter().flat_map(|of| &of.threads);
    let without = threads.filter(|thread| thread.rank == place && thread.thread.is_none());
    without.map(|thread| location(rank, number_of(thread))).collect()
}

/// Defines the contexts and what interrupts the threads.
pub(super) fn define(
    library: &Otf2Library,
    writer: Object,
    (contexts, samples): (&Contexts, &Samples),
    name: u32,
    file_of: &dyn Fn(u32) -> u32,
) -> Result<(), Otf2Error> {
    let check = |code| library.check(code);
    let period_ns = samples.threads.first().map_or(1, |thread| thread.period_ns) as u64;
    // SAFETY: the writer is open; so below.
    check(unsafe {
        let write = library.GlobalDefWriter_WriteInterruptGenerator;
        write(writer, GENERATOR, name, TIME, DECIMAL, -9, period_ns)
    })?;
    let mut lines: HashMap<(u32, u32), u32> = HashMap::new();
    for (Context { region, line, parent }, number) in contexts.found.iter().zip(0..) {
        let file = file_of(*region);
        let place = line.filter(|_| file != UNDEFINED_32);
        let place = match place {
            None => UNDEFINED_32,
            Some(line) => {
                let next = lines.len() as u32;
                let known = lines.get(&(file, line)).copied();
                if known.is_none() {
                    lines.insert((file, line), next);
                    // SAFETY: see above.
                    check(unsafe {
                        (library.GlobalDefWriter_WriteSourceCodeLocation)(writer, next, file, line)
                    })?;
                }
                known.unwrap_or(next)
            }
        };
        // SAFETY: see above.
        check(unsafe {
            (library.GlobalDefWriter_WriteCallingContext)(writer, number, *region, place, *parent)
        })?;
    }
    Ok(())
}
