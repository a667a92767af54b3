//! Writes the samples of a run's code as folded stacks (Gregg 2016): the rank, the functions from the outermost to the
//! innermost and the number of samples, for flamegraph.pl, inferno and speedscope.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::analysis::Analysis;
use crate::export::content::Content;
use crate::export::{ExportError, Progress, Written};
use crate::metrics::code::{CodeMetrics, Function, RankCode};
use crate::plain_text::printable;

/// Above functions whose callers are not all known.
const CUT: &str = "[callers not known]";

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
    let stretches = stretches(content);
    let analysis = Analysis::new(content.run, content.timeline);
    let code = CodeMetrics::new(&analysis, &stretches, false);
    let code = code.ok_or_else(|| {
        ExportError::Format("no code was sampled there: record it with --sample".into())
    })?;
    let mut file = BufWriter::new(File::create(path).map_err(ExportError::io(path))?);
    for rank in &code.ranks {
        for (stack, count) in folded(&code, rank) {
            writeln!(file, "rank {};{stack} {count}", rank.rank).map_err(ExportError::io(path))?;
        }
    }
    file.flush().map_err(ExportError::io(path))?;
    Ok(Written::default())
}

/// The chosen part of each rank.
fn stretches(content: &Content) -> Vec<Option<Vec<(u64, u64)>>> {
    let window = content.choice.window_s.as_ref();
    let ranks = content.run.ranks.iter().zip(&content.timeline.ranks);
    let stretch = ranks.map(|(trace, time)| {
        content.exported_rank(trace.rank)?;
        let (from, to) = window.map_or((0, u64::MAX), |window| {
            (time.clock.ticks_at(window.start), time.clock.ticks_at(window.end))
        });
        Some(vec![(time.begin_ticks.max(from), time.end_ticks.min(to))])
    });
    stretch.collect()
}

/// The stacks of a rank and their samples, each once.
fn folded(code: &CodeMetrics, rank: &RankCode) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for stack in rank.counts() {
        let mut names: Vec<String> = rank
            .stacks
            .of(stack.number)
            .map(|(of, _)| name(&code.functions[of as usize]))
            .collect();
        names.extend((!stack.is_complete).then(|| CUT.to_owned()));
        names.reverse();
        *all.entry(names.join(";")).or_default() += stack.count;
    }
    all
}

/// The name of a function; of one without, the file that contains it.
fn name(of: &Function) -> String {
    let module = of.module.rsplit('/').next().unwrap_or_default();
    let name = match (&of.name, module) {
        (Some(name), _) => printable(name),
        (None, "") => "[unknown]".to_owned(),
        (None, module) => printable(&format!("[{module}]")),
    };
    name.replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::content::Choice;
    use crate::synthetic_code::{Library, sampled};
    use crate::synthetic_trace::RunDirectory;
    use crate::timeline::GlobalTimeline;
    use crate::timeline::communicators::CommunicatorTable;
    use crate::trace::Run;

    struct Silent;

    impl Progress for Silent {
        fn stage(&self, _: &str, _: Option<u64>) {}
        fn advance(&self, _: u64) {}
    }

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
}
