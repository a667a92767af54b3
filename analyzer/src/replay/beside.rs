//! Parts of the computation of a run that balanced threads or faster files would take off.

/// Parts of the computation before operations, by their numbers, ascending; seconds.
pub(super) type Parts = Vec<(u32, f64)>;

/// Parts of computation that other threads or files would shorten.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// What the threads that work longest work longer than the mean of their teams.
    pub(super) threads: Parts,
    /// Inside calls on files outside MPI.
    pub(super) files: Parts,
    /// Parallel regions that call MPI inside, which stay as they are.
    pub with_mpi: u64,
}

impl Beside {
    /// Whether parallel regions could be shortened.
    pub fn has_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Whether there are calls on files.
    pub fn has_files(&self) -> bool {
        !self.files.is_empty()
    }
}

/// Takes a share of parts off the computation before operations; adds to it if the share is negative.
pub(super) fn shorten(own: &mut [f64], parts: &Parts, share: f64) {
    for (op, seconds) in parts {
        let own = &mut own[*op as usize];
        *own -= (seconds * share).min(*own);
    }
}
