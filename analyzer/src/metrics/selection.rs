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
