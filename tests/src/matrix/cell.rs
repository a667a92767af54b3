//! Runs the tests of one cell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use system_tests::command;
use system_tests::conformity::{
    PROGRAMS, compare, expected_text, facts, not_applicable, prepared, program, record,
};
use system_tests::languages::Binding;
use system_tests::victim::{Build, built};
use system_tests::{Job, Mpi};

/// Result of a cell.
pub enum Cell {
    /// Number of events, or lines, that were checked.
    Checked(usize),
    /// The name of the library, which was checked.
    Named(String),
    /// The cell cannot be tested, for this reason.
    NotApplicable(&'static str),
    /// The test failed, with this message.
    Failed(String),
}

impl Cell {
    /// Whether the test failed.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Runs a test; a panic becomes a failed cell with its message.
fn guarded(work: impl FnOnce() -> Result<Cell, String>) -> Cell {
    eprint!(".");
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(cell)) => cell,
        Ok(Err(what)) => Cell::Failed(what),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Cell::Failed(text.unwrap_or_default())
        }
    }
}

/// Runs the small program in a language and, in C, the conformity suite.
pub fn language(mpi: Mpi, binding: Binding) -> Cell {
    guarded(|| {
        if let Some(reason) = binding.not_applicable(mpi) {
            return Ok(Cell::NotApplicable(reason));
        }
        let mut facts = facts(mpi);
        facts.extend(binding.facts());
        let (mut events, mut differences) = (0, String::new());
        let mut add = |name: &str, compared: Result<usize, String>| match compared {
            Ok(count) => events += count,
            Err(what) => differences.push_str(&format!("{name} {what}\n")),
        };
        for (name, expected) in binding.programs() {
            let recorded = record(binding.job(mpi, name));
            let text = expected_text("languages", expected);
            add(name, compare(&text, &facts, binding.left_out(), &recorded.trace()));
        }
        if binding == Binding::C {
            for (name, ranks) in PROGRAMS {
                if not_applicable(mpi, name).is_none() {
                    add(name, conformity(mpi, name, *ranks, &facts));
                }
            }
        }
        if differences.is_empty() { Ok(Cell::Checked(events)) } else { Err(differences) }
    })
}

/// Runs one program of the conformity suite; if it panics, the others still run.
fn conformity(mpi: Mpi, name: &str, ranks: u32, facts: &[&str]) -> Result<usize, String> {
    let work = || {
        let job = Job::new(mpi, &program(mpi, name, Build::C)).ranks(ranks);
        let recorded = record(job);
        compare(&expected_text("conformity", name), facts, &[], &recorded.trace())
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panicked".to_owned()))
    })
}

/// Checks the name that `gammachi report` shows for the library.
pub fn reported(mpi: Mpi) -> Cell {
    guarded(|| {
        let recorded = record(Binding::C.job(mpi, "program"));
        let output = Command::new(command()).arg("report").arg(recorded.directory()).output();
        let output = output.map_err(|error| error.to_string())?;
        let screen = String::from_utf8_lossy(&output.stdout);
        let name = screen.lines().next().and_then(|line| line.split(" | ").nth(1));
        let abi = if mpi.family() == "abi" { ", standard ABI" } else { "" };
        let version = |name: &str| {
            let rest = name.strip_prefix(mpi.reported_as())?.strip_suffix(abi)?;
            rest.chars().all(|c| c.is_ascii_digit() || c == '.').then_some(())
        };
        match name {
            Some(name) if version(name).is_some() => Ok(Cell::Named(name.to_owned())),
            _ => Err(format!("the report shows {name:?}\n{screen}")),
        }
    })
}

/// Parts of statuses.c that must be left out because the library itself crashes in them.
fn deadly_parts(mpi: Mpi) -> &'static str {
    match mpi {
        // A failed assertion in a reduction with MPI_DATATYPE_NULL.
        Mpi::Mpich5 => "a",
        // SIGSEGV in MPI_Send with MPI_DATATYPE_NULL.
        Mpi::Mpich5Abi | Mpi::IntelAbi => "e",
        _ => "",
    }
}

/// Runs programs that print everything MPI returns to them, bare and recorded, and compares the
/// lines.
pub fn unchanged(mpi: Mpi) -> Cell {
    guarded(|| {
        let mut lines = 0;
        for (name, build) in [("mpi_itself", Build::CNoPie), ("statuses", Build::CNoPie)] {
            for speaker in ["0", "1"] {
                let job = prepared(Job::new(mpi, &built(mpi, name, build))).ranks(2);
                let job = job.argument(speaker).argument(deadly_parts(mpi));
                let bare = job.bare();
                bare.expect_code(0);
                let recorded = job.record();
                recorded.expect_code(0);
                let (bare, own) = (bare.stdout, recorded.output.stdout.as_str());
                if let Some((bare, own)) = bare.lines().zip(own.lines()).find(|(a, b)| a != b) {
                    return Err(format!("{name}, rank {speaker}\n- {bare}\n+ {own}"));
                }
                if bare != own {
                    return Err(format!("{name}, rank {speaker}: one of them prints more"));
                }
                lines += bare.lines().count();
            }
        }
        Ok(Cell::Checked(lines))
    })
}
