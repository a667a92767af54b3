//! Suggests known names that are similar to a misspelt one.

/// Minimum Jaro-Winkler similarity of a suggested name.
const SIMILAR: f64 = 0.8;

/// The known name that is most similar to `name`, if one is similar enough. Upper and lower case
/// are treated alike.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let scored =
        known.into_iter().map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), other));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// `; did you mean X?`, or an empty string.
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
