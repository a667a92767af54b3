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

/// Track of the parallel regions (lane 0) or of calls on files (lanes from 1 on) of a thread.
pub(super) fn lane_of(place: usize, thread: u32, lane: usize) -> u64 {
    const LANES: u64 = 16;
    let lane = u64::from(thread) * LANES + (lane as u64).min(LANES - 1);
    (place as u64 + 1) << 32 | 1 << 31 | lane
}
