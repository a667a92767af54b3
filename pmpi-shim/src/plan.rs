//! What the arguments of a procedure mean for its event: a constant of each wrapper, made by `build.rs`
//! from the table of meanings.

pub use trace_format::meaning::plan::{NONE, Per, Plan, Shape, Side};

/// A procedure with its plan.
pub trait Procedure {
    /// Where its arguments stand.
    const PLAN: Plan;
}
