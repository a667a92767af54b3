//! Names the place in a program at which an address lies.

use crate::trace::symbols::SourceLocation;

/// `solve (heat.c:42)`, or the parts of it that are known.
pub(super) fn code_place(module: &str, address: u64, place: &SourceLocation) -> String {
    let line = match (&place.file, place.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", file_name(file))),
        (Some(file), None) => Some(file_name(file).to_owned()),
        (None, _) => None,
    };
    match (&place.function, line) {
        (Some(function), Some(line)) => format!("{function} ({line})"),
        (Some(function), None) => format!("{function} ({})", offset(module, address)),
        (None, Some(line)) => line,
        (None, None) => offset(module, address),
    }
}

/// `heat+0x12ec`, for code without a known name.
pub(super) fn offset(module: &str, address: u64) -> String {
    let module = match module {
        "" => "unknown code",
        path => file_name(path),
    };
    format!("{module}+{address:#x}")
}

/// The last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
