//! What all SVG documents share: their begin, background, ink, and escaped text.

/// Colour of type and lines.
pub(super) const INK: &str = "#1a1a1a";

pub(super) const BACKGROUND: &str = "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";

/// The begin of a document of a printed size in points, with further attributes, and its name for screen readers.
pub(super) fn begin(width: &str, height: &str, attributes: &str, name: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\"{attributes}>\n<title>{}</title>\n",
        escaped(name)
    )
}

/// The least of the steps 1, 2, 5, 10 … that is not below `least`, for the ticks of an axis.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= least);
    step.unwrap_or(least)
}

/// Escapes text for elements and attribute values.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
