//! A number of bytes as users write it: `64M`.

/// Largest accepted number of bytes.
const MAX_BYTES: u64 = 1 << 52;

/// Parses a whole number with an optional suffix K, M, G or T (powers of 1024). `None` for anything
/// else.
pub fn parse(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (bytes <= MAX_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn parses_bytes_with_unit() {
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("64M"), Some(64 << 20));
        assert_eq!(parse("2g"), Some(2 << 30));
        for wrong in ["", "M", "1.5G", "-1", "9999999T", "1 K", "ä"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
