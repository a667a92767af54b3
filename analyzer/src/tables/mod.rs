//! Tables as data: the key, title and kind of each column, and the cells. What is in a table, and when a column says
//! something, is decided here; `present` lays the same table out for the terminal and the page.

pub mod calls;
pub mod code;
pub mod code_parts;
mod delay;
pub mod delay_costs;
pub mod files;
pub mod ledger;
pub mod model;
pub mod openmp;
pub mod parts;
pub mod ranks;
pub mod scaling;
pub mod study;
mod table;
pub mod waits;

pub use delay::{Delay, Longer};
pub use table::{Cell, Column, Shown, Table};
