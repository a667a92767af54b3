//! Names of functions that Cython made, such as those of mpi4py, as Python writes them.

/// `mpi4py.MPI.Comm.Get_size` for `__pyx_pw_6mpi4py_3MPI_4Comm_17Get_size`; `None` for another name.
///
/// Behind the kind of function stand the scopes, each after its length, then the name, in wrappers
/// after a number. What the compiler appended (`.constprop.0`) is left out.
pub(super) fn python_name(symbol: &str) -> Option<String> {
    const PREFIX: &str = "__pyx_";
    // Variants of a function have a prefix of their own before the usual one.
    let from = symbol.rfind(PREFIX).filter(|_| symbol.starts_with(PREFIX))? + PREFIX.len();
    let (kind, mut rest) = symbol[from..].split_once('_')?;
    if !matches!(kind, "f" | "pf" | "pw") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    while let Some((scope, behind)) = scope(rest) {
        parts.push(scope);
        rest = behind;
    }
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let name = name.split('.').next().filter(|name| !name.is_empty() && !parts.is_empty())?;
    parts.push(name);
    Some(parts.join("."))
}

/// The scope at the begin of a name, and what follows it.
fn scope(name: &str) -> Option<(&str, &str)> {
    let digits = name.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = name[..digits].parse().ok()?;
    let end = digits.checked_add(length)?;
    let behind = name.get(end..)?.strip_prefix('_')?;
    Some((&name[digits..end], behind))
}

#[cfg(test)]
mod tests {
    use super::python_name;

    #[test]
    fn names_are_as_in_python() {
        for (symbol, expected) in [
            ("__pyx_f_6mpi4py_3MPI_PyMPI_isend", Some("mpi4py.MPI.PyMPI_isend")),
            (
                "__pyx_f_6mpi4py_3MPI_PyMPI_bcast_p2p.constprop.0",
                Some("mpi4py.MPI.PyMPI_bcast_p2p"),
            ),
            ("__pyx_pw_6mpi4py_3MPI_4Comm_17Get_size", Some("mpi4py.MPI.Comm.Get_size")),
            ("__pyx_fuse_1__pyx_f_6mpi4py_3MPI_set", Some("mpi4py.MPI.set")),
            ("__pyx_pymod_exec_MPI", None),
            ("__pyx_f_99mpi4py", None),
            ("__pyx_f_", None),
            ("PyMPI_recv", None),
            ("__pyx_f_18446744073709551615_x", None),
        ] {
            assert_eq!(python_name(symbol).as_deref(), expected, "{symbol}");
        }
    }
}
