//! Keeps errors of the recorder's own calls from the program's error handlers.

use crate::mpi::library::Entry;

/// Runs `work` with MPI_ERRORS_RETURN on a communicator, then restores the program's error handler. `None`,
/// without running it, if MPI does not tell that handler.
pub fn with_errors_returned<R>(
    communicator: usize,
    errors_return: usize,
    work: impl FnOnce() -> R,
) -> Option<R> {
    let mut handler = 0usize;
    let set = Entry::of(c"PMPI_Comm_set_errhandler")?;
    let free = Entry::of(c"PMPI_Errhandler_free")?;
    // SAFETY: the arguments are those that the standard defines. Handles of either width are
    // written into the low bytes of zeroed words.
    unsafe {
        let get = Entry::of(c"PMPI_Comm_get_errhandler")?;
        if !get.call([communicator, &raw mut handler as usize]) {
            return None;
        }
        set.call([communicator, errors_return]);
    }
    let result = work();
    // SAFETY: the arguments that the standard defines; `handler` came from MPI.
    unsafe {
        set.call([communicator, handler]);
        free.call([&raw mut handler as usize]);
    }
    Some(result)
}
