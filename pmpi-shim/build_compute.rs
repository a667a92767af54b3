//! Generates the interposed compute functions from `trace_format::compute`.

use std::fmt::Write as _;

use trace_format::compute::{
    Executor, Function, Group, Interface, Kind, Parameter, Planner, all, executors, planners,
};
use trace_format::functions::{DECLARED_WORK, compute_names};

/// Number of arguments that a planner's wrapper passes on: `plans::MAX_ARGUMENTS`.
pub const MAX_PLANNER_ARGUMENTS: usize = 14;

/// Wrappers of all functions, numbered from `first`.
pub fn entries(first: u16) -> String {
    let mut out = String::new();
    let names = compute_names();
    let number = |name: &str| {
        let at =
            names.iter().position(|other| other == name).expect("both come from the same table");
        first + at as u16
    };
    for function in all() {
        linear_algebra(&mut out, &function, number(&function.name));
    }
    for Executor { symbol, name, by_reference } in executors() {
        writeln!(
            out,
            "entry_stub!({symbol}, transform_{symbol});\n\
             unsafe extern \"C-unwind\" fn transform_{symbol}(a: usize, b: usize, c: usize, d: usize, e: usize) -> usize {{\n\
             \x20   static REAL: RealEntry = RealEntry::new(c\"{symbol}\");\n\
             \x20   // SAFETY: the words are passed on unchanged; the first is a plan or its address.\n\
             \x20   unsafe {{ transformed(&REAL, ({}, {by_reference}), [a, b, c, d, e]) }}\n\
             }}",
            number(&name)
        )
        .expect("writing to a string");
    }
    for planner in planners() {
        let Planner { name, lengths, factor, communicator, by_reference } = planner;
        let names: Vec<String> = (0..MAX_PLANNER_ARGUMENTS).map(|at| format!("a{at}")).collect();
        let parameters_text: Vec<String> =
            names.iter().map(|name| format!("{name}: usize")).collect();
        writeln!(
            out,
            "entry_stub!({name}, plan_{name});\n\
             #[allow(clippy::too_many_arguments)]\n\
             unsafe extern \"C-unwind\" fn plan_{name}({}) -> usize {{\n\
             \x20   static REAL: RealEntry = RealEntry::new(c\"{name}\");\n\
             \x20   let form = Form {{ lengths: Lengths::{lengths:?}, factor: {factor:?}, \
                 communicator: {communicator:?}, by_reference: {by_reference} }};\n\
             \x20   // SAFETY: the words are passed on unchanged; the form is this planner's.\n\
             \x20   unsafe {{ planned(&REAL, form, [{}]) }}\n\
             }}",
            parameters_text.join(", "),
            names.join(", ")
        )
        .expect("writing to a string");
    }
    out
}

/// Number of arguments of the function with the most, including the lengths of Fortran's
/// characters.
pub fn most_arguments() -> usize {
    let options = |f: &Function| f.parameters.iter().filter(|p| p.kind == Kind::Option).count();
    all().iter().map(|f| f.parameters.len() + options(f)).max().unwrap_or(0)
}

/// Number of declared work in a trace.
pub fn declared_work(first: u16) -> u16 {
    let at = compute_names().iter().position(|name| name == DECLARED_WORK);
    first + at.expect("it is in the list") as u16
}

fn type_of(parameter: &Parameter) -> &'static str {
    match parameter.kind {
        Kind::Single => "f32",
        Kind::Double => "f64",
        _ => "usize",
    }
}

/// Whether an expression contains a variable.
fn names(expression: &str, variable: &str) -> bool {
    expression.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == variable)
}

fn linear_algebra(out: &mut String, function: &Function, number: u16) {
    let Function { name, parameters, interface, work, elements, .. } = function;
    let fortran = *interface == Interface::Fortran;
    // Fortran passes the lengths of its characters behind all arguments.
    let lengths = parameters.iter().filter(|p| fortran && p.kind == Kind::Option).count();
    let types: Vec<&str> =
        parameters.iter().map(type_of).chain(std::iter::repeat_n("usize", lengths)).collect();
    let parameters_text: Vec<String> =
        types.iter().enumerate().map(|(at, kind)| format!("a{at}: {kind}")).collect();
    let passed: Vec<String> = (0..types.len()).map(|at| format!("a{at}")).collect();
    let mut values = String::new();
    for (at, parameter) in parameters.iter().enumerate() {
        let used = [work, elements].iter().any(|text| names(text, &parameter.name));
        let value = match (parameter.kind, fortran) {
            (Kind::Integer, true) => format!("unsafe {{ size_at(a{at}) }}"),
            (Kind::Integer, false) => format!("size(a{at} as c_int)"),
            (Kind::Option, true) => format!("unsafe {{ letter_at(a{at}) }}"),
            (Kind::Option, false) => format!("letter(a{at})"),
            _ => continue,
        };
        if used {
            writeln!(
                values,
                "        // SAFETY: the program passes what the library's interface says.\n\
                 \x20       let {} = {value};",
                parameter.name
            )
            .expect("writing to a string");
        }
    }
    // A query for the size of the work space does no work.
    if let Some(at) = parameters.iter().position(|parameter| parameter.name == "lwork") {
        values = format!(
            "        // SAFETY: the program passes a pointer to an integer.\n\
             \x20       if unsafe {{ is_query(a{at}) }} {{ return Work::NONE; }}\n{values}"
        );
    }
    // A float is returned in the low half of the same register.
    let result = if function.returns_real { "f64" } else { "usize" };
    let from = if function.group == Group::Light { "ALL" } else { "LARGER" };
    writeln!(
        out,
        "entry_stub!({name}, compute_{name});\n\
         #[allow(clippy::too_many_arguments, unused_unsafe)]\n\
         unsafe extern \"C-unwind\" fn compute_{name}({}) -> {result} {{\n\
         \x20   static REAL: RealEntry = RealEntry::new(c\"{name}\");\n\
         \x20   let work = || {{\n{values}\
         \x20       Work::new({}, {}, {}.0 * ({}))\n\
         \x20   }};\n\
         \x20   let invoke = |real: *const c_void| {{\n\
         \x20       // SAFETY: the arguments are passed on unchanged to the function of this name.\n\
         \x20       unsafe {{ transmute::<*const c_void, unsafe extern \"C-unwind\" fn({}) -> {result}>(real)({}) }}\n\
         \x20   }};\n\
         \x20   // SAFETY: as above.\n\
         \x20   unsafe {{ computed(&REAL, ({number}, {from}), work, invoke) }}\n\
         }}",
        parameters_text.join(", "),
        floats(work),
        function.complex,
        function.element_bytes,
        floats(elements),
        types.join(", "),
        passed.join(", ")
    )
    .expect("writing to a string");
}

/// Writes the integers of an expression as floating-point literals.
fn floats(expression: &str) -> String {
    let mut text = String::new();
    let mut rest = expression;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let begins =
            at == 0 || !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let end = rest[at..]
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .map_or(rest.len(), |end| at + end);
        text.push_str(&rest[..end]);
        if begins && !rest[at..end].contains('.') {
            text.push_str(".0");
        }
        rest = &rest[end..];
    }
    text + rest
}
