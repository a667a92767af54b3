//! What a Paraver trace is written with.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;

use crate::export::content::Content;

pub(super) struct ParaverWriter<'a> {
    pub(super) content: &'a Content<'a>,
    pub(super) prv: BufWriter<File>,
    /// Position of each rank's first thread among all threads.
    pub(super) threads: Vec<usize>,
    /// Node of each rank, from 1 on.
    pub(super) nodes: Vec<usize>,
    /// Names of the values that were used, by event type and value.
    pub(super) values: BTreeMap<(u32, u32), String>,
}
