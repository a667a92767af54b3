//! Prints the table of environment variables in Markdown, as shown in `docs/reference/settings.md`.

use trace_format::settings::{Purpose, ReadBy, Unset, VARIABLES, Variable};

/// The table of all variables, one per row.
pub(super) fn table() -> String {
    let mut text = "| variable | option | read by | values | if unset | meaning |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for variable in VARIABLES {
        text += &row(variable);
    }
    text
}

fn row(variable: &Variable) -> String {
    let option = variable.option.map(|option| format!("`{option}`")).unwrap_or_default();
    let reader = match variable.read_by {
        ReadBy::Both => "recorder, command",
        ReadBy::Recorder => "recorder",
        ReadBy::Command => "command",
    };
    let unset = match variable.unset {
        Unset::Value(default) => format!("`{default}`"),
        Unset::Means(meaning) => meaning.to_owned(),
    };
    let mark = match variable.purpose {
        Purpose::Setting => "",
        Purpose::SetByRun => "Set by `gammachi run`. ",
        Purpose::TestHook => "For tests of gammachi. ",
    };
    let Variable { name, values, meaning, .. } = variable;
    format!("| `{name}` | {option} | {reader} | {values} | {unset} | {mark}{meaning} |\n")
}
