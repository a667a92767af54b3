//! Events between calls: the recorder's own time, and the performance counters read in it.

/// Why the recorder spent time outside the time stamps of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ToolReason {
    /// Opening the trace and exchanging clocks after MPI_Init.
    Start = 1,
    /// Granting and mapping the next chunk.
    Window = 2,
    /// Exchanging clocks and closing the trace before MPI_Finalize.
    Finish = 3,
    /// Recording what a call made: a communicator, a window, a file.
    Definitions = 4,
    /// Recording is paused, because the program called MPI_Pcontrol with level 0.
    Paused = 5,
    /// Agreeing on a clock exchange during the run, and making it.
    Clock = 6,
    /// Reading performance counters at a region's begin or end. The slot holds a reading,
    /// [`CounterSlot`].
    Counters = 7,
    /// Looking up the function behind an interposed one, at its first call.
    Entries = 8,
    /// In imported runs: according to the other tool, the thread was neither in MPI nor computing
    /// (I/O, fork and join, writing the tool's buffers).
    NotComputing = 9,
    /// Finding the call path of the call before it. `detail` is the path's number
    /// ([`crate::header::Definition::Path`]).
    Path = 10,
    /// Reading what the process has used so far ([`crate::header::UsageReading`]).
    Usage = 11,
    /// No thread: the thread whose record this is had ended, and the next one had not begun.
    BetweenThreads = 12,
    /// The end of an OpenMP parallel region that the thread began; without length. `detail` is the number
    /// of the thread that worked longest, the communicator's field the number of threads, and the rest is
    /// in continuations ([`crate::slot::Team`]).
    Team = 13,
    /// Calls on a file (POSIX or streams of the C library), one after the other, of one kind at one place; without
    /// length, at the begin of the first one, or, if they were inside a call of MPI, behind it. `detail` is the
    /// file's number ([`crate::header::Definition::File`]), the communicator's field
    /// [`crate::file_calls::FileCallKind`] and its flags, and the rest is in a continuation
    /// ([`crate::file_calls::FileCalls`]).
    FileCalls = 14,
}

impl ToolReason {
    /// All reasons in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Window,
        Self::Finish,
        Self::Definitions,
        Self::Paused,
        Self::Clock,
        Self::Counters,
        Self::Entries,
        Self::NotComputing,
        Self::Path,
        Self::Usage,
        Self::BetweenThreads,
        Self::Team,
        Self::FileCalls,
    ];

    /// The reason with a stored number, if there is one.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as i32 == number)
    }
}

/// A performance counter's reading in a slot of the recorder's time with reason
/// [`ToolReason::Counters`]: `detail` and `request` are the low and high halves of the value;
/// `bytes` holds the number and, from bit 16 on, the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterSlot {
    /// Number of the counter ([`crate::header::Counter`]), below 65,536.
    pub number: u32,
    /// Its value since it was opened.
    pub value: u64,
    /// [`crate::counters::SCALED`] …
    pub state: u32,
}

impl CounterSlot {
    /// The slot's fields from `peer` on, as for [`crate::slot::Slot::payload`].
    #[inline]
    pub fn payload(self) -> [u64; 2] {
        let reason = ToolReason::Counters as u32;
        let number = self.number & 0xffff | self.state << 16;
        [self.value << 32 | u64::from(reason), self.value >> 32 << 32 | u64::from(number)]
    }

    /// The reading in the two words that begin with `peer`, if they hold one.
    pub fn from_payload(payload: [u64; 2]) -> Option<Self> {
        let [reason_and_low, bytes_and_high] = payload;
        (reason_and_low as u32 as i32 == ToolReason::Counters as i32).then_some(Self {
            number: bytes_and_high as u32 & 0xffff,
            value: reason_and_low >> 32 | bytes_and_high >> 32 << 32,
            state: bytes_and_high as u32 >> 16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_reading_keeps_its_parts() {
        let reading = CounterSlot { number: 7, value: 0x89ab_cdef_ffff_fffe, state: 1 };
        let [first, second] = reading.payload();
        assert_eq!(CounterSlot::from_payload([first, second]), Some(reading));
        let of_clock = first & !0xffff_ffff | ToolReason::Clock as u64;
        assert_eq!(CounterSlot::from_payload([of_clock, second]), None);
    }
}
