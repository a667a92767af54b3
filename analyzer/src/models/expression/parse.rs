//! The parser of expressions: recursive descent, with one function per level of precedence.

use super::tree::{ExpressionError, Function, Node, Operator};

/// Limit on nesting, so that no input overflows the stack; far deeper than anyone writes.
const MAX_DEPTH: usize = 200;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Sign(char),
    End,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    // Positions are those of the trimmed text, which every message shows.
    let text = text.trim();
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0 };
    let root = parser.sum()?;
    match parser.peek() {
        Token::End => Ok(root),
        Token::Sign(')') => Err(parser.wrong("`)` without a matching `(`".into())),
        Token::Name(_) | Token::Number(_) | Token::Sign('(') => {
            Err(parser.wrong("an operator is missing here; write products with `*`".into()))
        }
        Token::Sign(_) => Err(parser.wrong("an operator was expected here".into())),
    }
}

fn syntax(text: &str, position: usize, what: String) -> ExpressionError {
    ExpressionError::Syntax { text: text.to_owned(), position, what }
}

fn tokens(text: &str) -> Result<Vec<(Token, usize)>, ExpressionError> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let (begin, first) = (at, characters[at]);
        let end_of = |from: usize, belongs: &dyn Fn(char) -> bool| {
            (from..characters.len()).find(|&i| !belongs(characters[i])).unwrap_or(characters.len())
        };
        let token = match first {
            blank if blank.is_whitespace() => {
                at += 1;
                continue;
            }
            '+' | '-' | '*' | '/' | '^' | '(' | ')' => {
                at += 1;
                // `**` is a power to users of Python and Fortran.
                if first == '*' && characters.get(at) == Some(&'*') {
                    at += 1;
                    Token::Sign('^')
                } else {
                    Token::Sign(first)
                }
            }
            digit if digit.is_ascii_digit() || digit == '.' => {
                at = end_of(at, &|c| c.is_ascii_digit() || c == '.');
                at = end_of_exponent(&characters, at);
                let literal: String = characters[begin..at].iter().collect();
                match literal.parse::<f64>() {
                    Ok(value) if value.is_finite() => Token::Number(value),
                    _ => {
                        return Err(syntax(
                            text,
                            begin + 1,
                            format!("`{literal}` is not a number"),
                        ));
                    }
                }
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                at = end_of(at, &|c| c.is_alphanumeric() || c == '_');
                Token::Name(characters[begin..at].iter().collect())
            }
            other => {
                return Err(syntax(text, begin + 1, format!("`{other}` has no meaning here")));
            }
        };
        tokens.push((token, begin + 1));
    }
    tokens.push((Token::End, characters.len() + 1));
    Ok(tokens)
}

/// End of the exponent that may begin at `at`, such as the `e-7` of `3.1e-7`.
fn end_of_exponent(characters: &[char], at: usize) -> usize {
    let mut end = at;
    if !matches!(characters.get(end), Some('e' | 'E')) {
        return at;
    }
    end += 1;
    if matches!(characters.get(end), Some('+' | '-')) {
        end += 1;
    }
    let digits = characters[end..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 { at } else { end + digits }
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn position(&self) -> usize {
        self.tokens[self.next].1
    }

    fn wrong(&self, what: String) -> ExpressionError {
        syntax(self.text, self.position(), what)
    }

    /// Consumes the next token if it is one of these signs.
    fn take(&mut self, signs: &[char]) -> Option<(char, usize)> {
        match *self.peek() {
            Token::Sign(sign) if signs.contains(&sign) => {
                let position = self.position();
                self.next += 1;
                Some((sign, position))
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.product()?;
        while let Some((sign, position)) = self.take(&['+', '-']) {
            let operator = if sign == '+' { Operator::Add } else { Operator::Subtract };
            left = binary(operator, left, self.product()?, position);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.signed()?;
        while let Some((sign, position)) = self.take(&['*', '/']) {
            let operator = if sign == '*' { Operator::Multiply } else { Operator::Divide };
            left = binary(operator, left, self.signed()?, position);
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Node, ExpressionError> {
        // Every path to a deeper level passes through here.
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let node = match self.take(&['-', '+']) {
            Some(('-', _)) => Ok(Node::Negate(Box::new(self.signed()?))),
            Some(_) => self.signed(),
            None => self.power(),
        };
        self.depth -= 1;
        node
    }

    fn power(&mut self) -> Result<Node, ExpressionError> {
        let base = self.atom()?;
        match self.take(&['^']) {
            Some((_, position)) => Ok(binary(Operator::Power, base, self.signed()?, position)),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        let position = self.position();
        match self.peek().clone() {
            Token::Number(value) => {
                self.next += 1;
                Ok(Node::Number(value))
            }
            Token::Name(name) => {
                self.next += 1;
                let function = Function::ALL.into_iter().find(|f| f.name() == name);
                match (function, self.peek() == &Token::Sign('(')) {
                    (Some(function), true) => {
                        let argument = Box::new(self.parenthesis()?);
                        Ok(Node::Call { function, argument, position })
                    }
                    (Some(function), false) => {
                        Err(self.wrong(format!("`(` was expected after {}", function.name())))
                    }
                    (None, true) => Err(syntax(
                        self.text,
                        position,
                        format!(
                            "unknown function `{name}`; there are sqrt and log2 (a product is \
                             written with `*`)"
                        ),
                    )),
                    (None, false) => Ok(Node::Name { name, position }),
                }
            }
            Token::Sign('(') => self.parenthesis(),
            Token::End => Err(self.wrong(if self.text.is_empty() {
                "the expression is empty".into()
            } else {
                "the expression ends where a number, a name or `(` was expected".into()
            })),
            Token::Sign(sign) => {
                Err(self.wrong(format!("a number, a name or `(` was expected, not `{sign}`")))
            }
        }
    }

    fn parenthesis(&mut self) -> Result<Node, ExpressionError> {
        let opened = self.position();
        self.next += 1;
        let inside = self.sum()?;
        match self.take(&[')']) {
            Some(_) => Ok(inside),
            None => Err(self.wrong(format!("`)` was expected, for the `(` at {opened}"))),
        }
    }
}

fn binary(operator: Operator, left: Node, right: Node, position: usize) -> Node {
    Node::Binary { operator, left: Box::new(left), right: Box::new(right), position }
}
