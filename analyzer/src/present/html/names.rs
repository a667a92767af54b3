//! Names of functions, as the data of timelines refers to them.

use crate::metrics::activity::Kind;

/// The name under which the recorder's own time appears among the functions.
pub(super) const TOOL_NAME: &str = "recorder";

/// The kind of each of these functions.
pub(super) fn kinds(functions: &[String]) -> Vec<usize> {
    let kind = |name: &String| match name.as_str() {
        TOOL_NAME => Kind::Tool,
        name => Kind::of_function(name),
    };
    functions.iter().map(|name| kind(name) as usize).collect()
}
