//! `mpi-matrix ROW…`: runs the conformity suite under every MPI and in every language and prints a
//! table.
//!
//! A cell shows the number of events that were recorded exactly as the program makes them, the
//! reason why there are none, or a failure. The differences of a failure go to standard error, and
//! the exit code is 1.

mod cell;
mod table;

use std::process::ExitCode;

use system_tests::Mpi;
use system_tests::languages::Binding;

use cell::Cell;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let rows: Result<Vec<Mpi>, &String> =
        names.iter().map(|name| Mpi::named(name).ok_or(name)).collect();
    let rows = match rows {
        Ok(rows) if !rows.is_empty() => rows,
        Ok(_) => Mpi::ALL.to_vec(),
        Err(name) => {
            eprintln!("mpi-matrix: there is no MPI named {name}");
            return ExitCode::from(2);
        }
    };
    // The message of a failed cell is printed once, with its name.
    std::panic::set_hook(Box::new(|_| {}));
    let mut lines = Vec::new();
    for mpi in rows {
        eprint!("{:<10}", mpi.suffix());
        let mut cells = vec![cell::reported(mpi)];
        cells.extend(Binding::ALL.map(|binding| cell::language(mpi, binding)));
        cells.push(cell::unchanged(mpi));
        eprintln!();
        for (cell, title) in cells.iter().zip(titles()) {
            if let Cell::Failed(what) = cell {
                eprintln!("--- {} {title}\n{what}", mpi.suffix());
            }
        }
        lines.push((mpi, cells));
    }
    print!("{}", table::table(&titles(), &lines));
    let failed = lines.iter().any(|(_, cells)| cells.iter().any(Cell::is_failure));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Headings of the columns behind the row's name.
fn titles() -> Vec<&'static str> {
    let languages = Binding::ALL.map(Binding::title);
    ["as reported"].into_iter().chain(languages).chain(["same"]).collect()
}
