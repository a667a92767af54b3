//! Where CPython keeps frames and code, by version.
//!
//! Offsets are those of 64-bit builds, from the headers of each version; 3.13 states its own in
//! `_PyRuntime` (`_Py_DebugOffsets`). Builds without the interpreter's lock differ.

use crate::host::own_memory::Copied;

/// Which frames a call of the interpreter's evaluation function has, and where on the thread's stack
/// that call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// One frame each; nothing tells where (3.9).
    OneFrame,
    /// One frame each. The call's record is on the stack (3.10).
    OneFrameWithRecord,
    /// All up to the one with the byte at this offset set. The call's record is on the stack (3.11).
    Marked(usize),
    /// All before a frame that lies on the stack itself, whose byte at this offset is
    /// [`ON_STACK`] (from 3.12 on).
    Framed(usize),
}

/// Owner of a frame that is no function's.
pub const ON_STACK: u8 = 3;

/// How a code object tells the lines of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Pairs of distances (3.9).
    Pairs,
    /// Pairs of distances, of which some have no line (3.10).
    Ranges,
    /// Entries with columns (from 3.11 on).
    Entries,
}

/// Records on the thread's stack: their offset in the thread's state, and of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Records {
    pub in_state: usize,
    pub next: usize,
}

/// How an instruction is told by a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// Number of bytes, 32 bits (3.9), or of instructions (3.10), before it.
    Bytes,
    Units,
    /// Its address. Instructions lie in the code object at this offset.
    Address(usize),
}

/// Offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub calls: Calls,
    pub records: Option<Records>,
    /// The innermost frame: in the first record, or else in the thread's state.
    pub innermost: usize,
    pub frame_is_in_record: bool,
    pub frame: FrameLayout,
    pub code: CodeLayout,
    pub text: TextLayout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// How much of a frame must be read.
    pub bytes: usize,
    pub code: usize,
    pub previous: usize,
    pub instruction_at: usize,
    pub instruction: Instruction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLayout {
    /// How much of a code object must be read.
    pub bytes: usize,
    pub first_line: usize,
    pub file: usize,
    pub name: usize,
    pub lines_at: usize,
    pub lines: Lines,
}

/// A text is behind its head, which is longer if it is not ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLayout {
    pub ascii_head: usize,
    pub other_head: usize,
}

/// How much of a thread's state must be read.
pub const STATE_BYTES: usize = 96;

const WITH_WIDE_TEXT: TextLayout = TextLayout { ascii_head: 48, other_head: 72 };
const WITHOUT_WIDE_TEXT: TextLayout = TextLayout { ascii_head: 40, other_head: 56 };

/// Layout of 3.9 and 3.10, in which frames are objects.
const fn with_frame_objects(
    (calls, records): (Calls, Option<Records>),
    (instruction_at, instruction): (usize, Instruction),
    lines: Lines,
) -> Layout {
    Layout {
        calls,
        records,
        innermost: 24,
        frame_is_in_record: false,
        frame: FrameLayout {
            bytes: instruction_at + 4,
            code: 32,
            previous: 24,
            instruction_at,
            instruction,
        },
        code: CodeLayout { bytes: 128, first_line: 40, file: 104, name: 112, lines_at: 120, lines },
        text: WITH_WIDE_TEXT,
    }
}

const V3_9: Layout =
    with_frame_objects((Calls::OneFrame, None), (104, Instruction::Bytes), Lines::Pairs);

const V3_10: Layout = with_frame_objects(
    (Calls::OneFrameWithRecord, Some(Records { in_state: 48, next: 8 })),
    (96, Instruction::Units),
    Lines::Ranges,
);

const V3_11: Layout = Layout {
    calls: Calls::Marked(68),
    records: Some(Records { in_state: 56, next: 16 }),
    innermost: 8,
    frame_is_in_record: true,
    frame: FrameLayout {
        bytes: 72,
        code: 32,
        previous: 48,
        instruction_at: 56,
        instruction: Instruction::Address(184),
    },
    code: CodeLayout {
        bytes: 144,
        first_line: 72,
        file: 112,
        name: 128,
        lines_at: 136,
        lines: Lines::Entries,
    },
    text: WITH_WIDE_TEXT,
};

