//! Turns calls into slots. This code runs on the hot path of every call.
//!
//! | module | what it is for |
//! |---|---|
//! | `path` | one event per call: counter, real call, counter, slot |
//! | `attributes` | peer, tag, bytes, requests and statuses of a call, by its plan |
//! | `collective_bytes` | what a collective call sends and receives |
//! | `completions` | requests completed by a wait or test on several |
//! | `ignored_statuses` | MPICH's behaviour where a program ignores statuses |
//! | `polls` | runs of tests and probes that found nothing, merged |
//! | `sites` | call sites, from level 1 on |
//! | `call_paths` | call paths of long calls, at level 2 |
//! | `markers` | region markers, with readings of counters |

pub mod attributes;
pub mod call_paths;
pub mod collective_bytes;
pub mod completions;
pub mod ignored_statuses;
pub mod markers;
pub mod path;
pub mod polls;
pub mod sites;
