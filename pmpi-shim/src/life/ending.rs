//! The end of recording.

use std::panic::{AssertUnwindSafe, catch_unwind};

use trace_format::header::{Definition, Phase};
use trace_format::layout::*;

use crate::clock::exchange::{self, Exchanger};
use crate::clock::schedule;
use crate::host::counter;
use crate::host::machine;
use crate::host::own_work::OwnWork;
use crate::host::perf_counters;
use crate::host::presence;
use crate::host::warn::warn;
use crate::life::beginning::{write_counters, write_openmp};
use crate::state;
use crate::state::thread_block::ThreadBlock;
use crate::store::file_calls;
use crate::store::file_recording;
use crate::store::sampling;
use crate::store::stage;
use crate::store::thread_records;
use crate::store::totals;
use crate::store::trace_file::define;
use crate::store::usage;
use crate::store::window;

/// Does what must be done before MPI is finalized, or the last session. `begin` is when the program
/// entered the call.
/// The slot of that call is open.
pub fn before_finalize(block: &ThreadBlock, begin: u64) {
    let _own = OwnWork::begin_long();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        sampling::end();
        file_calls::write_later(block);
        let counted = perf_counters::read();
        let work_begin = counter::now();
        presence::withdraw();
        schedule::end();
        let exchanger = exchange::own().take();
        totals::end_elapsed(begin);
        let _ = define(&Definition::RankEnd { ticks: begin });
        write_counters(counted, Phase::Finalize, begin);
        if state::chose_openmp() {
            write_openmp();
            let regions = state::missed_teams();
            if regions > 0 {
                let _ = define(&Definition::MissedTeams { regions });
            }
        }
        if file_recording::is_attached() {
            let _ = file_recording::write(Phase::Finalize);
        }
        let usages = machine::thread_usages(&thread_records::os_ids(), Phase::Finalize);
        for of in machine::thread_cores(usages.iter().map(|usage| usage.thread_os_id)) {
            let _ = define(&Definition::ThreadCores(of));
        }
        for usage in usages {
            let _ = define(&Definition::ThreadUsage(usage));
        }
        let process = machine::process_usage(Phase::Finalize);
        let _ = define(&Definition::ProcessUsage(process));
        usage::end();
        if let Some(measured) = exchanger.and_then(Exchanger::measure_at_finalize) {
            schedule::write_to_trace(&measured);
        }
        let _ = define(&Definition::ClockAnchor(counter::anchor()));
        window::tool_event(block, ToolReason::Finish, work_begin);
    }));
}

/// Completes the file after MPI, or the last session, was finalized. Another session may resume
/// recording if `may_resume`.
/// The event of that call is complete.
pub fn after_finalize(block: &ThreadBlock, may_resume: bool) {
    let _own = OwnWork::begin_long();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let lost_events = state::lost_events();
        if may_resume {
            state::end_session()
        } else {
            state::end()
        }
        if let Err(reason) = window::finish(block, lost_events) {
            warn(&format!("this rank's trace is incomplete: {reason}"));
        }
        stage::move_to_run_directory();
    }));
}
