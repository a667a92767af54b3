//! What the arguments of a procedure mean for its event: a constant of each wrapper. And the numbers of
//! the functions that are known by name. Both made by `build.rs` from the table of procedures.

pub use trace_format::meaning::plan::{NONE, Per, Plan, Shape, Side};

/// A procedure with its plan.
pub trait Procedure {
    /// Where its arguments stand.
    const PLAN: Plan;
}

/// Numbers of functions in a trace, and of arguments.
pub mod numbers {
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}
