//! Lays out a screen as blocks: a head, a few sentences, then labels with lines beside them.

use crate::plain_text::printable;
use crate::present::context::{mpi_library, placement, program_line};
use crate::present::paragraph::{headline, wrapped, wrapped_after};
use crate::present::width;
use crate::trace::Run;

/// Columns before the text of a labelled line.
pub(super) const INDENT: usize = 12;

/// A screen to which blocks are added.
#[derive(Debug)]
pub(super) struct Blocks {
    text: String,
    colour: bool,
}

impl Blocks {
    /// Begins with what ran where, followed by sentences. With `colour`, labels are emphasised; colour alone never
    /// carries information.
    pub fn new(run: &Run, sentences: &str, colour: bool) -> Self {
        let head = [program_line(run), mpi_library(run), placement(run)].join(" | ");
        Self::headed(&head, sentences, colour)
    }

    /// Begins without a head, to be placed below other blocks.
    pub fn continued(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    /// Begins with the given head, followed by sentences: first those that a reader takes in at once.
    pub fn headed(head: &str, sentences: &str, colour: bool) -> Self {
        let head = printable(head);
        let head = if width::fits(head.chars().count()) { vec![head] } else { wrapped("", &head) };
        let mut text = head.join("\n") + "\n\n";
        let (first, rest) = headline(&printable(sentences));
        for line in [first, rest]
            .iter()
            .filter(|part| !part.is_empty())
            .flat_map(|part| wrapped("  ", part))
        {
            text.push_str(&line);
            text.push('\n');
        }
        text.push('\n');
        Self { text, colour }
    }

    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Lines, with a label before the first, or above it if there is no room.
    pub fn block(&mut self, label: &str, lines: Vec<String>) {
        let padding = match label.len() < INDENT {
            true => " ".repeat(INDENT - label.len()),
            false => format!("\n{}", " ".repeat(INDENT)),
        };
        let mut start = match self.colour {
            true => format!("\x1b[1m{label}\x1b[0m{padding}"),
            false => format!("{label}{padding}"),
        };
        for line in lines {
            self.text.push_str(format!("{start}{}", printable(&line)).trim_end());
            self.text.push('\n');
            start = " ".repeat(INDENT);
        }
    }

    /// Sentences beside a label.
    pub fn sentence(&mut self, label: &str, text: &str) {
        self.block(label, wrapped_after(INDENT, &printable(text)));
    }

    pub fn note(&mut self, sentence: &str) {
        self.sentence("NOTE", sentence);
    }

    pub fn finish(self) -> String {
        self.text
    }
}
