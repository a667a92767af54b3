//! Writes a model as source text for other programs: Python, Rust or LaTeX.

use crate::models::expression::{Function, Node, Operator};
use crate::models::regression::Findings;

/// The language of the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A function that needs only `math`.
    Python,
    /// A function of `f64`.
    Rust,
    /// One formula.
    Latex,
}

/// The model as source text, with a newline at its end.
pub fn source(findings: &Findings, language: Language) -> String {
    let points = &findings.model.parts[0].points;
    let variables = &points.variables;
    let constants = &points.constants;
    let mut terms: Vec<(f64, &Node)> = Vec::new();
    for part in &findings.model.parts {
        for (column, coefficient) in part.basis.columns.iter().zip(&part.coefficients) {
            let coefficient = coefficient * part.factor;
            if coefficient == 0.0 {
                continue;
            }
            // Parts may share a column; the sum has it once.
            match terms.iter_mut().find(|(_, node)| *node == column.root()) {
                Some((sum, _)) => *sum += coefficient,
                None => terms.push((coefficient, column.root())),
            }
        }
    }
    let writer = Writer { language, constants };
    let products: Vec<String> = terms.iter().map(|(a, node)| writer.product(*a, node)).collect();
    let what =
        format!("{} in seconds, modelled by gammachi from {}", findings.response, findings.source);
    let body = match products.is_empty() {
        true => "0.0".to_owned(),
        false => products.join("\n        + "),
    };
    match language {
        Language::Python => {
            format!(
                "import math\n\n\ndef time_s({}):\n    \"\"\"{what}.\"\"\"\n    return (\n        \
                 {body}\n    )\n",
                variables.join(", ")
            )
        }
        Language::Rust => {
            let arguments: Vec<String> =
                variables.iter().map(|name| format!("{name}: f64")).collect();
            format!(
                "/// {what}.\n#[allow(non_snake_case)]\npub fn time_s({}) -> f64 {{\n    {body}\n}}\n",
                arguments.join(", ")
            )
        }
        Language::Latex => {
            let mut formula = format!("T({}) = ", variables.join(", "));
            for (index, (coefficient, node)) in terms.iter().enumerate() {
                let (negative, node) = match node {
                    Node::Negate(inner) => (true, inner.as_ref()),
                    other => (false, *other),
                };
                match (index, negative) {
                    (0, false) => {}
                    (_, false) => formula.push_str(" + "),
                    (_, true) => formula.push_str(" - "),
                }
                formula.push_str(&writer.product(*coefficient, node));
            }
            if terms.is_empty() {
                formula.push('0');
            }
            formula.push('\n');
            formula
        }
    }
}

struct Writer<'a> {
    language: Language,
    constants: &'a [(String, f64)],
}

impl Writer<'_> {
    fn product(&self, coefficient: f64, node: &Node) -> String {
        let coefficient_text = match self.language {
            // All digits, so that the expression predicts exactly what gammachi predicts.
            Language::Python | Language::Rust => format!("{coefficient:e}"),
            Language::Latex => latex_number(coefficient),
        };
        match (node, self.language) {
            (Node::Number(1.0), _) => coefficient_text,
            (node, Language::Latex) => {
                format!("{coefficient_text} \\, {}", self.text(node, PRODUCT))
            }
            (node, _) => format!("{coefficient_text} * {}", self.text(node, UNARY)),
        }
    }

    /// The text of a node, in parentheses unless it binds at least as strongly as `binding`.
    fn text(&self, node: &Node, binding: u8) -> String {
        let (text, own) = match node {
            Node::Number(value) => (self.number(*value), ATOM),
            Node::Name { name, .. } => {
                match self.constants.iter().find(|(other, _)| other == name) {
                    Some((_, value)) => {
                        (self.number(*value), if *value < 0.0 { SUM } else { ATOM })
                    }
                    None => (self.name(name), ATOM),
                }
            }
            Node::Negate(operand) => (format!("-{}", self.text(operand, UNARY)), SUM),
            Node::Call { function, argument, .. } => (self.call(*function, argument), ATOM),
            Node::Binary { operator, left, right, .. } => self.binary(*operator, left, right),
        };
        match (own >= binding, self.language) {
            (true, _) => text,
            (false, Language::Latex) => format!("\\left({text}\\right)"),
            (false, _) => format!("({text})"),
        }
    }

    fn binary(&self, operator: Operator, left: &Node, right: &Node) -> (String, u8) {
        match (operator, self.language) {
            (Operator::Add, _) => {
                (format!("{} + {}", self.text(left, SUM), self.text(right, SUM)), SUM)
            }
            (Operator::Subtract, _) => {
                (format!("{} - {}", self.text(left, SUM), self.text(right, PRODUCT)), SUM)
            }
            (Operator::Divide, Language::Latex) => {
                (format!("\\frac{{{}}}{{{}}}", self.text(left, 0), self.text(right, 0)), ATOM)
            }
            (Operator::Multiply, Language::Latex) => {
                (format!("{} \\, {}", self.text(left, PRODUCT), self.text(right, UNARY)), PRODUCT)
            }
            (Operator::Power, Language::Latex) => {
                (format!("{}^{{{}}}", self.text(left, ATOM), self.text(right, 0)), POWER)
            }
            (Operator::Multiply, _) => {
                (format!("{} * {}", self.text(left, PRODUCT), self.text(right, UNARY)), PRODUCT)
            }
            (Operator::Divide, _) => {
                (format!("{} / {}", self.text(left, PRODUCT), self.text(right, UNARY)), PRODUCT)
            }
            (Operator::Power, Language::Python) => {
                (format!("{} ** {}", self.text(left, ATOM), self.text(right, ATOM)), POWER)
            }
            (Operator::Power, Language::Rust) => {
                let base = match left {
                    Node::Number(value) => format!("{value:?}_f64"),
                    other => self.text(other, ATOM),
                };
                let power = match right {
                    Node::Number(value) if value.fract() == 0.0 && value.abs() < 64.0 => {
                        format!("powi({value})")
                    }
                    other => format!("powf({})", self.text(other, 0)),
                };
                (format!("{base}.{power}"), ATOM)
            }
        }
    }

    fn call(&self, function: Function, argument: &Node) -> String {
        let inside = self.text(argument, 0);
        match (self.language, function) {
            (Language::Python, _) => format!("math.{}({inside})", function.name()),
            (Language::Rust, _) => {
                format!("f64::{}({inside})", function.name())
            }
            (Language::Latex, Function::Sqrt) => format!("\\sqrt{{{inside}}}"),
            (Language::Latex, Function::Log2) => format!("\\log_2 {}", self.text(argument, ATOM)),
        }
    }

    fn number(&self, value: f64) -> String {
        match self.language {
            // Without a decimal point, `3` would be an integer.
            Language::Rust => format!("{value:?}"),
            Language::Python => format!("{value}"),
            Language::Latex => latex_number(value),
        }
    }

    fn name(&self, name: &str) -> String {
        match (self.language, name.chars().count()) {
            (Language::Latex, 2..) => format!("\\mathrm{{{}}}", name.replace('_', "\\_")),
            _ => name.to_owned(),
        }
    }
}

const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const UNARY: u8 = 3;
const POWER: u8 = 4;
const ATOM: u8 = 5;

fn latex_number(value: f64) -> String {
    let text = format!("{value:.4e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    match exponent {
        "0" => mantissa.to_owned(),
        _ if value.abs() >= 1.0 && value.abs() < 1e5 && value.fract() == 0.0 => format!("{value}"),
        exponent => format!("{mantissa} \\cdot 10^{{{exponent}}}"),
    }
}
