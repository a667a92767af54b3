//! Lines of a Python function's instructions.

use crate::host::python_layout::Lines;

/// The line of the instruction that begins `byte` bytes behind the function's first, which is on
/// `first_line`; 0: it has none. May be called in a signal handler.
pub fn line_at(lines: Lines, table: &[u8], first_line: u32, byte: u32) -> u32 {
    let found = match lines {
        Lines::Pairs => in_pairs(table, first_line, byte),
        Lines::Ranges => in_ranges(table, first_line, byte),
        Lines::Entries => in_entries(table, first_line, byte),
    };
    found.unwrap_or(0)
}

fn pairs(table: &[u8]) -> impl Iterator<Item = (u32, i8)> {
    table.chunks_exact(2).map(|pair| (u32::from(pair[0]), pair[1] as i8))
}

/// Each pair: bytes since the last, and lines since.
fn in_pairs(table: &[u8], first_line: u32, byte: u32) -> Option<u32> {
    let (mut at, mut line) = (0u32, first_line);
    for (bytes, lines) in pairs(table) {
        at = at.saturating_add(bytes);
        if at > byte {
            break;
        }
        line = line.wrapping_add_signed(lines.into());
    }
    Some(line)
}

/// Each pair: length in bytes, and the line since the last.
fn in_ranges(table: &[u8], first_line: u32, byte: u32) -> Option<u32> {
    const NO_LINE: i8 = -128;
    let (mut end, mut line) = (0u32, first_line);
    for (bytes, lines) in pairs(table) {
        end = end.saturating_add(bytes);
        if lines != NO_LINE {
            line = line.wrapping_add_signed(lines.into());
        }
        if byte < end {
            return (lines != NO_LINE).then_some(line);
        }
    }
    None
}

/// Each entry: a byte with the highest bit set, which no other byte has: its kind (4 bits) and its
/// length less 1 in units of two bytes (3 bits); then, for some kinds, the line since the last.
fn in_entries(table: &[u8], first_line: u32, byte: u32) -> Option<u32> {
    const FIRST: u8 = 0x80;
    let (mut rest, mut end, mut line) = (table, 0u32, first_line);
    while let [first, behind @ ..] = rest {
        let lines = match first >> 3 & 0xf {
            15 => None,
            13 | 14 => Some(signed(behind)),
            ahead @ 10..=12 => Some(i32::from(ahead) - 10),
            _ => Some(0),
        };
        line = line.wrapping_add_signed(lines.unwrap_or(0));
        end = end.saturating_add(2 * (u32::from(first & 7) + 1));
        if byte < end {
            return lines.map(|_| line);
        }
        let next = behind.iter().position(|byte| byte & FIRST != 0)?;
        rest = &behind[next..];
    }
    None
}

