//! Makes seeds for every target from the rank files of real runs, one folder per target.
//!
//! Usage: `seeds FOLDER RUN-DIRECTORY…`

use std::error::Error;
use std::fs;
use std::path::Path;

use images::{FUNCTIONS, push_counted, sound_header};
use trace_format::encoded::{Encoder, Words};
use trace_format::encoding::encode;
use trace_format::header::Definition;
use trace_format::layout::*;
use trace_format::reader::RankFile;
use trace_format::totals::TotalsEntry;

/// Number of events in a seed.
const MAX_EVENTS: usize = 40;

/// Number of entries of totals in a seed.
const MAX_TOTALS: usize = 7;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("usage: seeds FOLDER RUN-DIRECTORY…")?;
    let folder = Path::new(&folder);
    // Values in the order of the table of variables.
    let values = "/tmp/run||1|blas|0|flops|64M|last|N=20000,NB=80|50|2.5|3|||||10,-3.5|n7";
    write(folder, "environment", "plain", values.replace('|', "\0").as_bytes())?;
    write(
        folder,
        "header",
        "sound",
        &[&[1, 1][..], &encode(&sound_header()).unwrap_or_default()].concat(),
    )?;
    for (number, run) in arguments.enumerate() {
        let run = Path::new(&run);
        if let Ok(text) = fs::read(run.join("run.json")) {
            write(folder, "run_json", &number.to_string(), &text)?;
        }
        let files = (0..2).map(|rank| Parts::read(&run.join(rank_file_path(0, rank))));
        let files = files.collect::<Result<Vec<_>>>()?;
        for (rank, file) in files.iter().enumerate() {
            let name = format!("{number}-{rank}");
            write(folder, "header", &name, &[&[1, 1][..], &file.payload].concat())?;
            write(folder, "definitions", &name, &file.definitions)?;
            let mut raw = vec![0];
            for piece in &file.granules {
                push_counted(&mut raw, piece);
            }
            write(folder, "raw_file", &name, &raw)?;
            for (part, slots) in file.slots.iter().enumerate() {
                let mut events = vec![1, 0];
                push_counted(&mut events, slots);
                push_counted(&mut events, slots);
                write(folder, "events", &format!("{name}-{part}"), &events)?;
                for (kind, bytes) in [(0, encoded(slots)), (1, slots.clone()), (2, encoded(slots))]
                {
                    let seed = [&[kind, 0][..], &bytes].concat();
                    write(folder, "encoded", &format!("{name}-{part}-{kind}"), &seed)?;
                }
                let mut chunks = vec![0];
                for (kind, content) in [(CHUNK_DEFINITIONS, &file.framed), (CHUNK_EVENTS, slots)] {
                    chunks.extend([kind as u8, 0, 0, 0, 0, 0]);
                    push_counted(&mut chunks, content);
                }
                write(folder, "chunks", &format!("{name}-{part}"), &chunks)?;
            }
        }
        if files.iter().all(|file| file.totals.is_some()) {
            let mut whole = vec![1, 255];
            for file in &files {
                let (entries, snapshot) =
                    file.totals.as_ref().ok_or("the totals were there before")?;
                push_counted(&mut whole, &file.definitions);
                whole.extend([2, *entries]);
                push_counted(&mut whole, snapshot);
                for (sequence, slots) in (0..3).zip(file.slots.iter().chain([&Vec::new()])) {
                    whole.extend([10 + sequence, u8::from(sequence == 2)]);
                    push_counted(&mut whole, slots);
                }
            }
            write(folder, "totals", &number.to_string(), &whole)?;
        }
        for part in 0..files.iter().map(|file| file.slots.len()).min().unwrap_or(0) {
            let mut whole = vec![1, 255];
            for file in &files {
                push_counted(&mut whole, &file.definitions);
                push_counted(&mut whole, &file.slots[part]);
                push_counted(&mut whole, &[]);
            }
            write(folder, "run", &format!("{number}-{part}"), &whole)?;
        }
    }
    Ok(())
}

