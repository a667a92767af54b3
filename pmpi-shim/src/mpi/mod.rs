//! The loaded MPI: identifying it, calling it, and agreeing on who takes part.
//!
//! | module | what it is for |
//! |---|---|
//! | `library` | which MPI is loaded, and its constants |
//! | `abi` | layout of statuses, and constants that wrappers need |
//! | `plan` | the meaning of a procedure's arguments; numbers of functions |
//! | `invoke` | calling C functions with machine words |
//! | `real_entry` | finding the functions behind the wrappers |
//! | `callers` | what a name means to each caller |
//! | `absent` | replacements for functions that no library has |
//! | `weak_references` | makes procedures that the loaded MPI lacks look absent again |
//! | `messages` | the recorder's own messages, with deadlines |
//! | `agreement` | which ranks record together |

pub mod abi;
pub mod absent;
pub mod agreement;
pub mod callers;
pub mod invoke;
pub mod library;
pub mod messages;
pub mod plan;
pub mod real_entry;
pub mod weak_references;
