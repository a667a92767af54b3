//! Packs the bins of a timeline, the share of each kind in each bin, into base64 text for the page.
//!
//! Row after row and bin after bin, each bin is a little-endian 16-bit word and up to ten bytes:
//!
//! | word | then |
//! |---|---|
//! | bits 0–9: kinds present | one byte per kind, lowest kind first: its share of the bin in 255ths, at least 1 |
//! | bit 14 and one kind: the kind fills the bin | nothing |
//! | 0: nothing was recorded in the bin | nothing |
//! | bit 15, bits 0–14 hold n: the next n bins of the row equal the one before | nothing |

use crate::metrics::activity::{Activity, KINDS, Row};

const FULL: u16 = 0x4000;
const REPEAT: u16 = 0x8000;
const MAX_REPEATS: u16 = 0x7fff;

pub(super) fn rows(activity: &Activity) -> String {
    let bin_s = activity.bin_s();
    let mut bytes = Vec::new();
    for row in &activity.rows {
        pack_row(row, bin_s, &mut bytes);
    }
    base64(&bytes)
}

fn pack_row(row: &Row, bin_s: f64, bytes: &mut Vec<u8>) {
    let mut previous: Vec<u8> = Vec::new();
    let mut repeats = 0u16;
    let mut cell = Vec::with_capacity(2 + KINDS);
    for (index, bin) in row.bins.iter().enumerate() {
        pack_bin(bin, bin_s, &mut cell);
        if index > 0 && cell == previous && repeats < MAX_REPEATS {
            repeats += 1;
            continue;
        }
        flush(&mut repeats, bytes);
        bytes.extend(&cell);
        std::mem::swap(&mut previous, &mut cell);
    }
    flush(&mut repeats, bytes);
}

fn flush(repeats: &mut u16, bytes: &mut Vec<u8>) {
    if *repeats > 0 {
        bytes.extend((REPEAT | std::mem::take(repeats)).to_le_bytes());
    }
}

fn pack_bin(bin: &[f32; KINDS], bin_s: f64, cell: &mut Vec<u8>) {
    cell.clear();
    let share = |seconds: f32| if bin_s > 0.0 { f64::from(seconds) / bin_s } else { 0.0 };
    let present = (0..KINDS).filter(|kind| bin[*kind] > 0.0);
    let word = present.clone().fold(0u16, |word, kind| word | 1 << kind);
    if word.count_ones() == 1 && present.clone().all(|kind| share(bin[kind]) > 254.5 / 255.0) {
        cell.extend((word | FULL).to_le_bytes());
        return;
    }
    cell.extend(word.to_le_bytes());
    // However short a kind was, it is never rounded to nothing.
    cell.extend(present.map(|kind| (share(bin[kind]) * 255.0).round().clamp(1.0, 255.0) as u8));
}

/// RFC 4648, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for digit in 0..4 {
            match digit <= group.len() {
                true => text.push(DIGITS[(word >> (18 - 6 * digit) & 63) as usize] as char),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_rfc_4648() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn keeps_the_smallest_share_and_counts_equal_bins() {
        let bin = |own: f32, wait: f32| {
            let mut bin = [0.0; KINDS];
            (bin[0], bin[4]) = (own, wait);
            bin
        };
        let row = |bins: Vec<[f32; KINDS]>| Row {
            position: 0,
            rank: 0,
            thread: 0,
            begin_s: 0.0,
            end_s: 1.0,
            bins,
            totals_s: [0.0; KINDS],
        };
        let mut bytes = Vec::new();
        pack_row(
            &row(vec![bin(1.0, 1e-9), bin(1.0, 0.0), bin(1.0, 0.0), bin(0.0, 0.0)]),
            1.0,
            &mut bytes,
        );
        assert_eq!(bytes, [0x11, 0, 255, 1, 0x01, 0x40, 0x01, 0x80, 0, 0]);
    }
}
