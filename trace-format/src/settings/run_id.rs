//! The number shared by the files of one run.
//!
//! Its first half identifies the command that recorded the run, if known (`gammachi run` puts its
//! own number into `GAMMACHI_RUN_ID`): one command may start several jobs and must be able to
//! recognise them among others. The second half distinguishes the jobs.

/// Size of a run's id in bytes.
pub const RUN_ID_BYTES: usize = 16;
/// Size in bytes of the half that identifies the command.
pub const COMMAND_BYTES: usize = 8;

/// A run's id; zeros if unknown.
pub type RunId = [u8; RUN_ID_BYTES];

/// First half of the ids of all runs recorded by one command. `command` is the value of
/// `GAMMACHI_RUN_ID`.
pub fn of_command(command: &[u8]) -> [u8; COMMAND_BYTES] {
    digest(0xcbf2_9ce4_8422_2325, command)
}

/// Hashes bytes (FNV-1a with a given start value).
pub fn digest(start: u64, bytes: &[u8]) -> [u8; COMMAND_BYTES] {
    let hash = bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash.to_le_bytes()
}
