//! The scheduler's account of a thread.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Nanoseconds on a core and waiting for one, and how often it was given one.
pub fn schedstat(account: &File) -> Option<[u64; 3]> {
    const BYTES: usize = 64;
    let mut text = [0; BYTES];
    let read = account.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..read]).ok()?;
    let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
    Some([fields.next()?, fields.next()?, fields.next()?])
}
