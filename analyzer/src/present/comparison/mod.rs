//! The screens, documents and pages of `gammachi compare`, `check`, `baseline` and `history`.
//!
//! | file | what it makes |
//! |---|---|
//! | `words` | places, counts and causes in words |
//! | `verdict` | the sentences at the head |
//! | `screen`, `document`, `page` | of a comparison |
//! | `checked` | the outcome of a check: screen, JUnit, annotations |
//! | `kept` | a baseline's table |
//! | `history` | the page of a series |

pub mod checked;
mod document;
pub mod history;
mod kept;
mod page;
mod screen;
mod verdict;
mod words;

pub use document::json;
pub use kept::{kept_json, kept_screen};
pub use page::{Timelines, page};
pub use screen::screen;
pub use words::{differences, mixed};
