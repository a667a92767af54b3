//! Text that is HTML.

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, context};

use crate::metrics::activity::Kind;
use crate::plain_text::printable;
use crate::present::quantity;
use crate::trace::Run;

/// Marks text as HTML, which the template then does not escape.
pub(in crate::present) fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

/// Scripts that the page and the viewer share, in the order in which they run.
pub(super) const SHARED_SCRIPT: [&str; 25] = [
    include_str!("words.js"),
    include_str!("painter.js"),
    include_str!("marks.js"),
    include_str!("waits.js"),
    include_str!("lanes.js"),
    include_str!("timeline.js"),
    include_str!("walk.js"),
    include_str!("pointers.js"),
    include_str!("computing.js"),
    include_str!("iterations.js"),
    include_str!("tables.js"),
    include_str!("selection.js"),
    include_str!("figures.js"),
    include_str!("samples.js"),
    include_str!("chance.js"),
    include_str!("flame_tree.js"),
    include_str!("flame.js"),
    include_str!("panels.js"),
    include_str!("selected.js"),
    include_str!("matrix.js"),
    include_str!("search.js"),
    include_str!("link.js"),
    include_str!("theme.js"),
    include_str!("keys.js"),
    include_str!("page.js"),
];

/// A template failed to render: a mistake in the template, which its tests should have caught.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(#[from] minijinja::Error);

/// Kinds with their numbers and names.
pub(super) fn kinds_used(kinds: impl IntoIterator<Item = usize>) -> Vec<Value> {
    let kinds = kinds.into_iter();
    kinds.map(|number| context! { number, name => Kind::ALL[number].name() }).collect()
}

/// Whether the run kept only totals, so that no call's time is known; `calls` is the number of calls kept one by one.
pub(super) fn is_totals_only(run: &Run, calls: u64) -> bool {
    let mut threads = run.ranks.iter().flat_map(|rank| &rank.file.threads);
    calls == 0 && threads.any(|thread| thread.totals.is_some())
}

/// A page whose tables sort and filter, without a timeline: its template, its name and what it is about, and its own
/// values.
pub(in crate::present) fn page_of_tables(
    template: &str,
    [name, about]: [&str; 2],
    content: Value,
) -> Result<String, PageError> {
    let script = [include_str!("tables.js"), include_str!("tables_page.js")];
    let context = context! {
        gammachi => env!("CARGO_PKG_VERSION"),
        name => printable(name),
        context => printable(about),
        kinds => Vec::<&str>::new(),
        script => safe(script.join("\n")),
        ..content
    };
    Ok(environment()?.get_template(template)?.render(context)?)
}

pub(super) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.ends_with(".css") {
        true => AutoEscape::None,
        false => AutoEscape::Html,
    });
    environment.add_template("page.html", include_str!("page.html"))?;
    environment.add_template("study.html", include_str!("study.html"))?;
    environment.add_template("comparison.html", include_str!("comparison.html"))?;
    environment.add_template("history.html", include_str!("history.html"))?;
    environment.add_template("top.html", include_str!("top.html"))?;
    environment.add_template("bottom.html", include_str!("bottom.html"))?;
    environment.add_template("head.html", include_str!("head.html"))?;
    environment.add_template("cells.html", include_str!("cells.html"))?;
    environment.add_template("summary.html", include_str!("summary.html"))?;
    environment.add_template("timeline.html", include_str!("timeline.html"))?;
    environment.add_template("panels.html", include_str!("panels.html"))?;
    environment.add_template("help.html", include_str!("help.html"))?;
    environment.add_template("parts.html", include_str!("parts.html"))?;
    environment.add_template("style.css", include_str!("style.css"))?;
    environment.add_template("layout.css", include_str!("layout.css"))?;
    let or_dash = |format: fn(f64) -> String| {
        move |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format)
    };
    environment.add_filter("seconds", or_dash(quantity::seconds));
    environment.add_filter("percent", or_dash(quantity::percent));
    environment.add_filter("prefix", or_dash(quantity::with_prefix));
    environment.add_filter("three", or_dash(|value| quantity::significant(value, 3)));
    environment.add_filter("factor", or_dash(|value| format!("{value:.2}")));
    environment.add_filter("bytes", or_dash(|value| quantity::with_prefix(value) + "B"));
    environment.add_filter("count", or_dash(|value| quantity::count(value as u64)));
    environment.add_filter("printable", |text: String| printable(&text));
    Ok(environment)
}
