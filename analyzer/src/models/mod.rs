//! Stage 4: measured runs come in, models of their times go out.
//!
//! Module | what it is
//! ---|---
//! [`observations`] | the table that models are fitted to: one row a run, from CSV or from run directories
//! [`regression`] | times as sums of basis functions (SCIENCE C): fit, select, predict
//! [`evidence`] | a time over the rank count alone, predicted by weighing many sums of terms
//! [`scaling`] | the efficiency model: time over the rank count, without a sequential run
//! [`expression`] | arithmetic over named variables, as the user writes it
//! [`machine`] | `machine.json`: what the network, the processors and the memory can do, measured
//! [`logpq`] | network models: parameters, predicted times of products and of recorded messages
//! [`roofline`] | operations a second under the roofs of computation, communication and memory
//!
//! Nothing here prints: [`crate::present`] shows what comes out.

pub mod evidence;
pub mod expression;
pub mod logpq;
pub mod machine;
pub mod observations;
pub mod regression;
pub mod roofline;
pub mod scaling;

pub use machine::Machine;
pub use observations::Observations;
