//! Models of times, fitted to measured runs.
//!
//! Module | what it is
//! ---|---
//! [`observations`] | the table that models are fitted to: one row per run, from CSV or recorded runs
//! [`regression`] | times as sums of basis functions (Orii et al.): fit, select, predict
//! [`evidence`] | predicts a time over the rank count by weighing many sums of terms
//! [`scaling`] | the efficiency model (Orii 2009): time over the rank count, no sequential run
//! [`structure`] | predicts a time from what the program does: laws of counts and sizes, prices of calls
//! [`expression`] | arithmetic over named variables, as the user writes it
//! [`kernel_output`] | the documents that kernels of bench-kernels print
//! [`machine`] | `machine.json`: what the network, the processors and the memory can do, measured
//! [`logpq`] | network models: parameters, predicted times of products and of recorded messages
//! [`roofline`] | operations per second under the roofs of computation, communication and memory
//!
//! Nothing here prints; [`crate::present`] shows the results. docs/references.md lists the papers.

pub mod evidence;
pub mod expression;
pub mod kernel_output;
pub mod logpq;
pub mod machine;
pub mod observations;
pub mod regression;
pub mod roofline;
pub mod scaling;
pub mod structure;

pub use machine::Machine;
pub use observations::Observations;
