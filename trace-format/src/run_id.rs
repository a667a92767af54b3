//! The number that the files of one run have in common.
//!
//! Its first half says which command the run was recorded by, where that is known (`gammachi run` puts a number
//! of its own into `GAMMACHI_RUN_ID`): one command may start several jobs, and must know them again among
//! others. The second half tells the jobs apart.

/// Bytes of a run's id.
pub const RUN_ID_BYTES: usize = 16;
/// Bytes of the half that says the command.
pub const COMMAND_BYTES: usize = 8;

/// A run's id; zeros: not known.
pub type RunId = [u8; RUN_ID_BYTES];

/// First half of the ids of all runs that one command records; `command` is the value of `GAMMACHI_RUN_ID`.
pub fn of_command(command: &[u8]) -> [u8; COMMAND_BYTES] {
    digest(0xcbf2_9ce4_8422_2325, command)
}

/// A number made of bytes (FNV-1a with a start of one's own).
pub fn digest(start: u64, bytes: &[u8]) -> [u8; COMMAND_BYTES] {
    let hash = bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash.to_le_bytes()
}
