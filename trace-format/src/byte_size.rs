//! A number of bytes as people write it: `64M`.

/// Largest number of bytes that is understood.
const MOST_BYTES: u64 = 1 << 52;

/// Reads a whole number with an optional K, M, G or T behind it (powers of 1024); `None` for anything else.
pub fn parse(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (bytes <= MOST_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn bytes_are_read_with_their_unit() {
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("64M"), Some(64 << 20));
        assert_eq!(parse("2g"), Some(2 << 30));
        for wrong in ["", "M", "1.5G", "-1", "9999999T", "1 K", "ä"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
