//! Writes the samples of a run's code for <https://www.speedscope.app>: a profile per thread, in which a sample lies where
//! it was taken on the global timeline and lasts as long as it stands for; between samples there is nothing.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use crate::export::content::Content;
use crate::export::samples::{Frame, SampledThread, Samples};
use crate::export::{ExportError, Progress, Written, write_json};

/// <https://www.speedscope.app/file-format-schema.json>
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<FrameEntry>,
}

#[derive(Serialize)]
struct FrameEntry {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Stacks in order of time, each with its length; times are nanoseconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    /// Numbers of frames, the outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// The frames of all profiles, each once.
#[derive(Default)]
struct Frames {
    entries: Vec<FrameEntry>,
    numbers: HashMap<(u32, Option<u32>), usize>,
}

impl Frames {
    fn number(&mut self, frame: &Frame) -> usize {
        *self.numbers.entry((frame.number, frame.line)).or_insert_with(|| {
            let file = frame.file().map(str::to_owned);
            self.entries.push(FrameEntry { name: frame.name(), file, line: frame.line });
            self.entries.len() - 1
        })
    }
}

impl Profile {
    fn new(name: String) -> Self {
        let (samples, weights) = (Vec::new(), Vec::new());
        Self {
            kind: "sampled",
            name,
            unit: "nanoseconds",
            start_value: 0,
            end_value: 0,
            samples,
            weights,
        }
    }

    fn add(&mut self, stack: Vec<usize>, ns: i64) {
        self.samples.push(stack);
        self.weights.push(ns);
        self.end_value += ns;
    }
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
    let mut frames = Frames::default();
    let threads = all.threads.iter().filter(|thread| !thread.samples.is_empty());
    let mut profiles: Vec<Profile> =
        threads.map(|thread| profile(content, &all, thread, &mut frames)).collect();
    for of in &all.unsampled {
        let rank = content.head.ranks[of.rank].rank;
        let mut profile = Profile::new(format!("rank {rank}: not sampled"));
        let (name, file, line) = (of.name.to_owned(), None, None);
        frames.entries.push(FrameEntry { name, file, line });
        profile.add(vec![frames.entries.len() - 1], of.ns);
        profiles.push(profile);
    }
    let document = Document {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("gammachi@", env!("CARGO_PKG_VERSION")),
        name: &content.head.title,
        shared: Shared { frames: frames.entries },
        profiles,
    };
    write_json(path, &document)?;
    Ok(Written::default())
}

fn profile(
    content: &Content,
    all: &Samples,
    thread: &SampledThread,
    frames: &mut Frames,
) -> Profile {
    let mut profile = Profile::new(Samples::thread_name(content, thread));
    let mut stacks: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at_ns, stack) in &thread.samples {
        let numbers = stacks.entry(*stack).or_insert_with(|| {
            all.frames(thread, *stack).iter().map(|frame| frames.number(frame)).collect()
        });
        let numbers = numbers.clone();
        // It stands for the time before it.
        let idle_ns = at_ns - content.head.first_ns - thread.period_ns - profile.end_value;
        if idle_ns > 0 {
            profile.add(Vec::new(), idle_ns);
        }
        profile.add(numbers, thread.period_ns);
    }
    profile
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::export::samples::test_run::{exported, json};

    #[test]
    fn samples_lie_on_the_timeline() {
        let document: Value = json(&exported(write));
        let frames = document["shared"]["frames"].as_array().expect("frames");
        assert!(frames.iter().all(|frame| frame["name"].is_string()), "{frames:?}");
        let profiles = document["profiles"].as_array().expect("profiles");
        let names: Vec<&str> = profiles.iter().filter_map(|of| of["name"].as_str()).collect();
        assert_eq!(names, ["rank 0", "rank 1", "rank 0: not sampled", "rank 1: not sampled"]);
        let first = &profiles[0];
        assert_eq!((&first["type"], &first["unit"]), (&"sampled".into(), &"nanoseconds".into()));
        let numbers = |key: &str| -> Vec<i64> {
            first[key].as_array().expect(key).iter().filter_map(Value::as_i64).collect()
        };
        let weights = numbers("weights");
        assert_eq!(weights.iter().sum::<i64>(), first["endValue"].as_i64().expect("end"));
        let stacks = first["samples"].as_array().expect("samples");
        assert_eq!(stacks.len(), weights.len());
        let sampled =
            stacks.iter().zip(&weights).filter(|(stack, _)| stack != &&Value::Array(vec![]));
        let (sampled, ns) =
            sampled.fold((0, 0), |(count, ns), (_, weight)| (count + 1, ns + weight));
        assert_eq!((sampled, ns), (198, 198 * 10_101_010));
        // Rank 0 waits half of the time.
        let end_s = first["endValue"].as_f64().expect("end") * 1e-9;
        assert!((3.8..4.2).contains(&end_s), "{end_s}");
        let kernel = &profiles[2];
        let frame = kernel["samples"][0][0].as_u64().expect("a frame") as usize;
        assert_eq!(frames[frame]["name"], "[kernel, or signals held off]");
        assert_eq!(kernel["weights"][0], 500_000_000);
    }
}
