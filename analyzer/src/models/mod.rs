//! Stage 4: measured runs come in, models of their times go out.
//!
//! Module | what it is
//! ---|---
//! [`expression`] | arithmetic over named variables, as the user writes it
//!
//! Nothing here prints: [`crate::present`] shows what comes out.

pub mod expression;
