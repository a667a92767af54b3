//! Renders the answers of `gammachi whatif` ([`WhatIf`](crate::replay::WhatIf)) as a screen and as a JSON document.

mod document;
mod pictures;
mod results;
pub(super) mod savings;
mod screen;
pub(super) mod words;

#[cfg(test)]
pub(crate) use document::Document;
pub use document::json;
pub use pictures::sensitivity;
pub use results::{Tolerance, WhatIfResults};
pub use savings::{ForReport, Saving};
pub use screen::screen;
pub use words::{reason, sentence};
