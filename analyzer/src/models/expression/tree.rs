//! The tree of a parsed expression, and why there is none.

use thiserror::Error;

/// Why an expression cannot be parsed or has no value. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExpressionError {
    /// The text is not an expression.
    #[error("`{text}`, character {position}: {what}")]
    Syntax {
        /// The whole expression.
        text: String,
        /// Where it goes wrong.
        position: usize,
        /// What is wrong there, and what was expected.
        what: String,
    },
    /// An undefined name.
    #[error("`{text}`, character {position}: unknown name `{name}`{known}")]
    UnknownName {
        /// The whole expression.
        text: String,
        /// Where the name begins.
        position: usize,
        name: String,
        /// `; known are N, p`, or nothing.
        known: String,
    },
    /// The value is not finite for these variables, as with a logarithm of 0 or a division by 0.
    #[error("`{text}`, character {position}: {what}")]
    Domain {
        /// The whole expression.
        text: String,
        /// The operator or function that has no value.
        position: usize,
        /// What failed: `log2 of 0 has no value`.
        what: String,
    },
}

/// A node of the tree; positions count characters of the text from 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A literal.
    Number(f64),
    /// A variable or constant.
    Name {
        /// As written.
        name: String,
        /// Where it begins.
        position: usize,
    },
    /// −operand.
    Negate(Box<Node>),
    /// Two operands.
    Binary {
        operator: Operator,
        /// Left operand.
        left: Box<Node>,
        /// Right operand.
        right: Box<Node>,
        /// Position of the operator.
        position: usize,
    },
    /// A function of one argument.
    Call {
        function: Function,
        argument: Box<Node>,
        /// Where its name begins.
        position: usize,
    },
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `^`
    Power,
}

/// A function of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Square root.
    Sqrt,
    /// Binary logarithm.
    Log2,
}

impl Function {
    /// Every function, for messages and parsing.
    pub const ALL: [Self; 2] = [Self::Sqrt, Self::Log2];

    /// Its name in expressions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqrt => "sqrt",
            Self::Log2 => "log2",
        }
    }
}

impl Node {
    /// Calls `visitor` with this node, then with those below it, from left to right.
    pub fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Node)) {
        visitor(self);
        match self {
            Self::Number(_) | Self::Name { .. } => {}
            Self::Negate(operand) | Self::Call { argument: operand, .. } => operand.visit(visitor),
            Self::Binary { left, right, .. } => {
                left.visit(visitor);
                right.visit(visitor);
            }
        }
    }
}
