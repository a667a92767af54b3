//! Which ranks were not recorded all the time: the order of their messages is not known.

use rayon::prelude::*;
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;
use trace_format::reader::{BriefEvent, EventObserver, Head};

use crate::trace::{RankTrace, Run};

/// Looks for a pause.
struct Search {
    found: bool,
}

impl EventObserver for Search {
    #[inline]
    fn plain(&mut self, _call: &Head, _offset: usize) -> bool {
        true
    }

    fn event(&mut self, event: &BriefEvent) -> bool {
        let reason = event.head.peer();
        self.found = event.head.function() == TOOL && reason == ToolReason::Paused as i32;
        !self.found
    }
}

/// Whether the program paused recording, by the rank's position. All processes that opened the run
/// call this.
pub(super) fn of_ranks(run: &Run) -> Vec<bool> {
    let own = run.own.clone().into_par_iter();
    let has_pause = |position: usize| is_paused(&run.ranks[position]);
    run.processes.join(own.map(has_pause).collect())
}

fn is_paused(trace: &RankTrace) -> bool {
    trace.file.threads.iter().any(|thread| {
        let mut search = Search { found: false };
        trace.file.events(thread).for_each_event(&mut search);
        search.found
    })
}
