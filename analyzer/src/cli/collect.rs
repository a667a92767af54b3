//! `gammachi collect`: joins the parts of a run in a run directory.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::{CommandError, Context, eprint_message};
use crate::plain_text::printable;
use crate::present::{number_list, range_list};
use crate::shell_word::shell_word;
use crate::trace::collect::{Found, FoundFile, RunKey, collect as join};
use crate::trace::gathered_symbols::Gathered;
use crate::trace::{Run, SYMBOLS_JSON};

/// Joins the parts of a run that each host kept for itself.
///
/// Hosts without a shared directory each write their ranks into a directory of the same name on
/// their own disks; copy those to one machine (scp -r) and name them here. The same works for a
/// staging directory ($GAMMACHI_STAGE) that still holds ranks of a killed job. Only files of the
/// same run are joined, by the id that every rank file carries. Each file is copied, read back and
/// compared before it gets its name. Missing ranks are listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    gammachi collect app.gammachi from-n001/app.gammachi from-n002/app.gammachi\n  \
    gammachi collect app.gammachi /local/scratch/stage --remove\n  \
    gammachi collect app.gammachi --symbols\n\nThe exit code is 0 even if \
    ranks are missing: they are named here and in every report of the run.")]
pub struct CollectArguments {
    /// Run directory to fill; it may already contain some of the ranks
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Directories with rank files, searched five levels deep
    #[arg(required_unless_present = "symbols", value_name = "PART")]
    pub parts: Vec<PathBuf>,

    /// Take the names of all functions and lines along that the run's samples and calls need: it can
    /// then be read where program and libraries are not, or were built anew. With debugging
    /// information from separate files and debuginfod's cache; nothing is downloaded
    #[arg(long)]
    pub symbols: bool,

    /// Which run, if the parts contain several: the first digits of its id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Join files without a run id (zeros) if their number of ranks and program agree
    #[arg(long)]
    pub without_id: bool,

    /// Remove the files of the parts once their copies are complete
    #[arg(long)]
    pub remove: bool,
}

pub fn collect(arguments: &CollectArguments) -> Result<(), CommandError> {
    if !arguments.parts.is_empty() {
        join_parts(arguments)?;
    }
    if arguments.symbols {
        keep_symbols(&arguments.run)?;
    }
    Ok(())
}

/// Writes the names of functions into the run directory.
fn keep_symbols(directory: &Path) -> Result<(), CommandError> {
    let run = Run::open(directory)?;
    let gathered = run.keep_symbols().context(CommandError::Output, directory.display())?;
    run.check_readable()?;
    for (path, why) in &gathered.unusable {
        eprint_message(&format!("{}: {why}", printable(path)));
    }
    let Gathered { addresses, named, .. } = gathered;
    let text = match addresses {
        0 => "no addresses of code (record with --sample, or --level 2)".to_owned(),
        _ => {
            format!("names of {named} of {addresses} places in the code written to {SYMBOLS_JSON}")
        }
    };
    eprint_message(&format!("{}: {text}", directory.display()));
    Ok(())
}

fn join_parts(arguments: &CollectArguments) -> Result<(), CommandError> {
    let mut places = arguments.parts.clone();
    if arguments.run.is_dir() {
        places.push(arguments.run.clone());
    }
    let found = Found::in_directories(&places)?;
    for why in &found.unreadable {
        eprint_message(&format!("left out: {why}"));
    }
    let key = choose(arguments, &found)?;
    let shown = arguments.run.display();
    let collected = join(&arguments.run, &key, &found, |_| {})?;
    let foreign = found.files.iter().filter(|file| file.key != key).count();
    if foreign > 0 {
        eprint_message(&format!("{} of other runs left out", files(foreign)));
    }
    if arguments.remove {
        remove_sources(arguments, &key, &found)?;
    }
    let world = key.world_size;
    let missing = collected.missing.iter();
    let missing: u32 = missing.map(|range| range.end() - range.start() + 1).sum();
    let there = world.saturating_sub(missing);
    let mut text =
        format!("{shown}: {there} of {world} ranks; {} copied", files(collected.copied.len()));
    if collected.already > 0 {
        text.push_str(&format!(", {} there already", collected.already));
    }
    if !collected.missing.is_empty() {
        let ranges = collected.missing.iter().map(|range| (*range.start(), *range.end()));
        text.push_str(&format!("; missing: rank {}", range_list(ranges)));
    }
    if !collected.unfinished.is_empty() {
        let list = number_list(collected.unfinished.clone());
        text.push_str(&format!(
            "; not ended by MPI_Finalize: rank {list} (if the program is still running, collect again when it has ended)"
        ));
    }
    let word = shell_word(&arguments.run.to_string_lossy());
    eprint_message(&format!("{text}; see: gammachi report {word}"));
    Ok(())
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

fn choose(arguments: &CollectArguments, found: &Found) -> Result<RunKey, CommandError> {
    let runs = found.runs();
    let wanted = arguments.id.as_deref().unwrap_or("").to_lowercase();
    let matching: Vec<_> = runs.iter().filter(|(key, _)| key.id.starts_with(&wanted)).collect();
    let (key, group) = match matching[..] {
        [(key, group)] => (*key, group),
        [] if runs.is_empty() => {
            let places: Vec<String> =
                arguments.parts.iter().map(|part| part.display().to_string()).collect();
            return Err(CommandError::input(format!(
                "no rank file (rank-000000.gmc …) in {}; name the directories written by the hosts",
                places.join(", ")
            )));
        }
        [] => {
            return Err(CommandError::usage(format!(
                "--id {wanted}: no such run; there are\n{}",
                listing(&runs)
            )));
        }
        _ => {
            return Err(CommandError::usage(format!(
                "the parts hold several runs; choose one by --id\n{}",
                listing(&runs)
            )));
        }
    };
    if !key.is_known() {
        let programs: std::collections::BTreeSet<&str> =
            group.iter().map(|file| file.program.as_str()).collect();
        if !arguments.without_id {
            return Err(CommandError::input(
                "the files carry no run id (their ranks could not agree on one), so they may be of \
                 different runs; if you know that they are not, give --without-id",
            ));
        }
        let mut places: Vec<(u32, u32)> = group.iter().map(|file| file.world_and_rank).collect();
        places.sort_unstable();
        if programs.len() > 1 || places.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(CommandError::input(format!(
                "the files carry no run id and cannot be of one run: {}",
                if programs.len() > 1 { "programs differ" } else { "a rank occurs twice" }
            )));
        }
    }
    Ok(key.clone())
}

fn listing(runs: &std::collections::BTreeMap<&RunKey, Vec<&FoundFile>>) -> String {
    let line = |(key, files): (&&RunKey, &Vec<&FoundFile>)| {
        let program = printable(files.first().map_or("", |file| file.program.as_str()));
        format!("  {}  {} of {} ranks  {program}", key.id, files.len(), key.world_size)
    };
    runs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn remove_sources(
    arguments: &CollectArguments,
    key: &RunKey,
    found: &Found,
) -> Result<(), CommandError> {
    let target =
        fs::canonicalize(&arguments.run).context(CommandError::Output, arguments.run.display())?;
    for file in found.files.iter().filter(|file| file.key == *key) {
        let is_target = fs::canonicalize(&file.path).is_ok_and(|path| path.starts_with(&target));
        if !is_target {
            fs::remove_file(&file.path).context(
                CommandError::Output,
                format_args!("cannot remove {}", file.path.display()),
            )?;
        }
    }
    Ok(())
}
