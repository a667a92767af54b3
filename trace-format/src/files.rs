//! Where the files of a run's ranks are.

use std::path::PathBuf;

/// Most ranks that share one subdirectory.
pub const RANKS_PER_DIRECTORY: u32 = 1000;

/// Path of a rank's file below the run directory.
///
/// At most [`RANKS_PER_DIRECTORY`] ranks share a directory; ranks of spawned worlds (`world` > 0)
/// carry the world's number in the name.
pub fn rank_file_path(world: u32, rank: u32) -> PathBuf {
    let directory = format!("ranks-{:03}", rank / RANKS_PER_DIRECTORY);
    let name = match world {
        0 => format!("rank-{rank:06}.gmc"),
        _ => format!("world-{world:03}-rank-{rank:06}.gmc"),
    };
    PathBuf::from(directory).join(name)
}

/// Bytes that an event takes in a thread's window.
pub const WINDOW_EVENT_BYTES: usize = crate::layout::SLOT_BYTES;

/// Extension of the file that stands for a rank's while that lies in a staging directory: text,
/// `HOST:PATH` of the data.
pub const STAGED_EXTENSION: &str = "staged";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_never_holds_more_than_a_thousand_ranks() {
        assert_eq!(rank_file_path(0, 999).to_str(), Some("ranks-000/rank-000999.gmc"));
        assert_eq!(rank_file_path(0, 1000).to_str(), Some("ranks-001/rank-001000.gmc"));
        assert_eq!(rank_file_path(2, 1).to_str(), Some("ranks-000/world-002-rank-000001.gmc"));
    }
}
