//! The table of interposed compute functions, `compute/functions.txt`, whose head explains its
//! format.

/// The contents of the file.
const TABLE: &str = include_str!("../../compute/functions.txt");

/// Precisions of FFTW: prefixes of its names.
const FFTW: [&str; 3] = ["fftw", "fftwf", "fftwl"];
/// Prefixes of its legacy Fortran interface, and the suffixes of its names: one underscore, or the
/// two that some compilers append to names that contain an underscore.
const FFTW_FORTRAN: [&str; 3] = ["dfftw", "sfftw", "lfftw"];
const FORTRAN_ENDS: [&str; 2] = ["_", "__"];
/// FFTW's functions that execute a plan, their first argument.
const FFTW_EXECUTE: [&str; 8] = [
    "execute",
    "execute_dft",
    "execute_r2r",
    "execute_dft_r2c",
    "execute_dft_c2r",
    "execute_split_dft",
    "execute_split_dft_r2c",
    "execute_split_dft_c2r",
];
/// Functions that C programs with MPI may use in addition.
const FFTW_MPI_EXECUTE: [&str; 4] =
    ["mpi_execute_dft", "mpi_execute_dft_r2c", "mpi_execute_dft_c2r", "mpi_execute_r2r"];

/// Where a planner's lengths are among its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// The first arguments, this many.
    Each(usize),
    /// (rank, lengths).
    Array,
    /// (rank, lengths, count).
    Many,
    /// (rank, dimensions, rank of the batch, dimensions of the batch); a dimension is a 32-bit
    /// integer and two strides.
    Guru,
    /// The same with 64 bits.
    Guru64,
    /// Fortran: (rank, lengths, strides, strides, rank of the batch, its lengths).
    SplitGuru,
}

/// A function of FFTW that makes a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planner {
    /// Name of its symbol.
    pub name: String,
    /// Where the lengths are.
    pub lengths: Lengths,
    /// Operations of a transform of N points divided by N·log2 N: 5, or 2.5 if one side is real.
    pub factor: f64,
    /// Index of the communicator whose ranks share the transform. If there is one, lengths have 64
    /// bits.
    pub communicator: Option<usize>,
    /// Whether it belongs to the Fortran interface: the plan is written to the address in the first
    /// argument, and the others are passed by reference.
    pub by_reference: bool,
}

/// A function of FFTW that executes a plan, its first argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    /// The symbol.
    pub symbol: String,
    /// Name in a trace. For Fortran's two symbols, the one with one underscore.
    pub name: String,
    /// Whether it belongs to the Fortran interface: the first argument is the address of the plan.
    pub by_reference: bool,
}

/// FFTW's functions that execute a plan.
pub fn executors() -> Vec<Executor> {
    let mut executors = Vec::new();
    for prefix in FFTW {
        for stem in FFTW_EXECUTE.iter().chain(&FFTW_MPI_EXECUTE) {
            let name = format!("{prefix}_{stem}");
            executors.push(Executor { symbol: name.clone(), name, by_reference: false });
        }
    }
    for prefix in FFTW_FORTRAN {
        for (stem, end) in FFTW_EXECUTE.iter().flat_map(|s| FORTRAN_ENDS.map(|end| (s, end))) {
            executors.push(Executor {
                symbol: format!("{prefix}_{stem}{end}"),
                name: format!("{prefix}_{stem}_"),
                by_reference: true,
            });
        }
    }
    executors
}

/// FFTW's transforms: stem, kind, operations for N points divided by N·log2 N.
const FFTW_TRANSFORMS: [(&str, &str, f64); 4] =
    [("dft", "", 5.0), ("dft", "_r2c", 2.5), ("dft", "_c2r", 2.5), ("r2r", "", 2.5)];

