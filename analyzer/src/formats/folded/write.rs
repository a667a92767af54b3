//! Writes the samples of a run's code as folded stacks (Gregg 2016): the rank, the functions from the outermost to the
//! innermost and the number of samples, for flamegraph.pl, inferno and speedscope.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::export::content::Content;
use crate::export::samples::Samples;
use crate::export::{ExportError, Progress, Written};

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
    let mut file = BufWriter::new(File::create(path).map_err(ExportError::io(path))?);
    for (rank, stacks) in folded(&all) {
        let rank = content.head.ranks[rank].rank;
        for (stack, count) in stacks {
            writeln!(file, "rank {rank};{stack} {count}").map_err(ExportError::io(path))?;
        }
    }
    file.flush().map_err(ExportError::io(path))?;
    Ok(Written::default())
}

/// The stacks of each rank and their samples, each once.
fn folded(all: &Samples) -> BTreeMap<usize, BTreeMap<String, u64>> {
    let mut folded: BTreeMap<usize, BTreeMap<String, u64>> = BTreeMap::new();
    for thread in &all.threads {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        thread.samples.iter().for_each(|(_, stack)| *counts.entry(*stack).or_default() += 1);
        let of_rank = folded.entry(thread.rank).or_default();
        for (stack, count) in counts {
            let frames = all.frames(thread, stack);
            let names = frames.iter().map(|frame| frame.name().replace(';', ":"));
            *of_rank.entry(names.collect::<Vec<String>>().join(";")).or_default() += count;
        }
    }
    for of in &all.unsampled {
        folded.entry(of.rank).or_default().insert(of.name.to_owned(), of.samples);
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::content::Choice;
    use crate::export::samples::test_run::{Silent, exported};
    use crate::synthetic_code::{Library, sampled};
    use crate::synthetic_trace::RunDirectory;
    use crate::timeline::GlobalTimeline;
    use crate::timeline::communicators::CommunicatorTable;
    use crate::trace::Run;

    #[test]
    fn samples_of_the_chosen_part_are_written_by_stack() {
        let functions = [1, 2, 3, 4].map(|number| number << 12);
        let library = Library { path: "/x/co;de".into(), build_id: String::new(), functions };
        let turn = [40_000_000, 0, 0, 0];
        let directory = RunDirectory::with_ranks(&sampled(&library, 1, &vec![vec![turn; 50]; 2]));
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let communicators = CommunicatorTable::new(&run);
        let written = |choice: Choice| {
            let content = Content::new(&run, &timeline, &communicators, &choice);
            let path = directory.path().join("folded");
            write(&content, &path, &Silent).map_err(|error| error.to_string())?;
            Ok::<_, String>(std::fs::read_to_string(path).unwrap())
        };
        let text = written(Choice::default()).unwrap();
        assert_eq!(text, "rank 0;[co:de];[co:de] 198\nrank 1;[co:de];[co:de] 198\n");
        let last = std::iter::once(1..2).collect();
        let one = Choice { ranks: Some(last), window_s: Some(0.0..0.5) };
        let text = written(one).unwrap();
        let part = text.strip_prefix("rank 1;[co:de];[co:de] ").expect("rank 1 alone");
        assert!((45..55).contains(&part.trim().parse::<u64>().expect("samples")), "{text}");
        let nothing = Choice { ranks: None, window_s: Some(7.0..8.0) };
        assert!(written(nothing).unwrap_err().contains("--sample"));
    }

    #[test]
    fn time_in_the_kernel_is_written() {
        let text = String::from_utf8(exported(write)).unwrap();
        let first = "rank 0;[code];[code] 198\nrank 0;[kernel, or signals held off] 49\n";
        assert!(text.starts_with(first), "{text}");
    }
}