const V3_12: Layout = Layout {
    calls: Calls::Framed(70),
    records: Some(Records { in_state: 56, next: 8 }),
    innermost: 0,
    frame_is_in_record: true,
    frame: FrameLayout {
        bytes: 72,
        code: 0,
        previous: 8,
        instruction_at: 56,
        instruction: Instruction::Address(192),
    },
    code: CodeLayout {
        bytes: 144,
        first_line: 68,
        file: 112,
        name: 128,
        lines_at: 136,
        lines: Lines::Entries,
    },
    text: WITHOUT_WIDE_TEXT,
};

/// The layout of a version; the error says why it is not known. `runtime` is the address of
/// `_PyRuntime`.
pub fn layout_of((major, minor): (u8, u8), runtime: u64) -> Result<Layout, String> {
    match (major, minor) {
        (3, 9) => Ok(V3_9),
        (3, 10) => Ok(V3_10),
        (3, 11) => Ok(V3_11),
        (3, 12) => Ok(V3_12),
        (3, 13) => stated(runtime)
            .ok_or_else(|| "this build of Python 3.13 does not say where frames are".to_owned()),
        _ => Err(format!("frames of Python {major}.{minor} are not known (3.9 to 3.13 are)")),
    }
}

/// The layout that 3.13 states; `None` for a build without the interpreter's lock.
fn stated(runtime: u64) -> Option<Layout> {
    const COOKIE: u64 = u64::from_ne_bytes(*b"xdebugpy");
    const MAX_OBJECT_BYTES: usize = 256;
    /// Of `struct _Py_DebugOffsets`, and offsets in it.
    const BYTES: usize = 584;
    const VERSION: usize = 8;
    const FREE_THREADED: usize = 16;
    let stated = Copied::<BYTES>::read(runtime, BYTES)?;
    let is_known = stated.word(VERSION) >> 16 == 0x030d && stated.word(FREE_THREADED) == 0;
    if stated.word(0) != COOKIE || !is_known {
        return None;
    }
    let offset = |at| usize::try_from(stated.word(at)).ok().filter(|of| *of < MAX_OBJECT_BYTES);
    let largest = |offsets: &[usize]| offsets.iter().max().map_or(0, |last| last + 8);
    let (code, previous) = (offset(240)?, offset(232)?);
    let (instruction_at, owner) = (offset(248)?, offset(264)?);
    let (file, name, lines_at, first_line) =
        (offset(280)?, offset(296)?, offset(304)?, offset(312)?);
    let innermost = offset(184)?;
    (innermost + 8 <= STATE_BYTES).then_some(Layout {
        calls: Calls::Framed(owner),
        records: None,
        innermost,
        frame_is_in_record: false,
        frame: FrameLayout {
            bytes: largest(&[code, previous, instruction_at]).max(owner + 1),
            code,
            previous,
            instruction_at,
            instruction: Instruction::Address(offset(344)?),
        },
        code: CodeLayout {
            bytes: largest(&[file, name, lines_at, first_line]),
            first_line,
            file,
            name,
            lines_at,
            lines: Lines::Entries,
        },
        text: TextLayout { ascii_head: offset(560)?, ..WITHOUT_WIDE_TEXT },
    })
}

/// A statement as 3.13.0 makes it.
#[cfg(test)]
pub fn stated_by_3_13() -> [u64; 73] {
    /// From its header: offset in the statement and value.
    const STATED: [(usize, u64); 15] = [
        (8, 0x030d_00f0),
        (184, 72),
        (224, 80),
        (232, 8),
        (240, 0),
        (248, 56),
        (264, 70),
        (280, 112),
        (296, 128),
        (304, 136),
        (312, 68),
        (344, 200),
        (544, 32),
        (552, 16),
        (560, 40),
    ];
    let mut words = [0; 73];
    words[0] = u64::from_ne_bytes(*b"xdebugpy");
    STATED.iter().for_each(|(at, value)| words[at / 8] = *value);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_that_python_states_is_that_of_its_headers() {
        let mut words = stated_by_3_13();
        let of = |words: &[u64; 73]| layout_of((3, 13), words.as_ptr() as u64);
        let expected = Layout {
            records: None,
            innermost: 72,
            frame_is_in_record: false,
            frame: FrameLayout { bytes: 71, instruction: Instruction::Address(200), ..V3_12.frame },
            ..V3_12
        };
        assert_eq!(of(&words), Ok(expected));
        words[2] = 1;
        assert!(of(&words).is_err(), "no lock");
        (words[2], words[1]) = (0, 0x030e_00f0);
        assert!(of(&words).is_err(), "another version's statement has another form");
        assert!(layout_of((3, 8), 0).is_err() && layout_of((3, 14), 0).is_err());
    }
}
