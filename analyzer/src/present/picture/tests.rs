use super::matrix::{CellValue, LabelledMatrix};
use super::*;
use crate::metrics::{Matrix, Traffic};

#[test]
fn matrix_has_a_cell_for_each_pair_and_escapes_names() {
    let traffic = |count, bytes| Traffic { count, bytes };
    let pairs = [((0, 1), traffic(3, 1 << 20)), ((1, 0), traffic(1, 8)), ((1, 1), traffic(2, 0))];
    let matrix = Matrix { pairs: pairs.into_iter().collect() };
    let names = vec!["<b>".to_owned(), "n1".to_owned()];
    let labelled = LabelledMatrix { names, of: "host", matrix };
    let bytes = matrix::svg(&labelled, CellValue::Bytes, false);
    // Two pairs have bytes and one shade each; the pair without bytes is not drawn.
    assert_eq!(bytes.matches("<path fill").count(), 2);
    assert!(bytes.contains(">0</text>"), "colours begin at zero: {bytes}");
    assert!(bytes.contains("1.049 MB") && bytes.contains("&lt;b&gt;") && !bytes.contains("<b>"));
    let count = matrix::svg(&labelled, CellValue::Count, true);
    assert_eq!(count.matches("v125.00").count(), 3, "{count}");
    assert!(!count.contains("#ffffff") && count.contains("currentColor"));
}
