//! Names that Extra-P uses.

/// Region of the whole program.
pub const WHOLE: &str = "<root>";
/// Default metric.
pub const TIME: &str = "time";
