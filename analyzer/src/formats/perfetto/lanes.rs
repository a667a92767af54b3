//! Writes parallel regions of OpenMP and calls on files: lanes below the thread that began or made them.
//!
//! Calls on several files in turn are records that overlap, and Perfetto wants slices of a track to nest, so that each
//! gets the first lane that is free; it draws tracks of one name as one.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use crate::export::beside::{Beside, FileCalls, Record, Team};
use crate::export::content::Content;
use crate::string_table::StringTable;

use super::encoded::{
    Encoded, INTERNED_DATA, NEEDS_STATE, SEQUENCE_FLAGS, STATE_CLEARED, TIMESTAMP,
    TRACK_DESCRIPTOR, TRACK_EVENT,
};
use super::tracks::{lane_of, track_of};

/// The sequence of these packets.
pub(super) const SEQUENCE: u64 = 3;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// Names of annotations, interned under their positions from 1 on.
const ANNOTATIONS: [&str; 11] = [
    "threads",
    "slowest_thread",
    "work_ns",
    "longest_ns",
    "barriers_ns",
    "locks_ns",
    "tasks_ns",
    "ends_ns",
    "calls",
    "bytes",
    "inside_ns",
];

/// A slice.
struct Slice {
    /// Position of its rank, its thread and lane.
    at: (usize, u32, usize),
    begin_ns: i64,
    end_ns: i64,
    name: String,
    file: Option<String>,
    /// Values of annotations by their positions.
    values: Vec<(u64, i64)>,
}

struct Lanes<'f> {
    file: &'f mut dyn Write,
    first_ns: i64,
    names: StringTable,
    tracks: HashSet<u64>,
    /// By rank and thread, when each lane of calls on files is free.
    free: HashMap<(usize, u32), Vec<i64>>,
}

impl Lanes<'_> {
    fn packet(&mut self, fill: impl FnOnce(&mut Encoded)) -> io::Result<()> {
        self.file.write_all(&Encoded::packet(SEQUENCE, fill).0)
    }

    fn lane(&mut self, calls: &FileCalls) -> usize {
        let free = self.free.entry((calls.rank, calls.thread)).or_default();
        let lane = free.iter().position(|free| *free <= calls.begin_ns).unwrap_or(free.len());
        if lane == free.len() {
            free.push(i64::MIN);
        }
        free[lane] = calls.end_ns;
        lane + 1
    }

    fn track(&mut self, (place, thread, lane): (usize, u32, usize)) -> io::Result<u64> {
        let number = lane_of(place, thread, lane);
        if self.tracks.insert(number) {
            let what = if lane == 0 { "parallel regions" } else { "files" };
            let name = format!("{what} of thread {thread}");
            self.packet(|packet| {
                packet.message(TRACK_DESCRIPTOR, |track| {
                    track.number(1, number).text(2, &name);
                    track.number(5, track_of(place, Some(thread)));
                });
            })?;
        }
        Ok(number)
    }

    fn slice(&mut self, slice: &Slice) -> io::Result<()> {
        let track = self.track(slice.at)?;
        let (name, is_new) = self.names.insert(&slice.name);
        let iid = u64::from(name) + 1;
        let time = |at_ns: i64, first_ns: i64| (at_ns - first_ns).max(0) as u64;
        let (begin, end) = (time(slice.begin_ns, self.first_ns), time(slice.end_ns, self.first_ns));
        self.packet(|packet| {
            packet.number(TIMESTAMP, begin).number(SEQUENCE_FLAGS, NEEDS_STATE);
            if is_new {
                packet.message(INTERNED_DATA, |interned| {
                    interned.message(2, |entry| {
                        entry.number(1, iid).text(2, &slice.name);
                    });
                });
            }
            packet.message(TRACK_EVENT, |event| {
                event.number(9, SLICE_BEGIN).number(11, track).number(10, iid);
                for (place, value) in &slice.values {
                    event.message(4, |annotation| {
                        annotation.number(1, *place).signed(4, *value);
                    });
                }
                if let Some(file) = &slice.file {
                    event.message(4, |annotation| {
                        annotation.text(10, "file").text(6, file);
                    });
                }
            });
        })?;
        self.packet(|packet| {
            packet.number(TIMESTAMP, end).number(SEQUENCE_FLAGS, NEEDS_STATE);
            packet.message(TRACK_EVENT, |event| {
                event.number(9, SLICE_END).number(11, track);
            });
        })
    }
}

fn team_slice(beside: &Beside, team: &Team) -> Slice {
    let slowest = team.slowest.map(|slowest| (2, slowest.into()));
    let others = [
        (1, team.threads.into()),
        (3, team.work_ns),
        (4, team.longest_ns),
        (5, team.barriers_ns),
        (6, team.locks_ns),
        (7, team.tasks_ns),
        (8, team.ends_ns),
    ];
    Slice {
        at: (team.rank, team.thread, 0),
        begin_ns: team.begin_ns,
        end_ns: team.end_ns,
        name: beside.team_title(team.place),
        file: None,
        values: others.into_iter().chain(slowest).collect(),
    }
}

fn file_slice(beside: &Beside, calls: &FileCalls, lane: usize) -> Slice {
    Slice {
        at: (calls.rank, calls.thread, lane),
        begin_ns: calls.begin_ns,
        end_ns: calls.end_ns,
        name: Beside::calls_title(calls),
        file: Some(beside.files.title(calls.file)),
        values: vec![(9, calls.calls as i64), (10, calls.bytes as i64), (11, calls.inside_ns)],
    }
}

/// Writes the lanes of all ranks.
pub(super) fn write_lanes(content: &Content, file: &mut dyn Write) -> io::Result<()> {
    let Some(mut beside) = Beside::new(content) else { return Ok(()) };
    let mut lanes = Lanes {
        file,
        first_ns: content.head.first_ns,
        names: StringTable::default(),
        tracks: HashSet::new(),
        free: HashMap::new(),
    };
    lanes.packet(|packet| {
        packet.number(SEQUENCE_FLAGS, STATE_CLEARED).message(INTERNED_DATA, |interned| {
            for (name, iid) in ANNOTATIONS.iter().zip(1..) {
                interned.message(3, |entry| {
                    entry.number(1, iid).text(2, name);
                });
            }
        });
    })?;
    beside.of_ranks(0..content.head.ranks.len(), |beside, record| {
        let slice = match record {
            Record::Team(team) => team_slice(beside, &team),
            Record::FileCalls(calls) => {
                let lane = lanes.lane(&calls);
                file_slice(beside, &calls, lane)
            }
        };
        lanes.slice(&slice)
    })
}
