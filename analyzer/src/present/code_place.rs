//! Names the place in a program at which an address lies.

use crate::trace::symbols::SourceLocation;

/// `solve (heat.c:42)`, or the parts of it that are known.
pub(super) fn code_place(module: &str, address: u64, place: &SourceLocation) -> String {
    match (&place.function, file_and_line(place)) {
        (Some(function), Some(line)) => format!("{function} ({line})"),
        (Some(function), None) => format!("{function} ({})", offset(module, address)),
        (None, Some(line)) => line,
        (None, None) => offset(module, address),
    }
}

/// `heat.c:42` or, without debugging information, the program or library.
pub(super) fn source(module: &str, file: Option<&str>, line: Option<u32>) -> String {
    let name = file_name(file.unwrap_or(module));
    line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"))
}

/// `heat.c:42`, or the file alone; `None` if neither is known.
pub(super) fn file_and_line(place: &SourceLocation) -> Option<String> {
    Some(source("", Some(place.file.as_deref()?), place.line))
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
