//! Relates this rank's counter to those of the other ranks.
//!
//! | module | what it is for |
//! |---|---|
//! | `tree` | who exchanges clocks with whom |
//! | `exchange` | the exchanges and the clock offsets that follow from them |
//! | `schedule` | exchanges during the run |

pub mod exchange;
pub mod schedule;
pub mod tree;
