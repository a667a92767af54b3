//! Names that Extra-P gives.

/// What it calls the whole program.
pub const WHOLE: &str = "<root>";
/// The metric where none is named.
pub const TIME: &str = "time";
