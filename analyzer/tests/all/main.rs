//! The command, tested from outside: one program, for each of many would link the analyzer anew. A file is a topic; all
//! of one: `cargo test -p gammachi --test all floors::`.

mod agreement;
mod command;
mod documents;
mod dump;
mod floors;
mod instance;
mod kept_runs;
mod model;
mod privacy;
mod recordability;
mod scratch;
mod screens;
mod settings;
#[path = "../../../tests/src/skip.rs"]
mod skip;
mod sweep;
mod symbols;
#[path = "../../src/synthetic_code.rs"]
mod synthetic_code;
#[path = "../../src/synthetic_losses.rs"]
mod synthetic_losses;
#[allow(dead_code)] // Unit tests need more of it.
#[path = "../../src/synthetic_messages.rs"]
mod synthetic_messages;
#[allow(dead_code)] // Unit tests need more of it.
#[path = "../../src/synthetic_trace.rs"]
mod synthetic_trace;
mod view;
