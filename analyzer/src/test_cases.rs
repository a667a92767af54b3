//! How many cases a test generates.

/// The share of `all` that `PROPTEST_CASES` is of proptest's default of 256; without it, all.
pub(crate) fn cases(all: u32) -> u32 {
    const DEFAULT: u64 = 256;
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    (u64::from(all) * asked.unwrap_or(DEFAULT) / DEFAULT).max(1) as u32
}
