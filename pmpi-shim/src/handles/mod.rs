//! What the program holds, by its handles.
//!
//! | module | what it is for |
//! |---|---|
//! | `cache` | what a thread remembers by handle, and when it must forget |
//! | `communicators` | identity of communicators, windows and files |
//! | `datatypes` | sizes of datatypes |
//! | `lifetimes` | what a call makes, names or frees |

pub mod cache;
pub mod communicators;
pub mod datatypes;
pub mod lifetimes;
