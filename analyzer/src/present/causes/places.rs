//! Words for call sites. A site in a library is named by the place in the user's own program that called it, if
//! known, with the library's function behind it.

use crate::causes::CallSite;
use crate::metrics::Frame;
use crate::present::code_place::{code_place, file_name, offset};
use crate::trace::symbols::SourceLocation;

/// `MPI_Recv at solve (heat.c:42)`, or `MPI_Recv at solve.c:120 (in MatMult, libpetsc)`.
pub(in crate::present) fn call_site(site: &CallSite) -> String {
    match (site.module.is_empty(), &site.caller) {
        (true, _) => site.function.clone(),
        (false, Some(_)) => format!("{} at {}", site.function, short_site(site)),
        (false, None) => {
            let place = code_place(&site.module, site.address, &site.place);
            format!("{} at {place}", site.function)
        }
    }
}

/// File and line of a call site, or, in this order, the calling function, the address, the MPI function: the first
/// that is known.
pub(super) fn short_site(site: &CallSite) -> String {
    match &site.caller {
        Some(caller) => format!("{} ({})", short_frame(caller), in_library(site)),
        None if site.module.is_empty() => site.function.clone(),
        None => short_place(&site.module, site.address, &site.place),
    }
}

fn short_frame(Frame { module, address, place }: &Frame) -> String {
    short_place(module, *address, place)
}

fn short_place(module: &str, address: u64, place: &SourceLocation) -> String {
    let SourceLocation { function, file, line } = place;
    match (file, line, function) {
        (Some(file), Some(line), _) => format!("{}:{line}", file_name(file)),
        (.., Some(function)) => function.clone(),
        _ => offset(module, address),
    }
}

/// `in MatMult, libpetsc`.
fn in_library(site: &CallSite) -> String {
    let library = library_name(&site.module);
    match &site.place.function {
        Some(function) => format!("in {function}, {library}"),
        None => format!("in {library}"),
    }
}

/// The name of a library without its version: `libpetsc`.
pub(in crate::present) fn library_name(module: &str) -> &str {
    let name = file_name(module);
    [".so", ".cpython-", ".abi3"]
        .into_iter()
        .fold(name, |name, end| name.split_once(end).map_or(name, |(before, _)| before))
}

/// A call site in a table: `MPI_Recv heat.c:42`.
pub(super) fn brief_site(site: &CallSite) -> String {
    match site.module.is_empty() {
        true => site.function.clone(),
        false => format!("{} {}", site.function, short_site(site)),
    }
}

/// Two call sites in a table: `heat.c:42-61`.
pub(super) fn brief_stretch(from: &CallSite, to: &CallSite) -> String {
    let (from_text, to_text) = (short_site(from), short_site(to));
    if from_text == to_text {
        return format!("{from_text} to its next call");
    }
    let ((from_file, _), (to_file, line)) = (shown_line(from), shown_line(to));
    let same_file = to_file.filter(|_| from_file == to_file).zip(line);
    match same_file {
        Some((file, line)) => {
            let to_line = to_text.strip_prefix(file_name(file)).unwrap_or(&to_text);
            // Where nothing stands behind the lines, they are a range.
            match to_line == format!(":{line}") && !from_text.ends_with(')') {
                true => format!("{from_text}-{line}"),
                false => format!("{from_text} to {to_line}"),
            }
        }
        None => format!("{from_text} to {to_text}"),
    }
}

/// File and line that [`short_site`] shows.
fn shown_line(site: &CallSite) -> (Option<&str>, Option<u32>) {
    let place = site.caller.as_ref().map_or(&site.place, |caller| &caller.place);
    (place.file.as_deref(), place.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, file: Option<&str>, line: u32) -> SourceLocation {
        let file = file.map(str::to_owned);
        SourceLocation { function: Some(function.into()), line: file.as_ref().map(|_| line), file }
    }

    /// A call in a library, called from a line of solve.c.
    fn in_petsc(function: &str, line: u32) -> CallSite {
        let module = "/opt/petsc/lib/libpetsc.so.3.18".to_owned();
        let caller = Frame {
            module: "/home/ada/solve".into(),
            address: 0x12ec,
            place: place("main", Some("src/solve.c"), line),
        };
        CallSite {
            function: "MPI_Allreduce".into(),
            module,
            address: 0x4711,
            place: place(function, Some("mat.c"), 9),
            is_in_library: true,
            caller: Some(Box::new(caller)),
        }
    }

    #[test]
    fn library_stands_behind_the_programs_line() {
        let (mult, dot) = (in_petsc("MatMult", 120), in_petsc("VecDot", 131));
        assert_eq!(call_site(&mult), "MPI_Allreduce at solve.c:120 (in MatMult, libpetsc)");
        assert_eq!(brief_site(&mult), "MPI_Allreduce solve.c:120 (in MatMult, libpetsc)");
        let stretch = "solve.c:120 (in MatMult, libpetsc) to :131 (in VecDot, libpetsc)";
        assert_eq!(brief_stretch(&mult, &dot), stretch);
        let again = "solve.c:120 (in MatMult, libpetsc) to its next call";
        assert_eq!(brief_stretch(&mult, &mult), again);
        let own = CallSite { is_in_library: false, caller: None, ..mult.clone() };
        let mut later = own.clone();
        later.place.line = Some(12);
        assert_eq!(brief_stretch(&own, &later), "mat.c:9-12");
        assert_eq!(call_site(&own), "MPI_Allreduce at MatMult (mat.c:9)");
        assert_eq!(brief_stretch(&own, &dot), "mat.c:9 to solve.c:131 (in VecDot, libpetsc)");
        let mut stripped = dot;
        stripped.place = SourceLocation::default();
        assert_eq!(short_site(&stripped), "solve.c:131 (in libpetsc)");
    }

    #[test]
    fn libraries_have_no_versions() {
        let names = ["/opt/lib/libhdf5.so.103", "MPI.cpython-312-x86_64-linux-gnu.so", "flow"];
        assert_eq!(names.map(library_name), ["libhdf5", "MPI", "flow"]);
    }
}
