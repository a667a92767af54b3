//! Which stretch of the run the figures are for: what the user wrote comes in, [`Selection`] goes
//! out.

/// One end of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// Seconds since the earliest rank begin.
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
    /// From one bound to another. A call as the first bound counts from its end, as the second to
    /// its begin.
    Window {
        /// Where it begins.
        from: Bound,
        /// Where it ends.
        to: Bound,
    },
    /// All occurrences of a region.
    Region(String),
}

const EXAMPLE: &str = "give two bounds, in seconds or as the n-th call of a function on each rank: \
                       --window 1.5,20 or --window MPI_Barrier#3,MPI_Barrier#4";

impl Selection {
    /// Reads `FROM,TO`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and shows an example.
    pub fn parse_window(text: &str) -> Result<Self, String> {
        let bad = |what: &str| format!("--window {text}: {what}; {EXAMPLE}");
        let Some((from, to)) = text.split_once(',') else {
            return Err(bad("there is no comma"));
        };
        let bound = |text: &str| Bound::parse(text.trim()).map_err(|what| bad(&what));
        let (from, to) = (bound(from)?, bound(to)?);
        match (&from, &to) {
            (Bound::Seconds(a), Bound::Seconds(b)) if a >= b => {
                Err(bad("it ends before it begins"))
            }
            (
                Bound::Occurrence { function: f, number: a },
                Bound::Occurrence { function: g, number: b },
            ) if f == g && a >= b => Err(bad("it ends before it begins")),
            _ => Ok(Self::Window { from, to }),
        }
    }
}

impl Bound {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some((function, number)) = text.split_once('#') {
            let number = number.parse().ok().filter(|number| *number > 0);
            return match number {
                Some(number) if !function.is_empty() => {
                    Ok(Self::Occurrence { function: function.to_owned(), number })
                }
                _ => Err(format!("{text:?} is not a call such as MPI_Barrier#3")),
            };
        }
        match text.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Self::Seconds(seconds)),
            _ => Err(format!("{text:?} is neither seconds nor a call such as MPI_Barrier#3")),
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
