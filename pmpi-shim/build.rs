//! Generates the wrappers of the interposed functions at build time.
//!
//! From the table of MPI procedures (`trace_format::procedures`) it writes to `$OUT_DIR`:
//! - `entries.rs`: the exported wrappers `MPI_X` and `PMPI_X` of every procedure and of its `_c`
//!   variant;
//! - `numbers.rs`: the numbers of the functions that hand-written code refers to;
//! - `invoke.rs`: an implementation of `Invoke` for every number of arguments.
//!
//! From `trace_format::compute` it writes `compute_entries.rs`, the interposed compute functions.

mod build_compute;

use std::fmt::Write as _;
use std::path::Path;

use trace_format::functions::FIRST_FUNCTION;
use trace_format::meaning::plan::Plan;
use trace_format::meaning::{Meaning, lists};
use trace_format::procedures::{Parameter, Procedure, all};

/// PyPI's mpi4py looks these up with dlopen(NULL) before any MPI is loaded, and aborts if it finds
/// them. The library must therefore not export them.
const NOT_EXPORTED: &str = "\
    MPI_Get_version MPI_Get_library_version MPI_Abi_get_version";

/// Written by hand in `src/interpose/exceptions.rs` and `sessions.rs`.
const BY_HAND: &str = "\
    MPI_Init MPI_Init_thread MPI_Finalize MPI_Session_init MPI_Session_finalize MPI_Pcontrol \
    MPI_Wtime MPI_Wtick";

/// Functions whose numbers hand-written code refers to.
const NUMBERED: &str = "\
    MPI_Init MPI_Init_thread MPI_Finalize MPI_Session_init MPI_Session_finalize MPI_Pcontrol \
    MPI_Barrier MPI_Allreduce MPI_Allgather MPI_Allgatherv MPI_Alltoall MPI_Alltoallv \
    MPI_Alltoallw MPI_Reduce_scatter MPI_Reduce_scatter_block";

/// Forwarded but never recorded: conversions and getters that bindings and macros call around
/// every communication call.
fn forwarded_only(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("MPI_") else { return false };
    let endings = ["_f2c", "_c2f", "_toint", "_fromint", "_f082c", "_c2f08", "_f082f", "_f2f08"];
    rest.starts_with("T_")
        || rest.starts_with("Aint_")
        || endings.iter().any(|ending| rest.ends_with(ending))
        || rest.starts_with("Status_get_")
        || rest.starts_with("Status_set_")
        || matches!(rest, "Get_count" | "Get_elements" | "Get_elements_x" | "Test_cancelled")
}

fn arguments(count: usize) -> (String, String) {
    let names: Vec<String> = (0..count).map(|i| format!("a{i}")).collect();
    let typed: Vec<String> = names.iter().map(|name| format!("{name}: usize")).collect();
    (typed.join(", "), names.join(", "))
}

fn entry(out: &mut String, symbol: &str, parameters: &[Parameter], how: &str) {
    let (typed, names) = arguments(parameters.len());
    let inner = format!("inner_{}", symbol.to_lowercase());
    writeln!(
        out,
        "entry_stub!({symbol}, {inner});\n\
         unsafe extern \"C-unwind\" fn {inner}({typed}) -> usize {{\n\
         \x20   static REAL: RealEntry = RealEntry::new(c\"{symbol}\");\n\
         \x20   // SAFETY: the words are passed on unchanged to the entry of this name.\n\
         \x20   unsafe {{ {how}[{names}]) }}\n\
         }}"
    )
    .expect("writing to a string");
}

