//! Numbers of processes, threads and tracks.

/// Number of a process; process IDs of the system may be the same on two hosts.
pub(super) fn pid(place: usize) -> u64 {
    place as u64 + 1
}

pub(super) fn tid(place: usize, thread: u32) -> u64 {
    match thread {
        0 => pid(place),
        _ => u64::from(thread) << 20 | pid(place),
    }
}

pub(super) fn track_of(place: usize, thread: Option<u32>) -> u64 {
    (place as u64 + 1) << 32 | thread.map_or(0, |thread| u64::from(thread) + 1)
}
