//! The recorder together with other tools: a second PMPI tool, auditors, sanitizers, MPI loaded by
//! dlopen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use system_tests::directories::{build_directory, repository};
use system_tests::job::{Job, Recorded};
use system_tests::mpi::{Language, Mpi};
use system_tests::under_both;
use system_tests::victim::{Build, built, victim};

const RANKS: u32 = 3;

/// The calls that ring.c makes on every rank.
const CALLS: [(&str, usize); 7] = [
    ("MPI_Init", 1),
    ("MPI_Comm_rank", 1),
    ("MPI_Comm_size", 1),
    ("MPI_Get_processor_name", 1),
    ("MPI_Allreduce", 10),
    ("MPI_Sendrecv", 5),
    ("MPI_Barrier", 1),
];

/// Checks that the trace contains each call of ring.c once.
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

/// Calls by rank and function, as the other tool printed them.
fn counted_by_other_tool(recorded: &Recorded) -> BTreeMap<(usize, String), usize> {
    let lines = recorded.output.stdout.lines().filter_map(|line| line.strip_prefix("tool "));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            ((words[0].parse().unwrap(), words[1].to_owned()), words[2].parse().unwrap())
        })
        .collect()
}

fn expect_equal_counts(recorded: &Recorded) {
    expect_ring(recorded);
    let counts = counted_by_other_tool(recorded);
    for rank in 0..RANKS as usize {
        for (name, count) in CALLS {
            assert_eq!(counts.get(&(rank, name.to_owned())), Some(&count), "{}", recorded.output);
        }
    }
}

fn ring(mpi: Mpi) -> Job {
    Job::new(mpi, &victim(mpi, "ring")).ranks(RANKS)
}

/// Builds a victim with additional arguments.
fn compile(mut command: Command, source: &str, name: &str, arguments: &[&str]) -> PathBuf {
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
    fn pmpi_tool_loaded_before_the_recorder_counts_the_same(mpi) {
        let tool = built(mpi, "counts_every_call", Build::Shared);
        expect_equal_counts(&ring(mpi).preload_before(&tool).record());
    }

    fn pmpi_tool_loaded_after_the_recorder_counts_the_same(mpi) {
        let tool = built(mpi, "counts_every_call", Build::Shared);
        expect_equal_counts(&ring(mpi).preload_after(&tool).record());
    }

    fn auditor_changes_nothing(mpi) {
        let name = format!("audits-{}.so", mpi.suffix());
        let auditor = compile(Command::new("cc"), "audits.c", &name, &["-fPIC", "-shared"]);
        expect_ring(&ring(mpi).environment("LD_AUDIT", auditor).record());
    }

    fn records_program_with_address_sanitizer(mpi) {
        let name = format!("ring-asan-{}", mpi.suffix());
        let flags = ["-fsanitize=address,undefined", "-g"];
        let program = compile(mpi.compiler(Language::C), "ring.c", &name, &flags);
        // The sanitizer expects to be loaded first; MPI libraries leak, with and without the
        // recorder.
        let job = Job::new(mpi, &program)
            .ranks(RANKS)
            .environment("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        job.bare().expect_code(0);
        let recorded = job.record();
        expect_ring(&recorded);
        assert!(!recorded.output.stderr.contains("ERROR: AddressSanitizer"), "{}", recorded.output);
    }

    fn records_mpi_loaded_by_dlopen(mpi) {
        let name = format!("opens-mpi-{}", mpi.suffix());
        let program = compile(Command::new("cc"), "opens_mpi.c", &name, &["-ldl"]);
        let library = match mpi {
            Mpi::OpenMpi => "libmpi.so.40",
            Mpi::Mpich => "libmpich.so.12",
            other => panic!("{other:?} is not one of Debian's"),
        };
        // Open MPI's own plug-ins need its symbols to be global, even without the recorder.
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

    fn ranks_without_the_recorder_do_not_block_the_others(mpi) {
        let job = Job::new(mpi, &victim(mpi, "ring"))
            .rank_environment("LD_PRELOAD", "")
            .and_ranks(2);
        let out = system_tests::directories::TempDir::new();
        let output = job.record_to(&out.join("run"));
        output.expect_code(0);
        let lines = output.recorder_lines();
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