/// FFTW's planners.
pub fn planners() -> Vec<Planner> {
    let mut planners = c_planners();
    for prefix in FFTW_FORTRAN {
        for ((stem, kind, factor), end) in
            FFTW_TRANSFORMS.into_iter().flat_map(|one| FORTRAN_ENDS.map(|end| (one, end)))
        {
            let mut add = |name: String, lengths| {
                let name = format!("{prefix}_plan_{name}{end}");
                planners.push(Planner {
                    name,
                    lengths,
                    factor,
                    communicator: None,
                    by_reference: true,
                });
            };
            for d in 1..=3 {
                add(format!("{stem}{kind}_{d}d"), Lengths::Each(d));
            }
            add(format!("{stem}{kind}"), Lengths::Array);
            add(format!("many_{stem}{kind}"), Lengths::Many);
            add(format!("guru_{stem}{kind}"), Lengths::SplitGuru);
            if stem == "dft" {
                add(format!("guru_split_{stem}{kind}"), Lengths::SplitGuru);
            }
        }
    }
    planners
}

fn c_planners() -> Vec<Planner> {
    let mut planners = Vec::new();
    for prefix in FFTW {
        for (stem, kind, factor) in FFTW_TRANSFORMS {
            let mut add = |name: String, lengths, communicator| {
                let name = format!("{prefix}_{name}");
                let by_reference = false;
                planners.push(Planner { name, lengths, factor, communicator, by_reference });
            };
            for d in 1..=3 {
                add(format!("plan_{stem}{kind}_{d}d"), Lengths::Each(d), None);
                // FFTW has no one-dimensional MPI transform with a real side.
                if d > 1 || (stem, kind) == ("dft", "") {
                    add(format!("mpi_plan_{stem}{kind}_{d}d"), Lengths::Each(d), Some(d + 2));
                }
            }
            add(format!("plan_{stem}{kind}"), Lengths::Array, None);
            add(format!("plan_many_{stem}{kind}"), Lengths::Many, None);
            add(format!("plan_guru_{stem}{kind}"), Lengths::Guru, None);
            add(format!("plan_guru64_{stem}{kind}"), Lengths::Guru64, None);
            if stem == "dft" {
                add(format!("plan_guru_split_{stem}{kind}"), Lengths::Guru, None);
                add(format!("plan_guru64_split_{stem}{kind}"), Lengths::Guru64, None);
            }
            add(format!("mpi_plan_{stem}{kind}"), Lengths::Array, Some(4));
            add(format!("mpi_plan_many_{stem}{kind}"), Lengths::Many, Some(7));
        }
    }
    planners
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// CBLAS: values, enumerations.
    C,
    /// Fortran: everything by reference, followed by the lengths of characters.
    Fortran,
}

/// How a parameter is passed and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ignored: one machine word.
    Word,
    /// A character or enumeration.
    Option,
    /// An integer.
    Integer,
    /// A 32-bit floating-point number by value.
    Single,
    /// A 64-bit floating-point number by value.
    Double,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the expression for the work.
    pub name: String,
    /// How it is passed.
    pub kind: Kind,
}

/// The group that a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// BLAS 1 and 2 (except for the triangular solve): recorded only if operations are counted.
    /// They do not count as separate computation, so that γ of `--compute blas` covers the larger
    /// calls only.
    Light,
    /// BLAS 3 and trsv, LAPACK.
    Heavy,
}

/// An interposed function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name in a trace and of the symbol.
    pub name: String,
    /// How it is called.
    pub interface: Interface,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Whether it returns a floating-point number.
    pub returns_real: bool,
    /// Expression for its work.
    pub work: String,
    /// Expression for the number of elements of its operands.
    pub elements: String,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Whether its numbers are complex.
    pub complex: bool,
    /// The group it belongs to.
    pub group: Group,
}

/// The functions in the order of the table.
///
/// # Panics
/// If a row of the table cannot be parsed. A test parses all of them.
pub fn all() -> Vec<Function> {
    let rows = TABLE.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.flat_map(functions_of).collect()
}

