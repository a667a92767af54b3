//! Places of calls: which module an address belonged to.

use trace_format::file_calls::{FileCallKind, FileCalls};
use trace_format::header::Module;
use trace_format::layout::{TOOL, Team, TeamWaits, slot_word};
use trace_format::markers::ToolReason;
use trace_format::samples::interpreted;

use super::*;

/// Adds a module at an address, loaded at this moment.
fn load(rank: &mut SyntheticRank, path: &str, begin: u64, ticks: u64) {
    rank.definitions.push(Definition::Module(Module {
        path: path.into(),
        identity: String::new(),
        base: begin,
        begin,
        end: begin + 0x1000,
        ticks,
    }));
}

/// Makes the last call return to an address.
fn called_from(rank: &mut SyntheticRank, address: u64) {
    rank.threads[0].last_mut().unwrap().site = address;
}

/// Barriers for which rank 0 waits for 90 ticks each, from the given addresses.
fn barriers<const COUNT: usize>(addresses: [u64; COUNT]) -> [SyntheticRank; 2] {
    let mut ranks = world();
    for (number, address) in addresses.into_iter().enumerate() {
        let begin = at(number as u64 * 1_000);
        for (rank, late) in ranks.iter_mut().zip([0, 90]) {
            rank.call_with("MPI_Barrier", begin + late, begin + 100, on_world(0, 0, 0));
            called_from(rank, address);
        }
    }
    ranks
}

/// Module and count of the waits at barriers, by place.
fn barrier_places(causes: &Causes) -> Vec<(String, u64)> {
    let at_barrier = causes.groups.iter().filter(|group| group.state == State::WaitAtBarrier);
    let places = at_barrier.map(|group| match causes.contexts.get(group.context) {
        Context::Transfer(site) => (site.module.clone(), group.count),
        other => panic!("{other:?}"),
    });
    let mut places: Vec<_> = places.collect();
    places.sort();
    places
}

#[test]
fn waits_are_in_the_library_that_was_loaded_then() {
    let mut ranks = barriers([0x9010; 3]);
    for rank in &mut ranks {
        load(rank, "/lib/alpha.so", 0x9000, at(0) - 10);
        load(rank, "/lib/omega.so", 0x9000, at(1_500));
    }
    with_causes(&ranks, |causes| {
        let expected = [("/lib/alpha.so".to_owned(), 2), ("/lib/omega.so".to_owned(), 1)];
        assert_eq!(barrier_places(causes), expected);
    });
}

/// Adds the executable /home/ada/flow, at 0x1000, and /opt/lib/libmesh.so, at 0x9000.
fn load_library(rank: &mut SyntheticRank) {
    rank.header.program = "/home/ada/flow".into();
    rank.header.directory = "/scratch".into();
    load(rank, "/home/ada/flow", 0x1000, 0);
    load(rank, "/opt/lib/libmesh.so", 0x9000, 0);
}

/// Defines a path, innermost address first.
fn define_path(rank: &mut SyntheticRank, number: u32, addresses: &[u64]) {
    rank.definitions.push(Definition::Path { number, addresses: addresses.to_vec() });
}

/// Gives a path to the call that has just ended.
fn on_path(rank: &mut SyntheticRank, number: u32, end: u64) {
    rank.tool(0, ToolReason::Path, end, end + 1);
    rank.threads[0].last_mut().unwrap().detail = number as i32;
}

/// Barriers in /opt/lib/libmesh.so for which rank 0 waits, and has a path each time: of these
/// numbers.
fn barriers_on_paths<const COUNT: usize>(paths: [u32; COUNT]) -> [SyntheticRank; 2] {
    let mut ranks = world();
    ranks.iter_mut().for_each(load_library);
    for number in 0..2 {
        let own = 0x1010 + 0x10 * u64::from(number);
        // A frame of the library, one of the program, and what called that.
        define_path(&mut ranks[0], number, &[0x9010, 0x9200, own, 0x1900]);
    }
    for (number, path) in paths.into_iter().enumerate() {
        let begin = at(number as u64 * 1_000);
        for (rank, late) in ranks.iter_mut().zip([0, 90]) {
            rank.call_with("MPI_Barrier", begin + late, begin + 100, on_world(0, 0, 0));
            called_from(rank, 0x9010);
        }
        on_path(&mut ranks[0], path, begin + 100);
    }
    ranks
}

