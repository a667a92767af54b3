//! Basis functions of a model: the user's own columns, published ones, or a generated dictionary.

use crate::models::expression::{Expression, ExpressionError};

/// HPL's columns (Orii et al., eq. 5): process grid P×Q, matrix order N, block NB.
const HPL: &str = "2*N^3/(3*P*Q), N^2/(2*P), 3*N^2/(2*Q), log2(P)*N*(1+NB*log2(P))/NB, \
                   log2(P)*N*(P-1+log2(P))/NB, N*(1+NB*log2(P))/NB, N*(P-1+log2(P))/NB, -N/(P*Q), \
                   -N/P, -N/Q, -N, 1";
/// EigenExa's computing part (eq. 7).
const EIGENEXA_COMPUTE: &str =
    "N^3/p, N^2/p, N/p, N^3/sqrt(p), N^2/sqrt(p), N/sqrt(p), N^3, N^2, N, 1";
/// EigenExa's MPI part (eq. 9).
const EIGENEXA_MPI: &str = "N^2/sqrt(p), N/sqrt(p), N^2*log2(p), N^3, N^2, N, 1";
/// The columns of both parts.
const EIGENEXA: &str =
    "N^3/p, N^2/p, N/p, N^3/sqrt(p), N^2/sqrt(p), N/sqrt(p), N^2*log2(p), N^3, N^2, N, 1";

/// Names of variables that count ranks, nodes or threads: work per rank falls with them, overhead
/// rises.
const RANK_COUNTS: [&str; 12] = [
    "p",
    "P",
    "Q",
    "np",
    "ranks",
    "nranks",
    "procs",
    "processes",
    "nodes",
    "threads",
    "cores",
    "npes",
];

/// Basis functions of a model: y = Σ a_k f_k.
#[derive(Debug, Clone)]
pub struct Basis {
    /// Name for display.
    pub name: String,
    /// The columns. One with a leading minus contributes negatively; its coefficient is never
    /// negative.
    pub columns: Vec<Expression>,
}

impl Basis {
    /// Parses `hpl`, `eigenexa`, `eigenexa-compute`, `eigenexa-mpi`, `three-terms`, or columns
    /// separated by commas.
    ///
    /// # Errors
    /// A column is not an expression, or appears twice.
    pub fn parse(text: &str) -> Result<Self, BasisError> {
        let (name, columns) = match text.trim() {
            "hpl" => ("hpl", HPL),
            "eigenexa" => ("eigenexa", EIGENEXA),
            "three-terms" => ("three terms", "1/p, 1, p"),
            "eigenexa-compute" => ("eigenexa-compute", EIGENEXA_COMPUTE),
            "eigenexa-mpi" => ("eigenexa-mpi", EIGENEXA_MPI),
            own => ("own columns", own),
        };
        Self::parse_columns(name, columns.split(','))
    }

    fn parse_columns<'a>(
        name: &str,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, BasisError> {
        let mut basis = Self { name: name.to_owned(), columns: Vec::new() };
        for column in columns {
            let column = Expression::parse(column)?;
            if basis.columns.iter().any(|other| other.text() == column.text()) {
                return Err(BasisError::Repeated(column.text().to_owned()));
            }
            basis.columns.push(column);
        }
        Ok(basis)
    }

    /// Whether the columns were generated, not chosen for this program.
    pub fn is_generic(&self) -> bool {
        matches!(self.name.as_str(), "dictionary" | "products")
    }

    /// The model of strong scaling of Orii 2009, τ = a/p + c + d·p, in this variable.
    pub fn three_terms(variable: &str) -> Self {
        let columns = [format!("1/{variable}"), "1".to_owned(), variable.to_owned()];
        Self::generated("three terms", &columns)
    }

    /// Products of powers and logarithms of the variables.
    ///
    /// A rank count has the powers −1, −½, 0, ½, 1 (with three or more variables only −1, 0, 1);
    /// every other variable has 0, 1, 2, 3. With at most two variables, each power also appears
    /// times the variable's binary logarithm; with more, only those of the first rank count do.
    /// `powers` overrides the powers of the variables that it names.
    pub fn dictionary(variables: &[String], powers: &[(String, Vec<f64>)]) -> Self {
        let few = variables.len() <= 2;
        let first_count = variables.iter().find(|name| is_rank_count(name));
        let mut products = vec![String::new()];
        for variable in variables {
            let own = powers.iter().find(|(name, _)| name == variable).map(|(_, p)| p.clone());
            let powers = own.unwrap_or_else(|| match (is_rank_count(variable), few) {
                (true, true) => vec![-1.0, -0.5, 0.0, 0.5, 1.0],
                (true, false) => vec![-1.0, 0.0, 1.0],
                (false, _) => vec![0.0, 1.0, 2.0, 3.0],
            });
            let logarithms = few || first_count == Some(variable);
            let mut longer = Vec::new();
            for product in &products {
                for power in &powers {
                    for logarithm in [false, true].into_iter().filter(|log| !log || logarithms) {
                        longer.push(times(product, variable, *power, logarithm));
                    }
                }
            }
            products = longer;
        }
        for product in products.iter_mut().filter(|product| product.is_empty()) {
            "1".clone_into(product);
        }
        Self::generated("dictionary", &products)
    }

    /// All products of columns of two bases.
    pub fn product(first: &[Expression], second: &[Expression]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for a in first {
            for b in second {
                let text = match (a.text(), b.text()) {
                    ("1", other) | (other, "1") => other.to_owned(),
                    (a, b) => format!("({a})*({b})"),
                };
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        Self::generated("products", &texts)
    }

    /// Columns generated here, which always parse.
    pub(super) fn generated(name: &str, columns: &[String]) -> Self {
        let parsed = columns.iter().filter_map(|column| Expression::parse(column).ok()).collect();
        Self { name: name.to_owned(), columns: parsed }
    }
}

/// Whether a variable of this name counts ranks, nodes or threads.
pub fn is_rank_count(name: &str) -> bool {
    RANK_COUNTS.contains(&name)
}

fn times(product: &str, variable: &str, power: f64, logarithm: bool) -> String {
    let mut factors: Vec<String> = Vec::new();
    if !product.is_empty() {
        factors.push(product.to_owned());
    }
    if power == 1.0 {
        factors.push(variable.to_owned());
    } else if power == 0.5 {
        factors.push(format!("sqrt({variable})"));
    } else if power > 0.0 {
        factors.push(format!("{variable}^{power}"));
    }
    if logarithm {
        factors.push(format!("log2({variable})"));
    }
    let mut text = factors.join("*");
    if power < 0.0 {
        let divisor = match power {
            -1.0 => variable.to_owned(),
            -0.5 => format!("sqrt({variable})"),
            other => format!("{variable}^{}", -other),
        };
        text = format!("{}/{divisor}", if text.is_empty() { "1" } else { &text });
    }
    text
}

/// What can be wrong with a list of columns.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BasisError {
    /// A column is not an expression.
    #[error("column {0}")]
    Expression(#[from] ExpressionError),
    /// A column appears twice.
    #[error("column `{0}` appears twice; remove one")]
    Repeated(String),
}
