//! Text and colours of pictures.

/// Colours of the kinds on white, by Okabe and Ito; own code is pale.
pub const KIND_COLOURS: [&str; 10] = [
    "#cfd6dc", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7", "#0072b2", "#009e73", "#f0e442",
    "#7d5ba6", "#000000",
];

/// Escapes text for elements and attribute values.
pub(in crate::present) fn escaped(text: &str) -> String {
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
