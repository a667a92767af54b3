//! Lays out a screen as headings with indented lines below them.

use super::paragraph::wrapped;

/// A screen to which sections are added.
#[derive(Debug)]
pub(super) struct Sections {
    lines: Vec<String>,
    colour: bool,
}

impl Sections {
    /// An empty screen. With `colour`, headings are bold.
    pub fn new(colour: bool) -> Self {
        Self { lines: Vec::new(), colour }
    }

    pub fn heading(&mut self, text: &str) {
        self.lines.push(match self.colour {
            true => format!("\x1b[1m{text}\x1b[0m"),
            false => text.to_owned(),
        });
    }

    /// Lines below a heading.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        self.lines.extend(lines.into_iter().map(|line| format!("  {line}")));
    }

    /// Sentences below a heading, each beginning a line.
    pub fn sentences(&mut self, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        self.lines.extend(texts.into_iter().flat_map(|text| wrapped("  ", text.as_ref())));
    }

    pub fn gap(&mut self) {
        self.lines.push(String::new());
    }

    pub fn section(&mut self, heading: &str, lines: Vec<String>) {
        self.heading(heading);
        self.lines(lines);
        self.gap();
    }

    /// The finished text, with notes at the end.
    pub fn finish(mut self, notes: &[String]) -> String {
        if !notes.is_empty() {
            self.heading("NOTES");
            self.sentences(notes);
            self.gap();
        }
        self.lines.join("\n")
    }
}
