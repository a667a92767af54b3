//! A table: columns and rows of cells.

use crate::causes::{Causes, Context};
use crate::metrics::Frame;

use super::delay::Delay;

/// A cell: a number, or what `present` has words for.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not known.
    Unknown,
    /// Does not apply to this row.
    Nothing,
    /// Words or a name.
    Text(String),
    /// A number of things.
    Count(u64),
    /// Seconds.
    Seconds(f64),
    /// A difference, seconds.
    Difference(f64),
    /// An interval, seconds.
    Between(f64, f64),
    Bytes(f64),
    /// Per second: operations, bytes.
    Rate(f64),
    /// A number of something that has a unit.
    Quantity(f64, &'static str),
    /// A number without a unit.
    Ratio(f64),
    /// A number that the user gave, with all its digits.
    Given(f64),
    /// A part of a whole.
    Share(f64),
    /// By how much something is larger than something else, as a part of that.
    Excess(f64),
    /// A factor of an efficiency.
    Factor(f64),
    Thread {
        rank: u32,
        /// Its number in the rank's file.
        number: u32,
    },
    /// Ranks, ascending.
    Ranks(Vec<u32>),
    /// What threads were doing, and where in the code.
    Context(Context),
    /// Why a rank was late.
    Delay(Delay),
    /// A place in the code.
    Code(Frame),
    /// A source file and a line, if known, of code in this program or library.
    Source {
        module: String,
        file: Option<String>,
        line: Option<u32>,
    },
    /// A call path, the innermost function first.
    Path(Vec<Frame>),
}

impl Cell {
    /// The number in it, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Seconds(number)
            | Self::Difference(number)
            | Self::Bytes(number)
            | Self::Rate(number)
            | Self::Quantity(number, _)
            | Self::Ratio(number)
            | Self::Given(number)
            | Self::Share(number)
            | Self::Excess(number)
            | Self::Factor(number) => Some(*number),
            _ => None,
        }
    }

    fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Seconds(_) | Self::Difference(_) => Some("s"),
            Self::Bytes(_) => Some("B"),
            Self::Rate(_) => Some("1/s"),
            Self::Quantity(_, unit) => Some(unit),
            number => number.number().map(|_| "1"),
        }
    }

    /// A cell of the same kind with another number.
    pub(super) fn with_number(&self, number: f64) -> Self {
        match self {
            Self::Count(_) => Self::Count(number.round() as u64),
            Self::Seconds(_) => Self::Seconds(number),
            Self::Bytes(_) => Self::Bytes(number),
            Self::Rate(_) => Self::Rate(number),
            Self::Share(_) => Self::Share(number),
            Self::Factor(_) => Self::Factor(number),
            _ => self.clone(),
        }
    }

    pub(super) fn or_unknown<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Unknown, cell)
    }

    /// A cell, or that there is none in this row.
    pub fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Nothing, cell)
    }

    /// Part of a whole that has a length.
    pub(super) fn share(part: f64, whole: f64) -> Self {
        if whole > 0.0 { Self::Share(part / whole) } else { Self::Nothing }
    }

    /// The thread of a line, or that it is not known.
    pub(super) fn thread(causes: &Causes, line: u32) -> Self {
        let line = causes.lines.all.get(line as usize);
        line.map_or(Self::Nothing, |line| Self::Thread { rank: line.rank, number: line.thread })
    }
}

/// Who looks at a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Everybody.
    Always,
    /// Whoever has room.
    Detail,
    /// The page's script, to which it says what a row is about.
    Script,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, the same as in documents that have the figure.
    pub key: &'static str,
    /// Its title on screens.
    pub title: String,
    /// Who sees it.
    pub shown: Shown,
    /// A cell per row.
    pub cells: Vec<Cell>,
}

impl Column {
    /// Whether its cells are words.
    pub fn is_text(&self) -> bool {
        let is_word =
            |cell: &Cell| !matches!(cell, Cell::Unknown | Cell::Nothing) && cell.number().is_none();
        self.cells.iter().any(is_word)
    }

    /// Whether its numbers are numbers of things, or of ranks.
    pub fn is_count(&self) -> bool {
        let mut numbers = self.cells.iter().filter(|cell| cell.number().is_some()).peekable();
        numbers.peek().is_some() && numbers.all(|cell| matches!(cell, Cell::Count(_)))
    }

    /// The unit of its numbers: `s`, `B`, `1/s`, `1` of ratios and counts; `None` of words.
    pub fn unit(&self) -> Option<&'static str> {
        self.cells.iter().find_map(Cell::unit).filter(|_| !self.is_text())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
}

impl Table {
    /// Adds a column.
    pub fn add(&mut self, key: &'static str, title: &str, cells: impl IntoIterator<Item = Cell>) {
        self.push(Shown::Always, key, title, cells);
    }

    /// Adds a column for whoever has room.
    pub fn detail(
        &mut self,
        key: &'static str,
        title: &str,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        self.push(Shown::Detail, key, title, cells);
    }

    /// Adds what the page's script knows of each row.
    pub fn mark(&mut self, key: &'static str, cells: impl IntoIterator<Item = Cell>) {
        self.push(Shown::Script, key, "", cells);
    }

    fn push(
        &mut self,
        shown: Shown,
        key: &'static str,
        title: &str,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        let cells = cells.into_iter().collect();
        self.columns.push(Column { key, title: title.to_owned(), shown, cells });
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }
}
