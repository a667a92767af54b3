//! Records runs in which rank 0 sleeps, for tests of replays.

use std::process::{Command, Stdio};

use crate::kernels::command;
use crate::{Job, Mpi, Recorded, victim};

/// Attempts to make a recording that can be replayed.
const MAX_ATTEMPTS: u32 = 6;

/// Records `comes_late` with this number of ranks and this delay. A busy machine may delay a rank
/// in a way that a replay cannot reproduce, and the run is refused; then it is recorded again.
pub fn record_delayed(mpi: Mpi, ranks: u32, delay: &str) -> Recorded {
    for number in 1.. {
        let recorded =
            Job::new(mpi, &victim(mpi, "comes_late")).ranks(ranks).argument(delay).record();
        recorded.expect_code(0);
        let mut whatif = Command::new(command());
        whatif.arg("whatif").arg(recorded.directory()).stdin(Stdio::null());
        let output = whatif.output().expect("the command starts");
        if output.status.success() || number == MAX_ATTEMPTS {
            return recorded;
        }
    }
    unreachable!("the last recording is returned");
}