/// The address in the program from which a site's library was called.
fn caller(site: &CallSite) -> Option<u64> {
    assert!(site.is_in_library && site.module == "/opt/lib/libmesh.so", "{site:?}");
    let caller = site.caller.as_ref()?;
    assert_eq!(caller.module, "/home/ada/flow");
    Some(caller.address)
}

/// Callers and counts of the waits at barriers.
fn barrier_callers(causes: &Causes) -> Vec<(Option<u64>, u64)> {
    let at_barrier = causes.groups.iter().filter(|group| group.state == State::WaitAtBarrier);
    let callers = at_barrier.map(|group| match causes.contexts.get(group.context) {
        Context::Transfer(site) => (caller(site), group.count),
        other => panic!("{other:?}"),
    });
    let mut callers: Vec<_> = callers.collect();
    callers.sort();
    callers
}

/// The callers of both ends of what rank 1 computes longer.
fn delay_callers(causes: &Causes) -> Vec<[Option<u64>; 2]> {
    let contexts = causes.charges.causes.keys().map(|(_, context)| causes.contexts.get(*context));
    let between = contexts.filter_map(|context| match context {
        Context::Between(Some(from), Some(to)) if from.function == "MPI_Barrier" => {
            Some([caller(from), caller(to)])
        }
        _ => None,
    });
    between.collect()
}

#[test]
fn waits_in_a_library_are_where_the_program_called_it() {
    with_causes(&barriers_on_paths([0, 1, 0]), |causes| {
        assert_eq!(barrier_callers(causes), [(Some(0x10), 2), (Some(0x20), 1)]);
        // Rank 1 is late and has no paths. The call for which rank 0 waits comes from where that
        // came; the one before may come from either place.
        let delays = [[None, Some(0x20)], [None, Some(0x10)]];
        assert_eq!(delay_callers(causes), delays);
    });
}

#[test]
fn short_calls_come_from_the_only_known_place() {
    with_causes(&barriers_on_paths([1; 3]), |causes| {
        assert_eq!(barrier_callers(causes), [(Some(0x20), 3)]);
        assert_eq!(delay_callers(causes), [[Some(0x20); 2]]);
    });
    // If few calls have a path, others may come from elsewhere.
    let mut ranks = barriers_on_paths([1; 6]);
    let mut paths = 0;
    ranks[0].threads[0].retain(|slot| {
        let is_path = slot.word == slot_word(1, TOOL, 0) && slot.peer == ToolReason::Path as i32;
        paths += u32::from(is_path);
        !is_path || paths <= 2
    });
    with_causes(&ranks, |causes| {
        assert_eq!(barrier_callers(causes), [(None, 4), (Some(0x20), 2)]);
        assert_eq!(delay_callers(causes), [[None, None], [None, Some(0x20)]]);
    });
}

#[test]
fn calls_of_the_program_itself_have_no_caller() {
    let mut ranks = barriers_on_paths([0, 1]);
    for slot in ranks.iter_mut().flat_map(|rank| &mut rank.threads[0]) {
        slot.site = if slot.site == 0 { 0 } else { 0x1050 };
    }
    with_causes(&ranks, |causes| {
        assert_eq!(barrier_places(causes), [("/home/ada/flow".to_owned(), 2)]);
        let of_program = |context: &Context| match context {
            Context::Transfer(site) => site.caller.is_none() && !site.is_in_library,
            _ => true,
        };
        assert!(causes.contexts.all.iter().all(of_program));
    });
}

/// Both ranks compute `work` ticks before a barrier, and are in cblas_dgemm for `in_dgemm` of them,
/// then meet.
fn computing_in_dgemm(work: [u64; 2], in_dgemm: [u64; 2]) -> [SyntheticRank; 2] {
    let mut ranks = world();
    let done = work[0].max(work[1]);
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
        rank.compute("cblas_dgemm", at(20), at(20 + in_dgemm[number]), 1.0, 0);
        let entered = 10 + work[number];
        rank.call_with("MPI_Barrier", at(entered), at(10 + done + 10), on_world(0, 0, 0));
    }
    ranks
}

#[test]
fn a_delay_is_named_after_the_call_that_holds_most_of_it() {
    with_causes(&computing_in_dgemm([300, 1_000], [100, 600]), |causes| {
        assert_eq!(costs(causes), [(1, "call cblas_dgemm".into(), 700, 0)]);
    });
    // Less than half of what takes longer is in the call.
    with_causes(&computing_in_dgemm([300, 1_000], [100, 400]), |causes| {
        assert_eq!(costs(causes), [(1, "MPI_Barrier..MPI_Barrier".into(), 700, 0)]);
    });
    // It takes as long on both, however long that is.
    with_causes(&computing_in_dgemm([620, 1_000], [600, 600]), |causes| {
        assert_eq!(costs(causes), [(1, "MPI_Barrier..MPI_Barrier".into(), 380, 0)]);
    });
}

