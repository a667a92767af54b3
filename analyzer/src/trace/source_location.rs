//! Where code is in the program's source.

use serde::{Deserialize, Serialize};

/// Location of an address in the program's source.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceLocation {
    /// Name of the function; `None` if it was stripped from the module. A symbol that merely
    /// precedes the address belongs to another function.
    pub function: Option<String>,
    /// Source file as it was passed to the compiler.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}
