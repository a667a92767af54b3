//! Names that are nearly right.

/// Least Jaro-Winkler similarity of a name that is suggested.
const SIMILAR: f64 = 0.8;

/// The known name that is most like `name`, if any is; letters' case does not count.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let scored =
        known.into_iter().map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), other));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// `; did you mean X?`, or nothing.
pub fn question<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |other| format!("; did you mean {other}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"];
        assert_eq!(nearest("MPI_Barier", known), Some("MPI_Barrier"));
        assert_eq!(nearest("mpi_allreduce", known), Some("MPI_Allreduce"));
        assert_eq!(nearest("smooth", ["solve", "smoothing"]), Some("smoothing"));
        assert_eq!(question("io", ["solve", "norm"]), "");
    }
}
