//! Tables as data: the key, title and kind of each column, and the cells. What is in a table, and when a column says
//! something, is decided here; `present` lays the same table out for the terminal and the page.

pub mod ranks;

/// A cell; its kind is that of its column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not known.
    Unknown,
    /// Words or a name.
    Text(String),
    /// A number of things.
    Count(u64),
    /// Seconds.
    Seconds(f64),
    /// Bytes.
    Bytes(f64),
    /// Per second: operations, bytes.
    Rate(f64),
}

impl Cell {
    /// The number in it, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Seconds(number) | Self::Bytes(number) | Self::Rate(number) => Some(*number),
            Self::Unknown | Self::Text(_) => None,
        }
    }

    /// A cell of the same kind with another number.
    fn with_number(&self, number: f64) -> Self {
        match self {
            Self::Count(_) => Self::Count(number.round() as u64),
            Self::Seconds(_) => Self::Seconds(number),
            Self::Bytes(_) => Self::Bytes(number),
            Self::Rate(_) => Self::Rate(number),
            Self::Unknown | Self::Text(_) => self.clone(),
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, the same as in documents that have the figure.
    pub key: &'static str,
    /// Its title on screens.
    pub title: String,
    /// Whether its cells are words.
    pub is_text: bool,
    /// Whether a narrow screen leaves it out.
    pub is_detail: bool,
    /// A cell per row.
    pub cells: Vec<Cell>,
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
}
