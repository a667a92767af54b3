//! Imports a Paraver trace as a run: reads the `.prv` line by line, names from the `.pcf` and hosts
//! from the `.row` beside it.
//!
//! A Paraver record has the times at which a message was sent and received, but not the calls:
//! these are the calls of the threads that contain the times. It has neither requests nor
//! communicators of messages: a non-blocking send is assumed to complete at the thread's next wait,
//! and all messages are assumed to use MPI_COMM_WORLD. Tasks become ranks.
//!
//! | file | content |
//! |---|---|
//! | `head` | the first line and the communicators |
//! | `line_error` | errors of a line |
//! | `companions` | names of values and nodes, from the files beside the `.prv` |
//! | `ends` | first pass: ends of messages, in order of the calls that they belong to |
//! | `calls` | second pass: events become calls |
//! | `close` | matches a completed call with its messages, requests and root |
//! | `states` | states of a thread outside its calls, and the lifetime of its process |
//! | `roots` | roots of collective operations |

mod calls;
mod close;
mod companions;
mod ends;
mod head;
mod line_error;
mod roots;
mod scale;
mod states;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::import::rank::World;
use crate::import::{ImportError, Imported, run_id};

use self::calls::{Failure, Reading};
use self::companions::Names;
use self::ends::{End, FoundEnds};
use self::head::Head;
use self::line_error::LineError;
use super::names::MPI_TYPES;

use scale::Scale;

/// Longest line; longer ones count as damage.
const LINE_BYTES: u64 = 64 << 20;

/// Numbered lines of a file, compressed or not.
struct Lines {
    from: Box<dyn BufRead>,
    bytes: Vec<u8>,
    /// Number of the last line read, from 1 on.
    number: usize,
}

impl Lines {
    fn open(file: &Path) -> io::Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let opened = File::open(file)?;
        let from: Box<dyn BufRead> = match name.ends_with(".gz") {
            true => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(opened))),
            false => Box::new(BufReader::with_capacity(1 << 18, opened)),
        };
        Ok(Self { from, bytes: Vec::new(), number: 0 })
    }

    /// The next line without its end; invalid UTF-8 is replaced.
    fn next(&mut self) -> io::Result<Option<String>> {
        self.bytes.clear();
        let count = (&mut self.from).take(LINE_BYTES).read_until(b'\n', &mut self.bytes)?;
        self.number += 1;
        let line = String::from_utf8_lossy(&self.bytes);
        Ok((count > 0).then(|| line.trim_end().to_owned()))
    }
}

/// Whether a line is empty, a comment, or about a communicator.
fn is_skipped(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', 'c', 'i'])
}

/// Parses a communication record into its two ends.
fn message(line: &str, scale: Scale, number: u64) -> Result<(End, End), LineError> {
    let fields: Vec<&str> = line.split(':').collect();
    let ["3", _, _, t1, h1, sent, left, _, _, t2, h2, posted, received, bytes, tag] =
        fields.as_slice()
    else {
        return Err(LineError::record(line));
    };
    let (from, to) = (scale.place(t1, h1)?, scale.place(t2, h2)?);
    let bad = |_| LineError::Message;
    let (bytes, tag): (i64, i64) = (bytes.parse().map_err(bad)?, tag.parse().map_err(bad)?);
    // Extrae prints its unsigned sizes as signed ones.
    let bytes = u64::try_from(bytes).unwrap_or(u64::from(bytes as u32));
    let end = |at, complete, (task, thread): (usize, u32), peer: usize| {
        let (task, peer, tag) = (task as u32, peer as u32, tag as i32);
        Ok::<_, LineError>(End {
            at: scale.ticks(at)?,
            complete: scale.ticks(complete)?,
            number,
            bytes,
            task,
            thread,
            peer,
            tag,
        })
    };
    Ok((end(sent, left, from, to.0)?, end(posted, received, to, from.0)?))
}

/// Imports a trace by its `.prv`. `bound_ns` is the error of its clocks, if that is known.
///
/// # Errors
/// The file cannot be read or is damaged; the run cannot be written.
pub fn import(file: &Path, run: &Path, bound_ns: Option<f64>) -> Result<Imported, ImportError> {
    let damaged = |at: usize, what: LineError| ImportError::Damaged {
        path: file.to_owned(),
        what: format!("line {at}: {what}"),
    };
    let unreadable = |source| ImportError::Read { path: file.to_owned(), source };
    let cannot_write = |source| ImportError::Write { path: run.to_owned(), source };
    let mut lines = Lines::open(file).map_err(unreadable)?;
    let first = lines.next().map_err(unreadable)?.unwrap_or_default();
    let mut head = Head::of_first_line(&first).map_err(|what| damaged(1, what))?;
    for _ in 0..head.lines {
        let line = lines.next().map_err(unreadable)?.unwrap_or_default();
        head.communicator(&line).map_err(|what| damaged(lines.number, what))?;
    }
    let scale = Scale { ns: head.scale_ns, tasks: head.tasks.len() };
    let names = companions::of_values(&companions::beside(file, "pcf"));
    let hosts = companions::of_nodes(&companions::beside(file, "row"));
    let world = world(file, &mut head, &names);
    std::fs::create_dir(run).map_err(cannot_write)?;
    let mut found = FoundEnds::new(run);
    while let Some(line) = lines.next().map_err(unreadable)? {
        if !line.starts_with("3:") {
            continue;
        }
        let number = lines.number as u64;
        let ends = message(&line, scale, number).map_err(|what| damaged(lines.number, what))?;
        found.sends.push(ends.0).map_err(cannot_write)?;
        found.receives.push(ends.1).map_err(cannot_write)?;
    }
    let (sends, receives) = found.sorted().map_err(cannot_write)?;
    let mut reading = Reading::new(&world, &head, run, names, (&sends, &receives), &hosts)
        .map_err(cannot_write)?;
    let mut lines = Lines::open(file).map_err(unreadable)?;
    for _ in 0..=head.lines {
        lines.next().map_err(unreadable)?;
    }
    while let Some(line) = lines.next().map_err(unreadable)? {
        if is_skipped(&line) {
            continue;
        }
        reading.record(&line).map_err(|failure| match failure {
            Failure::Line(what) => damaged(lines.number, what),
            Failure::Write(source) => cannot_write(source),
        })?;
    }
    reading.finish(&head, bound_ns).map_err(cannot_write)
}

fn world(file: &Path, head: &mut Head, names: &Names) -> World {
    let mpi = names.iter().filter(|(kind, _)| MPI_TYPES.contains(kind));
    let mpi = mpi.flat_map(|(_, names)| names.values().cloned());
    World {
        size: head.tasks.len() as u32,
        origin: format!("imported from Paraver ({})", file.display()),
        program: String::new(),
        compute: "outside".into(),
        functions: World::function_names(mpi.filter(|name| name.starts_with("MPI_"))),
        communicators: head.communicators.iter().map(|(_, of)| of.clone()).collect(),
        zero_unix_ns: 0,
        run_id: run_id(file),
    }
}
