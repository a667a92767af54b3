//! Says that a run is a snapshot.

use crate::trace::snapshot::Reason;

/// When and why it was taken.
pub(super) fn sentence(reason: Reason, rank: Option<u32>, utc: Option<&str>) -> String {
    let at = utc.map_or_else(String::new, |utc| format!(", taken at {utc}"));
    format!("this is a snapshot of a running job{at}: {}", reason_text(reason, rank))
}

/// Why a snapshot was taken.
fn reason_text(reason: Reason, rank: Option<u32>) -> String {
    let rank = rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    match reason {
        Reason::Dead => format!("{rank} had died before MPI_Finalize"),
        Reason::Stopped => format!("{rank} was stopped by a signal"),
        Reason::Deadlock => format!("{rank} and others waited for each other"),
        Reason::Outside => format!("{rank} was outside MPI while all others waited"),
        Reason::NoProgress => {
            format!("no rank had begun or ended a call for long; in the end all waited for {rank}")
        }
        Reason::Exit => "the job had ended before all ranks returned from MPI_Finalize".into(),
        Reason::Signal => "gammachi watch had received SIGUSR1".into(),
        Reason::Slow => format!("an iteration had taken far longer than usual; {rank} delayed it"),
        Reason::Memory => format!("memory was about to be used up; {rank} grew most"),
        Reason::Limit => "the batch job was about to end".into(),
        Reason::Vanished => {
            format!("no rank moved, and the host of {rank} had not been heard of for long")
        }
        Reason::Asked => "it was asked for (gammachi watch --now)".into(),
    }
}
