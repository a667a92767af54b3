//! The loaded MPI: which it is, how to call it, who takes part.
//!
//! | module | what it is for |
//! |---|---|
//! | `library` | which MPI is loaded, and its constants |
//! | `abi` | where it keeps what a status says |
//! | `plan` | what a procedure's arguments mean for its event; numbers of functions |
//! | `invoke` | calls of C functions with machine words |
//! | `real_entry` | the way to the functions that ours stand in front of |
//! | `callers` | what a name means to each caller that asked for it |
//! | `absent` | what is called where no library has a function |
//! | `weak_references` | procedures that the loaded MPI lacks look absent again |
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
