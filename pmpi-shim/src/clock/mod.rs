//! This rank's counter against the others'.
//!
//! | module | what it is for |
//! |---|---|
//! | `tree` | who exchanges clocks with whom |
//! | `exchange` | the exchanges, and what they say |
//! | `schedule` | exchanges during the run |

pub mod exchange;
pub mod schedule;
pub mod tree;
