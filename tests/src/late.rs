//! Runs whose rank 0 sleeps at a place, for tests of replays.

use std::process::{Command, Stdio};

use crate::kernels::command;
use crate::{Job, Mpi, Recorded, victim};

/// Recordings that are made until one can be replayed.
const MOST_RECORDINGS: u32 = 6;

/// `comes_late` on so many ranks with such a delay. A machine that is busy with other tests may hold a rank up in a
/// way that no replay knows, and the run is refused: then it is recorded again.
pub fn late(mpi: Mpi, ranks: u32, delay: &str) -> Recorded {
    for number in 1.. {
        let recorded =
            Job::new(mpi, &victim(mpi, "comes_late")).ranks(ranks).argument(delay).record();
        recorded.expect_code(0);
        let mut whatif = Command::new(command());
        whatif.arg("whatif").arg(recorded.directory()).stdin(Stdio::null());
        let output = whatif.output().expect("the command starts");
        if output.status.success() || number == MOST_RECORDINGS {
            return recorded;
        }
    }
    unreachable!("the last recording is returned");
}
