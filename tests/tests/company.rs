//! The recorder beside other tools: a second PMPI tool, auditors, sanitizers, MPI loaded by dlopen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use system_tests::job::{Job, Recorded};
use system_tests::mpi::{Language, Mpi};
use system_tests::place::{build_directory, repository};
use system_tests::under_both;
use system_tests::victim::{Build, built, victim};

const RANKS: u32 = 3;

/// What ring.c calls on every rank.
const CALLS: [(&str, usize); 7] = [
    ("MPI_Init", 1),
    ("MPI_Comm_rank", 1),
    ("MPI_Comm_size", 1),
    ("MPI_Get_processor_name", 1),
    ("MPI_Allreduce", 10),
    ("MPI_Sendrecv", 5),
    ("MPI_Barrier", 1),
];

/// Asserts that the trace holds every call of ring.c once.
#[track_caller]
fn expect_ring(recorded: &Recorded) {
    recorded.expect_code(0);
    let trace = recorded.trace();
    for rank in 0..RANKS as usize {
        for (name, count) in CALLS {
            assert_eq!(
                trace.rank(rank).count(name),
                count,
                "{name} on {rank}\n{}",
                recorded.output
            );
        }
        assert!(trace.rank(rank).is_finalized());
    }
    let right = recorded.output.stdout.lines().filter(|line| line.ends_with(": right")).count();
    assert_eq!(right, RANKS as usize, "{}", recorded.output);
}

/// What the other tool printed: calls by rank and function.
fn seen_by_the_tool(recorded: &Recorded) -> BTreeMap<(usize, String), usize> {
    let lines = recorded.output.stdout.lines().filter_map(|line| line.strip_prefix("tool "));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            ((words[0].parse().unwrap(), words[1].to_owned()), words[2].parse().unwrap())
        })
        .collect()
}

fn expect_both_count_the_same(recorded: &Recorded) {
    expect_ring(recorded);
    let seen = seen_by_the_tool(recorded);
    for rank in 0..RANKS as usize {
        for (name, count) in CALLS {
            assert_eq!(seen.get(&(rank, name.to_owned())), Some(&count), "{}", recorded.output);
        }
    }
}

fn ring(mpi: Mpi) -> Job {
    Job::new(mpi, &victim(mpi, "ring")).ranks(RANKS)
}

/// Builds a victim with arguments of its own.
fn compiled(mut command: Command, source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let program = build_directory().join(name);
    let output = command
        .arg("-I")
        .arg(repository().join("pmpi-shim/include"))
        .arg(repository().join("tests/victims").join(source))
        .arg("-o")
        .arg(&program)
        .args(arguments)
        .output()
        .expect("the compiler can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

under_both! {
    fn a_pmpi_tool_before_ours_and_ours_count_the_same(mpi) {
        let tool = built(mpi, "counts_every_call", Build::Shared);
        expect_both_count_the_same(&ring(mpi).preload_before(&tool).record());
    }

    fn a_pmpi_tool_after_ours_and_ours_count_the_same(mpi) {
        let tool = built(mpi, "counts_every_call", Build::Shared);
        expect_both_count_the_same(&ring(mpi).preload_after(&tool).record());
    }

    fn an_auditor_changes_nothing(mpi) {
        let name = format!("audits-{}.so", mpi.suffix());
        let auditor = compiled(Command::new("cc"), "audits.c", &name, &["-fPIC", "-shared"]);
        expect_ring(&ring(mpi).environment("LD_AUDIT", auditor).record());
    }

    fn a_program_under_the_address_sanitizer_is_recorded(mpi) {
        let name = format!("ring-asan-{}", mpi.suffix());
        let flags = ["-fsanitize=address,undefined", "-g"];
        let program = compiled(mpi.compiler(Language::C), "ring.c", &name, &flags);
        // The sanitizer wants to be loaded first; MPI libraries leak at their end, with and without us.
        let job = Job::new(mpi, &program)
            .ranks(RANKS)
            .environment("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        job.bare().expect_code(0);
        let recorded = job.record();
        expect_ring(&recorded);
        assert!(!recorded.output.stderr.contains("ERROR: AddressSanitizer"), "{}", recorded.output);
    }

    fn mpi_loaded_by_dlopen_is_recorded(mpi) {
        let name = format!("opens-mpi-{}", mpi.suffix());
        let program = compiled(Command::new("cc"), "opens_mpi.c", &name, &["-ldl"]);
        let library = match mpi {
            Mpi::OpenMpi => "libmpi.so.40",
            Mpi::Mpich => "libmpich.so.12",
            other => panic!("{other:?} is none of Debian's"),
        };
        // Open MPI's own plug-ins want its symbols to be global, without us as well.
        let scopes: &[&str] = if mpi == Mpi::OpenMpi { &["global"] } else { &["global", "local"] };
        for scope in scopes {
            let job = Job::new(mpi, &program).ranks(2).argument(library).argument(scope);
            job.bare().expect_code(0);
            let recorded = job.record();
            recorded.expect_code(0);
            let trace = recorded.trace();
            assert_eq!(trace.rank(1).count("MPI_Init"), 1, "{}", recorded.output);
            assert!(trace.rank(1).is_finalized(), "{}", recorded.output);
        }
    }

    fn ranks_without_the_recorder_hold_nobody_up(mpi) {
        let job = Job::new(mpi, &victim(mpi, "ring"))
            .rank_environment("LD_PRELOAD", "")
            .and_ranks(2);
        let out = system_tests::place::Fresh::new();
        let output = job.record_to(&out.join("run"));
        output.expect_code(0);
        let lines = output.own_lines();
        assert_eq!(lines.len(), 1, "{output}");
        assert!(lines[0].contains("2 of 3 ranks (1-2)"), "{output}");
        for rank in [1, 2] {
            let path = out.join("run").join(trace_format::files::rank_file_path(0, rank));
            let trace = system_tests::trace::RankTrace::open(&path).unwrap();
            assert_eq!(trace.count("MPI_Allreduce"), 10, "{output}");
            assert!(trace.is_finalized());
        }
        let first = out.join("run").join(trace_format::files::rank_file_path(0, 0));
        assert!(!first.exists());
    }
}
