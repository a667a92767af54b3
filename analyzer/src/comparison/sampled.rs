//! What a record keeps of the samples of a run's code: the own time of each function on each group of ranks.

use serde::{Deserialize, Serialize};

/// Own time in functions, from samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampledCode {
    /// CPU time that a sample stands for, nanoseconds.
    pub period_ns: i64,
    /// Whether a rank was sampled at the kernel's ticks, so that what follows a tick is counted too often or too rarely.
    pub at_ticks: bool,
    /// Number of ranks that were sampled.
    pub ranks: u32,
    /// Most time first.
    pub rows: Vec<SampledRow>,
}

/// Own time of a function, or of what is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampledRow {
    #[serde(flatten)]
    pub what: Sampled,
    /// Nanoseconds by group of ranks.
    pub by_ranks: Vec<i64>,
}

/// What time was sampled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sampled {
    /// What it is.
    pub kind: SampledKind,
    /// Name of the function; none: unknown, or no function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Program or library, without its path; empty: unknown code, or no function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Source file, without its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it with most time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SampledKind {
    /// A function.
    #[default]
    Function,
    /// The functions with least time, together.
    Rest,
    /// The kernel, or signals held off; also inside MPI.
    Kernel,
    /// Samples for which there was no room.
    Lost,
}

impl Sampled {
    /// What identifies it in other builds: its name without what the compiler adds to those of copies and parts, and the
    /// file of its code without a version. The program itself may have another name.
    pub fn key(&self, program: &str) -> Self {
        const ADDED: [&str; 6] =
            [".cold", ".constprop.", ".isra.", ".lto_priv.", ".part.", ".llvm."];
        let plain = |name: &String| {
            let end = ADDED.iter().filter_map(|suffix| name.find(suffix)).min();
            name[..end.unwrap_or(name.len())].to_owned()
        };
        let end = self.module.find(".so").map_or(self.module.len(), |at| at + ".so".len());
        let module = if self.module == program { "" } else { &self.module[..end] };
        Self {
            kind: self.kind,
            function: self.function.as_ref().map(plain),
            module: module.to_owned(),
            file: None,
            line: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_a_function_have_one_key() {
        let key = |function: &str, module: &str| {
            let of = Sampled {
                function: Some(function.into()),
                module: module.into(),
                line: Some(3),
                ..Sampled::default()
            };
            of.key("app")
        };
        assert_eq!(
            key("norm.constprop.0", "libsolve.so.3.18"),
            key("norm.isra.0.cold", "libsolve.so.3.19")
        );
        assert_ne!(key("norm", "libsolve.so"), key("norm", "app"));
        assert_ne!(key("norm", "libsolve.so"), key("norm2", "libsolve.so"));
    }
}