/// Names in a trace of FFTW's functions that execute a plan.
pub fn fftw() -> Vec<String> {
    let mut names: Vec<String> = executors().into_iter().map(|one| one.name).collect();
    names.dedup();
    names
}

fn functions_of(row: &str) -> Vec<Function> {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let [group, stem, types, interfaces, parameters, work, elements] = cells[..] else {
        panic!("expected seven cells: {row}");
    };
    let mut functions = Vec::new();
    for prefix in types.split_whitespace() {
        for interface in interfaces.split_whitespace() {
            let interface = if interface == "c" { Interface::C } else { Interface::Fortran };
            let words = || parameters.split_whitespace();
            let name = match interface {
                Interface::C => format!("cblas_{prefix}{stem}"),
                Interface::Fortran => format!("{prefix}{stem}_"),
            };
            functions.push(Function {
                name,
                interface,
                parameters: words().filter_map(|word| parameter(word, prefix, interface)).collect(),
                returns_real: words().any(|word| word == "->r"),
                work: work.to_owned(),
                elements: elements.to_owned(),
                element_bytes: if is_single(prefix) { 4 } else { 8 }
                    * if is_complex(prefix) { 2 } else { 1 },
                complex: is_complex(prefix),
                group: if matches!(group, "1" | "2") { Group::Light } else { Group::Heavy },
            });
        }
    }
    functions
}

fn is_complex(prefix: &str) -> bool {
    prefix.contains(['c', 'z'])
}

fn is_single(prefix: &str) -> bool {
    matches!(prefix, "s" | "c" | "sc")
}

fn parameter(word: &str, prefix: &str, interface: Interface) -> Option<Parameter> {
    let by_value = if is_single(prefix) { Kind::Single } else { Kind::Double };
    let c = interface == Interface::C;
    let (kind, name) = match word.chars().next()? {
        '-' => return None,
        '=' if !c => return None,
        '=' => (Kind::Word, &word[1..]),
        '\'' => (Kind::Option, &word[1..]),
        '#' => (Kind::Integer, &word[1..]),
        '$' if c && !is_complex(prefix) => (by_value, &word[1..]),
        '%' if c => (by_value, &word[1..]),
        '$' | '%' => (Kind::Word, &word[1..]),
        _ => (Kind::Word, word),
    };
    Some(Parameter { name: name.to_owned(), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        let names: Vec<String> = all().into_iter().map(|f| f.name).chain(fftw()).collect();
        for known in [
            "cblas_dgemm",
            "zgemm_",
            "cblas_scnrm2",
            "dznrm2_",
            "cblas_zdotc_sub",
            "dgetrf_",
            "cheev_",
            "dsyev_",
            "fftw_execute",
            "fftwf_mpi_execute_dft",
            "dfftw_execute_dft_",
        ] {
            assert!(names.iter().any(|name| name == known), "{known}");
        }
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
    }

    #[test]
    fn cblas_real_scalars_are_numbers_and_complex_ones_words() {
        let kinds = |name: &str| -> Vec<(String, Kind)> {
            let function = all().into_iter().find(|function| function.name == name).unwrap();
            function.parameters.into_iter().map(|p| (p.name, p.kind)).collect()
        };
        let kind = |name: &str, parameter: &str| {
            kinds(name).into_iter().find(|(other, _)| other == parameter).unwrap().1
        };
        assert_eq!(kind("cblas_sgemm", "alpha"), Kind::Single);
        assert_eq!(kind("cblas_dgemm", "beta"), Kind::Double);
        assert_eq!(kind("cblas_zgemm", "beta"), Kind::Word);
        assert_eq!(kind("cblas_zherk", "alpha"), Kind::Double);
        assert_eq!(kind("dgemm_", "alpha"), Kind::Word);
        assert_eq!((kinds("cblas_dgemm").len(), kinds("dgemm_").len()), (14, 13));
        assert_eq!(kind("dgemm_", "ta"), Kind::Option);
    }
}
