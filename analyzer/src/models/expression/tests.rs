//! Expressions as users write and mistype them.

use super::Expression;
use super::tree::ExpressionError;

fn value(text: &str) -> Result<f64, ExpressionError> {
    let at = |name: &str| match name {
        "N" => Some(100.0),
        "p" => Some(4.0),
        "P" => Some(8.0),
        "zero" => Some(0.0),
        _ => None,
    };
    Expression::parse(text).and_then(|expression| expression.evaluate(&at))
}

#[test]
fn precedence_is_that_of_mathematics() {
    for (text, expected) in [
        ("1 + 2*3", 7.0),
        ("10 - 4 - 3", 3.0),
        ("48 / 4 / 3", 4.0),
        ("2^3^2", 512.0),
        ("2**3", 8.0),
        ("-N^2", -10_000.0),
        ("2^-1", 0.5),
        ("-2*-3", 6.0),
        ("(1 + 2)*3", 9.0),
        ("2*N^3/(3*p*P)", 2e6 / 96.0),
        ("log2(P)*sqrt(p)", 6.0),
        ("1.5e-3*N", 0.15),
        ("p", 4.0),
        ("P", 8.0),
        ("N^(1/2)", 10.0),
    ] {
        let found = value(text).unwrap_or_else(|error| panic!("{error}"));
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{text}: {found}");
    }
}

#[test]
fn errors_name_the_position() {
    for (text, expected) in [
        ("", "``, character 1: the expression is empty"),
        ("N +", "`N +`, character 4: the expression ends"),
        ("2N", "`2N`, character 2: an operator is missing here; write products with `*`"),
        ("(N + 1", "`(N + 1`, character 7: `)` was expected, for the `(` at 1"),
        ("N)", "`N)`, character 2: `)` without a matching `(`"),
        ("N*/p", "`N*/p`, character 3: a number, a name or `(` was expected, not `/`"),
        ("log(N)", "`log(N)`, character 1: unknown function `log`; there are sqrt and log2"),
        ("log2 N", "`log2 N`, character 6: `(` was expected after log2"),
        ("1.2.3", "`1.2.3`, character 1: `1.2.3` is not a number"),
        ("N$", "`N$`, character 2: `$` has no meaning here"),
        ("N + M", "`N + M`, character 5: unknown name `M`"),
        ("log2(zero)", "`log2(zero)`, character 1: log2 of 0 has no value"),
        ("sqrt(-N)", "`sqrt(-N)`, character 1: sqrt of -100 has no value"),
        ("1/zero", "`1/zero`, character 2: division of 1 by 0"),
        ("zero^-1", "`zero^-1`, character 5: 0 to the power -1 has no finite value"),
        ("10^300*10^300", "the result of"),
    ] {
        let error = value(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = "(".repeat(10_000) + "N";
    assert!(value(&deep).expect_err("too deep").to_string().contains("nested deeper"));
}

#[test]
fn checks_names_without_data() {
    let expression = Expression::parse(" N*p + N ").expect("it is one");
    assert_eq!(expression.text(), "N*p + N");
    assert_eq!(expression.names(), ["N", "p"]);
    assert!(expression.check_names(&["p", "N"]).is_ok());
    let error = expression.check_names(&["N", "P"]).expect_err("p is not known").to_string();
    assert_eq!(error, "`N*p + N`, character 3: unknown name `p`; known are N, P");
}
