//! Records runs whose delays are known, until the machine did not disturb one of them.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::kernels::command;
use crate::{Job, Mpi, Recorded, victim};

/// Time that a busy machine gets to calm down.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after the first disturbed recording; each further one is longer by as much.
const PAUSE: Duration = Duration::from_millis(300);

/// Records again and again until a recording is fit. On a machine that stays busy, gives the last one.
pub fn record_until(record: impl Fn() -> Recorded, is_fit: impl Fn(&Recorded) -> bool) -> Recorded {
    let begin = Instant::now();
    for pauses in 1.. {
        let recorded = record();
        if is_fit(&recorded) || begin.elapsed() > PATIENCE {
            return recorded;
        }
        thread::sleep(PAUSE * pauses);
    }
    unreachable!("the last recording is returned");
}

/// Records `comes_late` with this number of ranks and this delay. A busy machine may delay a rank
/// in a way that a replay cannot reproduce, and the run is refused; then it is recorded again.
pub fn record_delayed(mpi: Mpi, ranks: u32, delay: &str) -> Recorded {
    let record = || {
        let job = Job::new(mpi, &victim(mpi, "comes_late")).ranks(ranks).argument(delay);
        let recorded = job.record();
        recorded.expect_code(0);
        recorded
    };
    record_until(record, |recorded| {
        let mut whatif = Command::new(command());
        whatif.arg("whatif").arg(recorded.directory()).stdin(Stdio::null());
        whatif.output().expect("the command starts").status.success()
    })
}
