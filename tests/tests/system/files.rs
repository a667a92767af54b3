//! Calls on files: bytes and calls are those that the program made, whatever it does with its descriptors; nothing
//! changes for the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gammachi_analyzer::metrics::{FileMetrics, FileUse, Metrics, Selection};
use gammachi_analyzer::timeline::GlobalTimeline;
use gammachi_analyzer::trace::Run;
use system_tests::directories::TempDir;
use system_tests::job::Output;
use system_tests::library::io_library;
use system_tests::victim::victim;
use system_tests::{Job, Mpi, Recorded, under_both, under_mpich};

fn job(mpi: Mpi, folder: &Path) -> Job {
    Job::new(mpi, &victim(mpi, "works_on_files")).ranks(2).argument(folder)
}

fn seen(mpi: Mpi, folder: &Path) -> Job {
    let job = job(mpi, folder).preload_after(&io_library());
    job.environment("GAMMACHI_IO", "1").environment("GAMMACHI_FILE_NAMES", "1")
}

fn files(recorded: &Recorded) -> Option<FileMetrics> {
    let run = Run::open(&recorded.directory()).expect("it can be read");
    assert!(
        run.diagnoses.iter().all(|of| !of.to_string().contains("order")),
        "{:?}",
        run.diagnoses
    );
    let timeline = GlobalTimeline::new(&run);
    Metrics::new(&run, &timeline, &Selection::Whole).expect("it has figures").files
}

/// By file name: calls that read, bytes read, calls that write, bytes written.
type Expected = BTreeMap<String, [u64; 4]>;

fn expected(output: &Output) -> Expected {
    let lines = output.stdout.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        Some((name, numbers.try_into().ok()?))
    });
    lines.collect()
}

/// The files of this folder by name.
fn by_name<'f>(files: &'f FileMetrics, folder: &Path) -> BTreeMap<String, &'f FileUse> {
    let folder = fs::canonicalize(folder).expect("the folder exists");
    let own = files.files.iter().filter_map(|of| {
        let name = Path::new(of.name.as_ref()?).strip_prefix(&folder).ok()?;
        Some((name.to_string_lossy().into_owned(), of))
    });
    own.collect()
}

#[track_caller]
fn check_files(found: &BTreeMap<String, &FileUse>, expected: &Expected) {
    for (name, numbers) in expected {
        let of = found.get(name).unwrap_or_else(|| panic!("{name} is not in {found:?}"));
        let found = [of.reads, of.read_bytes, of.writes, of.written_bytes];
        assert_eq!(found, *numbers, "{name}: {of:?}");
        assert_eq!(of.ranks, 1, "{name}");
    }
}

under_both! {
    fn counts_what_the_program_reads_and_writes(mpi) {
        let folder = TempDir::new();
        let recorded = seen(mpi, folder.path()).record();
        recorded.expect_code(0);
        assert_eq!(recorded.output.recorder_lines(), [""; 0]);
        let files = files(&recorded).expect("calls on files were recorded");
        assert!(files.is_loaded);
        let (found, expected) = (by_name(&files, folder.path()), expected(&recorded.output));
        assert_eq!(expected.len(), 2 * 10, "{expected:?}");
        check_files(&found, &expected);
        assert!(!found.keys().any(|name| name.starts_with("late")), "MPI was finalized before");
        let shared = found["shared"];
        assert_eq!((shared.ranks, shared.written_bytes), (2, 20_000));
        assert_eq!((shared.mpi_calls, shared.mpi_bytes), (20, 20_000));
        assert!(shared.inside_mpi_s > 0.0 && shared.inside_mpi_s <= shared.seconds);
        // Eight reads from the start return bytes, then 77 B from 5 on and 300 B from 0 on.
        for plain in [found["plain.0"], found["plain.1"]] {
            let placed = (plain.placed_reads, plain.unaligned_reads, plain.read_again_bytes);
            assert_eq!(placed, (10, 1, 377), "{plain:?}");
        }
        // Libraries of the MPI may replace mmap.
        assert!(found["child.0"].mappings <= 1);
        let thread = found["thread.0"];
        assert!(thread.other_threads_s > 0.0, "{thread:?}");
        for (name, of) in &found {
            let written_once = ["first", "second", "third", "fourth", "log", "thread"];
            if written_once.iter().any(|once| name.starts_with(once)) {
                let on_disk = fs::metadata(folder.join(name)).expect("it exists").len();
                assert_eq!(of.written_bytes, on_disk, "{name}");
            }
        }
    }

    fn killed_rank_keeps_its_sums(mpi) {
        let folder = TempDir::new();
        let recorded = seen(mpi, folder.path()).argument("kill").record();
        let files = files(&recorded).expect("calls on files were recorded");
        let expected = expected(&recorded.output);
        assert!(!expected.is_empty(), "{}", recorded.output.stdout);
        check_files(&by_name(&files, folder.path()), &expected);
        assert_eq!(files.unseen, None);
    }
}

under_mpich! {
    fn program_is_unchanged_without_and_with_it(mpi) {
        let folder = TempDir::new();
        let bare = job(mpi, folder.path()).bare();
        let lines = |output: &Output| {
            // How often a handler runs differs.
            let of = expected(output).into_iter();
            let of = of.filter(|(name, _)| !name.starts_with("log") && !name.starts_with("interr"));
            of.collect::<Expected>()
        };
        let without = job(mpi, folder.path()).record();
        assert_eq!(lines(&without.expect_code(0).output), lines(&bare));
        assert_eq!(files(&without), None);
        let alone = job(mpi, folder.path()).environment("GAMMACHI_IO", "1").record();
        let missing = files(alone.expect_code(0)).expect("they were asked for");
        assert!(!missing.is_loaded && missing.files.is_empty());
        // Loaded without the recorder, the library only forwards.
        let forwarding = job(mpi, folder.path()).preload_after(&io_library()).bare();
        assert_eq!((forwarding.code(), lines(&forwarding)), (0, lines(&bare)));
    }

    fn files_have_numbers_unless_names_are_wanted(mpi) {
        let folder = TempDir::new();
        let job = job(mpi, folder.path()).preload_after(&io_library());
        let recorded = job.environment("GAMMACHI_LEVEL", "0").record();
        recorded.expect_code(0);
        let files = files(&recorded).expect("calls on files were recorded");
        assert!(files.files.iter().all(|of| of.name.is_none()), "{files:?}");
        let shared: Vec<_> = files.files.iter().filter(|of| of.ranks == 2).collect();
        assert!(shared.iter().any(|of| of.written_bytes == 20_000), "{files:?}");
    }
}
