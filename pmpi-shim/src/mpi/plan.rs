//! The meaning of a procedure's arguments, a constant of each wrapper, and the numbers of the
//! functions that the recorder refers to. `build.rs` makes both from the table of procedures.

pub use trace_format::meaning::plan::{NONE, Per, Plan, Shape, Side};

/// A procedure with its plan.
pub trait Procedure {
    /// Positions of its arguments.
    const PLAN: Plan;
}

/// Numbers of functions in a trace, and maximum numbers of arguments.
pub mod numbers {
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}
