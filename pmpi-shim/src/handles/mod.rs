//! Tracks the MPI objects that the program holds, by their handles.
//!
//! | module | what it is for |
//! |---|---|
//! | `cache` | invalidates what threads remember by handle |
//! | `communicators` | identity of communicators, windows and files |
//! | `datatypes` | sizes of datatypes |
//! | `lifetimes` | objects that calls make, name or free |

pub mod cache;
pub mod communicators;
pub mod datatypes;
pub mod lifetimes;