/// A signed number: 6 bits a byte, the lowest first, of which bit 6 says that more follow; the
/// lowest bit of all is the sign.
fn signed(bytes: &[u8]) -> i32 {
    const MORE: u8 = 0x40;
    let (mut number, mut shift) = (0u32, 0);
    for byte in bytes {
        number |= u32::from(byte & 0x3f).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & MORE == 0 {
            break;
        }
    }
    let size = (number >> 1) as i32;
    if number & 1 != 0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table, the function's first line, and lines by byte.
    type Case = (Lines, u32, &'static [u8], &'static [(u32, u32)]);

    /// Tables of one function, as the compilers of the versions made them. The lines are those that Python
    /// itself gives (`dis.findlinestarts`, `co_lines`).
    #[rustfmt::skip]
    const CASES: [Case; 5] = [
        // 3.9
        (Lines::Pairs, 3, &[0, 2, 4, 1, 12, 1, 10, 2, 2, 254, 6, 4, 2, 252, 6, 127, 0, 25, 4, 1,
            10, 1, 12, 1, 8, 2, 22, 1], &[(0, 5), (2, 5), (4, 6), (14, 6), (16, 7), (24, 7), (26,
            9), (28, 7), (32, 7), (34, 11), (36, 7), (40, 7), (42, 159), (44, 159), (46, 160),
            (54, 160), (56, 161), (66, 161), (68, 162), (74, 162), (76, 164), (96, 164), (98,
            165), (100, 165)]),
        // 3.10
        (Lines::Ranges, 3, &[4, 2, 12, 1, 10, 1, 2, 2, 6, 254, 2, 4, 6, 252, 0, 127, 4, 25, 10, 1,
            12, 1, 4, 1, 2, 255, 2, 128, 20, 3, 4, 1], &[(0, 5), (2, 5), (4, 6), (14, 6), (16, 7),
            (24, 7), (26, 9), (28, 7), (32, 7), (34, 11), (36, 7), (40, 7), (42, 159), (44, 159),
            (46, 160), (54, 160), (56, 161), (66, 161), (68, 162), (70, 162), (72, 161), (74, 0),
            (76, 164), (94, 164), (96, 165), (98, 165)]),
        // 3.11
        (Lines::Entries, 3, &[128, 0, 224, 12, 13, 128, 69, 221, 13, 18, 144, 49, 137, 88, 140,
            88, 240, 0, 94, 2, 5, 23, 240, 0, 94, 2, 5, 23, 136, 1, 216, 8, 13, 149, 19, 240, 0,
            3, 21, 10, 240, 0, 3, 21, 10, 224, 21, 26, 240, 5, 3, 21, 10, 241, 0, 3, 21, 10, 244,
            0, 3, 21, 10, 241, 0, 3, 18, 10, 244, 0, 3, 18, 10, 240, 8, 0, 13, 14, 241, 9, 5, 18,
            10, 241, 0, 5, 9, 10, 136, 5, 240, 112, 4, 5, 9, 23, 216, 20, 25, 148, 74, 136, 69,
            136, 69, 248, 221, 15, 29, 240, 0, 1, 9, 17, 240, 0, 1, 9, 17, 240, 0, 1, 9, 17, 216,
            12, 16, 136, 68, 240, 3, 1, 9, 17, 248, 248, 248, 240, 6, 0, 13, 18, 144, 81, 137, 74,
            136, 69, 136, 69, 248, 136, 69, 144, 81, 137, 74, 136, 69, 136, 69, 136, 69, 136, 69,
            136, 69, 216, 11, 16, 128, 76], &[(0, 3), (2, 5), (4, 5), (6, 6), (38, 6), (40, 7),
            (56, 7), (58, 9), (60, 7), (88, 7), (90, 11), (92, 7), (100, 7), (102, 159), (104,
            160), (118, 160), (120, 0), (122, 161), (138, 161), (140, 162), (142, 162), (144,
            161), (146, 0), (150, 0), (152, 164), (162, 164), (164, 0), (166, 164), (182, 164),
            (184, 165), (186, 165)]),
        // 3.12
        (Lines::Entries, 3, &[128, 0, 224, 12, 13, 128, 69, 220, 13, 18, 144, 49, 139, 88, 242, 0,
            94, 2, 5, 23, 136, 1, 216, 8, 13, 148, 19, 241, 0, 3, 21, 10, 224, 21, 26, 244, 5, 3,
            21, 10, 243, 0, 3, 18, 10, 240, 8, 0, 13, 14, 241, 9, 5, 18, 10, 241, 0, 5, 9, 10,
            136, 5, 240, 112, 4, 5, 9, 23, 216, 20, 25, 151, 74, 145, 74, 136, 69, 240, 8, 0, 13,
            18, 144, 81, 137, 74, 137, 69, 240, 125, 4, 94, 2, 5, 23, 240, 126, 4, 0, 12, 17, 128,
            76, 248, 244, 9, 0, 16, 30, 242, 0, 1, 9, 17, 217, 12, 16, 240, 3, 1, 9, 17, 251, 240,
            6, 0, 13, 18, 144, 81, 137, 74, 137, 69, 250], &[(0, 3), (2, 5), (4, 5), (6, 6), (32,
            6), (34, 7), (48, 7), (50, 9), (52, 7), (68, 7), (70, 11), (72, 7), (80, 7), (82,
            159), (84, 160), (106, 160), (108, 164), (118, 164), (120, 6), (122, 165), (124, 165),
            (126, 0), (128, 161), (142, 161), (144, 162), (146, 162), (148, 161), (150, 0), (156,
            0), (158, 164), (168, 164), (170, 0), (174, 0)]),
        // 3.13
        (Lines::Entries, 3, &[128, 0, 224, 12, 13, 128, 69, 220, 13, 18, 144, 49, 142, 88, 136, 1,
            216, 8, 13, 148, 19, 241, 0, 3, 21, 10, 225, 21, 26, 243, 5, 3, 21, 10, 243, 0, 3, 18,
            10, 240, 8, 0, 13, 14, 241, 9, 5, 18, 10, 241, 0, 5, 9, 10, 136, 5, 240, 112, 4, 5, 9,
            23, 216, 20, 25, 151, 74, 145, 74, 136, 69, 240, 8, 0, 13, 18, 144, 81, 137, 74, 138,
            69, 241, 125, 4, 0, 14, 22, 240, 126, 4, 0, 12, 17, 128, 76, 248, 244, 9, 0, 16, 30,
            243, 0, 1, 9, 17, 217, 12, 16, 240, 3, 1, 9, 17, 251, 240, 6, 0, 13, 18, 144, 81, 137,
            74, 137, 69, 250], &[(0, 3), (2, 5), (4, 5), (6, 6), (32, 6), (34, 7), (48, 7), (50,
            9), (52, 9), (54, 7), (68, 7), (70, 11), (72, 7), (80, 7), (82, 159), (84, 160), (106,
            160), (108, 164), (120, 164), (122, 6), (124, 6), (126, 165), (128, 165), (130, 0),
            (132, 161), (148, 161), (150, 162), (152, 162), (154, 161), (156, 0), (162, 0), (164,
            164), (174, 164), (176, 0), (180, 0)]),
    ];

    #[test]
    fn lines_are_those_that_python_gives() {
        for (lines, first_line, table, expected) in CASES {
            for (byte, line) in expected {
                let found = line_at(lines, table, first_line, *byte);
                assert_eq!(found, *line, "{lines:?} at {byte}");
            }
        }
    }

    #[test]
    fn damaged_tables_give_some_line_or_none() {
        let mut random = 5u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as u32
        };
        for _ in 0..2000 {
            let table: Vec<u8> = (0..next() % 40).map(|_| next() as u8).collect();
            for lines in [Lines::Pairs, Lines::Ranges, Lines::Entries] {
                line_at(lines, &table, next(), next() % 200);
            }
        }
        assert_eq!(line_at(Lines::Entries, &[], 7, 0), 0);
    }
}
