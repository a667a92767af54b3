//! Arithmetic over named variables: parses an expression and evaluates it for a row of data.
//!
//! An expression may use `+ - * / ^`, parentheses, `sqrt( )`, `log2( )`, numbers and names. `^`
//! binds most tightly and associates to the right; a leading minus binds less tightly: `-N^2` is
//! −(N²), `2^-1` is ½. A name consists of letters, digits and `_`; case matters: `p` is not `P`.
//!
//! ```
//! use gammachi_analyzer::models::expression::Expression;
//!
//! let work = Expression::parse("2*N^3/3 + log2(p)")?;
//! let at = |name: &str| match name { "N" => Some(300.0), "p" => Some(8.0), _ => None };
//! assert_eq!(work.evaluate(&at)?, 18_000_003.0);
//! # Ok::<(), gammachi_analyzer::models::expression::ExpressionError>(())
//! ```

mod parse;
mod tree;
mod value;

use std::fmt;

pub use tree::{ExpressionError, Function, Node, Operator};

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: Node,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`], with the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text).map(|root| Self { text: text.trim().to_owned(), root })
    }

    /// The text that it was parsed from, trimmed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The names that it uses, each once, in order of first appearance.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.visit(&mut |node| {
            if let Node::Name { name, .. } = node
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        });
        names
    }

    /// Checks that every name is one of `known`, so that a misspelt name is found before any data
    /// are read.
    ///
    /// # Errors
    /// [`ExpressionError::UnknownName`] for the first unknown name; it lists the known ones.
    pub fn check_names(&self, known: &[&str]) -> Result<(), ExpressionError> {
        let mut unknown = None;
        self.root.visit(&mut |node| {
            if let Node::Name { name, position } = node
                && unknown.is_none()
                && !known.contains(&name.as_str())
            {
                unknown = Some((name.clone(), *position));
            }
        });
        match unknown {
            None => Ok(()),
            Some((name, position)) => Err(ExpressionError::UnknownName {
                text: self.text.clone(),
                position,
                name,
                known: match known {
                    [] => String::new(),
                    known => format!("; known are {}", known.join(", ")),
                },
            }),
        }
    }

    /// Evaluates the expression; `value_of` gives the values of the names.
    ///
    /// # Errors
    /// [`ExpressionError::UnknownName`] where `value_of` returns `None`;
    /// [`ExpressionError::Domain`] for a logarithm of 0 or less, a root of a negative number, a
    /// division by 0, and any other result that is not finite.
    pub fn evaluate(&self, value_of: &dyn Fn(&str) -> Option<f64>) -> Result<f64, ExpressionError> {
        value::evaluate(&self.root, value_of).map_err(|failure| match failure {
            value::Failure::Unknown { name, position } => ExpressionError::UnknownName {
                text: self.text.clone(),
                position,
                name,
                known: String::new(),
            },
            value::Failure::Domain { what, position } => {
                ExpressionError::Domain { text: self.text.clone(), position, what }
            }
        })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
