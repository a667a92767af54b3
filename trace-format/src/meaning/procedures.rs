//! MPI's C procedures with the kinds of their parameters.
//!
//! The table `procedures/mpi-procedures.tsv` was made by `scripts/make-procedure-table` from the
//! MPI Forum's machine-readable list. [`all`] adds the ten removed MPI-1 names that today's
//! libraries still export, and returns one [`Procedure`] per name, in the order in which a trace
//! numbers the functions.

/// The committed table.
const TABLE: &str = include_str!("../../procedures/mpi-procedures.tsv");

/// Names that MPI-3.0 removed and libraries still export, with their parameters in the same
/// notation.
const REMOVED: &str = "\
MPI_Address\tERROR_CODE\tno\tlocation:BUFFER:in address:LOCATION_SMALL:out
MPI_Errhandler_create\tERROR_CODE\tno\tcomm_errhandler_fn:FUNCTION:in errhandler:ERRHANDLER:out
MPI_Errhandler_get\tERROR_CODE\tno\tcomm:COMMUNICATOR:in errhandler:ERRHANDLER:out
MPI_Errhandler_set\tERROR_CODE\tno\tcomm:COMMUNICATOR:in errhandler:ERRHANDLER:in
MPI_Type_extent\tERROR_CODE\tno\tdatatype:DATATYPE:in extent:LOCATION_SMALL:out
MPI_Type_hindexed\tERROR_CODE\tno\tcount:ARRAY_LENGTH_NNI:in array_of_blocklengths:ARRAY_LENGTH_NNI[count]:in array_of_displacements:DISPLACEMENT[count]:in oldtype:DATATYPE:in newtype:DATATYPE:out
MPI_Type_hvector\tERROR_CODE\tno\tcount:ARRAY_LENGTH_NNI:in blocklength:ARRAY_LENGTH_NNI:in stride:DISPLACEMENT:in oldtype:DATATYPE:in newtype:DATATYPE:out
MPI_Type_lb\tERROR_CODE\tno\tdatatype:DATATYPE:in displacement:LOCATION_SMALL:out
MPI_Type_struct\tERROR_CODE\tno\tcount:ARRAY_LENGTH_NNI:in array_of_blocklengths:ARRAY_LENGTH_NNI[count]:in array_of_displacements:DISPLACEMENT[count]:in array_of_types:DATATYPE[count]:in newtype:DATATYPE:out
MPI_Type_ub\tERROR_CODE\tno\tdatatype:DATATYPE:in displacement:LOCATION_SMALL:out
";

/// Direction of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Read by MPI.
    In,
    /// Written by MPI.
    Out,
    /// Read and written.
    InOut,
}

/// One parameter of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the standard.
    pub name: String,
    /// The standard's kind, such as `BUFFER`, `RANK`, `COMMUNICATOR`.
    pub kind: String,
    /// Length of an array: a parameter's name, a number, or `*` if the list gives none.
    pub array: Option<String>,
    /// Direction of its value.
    pub direction: Direction,
    /// Whether it is significant at the root only.
    pub root_only: bool,
}

/// One C procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    /// Base name, `MPI_…` without `_c`.
    pub name: String,
    /// Kind of the returned value; nearly always `ERROR_CODE`.
    pub returns: String,
    /// Parameters of the base procedure, in order.
    pub parameters: Vec<Parameter>,
    /// Parameters of the large-count variant `NAME_c`, if there is one.
    pub large: Option<Vec<Parameter>>,
}

/// Every procedure: the table's rows in (alphabetical) order, then the removed names.
pub fn all() -> Vec<Procedure> {
    TABLE
        .lines()
        .chain(REMOVED.lines())
        .filter(|line| !line.starts_with('#'))
        .map(|line| parse(line).unwrap_or_else(|| panic!("invalid row of the table: {line}")))
        .collect()
}

fn parse(line: &str) -> Option<Procedure> {
    let mut fields = line.split('\t');
    let (name, returns, large) = (fields.next()?, fields.next()?, fields.next()? == "yes");
    let both: Vec<(Parameter, bool)> =
        fields.next()?.split_whitespace().map(parse_parameter).collect::<Option<_>>()?;
    let base = both.iter().filter(|(_, large_only)| !large_only).map(|(p, _)| p.clone()).collect();
    Some(Procedure {
        name: name.to_owned(),
        returns: returns.to_owned(),
        parameters: base,
        large: large.then(|| both.into_iter().map(|(p, _)| p).collect()),
    })
}

/// The parameter, and whether only the `_c` variant has it.
fn parse_parameter(text: &str) -> Option<(Parameter, bool)> {
    let mut parts = text.split(':');
    let (name, kind, direction) = (parts.next()?, parts.next()?, parts.next()?);
    let flags: Vec<&str> = parts.collect();
    let (kind, array) = match kind.split_once('[') {
        Some((kind, length)) => (kind, Some(length.strip_suffix(']')?.to_owned())),
        None => (kind, None),
    };
    let direction = match direction {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        _ => return None,
    };
    let parameter = Parameter {
        name: name.to_owned(),
        kind: kind.to_owned(),
        array,
        direction,
        root_only: flags.contains(&"root"),
    };
    Some((parameter, flags.contains(&"large")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_matches_standard() {
        let procedures = all();
        assert_eq!(procedures.len(), 531 + 10);
        assert_eq!(procedures.iter().filter(|p| p.large.is_some()).count(), 159);
        // With more than six arguments, the rest are passed on the stack.
        let wide = procedures
            .iter()
            .flat_map(|p| [Some(&p.parameters), p.large.as_ref()])
            .flatten()
            .filter(|p| p.len() > 6);
        assert!(wide.count() >= 101);
    }

    #[test]
    fn only_large_variant_has_large_parameters() {
        let procedures = all();
        let contents = procedures.iter().find(|p| p.name == "MPI_Type_get_contents").unwrap();
        assert_eq!(contents.parameters.len(), 7);
        assert_eq!(contents.large.as_ref().unwrap().len(), 9);
    }
}
