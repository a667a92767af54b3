//! The stretch of a run that figures are for, and how users write it.

/// One end of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// Seconds since the first rank started.
    Seconds(f64),
    /// The n-th call of a function on each rank, counted from 1.
    Occurrence {
        /// The function's name.
        function: String,
        /// Which of its calls.
        number: u64,
    },
}

/// The stretch of the run that the figures are for.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// Each rank from MPI_Init's return to MPI_Finalize's entry.
    Whole,
    /// From one bound to another. With a call as the first bound, the window begins at the call's
    /// end; with a call as the second, it ends at the call's start.
    Window {
        /// Where it begins.
        from: Bound,
        /// Where it ends.
        to: Bound,
    },
    /// All occurrences of a region.
    Region(String),
    /// An iteration of the main loop.
    Iteration(Iteration),
    /// What all of these select.
    All(Vec<Selection>),
}

/// An iteration of the main loop, which later stages find.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Its number, from 0.
    pub number: usize,
    /// Begin and end on the counter of each rank, in the order of the ranks.
    pub of_ranks: Vec<(u64, u64)>,
}

/// Why a text is not a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// There is only one bound.
    #[error("there is no comma")]
    OneBound,
    /// The text is not a bound.
    #[error("{0:?} is neither seconds nor a call such as MPI_Barrier#3")]
    NoBound(String),
    /// The text contains `#` but is not a call.
    #[error("{0:?} is not a call such as MPI_Barrier#3")]
    NoCall(String),
    /// Its end is not after its start.
    #[error("it ends before it begins")]
    EndsFirst,
}

impl Selection {
    /// What all of these select together; the whole run if there are none.
    pub fn of_all(mut selections: Vec<Self>) -> Self {
        match selections.len() {
            0 => Self::Whole,
            1 => selections.remove(0),
            _ => Self::All(selections),
        }
    }

    /// The selections that this one combines.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Whole => &[],
            Self::All(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// What it selects, without its kind.
    pub fn value(&self) -> String {
        match self {
            Self::Window { from, to } => format!("{from} to {to}"),
            Self::Region(name) => name.clone(),
            Self::Iteration(Iteration { number, .. }) => number.to_string(),
            Self::Whole | Self::All(_) => self.to_string(),
        }
    }

    /// The options that select it, for a command line.
    pub fn options(&self) -> Vec<String> {
        let option = |part: &Self| match part {
            Self::Window { from, to } => vec!["--window".to_owned(), format!("{from},{to}")],
            Self::Region(name) => vec!["--region".to_owned(), name.clone()],
            Self::Iteration(Iteration { number, .. }) => {
                vec!["--iteration".to_owned(), number.to_string()]
            }
            Self::Whole | Self::All(_) => Vec::new(),
        };
        self.parts().iter().flat_map(option).collect()
    }

    /// Parses `FROM,TO`.
    ///
    /// # Errors
    /// See [`WindowError`].
    pub fn parse_window(text: &str) -> Result<Self, WindowError> {
        let (from, to) = text.split_once(',').ok_or(WindowError::OneBound)?;
        let (from, to) = (Bound::parse(from.trim())?, Bound::parse(to.trim())?);
        match (&from, &to) {
            (Bound::Seconds(a), Bound::Seconds(b)) if a >= b => Err(WindowError::EndsFirst),
            (
                Bound::Occurrence { function: f, number: a },
                Bound::Occurrence { function: g, number: b },
            ) if f == g && a >= b => Err(WindowError::EndsFirst),
            _ => Ok(Self::Window { from, to }),
        }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole => write!(f, "the whole run"),
            Self::Window { .. } => write!(f, "window {}", self.value()),
            Self::Region(_) => write!(f, "region {}", self.value()),
            Self::Iteration(_) => write!(f, "iteration {}", self.value()),
            Self::All(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::to_string).collect();
                write!(f, "{}", parts.join(", "))
            }
        }
    }
}

impl Bound {
    fn parse(text: &str) -> Result<Self, WindowError> {
        if let Some((function, number)) = text.split_once('#') {
            let number = number.parse().ok().filter(|number| *number > 0);
            return match number {
                Some(number) if !function.is_empty() => {
                    Ok(Self::Occurrence { function: function.to_owned(), number })
                }
                _ => Err(WindowError::NoCall(text.to_owned())),
            };
        }
        match text.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Self::Seconds(seconds)),
            _ => Err(WindowError::NoBound(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds}"),
            Self::Occurrence { function, number } => write!(f, "{function}#{number}"),
        }
    }
}
