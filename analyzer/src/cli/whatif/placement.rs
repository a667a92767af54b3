//! Reads `--map` and `--hosts`: other placements of the ranks.

use std::path::Path;

use crate::cli::error::CommandError;
use crate::replay::{Mapping, WhatIf};

use super::arguments::WhatIfArguments;

/// The requested mapping.
///
/// # Errors
/// A layout without hosts, more hosts than ranks, or a file that does not name a host for each
/// rank.
pub(super) fn mapping(
    arguments: &WhatIfArguments,
    what_if: &WhatIf,
) -> Result<Option<Mapping>, CommandError> {
    let Some(layout) = &arguments.map else { return Ok(None) };
    let ranks = what_if.graph.run.ranks.len() as u32;
    let hosts = || {
        let asked = format!("--map {layout}");
        match arguments.hosts {
            None => {
                Err(CommandError::usage(format!("{asked}: give the number of hosts with --hosts")))
            }
            Some(hosts) if hosts > ranks => Err(CommandError::usage(format!(
                "{asked} --hosts {hosts}: the run has {ranks} ranks, fewer than hosts"
            ))),
            Some(hosts) => Ok(hosts),
        }
    };
    match layout.as_str() {
        "block" => Ok(Some(Mapping::block(ranks, hosts()?))),
        "cyclic" => Ok(Some(Mapping::cyclic(ranks, hosts()?))),
        file if arguments.hosts.is_some() => Err(CommandError::usage(format!(
            "--map {file}: a file names the hosts itself; leave out --hosts"
        ))),
        file => from_file(Path::new(file), ranks).map(Some).map_err(CommandError::Usage),
    }
}

/// Reads one host name per line, rank 0 first. Empty lines and lines that begin with # are ignored.
fn from_file(path: &Path, ranks: u32) -> Result<Mapping, String> {
    let wrong = |what: String| format!("--map {}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| {
        wrong(format!("neither block nor cyclic nor a file that can be read: {error}"))
    })?;
    let mut names = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        match line.split_whitespace().count() {
            0 => {}
            _ if line.starts_with('#') => {}
            1 => names.push(line),
            _ => {
                let number = number + 1;
                return Err(wrong(format!(
                    "line {number} has several words; give the host of one rank per line"
                )));
            }
        }
    }
    if names.len() != ranks as usize {
        return Err(wrong(format!(
            "names {} hosts, one per line; the run has {ranks} ranks",
            names.len()
        )));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Mapping::named(name, &names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_host_of_each_rank_from_file() {
        let path = std::env::temp_dir().join(format!("map-{}", std::process::id()));
        let read = |text: &str, ranks: u32| {
            std::fs::write(&path, text).unwrap();
            from_file(&path, ranks)
        };
        let mapping = read("# ours\nn1\n\n n2 \nn1\n", 3).unwrap();
        assert_eq!([0, 1, 2].map(|rank| mapping.host(rank)), [0, 1, 0]);
        assert!(
            read("n1\nn2\n", 3).unwrap_err().contains("names 2 hosts, one per line; the run has 3")
        );
        assert!(read("n1 slots=2\n", 2).unwrap_err().contains("line 1 has several words"));
        std::fs::remove_file(&path).unwrap();
        assert!(from_file(&path, 2).unwrap_err().contains("neither block nor cyclic"));
    }
}
