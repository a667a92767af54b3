//! Presents results: terminal screens, JSON documents, HTML pages and pictures.
//!
//! Nothing is measured or computed here beyond what wording and layout need. Each subject has a folder, in which
//! `screen` writes the text for the terminal, `document` the JSON and `pictures` the figures.
//!
//! | folder | subject |
//! |---|---|
//! | [`report`] | one run: [`Report`] |
//! | `findings` | what a run's figures mean, in sentences |
//! | [`causes`] | why ranks waited |
//! | `unfinished` | ranks that did not finish, within a report |
//! | [`live`] | what the ranks of a run do while it goes on |
//! | [`dump`] | single events and messages |
//! | [`clock`] | how well clocks are aligned |
//! | [`whatif`], [`ledger`] | a run's time under other conditions; predictions and how they compared with measured runs |
//! | [`comparison`] | two sets of runs, checks, baselines, histories |
//! | [`machine`], [`logpq`], [`roofline`] | a measured machine, and runs compared with what it can do |
//! | [`scaling`], [`model`] | models of times over configurations |
//! | [`html`], [`picture`], [`figure`], [`text_timeline`] | shared by all subjects: pages, pictures of a run, plots, the timeline in a terminal |

mod blocks;
pub mod causes;
mod cell;
pub mod clock;
mod code_place;
pub mod comparison;
mod context;
mod contradiction;
mod document;
pub mod dump;
pub mod figure;
pub(crate) mod findings;
pub mod html;
mod judged_run;
pub mod ledger;
pub mod live;
pub mod logpq;
pub mod machine;
pub mod model;
mod paragraph;
pub mod picture;
pub(crate) mod quantity;
pub mod report;
pub mod roofline;
pub mod scaling;
mod sections;
mod shown;
mod snapshot;
mod svg;
mod table;
pub mod text_timeline;
mod unfinished;
pub mod whatif;
pub mod width;

pub(crate) use cell::text as cell_text;
pub(crate) use context::{number_list, range_list};
pub(crate) use report::{counter_sentences, run_note, time_note};
pub use shown::Report;
pub use table::lines;

impl<'a> Report<'a> {
    /// What a reader should know, as found by all stages.
    pub fn notes(&self) -> impl Iterator<Item = String> + 'a {
        let Self { run, timeline, metrics, .. } = *self;
        let before = run.notes.iter().map(run_note).chain(timeline.notes.iter().map(time_note));
        before.chain(metrics.notes.iter().map(report::sentence))
    }
}

#[cfg(test)]
mod ratio_tests;
