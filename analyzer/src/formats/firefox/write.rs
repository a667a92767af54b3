//! Writes the samples of a run's code for <https://profiler.firefox.com>: a process per rank, the samples of its threads
//! on the global timeline.
//!
//! The tables are those of version 55 of the processed profile format (`docs-developer/processed-profile-format.md` of
//! the profiler), which upgrades older versions. The crate `fxprof-processed-profile` writes no lines of functions that
//! have names already (decision 162).

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::export::content::Content;
use crate::export::samples::{Frame, SampledThread, Samples};
use crate::export::{ExportError, Progress, Written, write_json};
use crate::string_table::StringTable;

const VERSION: u32 = 55;

/// The tables of a thread.
#[derive(Default)]
struct Tables {
    strings: StringTable,
    /// Name and file of each function.
    functions: Vec<(u32, Option<u32>)>,
    function_numbers: HashMap<u32, usize>,
    /// Function and line.
    frames: Vec<(usize, Option<u32>)>,
    frame_numbers: HashMap<(u32, Option<u32>), usize>,
    /// The stack of the caller, and the frame.
    stacks: Vec<(Option<usize>, usize)>,
    stack_numbers: HashMap<(Option<usize>, usize), usize>,
    /// Time in milliseconds, stack and number of samples.
    samples: Vec<(f64, usize, u64)>,
}

impl Tables {
    fn function(&mut self, number: u32, name: &str, file: Option<&str>) -> usize {
        if let Some(known) = self.function_numbers.get(&number) {
            return *known;
        }
        let name = self.strings.number(name);
        let file = file.map(|file| self.strings.number(file));
        self.functions.push((name, file));
        self.function_numbers.insert(number, self.functions.len() - 1);
        self.functions.len() - 1
    }

    fn frame(&mut self, frame: &Frame) -> usize {
        let key = (frame.number, frame.line);
        if let Some(known) = self.frame_numbers.get(&key) {
            return *known;
        }
        let function = self.function(frame.number, &frame.name(), frame.file());
        self.frames.push((function, frame.line));
        self.frame_numbers.insert(key, self.frames.len() - 1);
        self.frames.len() - 1
    }

    fn stack(&mut self, caller: Option<usize>, frame: usize) -> usize {
        let Self { stacks, stack_numbers, .. } = self;
        *stack_numbers.entry((caller, frame)).or_insert_with(|| {
            stacks.push((caller, frame));
            stacks.len() - 1
        })
    }

    /// Adds samples of what is no function.
    fn add_unsampled(&mut self, name: &str, at_ms: f64, count: u64) {
        let name = self.strings.number(name);
        self.functions.push((name, None));
        self.frames.push((self.functions.len() - 1, None));
        let stack = self.stack(None, self.frames.len() - 1);
        self.samples.push((at_ms, stack, count));
    }

    /// The tables as columns.
    fn columns(&self) -> Value {
        let (functions, frames) = (self.functions.len(), self.frames.len());
        let time = self.samples.iter().map(|(at_ms, ..)| *at_ms);
        let samples = || self.samples.iter();
        json!({
            "stringArray": self.strings.strings(),
            "funcTable": {
                "length": functions,
                "name": self.functions.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                "isJS": vec![false; functions],
                "relevantForJS": vec![false; functions],
                "resource": vec![-1; functions],
                "fileName": self.functions.iter().map(|(_, file)| *file).collect::<Vec<_>>(),
                "lineNumber": vec![Value::Null; functions],
                "columnNumber": vec![Value::Null; functions],
            },
            "frameTable": {
                "length": frames,
                "address": vec![-1; frames],
                "inlineDepth": vec![0; frames],
                "category": vec![0; frames],
                "subcategory": vec![0; frames],
                "func": self.frames.iter().map(|(function, _)| *function).collect::<Vec<_>>(),
                "nativeSymbol": vec![Value::Null; frames],
                "innerWindowID": vec![0; frames],
                "line": self.frames.iter().map(|(_, line)| *line).collect::<Vec<_>>(),
                "column": vec![Value::Null; frames],
            },
            "stackTable": {
                "length": self.stacks.len(),
                "prefix": self.stacks.iter().map(|(caller, _)| *caller).collect::<Vec<_>>(),
                "frame": self.stacks.iter().map(|(_, frame)| *frame).collect::<Vec<_>>(),
            },
            "samples": {
                "length": self.samples.len(),
                "weightType": "samples",
                "stack": samples().map(|(_, stack, _)| *stack).collect::<Vec<_>>(),
                "time": time.collect::<Vec<_>>(),
                "weight": samples().map(|(.., count)| *count).collect::<Vec<_>>(),
            },
        })
    }
}

/// What identifies a thread of the profile.
struct Identity {
    /// Position among the exported ranks.
    rank: usize,
    name: String,
    /// Number among all threads of the profile.
    number: usize,
    is_main: bool,
}

/// A thread with its tables.
fn thread(content: &Content, of: &Identity, tables: &Tables) -> Value {
    let head = &content.head.ranks[of.rank];
    let ms = |ns: i64| (ns - content.head.first_ns) as f64 * 1e-6;
    let process = format!("rank {} ({})", head.rank, head.host);
    let mut thread = json!({
        "name": of.name,
        "isMainThread": of.is_main,
        "processType": "default",
        "processName": process,
        "processStartupTime": ms(head.begin_ns),
        "processShutdownTime": ms(head.end_ns),
        "registerTime": ms(head.begin_ns),
        "unregisterTime": ms(head.end_ns),
        // Processes of several hosts may have the same number.
        "pid": (head.rank + 1).to_string(),
        "tid": of.number + 1,
        "pausedRanges": [],
        "showMarkersInTimeline": false,
        "markers": {
            "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
        },
        "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []},
        "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
    });
    if let (Some(thread), Value::Object(columns)) = (thread.as_object_mut(), tables.columns()) {
        thread.extend(columns);
    }
    thread
}

