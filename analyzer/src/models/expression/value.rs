//! Evaluates the tree of an expression.

use super::tree::{Function, Node, Operator};

/// Why a node has no value.
pub(super) enum Failure {
    Unknown { name: String, position: usize },
    Domain { what: String, position: usize },
}

pub(super) fn evaluate(
    node: &Node,
    value_of: &dyn Fn(&str) -> Option<f64>,
) -> Result<f64, Failure> {
    match node {
        Node::Number(value) => Ok(*value),
        Node::Name { name, position } => value_of(name)
            .ok_or_else(|| Failure::Unknown { name: name.clone(), position: *position }),
        Node::Negate(operand) => Ok(-evaluate(operand, value_of)?),
        Node::Call { function, argument, position } => {
            let argument = evaluate(argument, value_of)?;
            let defined = match function {
                Function::Sqrt => argument >= 0.0,
                Function::Log2 => argument > 0.0,
            };
            if !defined {
                let what = format!("{} of {argument} has no value", function.name());
                return Err(Failure::Domain { what, position: *position });
            }
            Ok(match function {
                Function::Sqrt => argument.sqrt(),
                Function::Log2 => argument.log2(),
            })
        }
        Node::Binary { operator, left, right, position } => {
            let (left, right) = (evaluate(left, value_of)?, evaluate(right, value_of)?);
            let value = match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide => left / right,
                Operator::Power => power(left, right),
            };
            if value.is_finite() {
                return Ok(value);
            }
            let what = match operator {
                Operator::Divide if right == 0.0 => format!("division of {left} by 0"),
                Operator::Power => format!("{left} to the power {right} has no finite value"),
                _ => format!("the result of {left} and {right} is not finite"),
            };
            Err(Failure::Domain { what, position: *position })
        }
    }
}

/// Whole powers use multiplication, so that `N^3` is exact for whole N as far as a double can be.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.fract() == 0.0 && exponent.abs() <= 64.0 {
        base.powi(exponent as i32)
    } else {
        base.powf(exponent)
    }
}
