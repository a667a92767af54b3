//! A call becomes slots: what runs on the path of every call.
//!
//! | module | what it is for |
//! |---|---|
//! | `path` | one event a call: counter, real call, counter, slot |
//! | `attributes` | peer, tag, bytes, requests and statuses of a call, by its plan |
//! | `collective_bytes` | what a collective call sends and receives |
//! | `completions` | what a wait or test on several requests completed |
//! | `ignored_statuses` | what MPICH does otherwise where statuses are ignored |
//! | `polls` | runs of tests and probes that found nothing, merged |
//! | `sites` | where the program called from, from level 1 on |
//! | `call_paths` | through which functions long calls came, at level 2 |
//! | `markers` | regions, with readings of counters |

pub mod attributes;
pub mod call_paths;
pub mod collective_bytes;
pub mod completions;
pub mod ignored_statuses;
pub mod markers;
pub mod path;
pub mod polls;
pub mod sites;