/// The samples of a thread.
fn tables(content: &Content, all: &Samples, thread: &SampledThread) -> Tables {
    let mut tables = Tables::default();
    let mut numbers: HashMap<u32, Option<usize>> = HashMap::new();
    for (at_ns, stack) in &thread.samples {
        let number = *numbers.entry(*stack).or_insert_with(|| {
            let frames = all.frames(thread, *stack);
            frames.iter().fold(None, |caller, frame| {
                let frame = tables.frame(frame);
                Some(tables.stack(caller, frame))
            })
        });
        let at_ms = (at_ns - content.head.first_ns) as f64 * 1e-6;
        tables.samples.extend(number.map(|number| (at_ms, number, 1)));
    }
    tables
}

/// Writes the stacks of a run to a file.
///
/// # Errors
/// The code was not sampled, or the file cannot be written.
pub fn write(
    content: &Content,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Written, ExportError> {
    progress.stage("stacks", None);
    let all = Samples::required(content)?;
    let mut threads: Vec<Value> = Vec::new();
    for of in &all.threads {
        let name = Samples::thread_name(content, of);
        let is_main = of.thread == Some(0);
        let identity = Identity { rank: of.rank, name, number: threads.len(), is_main };
        threads.push(thread(content, &identity, &tables(content, &all, of)));
    }
    for of in &all.unsampled {
        let head = &content.head.ranks[of.rank];
        let mut tables = Tables::default();
        let end_ms = (head.end_ns - content.head.first_ns) as f64 * 1e-6;
        tables.add_unsampled(of.name, end_ms, of.samples);
        let name = format!("rank {}: not sampled", head.rank);
        let identity = Identity { rank: of.rank, name, number: threads.len(), is_main: false };
        threads.push(thread(content, &identity, &tables));
    }
    let start_ms =
        content.head.zero_unix_ns.map_or(0, |zero| zero + content.head.first_ns) as f64 * 1e-6;
    let interval_ms = all.threads.first().map_or(0.0, |of| of.period_ns as f64 * 1e-6);
    let profile = json!({
        "meta": {
            "version": 24,
            "preprocessedProfileVersion": VERSION,
            "interval": interval_ms,
            "startTime": start_ms,
            "product": content.head.title,
            "processType": 0,
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "markerSchema": [],
            "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
            "debug": false,
            "symbolicated": true,
            "pausedRanges": [],
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
        },
        "libs": [],
        "threads": threads,
        "pages": [],
        "profilerOverhead": [],
        "counters": [],
    });
    write_json(path, &profile)?;
    Ok(Written::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::test_run::{exported, json};

    /// The names on the stack of a thread's sample, innermost first.
    fn names(thread: &Value, sample: usize) -> Vec<&str> {
        let number = |of: &Value| of.as_u64().map(|number| number as usize);
        let mut stack = number(&thread["samples"]["stack"][sample]);
        let mut names = Vec::new();
        while let Some(at) = stack {
            let frame = number(&thread["stackTable"]["frame"][at]).expect("a frame");
            let function = number(&thread["frameTable"]["func"][frame]).expect("a function");
            let name = number(&thread["funcTable"]["name"][function]).expect("a name");
            names.push(thread["stringArray"][name].as_str().expect("text"));
            stack = number(&thread["stackTable"]["prefix"][at]);
        }
        names
    }

    #[test]
    fn samples_lie_on_the_timeline() {
        let profile = json(&exported(write));
        assert_eq!(profile["meta"]["preprocessedProfileVersion"], VERSION);
        let threads = profile["threads"].as_array().expect("threads");
        let of_threads: Vec<&str> = threads.iter().filter_map(|of| of["name"].as_str()).collect();
        assert_eq!(of_threads, ["rank 0", "rank 1", "rank 0: not sampled", "rank 1: not sampled"]);
        let [first, second, kernel] = [&threads[0], &threads[1], &threads[2]];
        assert_ne!(first["pid"], second["pid"]);
        assert_eq!(first["pid"], kernel["pid"]);
        assert_eq!(
            (&first["samples"]["length"], &second["samples"]["length"]),
            (&198.into(), &396.into())
        );
        assert_eq!(names(first, 0), ["[code]", "[code]"]);
        assert_eq!(names(kernel, 0), ["[kernel, or signals held off]"]);
        assert_eq!(kernel["samples"]["weight"][0], 49);
        let time = first["samples"]["time"].as_array().expect("times");
        assert!(time.windows(2).all(|two| two[0].as_f64() <= two[1].as_f64()), "in order");
        let last = time.last().and_then(Value::as_f64).expect("a time");
        assert!((3_800.0..4_200.0).contains(&last), "{last}");
        // Every column is as long as its table says.
        for table in ["funcTable", "frameTable", "stackTable", "samples"] {
            for thread in threads {
                let columns = thread[table].as_object().expect(table);
                let of_length =
                    |of: &Value| of.as_array().is_none_or(|all| columns["length"] == all.len());
                assert!(columns.values().all(of_length), "{table}");
            }
        }
    }
}