#[test]
fn a_delay_is_named_after_the_parallel_region_that_holds_most_of_it() {
    // Both ranks begin a region of two threads behind the barrier, and call BLAS in it.
    let in_region = |spans: [u64; 2]| {
        let mut ranks = world::<2>();
        for ((rank, span), work) in ranks.iter_mut().zip(spans).zip([300, 1_000]) {
            rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
            rank.compute("cblas_dgemm", at(20), at(20 + span / 4), 1.0, 0);
            let ticks = at(15 + span) - at(15);
            let team = Team { span: ticks, inside: 2 * ticks, work: ticks, longest: ticks };
            rank.team((2, 1), at(15 + span), (team, TeamWaits::default()));
            rank.call_with("MPI_Barrier", at(10 + work), at(1_020), on_world(0, 0, 0));
        }
        ranks
    };
    with_causes(&in_region([200, 800]), |causes| {
        assert_eq!(costs(causes), [(1, "call parallel region".into(), 700, 0)]);
    });
    with_causes(&in_region([200, 300]), |causes| {
        assert_eq!(costs(causes), [(1, "MPI_Barrier..MPI_Barrier".into(), 700, 0)]);
    });
}

#[test]
fn a_delay_is_named_after_the_calls_on_files_that_hold_most_of_it() {
    // Both ranks write behind the barrier.
    let writes = |inside: [u64; 2], flags: u16| {
        let mut ranks = world::<2>();
        for ((rank, inside), work) in ranks.iter_mut().zip(inside).zip([300, 1_000]) {
            let field = FileCallKind::Write as u16 | flags;
            let ticks = at(20 + inside) - at(20);
            let calls = FileCalls { calls: 7, bytes: 1 << 20, inside: ticks, span: ticks };
            rank.call_with("MPI_Barrier", at(0), at(10), on_world(0, 0, 0));
            rank.file_calls((field, 1), at(20), calls);
            rank.call_with("MPI_Barrier", at(10 + work), at(1_020), on_world(0, 0, 0));
        }
        ranks
    };
    with_causes(&writes([100, 900], FileCallKind::OF_STREAM), |causes| {
        assert_eq!(costs(causes), [(1, "call write".into(), 700, 0)]);
    });
    with_causes(&writes([100, 400], 0), |causes| {
        assert_eq!(costs(causes), [(1, "MPI_Barrier..MPI_Barrier".into(), 700, 0)]);
    });
    with_causes(&writes([100, 900], FileCallKind::INSIDE_MPI), |causes| {
        assert_eq!(costs(causes), [(1, "MPI_Barrier..MPI_Barrier".into(), 700, 0)]);
    });
}

#[test]
fn calls_of_a_package_are_where_the_python_program_called_it() {
    let mut ranks = barriers_on_paths([0, 0]);
    let begin = interpreted(1, 0);
    for rank in &mut ranks {
        rank.header.program = "/usr/bin/python3.11".into();
        rank.definitions.retain(|definition| !matches!(definition, Definition::Path { .. }));
        rank.definitions.push(Definition::Code(Module {
            path: "/home/ada/heat.py".into(),
            identity: "python solve".into(),
            base: begin,
            begin,
            end: interpreted(2, 0),
            ticks: 0,
        }));
    }
    define_path(&mut ranks[0], 0, &[0x9010, 0x9200, interpreted(1, 42), 0x1900]);
    with_causes(&ranks, |causes| {
        let delays = causes.charges.causes.keys().map(|(_, context)| causes.contexts.get(*context));
        let between = delays.filter_map(|context| match context {
            Context::Between(Some(from), Some(to)) if from.function == "MPI_Barrier" => Some(to),
            _ => None,
        });
        // Rank 1, which has no path, calls from there, too.
        let callers: Vec<_> = between.map(|to| to.caller.clone().expect("it is known")).collect();
        assert!(!callers.is_empty());
        for caller in callers {
            assert_eq!(caller.module, "/home/ada/heat.py");
            assert_eq!(
                (caller.place.function.as_deref(), caller.place.line),
                (Some("solve"), Some(42))
            );
        }
    });
}