/// The head of the call that records a procedure. Also defines the type of the plan if there is
/// one.
fn recording(
    out: &mut String,
    name: &str,
    symbol: &str,
    function: u16,
    parameters: &[Parameter],
) -> String {
    if forwarded_only(name) {
        return "forwarded(&REAL, ".to_owned();
    }
    let class = Meaning::by_name(name).class;
    let plan = Plan::new(function, name, class, parameters, symbol.ends_with("_c"));
    match plan.is_empty() {
        true => format!("recorded_plain(&REAL, {function}, "),
        false => {
            // The plan's debug output is valid Rust, except for the paths of the two enumerations.
            let expression = format!("{plan:?}").replace("shape: ", "shape: Shape::");
            let expression = expression.replace("per: ", "per: Per::");
            let kind = format!("Plan{}", symbol.trim_start_matches("MPI_").replace('_', ""));
            writeln!(
                out,
                "enum {kind} {{}}\nimpl Procedure for {kind} {{\n\
                 \x20   const PLAN: Plan = {expression};\n}}"
            )
            .expect("writing to a string");
            format!("recorded::<{kind}, {}>(&REAL, ", parameters.len())
        }
    }
}

fn entries(procedures: &[Procedure]) -> String {
    let mut out = String::new();
    for (index, procedure) in procedures.iter().enumerate() {
        let name = procedure.name.as_str();
        let function = FIRST_FUNCTION + index as u16;
        if lists(NOT_EXPORTED, name) || lists(BY_HAND, name) {
            continue;
        }
        let twin = procedure.large.as_ref().map(|parameters| (format!("{name}_c"), parameters));
        let both = std::iter::once((name.to_owned(), &procedure.parameters)).chain(twin);
        for (symbol, parameters) in both {
            let how = recording(&mut out, name, &symbol, function, parameters);
            entry(&mut out, &symbol, parameters, &how);
            entry(&mut out, &format!("P{symbol}"), parameters, &how);
        }
    }
    out
}

/// Constants for the numbers that hand-written code refers to.
fn numbers(procedures: &[Procedure], most_arguments: usize, work: u16) -> String {
    let mut out = format!(
        "/// Number of arguments of the interposed function with the most arguments.\n\
         pub const MAX_ARGUMENTS: usize = {most_arguments};\n\
         /// Number of the last procedure. The compute functions follow.\n\
         pub const LAST_PROCEDURE: u16 = {};\n\
         /// Number of declared work in a trace.\n\
         pub const WORK: u16 = {work};\n",
        FIRST_FUNCTION + procedures.len() as u16 - 1
    );
    for (function, procedure) in (FIRST_FUNCTION..).zip(procedures) {
        let name = procedure.name.as_str();
        if lists(NUMBERED, name) {
            let short = name.trim_start_matches("MPI_").to_uppercase();
            writeln!(
                out,
                "/// Number of `{name}` in a trace.\npub const {short}: u16 = {function};"
            )
            .expect("writing to a string");
        }
    }
    out
}

fn invoke(most: usize) -> String {
    let mut out = String::new();
    for count in 0..=most {
        let (_, names) = arguments(count);
        let types = vec!["usize"; count].join(", ");
        writeln!(
            out,
            "impl Invoke for [usize; {count}] {{\n\
             \x20   #[inline(always)]\n\
             \x20   unsafe fn invoke(self, entry: *const c_void) -> usize {{\n\
             \x20       let [{names}] = self;\n\
             \x20       // SAFETY: the caller vouches for the entry taking {count} machine words.\n\
             \x20       unsafe {{\n\
             \x20           transmute::<*const c_void, unsafe extern \"C-unwind\" fn({types}) -> usize>(entry)({names})\n\
             \x20       }}\n\
             \x20   }}\n\
             }}"
        )
        .expect("writing to a string");
    }
    out
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_compute.rs");
    let procedures = all();
    let most = procedures
        .iter()
        .flat_map(|p| [p.parameters.len(), p.large.as_ref().map_or(0, Vec::len)])
        .max()
        .unwrap_or(0)
        .max(build_compute::MAX_PLANNER_ARGUMENTS);
    let most_of_all = most.max(build_compute::most_arguments());
    let first_compute = FIRST_FUNCTION + procedures.len() as u16;
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, text: &str| {
        std::fs::write(Path::new(&folder).join(name), text).expect("OUT_DIR is writable");
    };
    write("invoke.rs", &invoke(most));
    let work = build_compute::declared_work(first_compute);
    write("numbers.rs", &numbers(&procedures, most_of_all, work));
    write("entries.rs", &entries(&procedures));
    write("compute_entries.rs", &build_compute::entries(first_compute));
}
