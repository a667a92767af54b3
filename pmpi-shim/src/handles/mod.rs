//! Tracks the MPI objects that the program holds, by their handles.
//!
//! | module | what it is for |
//! |---|---|
//! | `cache` | invalidates what threads remember by handle |
//! | `communicators` | identity of communicators, windows and files |
//! | `datatypes` | sizes of datatypes |
//! | `groups` | groups of ranks in one-sided communication |
//! | `lifetimes` | objects that calls make, name or free |
//! | `topology` | neighbours in a communicator's topology |

pub mod cache;
pub mod communicators;
pub mod datatypes;
pub mod groups;
pub mod lifetimes;
pub mod topology;