/// Encodes slots.
fn encoded(slots: &[u8]) -> Vec<u8> {
    let words: Vec<Words> = slots.chunks_exact(SLOT_BYTES).filter_map(read_plain).collect();
    let mut out = vec![0; slots.len() + 64];
    let used = Encoder::new().encode(0, &words, &mut out).unwrap_or_default();
    out.truncate(used);
    out
}

fn write(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(folder.join(target))?;
    fs::write(folder.join(target).join(name), bytes)?;
    Ok(())
}

/// The parts of a file that seeds are made of.
struct Parts {
    payload: Vec<u8>,
    /// Payloads preceded by their length, as the targets expect them.
    definitions: Vec<u8>,
    /// The first definitions as stored in the file.
    framed: Vec<u8>,
    /// Slots of the first and of the last events.
    slots: Vec<Vec<u8>>,
    /// Entries and bytes of a snapshot of the first thread's totals.
    totals: Option<(u8, Vec<u8>)>,
    /// The first bytes of the header area and of the first chunks.
    granules: Vec<Vec<u8>>,
}

impl Parts {
    fn read(path: &Path) -> Result<Self> {
        let (file, bytes) = (RankFile::open(path)?, fs::read(path)?);
        // Rebuilt: with the names of the targets' functions only, it is a tenth as long.
        let mut header = file.header.clone();
        header.function_names = FUNCTIONS.join("\n");
        let mut definitions = Vec::new();
        for definition in &file.definitions {
            let definition = match definition {
                Definition::Communicator(made) => {
                    let mut made = made.clone();
                    made.made_by = renumbered(&file, made.made_by).unwrap_or(0);
                    Definition::Communicator(made)
                }
                Definition::Environment(_) => Definition::Environment(Vec::new()),
                other => other.clone(),
            };
            push_counted(&mut definitions, &encode(&definition).unwrap_or_default());
        }
        let mut events = Vec::new();
        for event in file.threads.first().into_iter().flat_map(|thread| file.events(thread)) {
            // Encoded slots are not stored in the file in this form.
            let slots = event.offset..event.offset + SLOT_BYTES * (1 + event.continuations);
            let Some(slots) = bytes.get(slots) else { continue };
            let mut slots = slots.to_vec();
            let Some(function) = renumbered(&file, event.function) else { continue };
            let word = u64::from_le_bytes(slots[8..16].try_into()?);
            let word = word & !(u64::from(FUNCTION_MASK) << 32) | u64::from(function) << 32;
            slots[8..16].copy_from_slice(&word.to_le_bytes());
            events.push(slots);
        }
        let tail = events.len().saturating_sub(MAX_EVENTS);
        let slots = vec![events[..events.len().min(MAX_EVENTS)].concat(), events[tail..].concat()];
        let granules = bytes.chunks(4096).take(3).map(|granule| {
            let used = granule.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            granule[..used.min(24 * 1024)].to_vec()
        });
        let framed = bytes.get(HEADER_BYTES as usize + CHUNK_HEADER_BYTES..).unwrap_or_default();
        let totals = file.threads.first().and_then(|thread| thread.totals.as_ref()).map(|totals| {
            let named = totals.calls.iter().filter_map(|entry| {
                Some(TotalsEntry { function: renumbered(&file, entry.function)?, ..*entry })
            });
            let entries: Vec<TotalsEntry> = named.take(MAX_TOTALS).collect();
            let header = bytes_of(&totals.header).iter();
            let snapshot = header.chain(entries.iter().flat_map(bytes_of)).copied().collect();
            (entries.len() as u8, snapshot)
        });
        Ok(Self {
            totals,
            payload: encode(&header).unwrap_or_default(),
            definitions,
            framed: framed[..framed.len().min(2048)].to_vec(),
            slots,
            granules: granules.collect(),
        })
    }
}

/// Number of a function in the targets' files.
fn renumbered(file: &RankFile, function: u16) -> Option<u16> {
    if function < FIRST_FUNCTION {
        return Some(function);
    }
    let name = file.function_name(function)?;
    let index = FUNCTIONS.iter().position(|other| *other == name)?;
    Some(FIRST_FUNCTION + index as u16)
}
