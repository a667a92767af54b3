//! What the JSON documents of all subjects have in common.

use serde::Serialize;

// The keys with which most documents begin. A doc comment would describe the documents in their schemas.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Head {
    /// 1.
    version: u32,
    /// Version of the command.
    gammachi: &'static str,
}

impl Default for Head {
    fn default() -> Self {
        // A key never changes its meaning within one version.
        Self { version: 1, gammachi: env!("CARGO_PKG_VERSION") }
    }
}

/// A document as indented text with a line feed at its end.
pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
