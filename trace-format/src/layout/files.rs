//! Locations of the files of a run's ranks.

use std::path::PathBuf;

/// Maximum number of ranks that share a subdirectory.
pub const RANKS_PER_DIRECTORY: u32 = 1000;

/// Path of a rank's file below the run directory.
///
/// At most [`RANKS_PER_DIRECTORY`] ranks share a directory; ranks of spawned worlds (`world` > 0)
/// carry the world's number in their names.
pub fn rank_file_path(world: u32, rank: u32) -> PathBuf {
    let directory = format!("ranks-{:03}", rank / RANKS_PER_DIRECTORY);
    let name = match world {
        0 => format!("rank-{rank:06}.gmc"),
        _ => format!("world-{world:03}-rank-{rank:06}.gmc"),
    };
    PathBuf::from(directory).join(name)
}

/// Size of an event in a thread's window in bytes.
pub const WINDOW_EVENT_BYTES: usize = crate::layout::SLOT_BYTES;

/// Extension of the file that stands in for a rank's file while the latter is in a staging
/// directory. It contains the text `HOST:PATH` with the location of the data.
pub const STAGED_EXTENSION: &str = "staged";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_at_most_a_thousand_ranks_in_a_directory() {
        assert_eq!(rank_file_path(0, 999).to_str(), Some("ranks-000/rank-000999.gmc"));
        assert_eq!(rank_file_path(0, 1000).to_str(), Some("ranks-001/rank-001000.gmc"));
        assert_eq!(rank_file_path(2, 1).to_str(), Some("ranks-000/world-002-rank-000001.gmc"));
    }
}
