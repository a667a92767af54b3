//! Python functions on the calling thread's stack, read without the interpreter's lock.
//!
//! The thread may be interrupted anywhere: a frame may be half made, or its code freed. So everything
//! is copied by the kernel (`own_memory`), what lay on the thread's stack the last time in advance, and
//! counts only if it has the type that it should have.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::encoding::checksum;
use trace_format::samples::interpreted;

use crate::host::frames::{Frames, MAX_FRAMES};
use crate::host::loader::{find_in_any_scope, size_of_symbol};
use crate::host::own_memory::{self, Copied};
use crate::host::python_code::{Codes, Key, OTHERS};
use crate::host::python_layout::{
    Calls, Instruction, Layout, ON_STACK, Records, STATE_BYTES, layout_of,
};
use crate::host::recurring_memory::Recurring;
use crate::host::warn::warn;

/// Where every object has the address of its type, and objects of varying length have that.
const TYPE: usize = 8;
const LENGTH: usize = 16;
/// Where bytes have their contents.
const BYTES: usize = 32;
/// Where a text has a word on its form.
const TEXT_FORM: usize = 32;
/// Longest names and paths in bytes; the rest is left out.
const MAX_TEXT_BYTES: usize = 1024;
/// What precedes a text at most.
const MAX_HEAD_BYTES: usize = 128;

/// The Python functions of a thread.
struct Found {
    lines: Box<[u64]>,
    /// Where the compiled function that evaluates each one has its record on the stack.
    places: Box<[u64]>,
    count: usize,
    /// Whether the last of them is the thread's first.
    is_complete: bool,
    memory: Recurring,
}

/// The functions of a thread's stack, and memory for finding them.
pub struct Functions {
    pub compiled: Frames,
    python: Found,
    merged: Frames,
}

impl Default for Functions {
    fn default() -> Self {
        let empty = || vec![0; MAX_FRAMES].into_boxed_slice();
        let (count, is_complete, memory) = (0, false, Recurring::default());
        let python = Found { lines: empty(), places: empty(), count, is_complete, memory };
        Self { compiled: Frames::default(), python, merged: Frames::default() }
    }
}

impl Functions {
    /// All functions, of which the compiled ones have been found: `python`'s stand in place of those that
    /// interpret them. The stack begins at `lowest`. May be called in a signal handler.
    pub fn all(&mut self, python: Option<&Python>, lowest: u64) -> &Frames {
        let Self { compiled, python: found, merged } = self;
        match python {
            Some(python) if python.put((compiled, lowest), found, merged) => merged,
            _ => compiled,
        }
    }
}

impl Found {
    fn push(&mut self, line: u64, place: u64) -> bool {
        let Some(entry) = self.lines.get_mut(self.count) else { return false };
        (*entry, self.places[self.count]) = (line, place);
        self.count += 1;
        true
    }

    /// Line and place of each, the innermost first.
    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lines[..self.count].iter().copied().zip(self.places[..self.count].iter().copied())
    }
}

/// The interpreter of this process.
pub struct Python {
    /// `PyGILState_GetThisThreadState`: the thread's state or null.
    state: unsafe extern "C" fn() -> *mut c_void,
    layout: Layout,
    /// Addresses of the types of code, texts and bytes.
    code_type: u64,
    text_type: u64,
    bytes_type: u64,
    /// Addresses of the evaluation function.
    evaluation: std::ops::Range<u64>,
    codes: &'static Codes,
}

fn symbol(name: &CStr) -> Option<u64> {
    find_in_any_scope(name).map(|address| address as u64)
}

/// Major and minor version, as `(3, 11)`.
fn version() -> Option<(u8, u8)> {
    if let Some(version) = symbol(c"Py_Version") {
        let version = Copied::<8>::read(version, 8)?.word(0);
        return Some(((version >> 24) as u8, (version >> 16) as u8));
    }
    type Version = unsafe extern "C" fn() -> *const std::ffi::c_char;
    let function = find_in_any_scope(c"Py_GetVersion")?;
    // SAFETY: Python's function of this name returns a C string that is never freed.
    let text = unsafe { CStr::from_ptr(std::mem::transmute::<*const c_void, Version>(function)()) };
    let mut numbers = text.to_str().ok()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

impl Python {
    /// The interpreter that is loaded now; `None` if there is none whose frames can be read. Why not
    /// is said once. Must not be used after its library was unloaded.
    pub fn find() -> Option<Self> {
        static HAS_WARNED: AtomicBool = AtomicBool::new(false);
        type State = unsafe extern "C" fn() -> *mut c_void;
        let state = find_in_any_scope(c"PyGILState_GetThisThreadState")?;
        // SAFETY: Python's function of this name.
        let state = unsafe { std::mem::transmute::<*const c_void, State>(state) };
        match Self::with(state) {
            Ok(found) => Some(found),
            Err(reason) => {
                if !HAS_WARNED.swap(true, Relaxed) {
                    warn(&format!("stacks have no Python functions: {reason}"));
                }
                None
            }
        }
    }

    fn with(state: unsafe extern "C" fn() -> *mut c_void) -> Result<Self, String> {
        if !own_memory::is_readable() {
            return Err("the system refuses process_vm_readv".to_owned());
        }
        let of = |name| symbol(name).ok_or("the interpreter has no symbols of its types");
        let version = version().ok_or("the interpreter's version is not known")?;
        let runtime = symbol(c"_PyRuntime").unwrap_or(0);
        let evaluation = find_in_any_scope(c"_PyEval_EvalFrameDefault");
        let begin = evaluation.map_or(0, |at| at as u64);
        let bytes = evaluation.map_or(0, size_of_symbol);
        Ok(Self {
            state,
            layout: layout_of(version, runtime)?,
            code_type: of(c"PyCode_Type")?,
            text_type: of(c"PyUnicode_Type")?,
            bytes_type: of(c"PyBytes_Type")?,
            evaluation: begin..begin + bytes,
            codes: Codes::of_process().ok_or("no memory")?,
        })
    }

    /// Fills `merged` with the functions of the calling thread. Returns `false` if none is Python's.
    fn put(
        &self,
        (compiled, lowest): (&Frames, u64),
        found: &mut Found,
        merged: &mut Frames,
    ) -> bool {
        // SAFETY: it reads a variable of the thread, which is null if Python does not know the thread.
        self.read(unsafe { (self.state)() } as u64, found);
        if self.layout.calls == Calls::OneFrame {
            self.place(compiled, found);
        }
        let is_above = |(_, place): &(u64, u64)| *place >= lowest;
        merged.merge(compiled, found.all().filter(is_above));
        merged.is_complete &= found.is_complete;
        found.count > 0
    }

    /// Reads the frames of a thread.
    fn read(&self, state: u64, found: &mut Found) {
        (found.count, found.is_complete) = (0, false);
        let layout = &self.layout;
        found.memory.begin();
        let Some(state) = found.memory.read::<STATE_BYTES>(state, STATE_BYTES) else { return };
        let mut record = layout.records.map_or(0, |records| state.word(records.in_state));
        let innermost = match layout.frame_is_in_record {
            true => {
                let record = found.memory.read::<32>(record, 24);
                record.map_or(0, |record| record.word(layout.innermost))
            }
            false => state.word(layout.innermost),
        };
        self.follow(innermost, &mut record, found);
    }

    fn follow(&self, innermost: u64, record: &mut u64, found: &mut Found) {
        let layout = &self.layout;
        let (mut at, mut memo, mut first_of_call) = (innermost, Memo::default(), 0);
        for _ in 0..2 * MAX_FRAMES {
            let frame = found.memory.read::<128>(at, layout.frame.bytes);
            let Some(frame) = frame else { break };
            let previous = frame.word(layout.frame.previous);
            match layout.calls {
                Calls::Framed(owner) if frame.byte(owner) == ON_STACK => {
                    found.places[first_of_call..found.count].fill(at);
                    first_of_call = found.count;
                }
                calls => {
                    let line = self.line(&frame, &mut memo, &mut found.memory);
                    let Some(line) = line else { break };
                    let place = if matches!(calls, Calls::Framed(_)) { u64::MAX } else { *record };
                    if !found.push(line, place) {
                        break;
                    }
                    let ends_call = match calls {
                        Calls::Marked(mark) => frame.byte(mark) != 0,
                        Calls::OneFrameWithRecord => true,
                        Calls::OneFrame | Calls::Framed(_) => false,
                    };
                    if let Some(Records { next, .. }) = layout.records.filter(|_| ends_call) {
                        let of = found.memory.read::<32>(*record, next + 8);
                        *record = of.map_or(0, |of| of.word(next));
                    }
                }
            }
            at = previous;
        }
        found.is_complete = at == 0;
    }

    /// The line that a frame is at.
    fn line(&self, frame: &Copied<128>, memo: &mut Memo, memory: &mut Recurring) -> Option<u64> {
        let layout = &self.layout.frame;
        let code = frame.word(layout.code);
        let number = match memo.number_of(code) {
            Some(number) => number,
            None => memo.remember(code, self.number_of(code, memory)?),
        };
        let byte = match layout.instruction {
            // It is -1 before the first.
            Instruction::Bytes => (frame.half(layout.instruction_at) as i32).max(0) as u32,
            Instruction::Units => 2 * (frame.half(layout.instruction_at) as i32).max(0) as u32,
            Instruction::Address(first) => {
                let behind =
                    frame.word(layout.instruction_at).wrapping_sub(code.wrapping_add(first as u64));
                // It may stand before the first.
                u32::try_from((behind as i64).max(0)).unwrap_or(u32::MAX)
            }
        };
        let line = self.codes.line(number, self.layout.code.lines, byte);
        Some(interpreted(number, line))
    }

    /// The number of a code object; `None` if it is none.
    fn number_of(&self, address: u64, memory: &mut Recurring) -> Option<u32> {
        let layout = &self.layout.code;
        let code = memory.read::<160>(address, layout.bytes)?;
        if code.word(TYPE) != self.code_type {
            return None;
        }
        let (mut name, mut file) = ([0; MAX_TEXT_BYTES], [0; MAX_TEXT_BYTES]);
        let name = self.text(code.word(layout.name), &mut name, memory)?;
        let lines = code.word(layout.lines_at);
        let table = memory.read::<24>(lines, 24).filter(|of| of.word(TYPE) == self.bytes_type)?;
        let key = Key {
            address,
            first_line: code.half(layout.first_line),
            name: checksum(name),
            table: (lines.wrapping_add(BYTES as u64), table.word(LENGTH)),
        };
        Some(self.codes.number_of(&key, |keep| {
            let file = self.text(code.word(layout.file), &mut file, memory)?;
            keep(name);
            keep(file);
            Some(())
        }))
    }

    /// Copies a text as UTF-8.
    fn text<'t>(
        &self,
        address: u64,
        text: &'t mut [u8; MAX_TEXT_BYTES],
        memory: &mut Recurring,
    ) -> Option<&'t [u8]> {
        const IS_COMPACT: u32 = 1 << 5;
        const IS_ASCII: u32 = 1 << 6;
        let head = memory.read::<40>(address, 40)?;
        let form = head.half(TEXT_FORM);
        if head.word(TYPE) != self.text_type || form & IS_COMPACT == 0 {
            return None;
        }
        let (layout, length) = (self.layout.text, head.word(LENGTH) as usize);
        let (head_bytes, width) = match form & IS_ASCII {
            0 => (layout.other_head, (form >> 2 & 7) as usize),
            _ => (layout.ascii_head, 1),
        };
        if ![1, 2, 4].contains(&width) || head_bytes > MAX_HEAD_BYTES {
            return None;
        }
        // Head and text are read as one block.
        let mut raw = [0; MAX_HEAD_BYTES + MAX_TEXT_BYTES];
        let bytes = length.saturating_mul(width).min(MAX_TEXT_BYTES);
        let raw = &mut raw[..head_bytes + bytes];
        let raw = memory.read_into(address, raw).then_some(&raw[head_bytes..])?;
        if form & IS_ASCII == 0 {
            return Some(as_utf8(raw, width, text));
        }
        text[..bytes].copy_from_slice(raw);
        Some(&text[..bytes]).filter(|text| text.is_ascii())
    }

    /// Finds the calls of the evaluation function by its addresses: the last of them has the outermost
    /// frame. The innermost ones may not have begun to evaluate.
    fn place(&self, compiled: &Frames, found: &mut Found) {
        let calls = || {
            compiled
                .with_ends()
                .filter(|(address, _)| self.evaluation.contains(&address.wrapping_sub(1)))
        };
        let count = calls().count();
        let (without_frame, more) = match compiled.is_complete {
            true => (count.saturating_sub(found.count), found.count.saturating_sub(count)),
            false => (0, 0),
        };
        found.places.fill(u64::MAX);
        // What was not recognised as a call has its frames in the innermost that was.
        let mut calls = calls().skip(without_frame);
        let mut next = 0;
        for (number, (_, end)) in calls.by_ref().enumerate() {
            let frames = if number == 0 { 1 + more } else { 1 };
            let last = (next + frames).min(found.count);
            found.places[next..last].fill(end.wrapping_sub(1));
            next = last;
        }
    }
}

/// Characters of one, two or four bytes as UTF-8, as many as there is room for.
fn as_utf8<'t>(raw: &[u8], width: usize, text: &'t mut [u8; MAX_TEXT_BYTES]) -> &'t [u8] {
    let mut length = 0;
    for character in raw.chunks_exact(width) {
        let mut number = [0; 4];
        number[..character.len()].copy_from_slice(character);
        let character = char::from_u32(u32::from_le_bytes(number)).unwrap_or('\u{fffd}');
        let Some(room) = text.get_mut(length..length + character.len_utf8()) else { break };
        character.encode_utf8(room);
        length += character.len_utf8();
    }
    &text[..length]
}

/// The code objects of a stack that were looked at last: functions recur on it, and cannot be freed
/// meanwhile.
#[derive(Default)]
struct Memo {
    known: [(u64, u32); 8],
    next: usize,
}

impl Memo {
    fn number_of(&self, code: u64) -> Option<u32> {
        let is_it = |known: &&(u64, u32)| known.0 == code && code != 0;
        self.known.iter().find(is_it).map(|(_, number)| *number)
    }

    fn remember(&mut self, code: u64, number: u32) -> u32 {
        if number != OTHERS {
            self.known[self.next % 8] = (code, number);
            self.next += 1;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::host::python_layout::{Lines, stated_by_3_13};

    thread_local!(static STATE: Cell<u64> = const { Cell::new(0) });

    unsafe extern "C" fn state() -> *mut c_void {
        STATE.get() as *mut c_void
    }

    const CODE_TYPE: u64 = 0x1110;
    const TEXT_TYPE: u64 = 0x2220;
    const BYTES_TYPE: u64 = 0x3330;

    /// Objects of a made process. They are never freed.
    struct Made(Python);

    impl Made {
        fn object(fields: &[(usize, u64)]) -> u64 {
            let object: &'static mut [u64] = vec![0; 64].leak();
            let bytes = object.as_mut_ptr().cast::<u8>();
            for (at, value) in fields {
                // SAFETY: all fields lie in the 512 bytes.
                unsafe { bytes.add(*at).cast::<u64>().write_unaligned(*value) };
            }
            bytes as u64
        }

        fn put(at: u64, bytes: &[u8]) {
            // SAFETY: into an object of this test, behind its fields.
            unsafe { (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }

        fn text(&self, text: &str) -> u64 {
            let (head, form) = match text.is_ascii() {
                true => (self.0.layout.text.ascii_head, 1 << 6 | 1 << 5 | 1 << 2),
                false => (self.0.layout.text.other_head, 1 << 5 | 2 << 2),
            };
            let wide: Vec<u16> = text.encode_utf16().collect();
            let made =
                Self::object(&[(TYPE, TEXT_TYPE), (LENGTH, wide.len() as u64), (TEXT_FORM, form)]);
            let bytes: Vec<u8> = wide.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            Self::put(made + head as u64, if text.is_ascii() { text.as_bytes() } else { &bytes });
            made
        }

        /// A function whose instruction at byte 4 is on its third line.
        fn code(&self, name: &str, first_line: u64) -> u64 {
            let layout = &self.0.layout.code;
            let table: &[u8] = match layout.lines {
                Lines::Pairs => &[4, 2],
                Lines::Ranges => &[4, 0, 4, 2],
                // Without columns: two instructions on the first line, two on the third.
                Lines::Entries => &[0xe9, 0, 0xe9, 4],
            };
            let lines = Self::object(&[(TYPE, BYTES_TYPE), (LENGTH, table.len() as u64)]);
            Self::put(lines + BYTES as u64, table);
            Self::object(&[
                (TYPE, CODE_TYPE),
                (layout.first_line, first_line),
                (layout.file, self.text("/a.py")),
                (layout.name, self.text(name)),
                (layout.lines_at, lines),
            ])
        }

        /// A frame at byte 4 of a function.
        fn frame(&self, code: u64, previous: u64, ends_call: bool) -> u64 {
            let layout = &self.0.layout.frame;
            let instruction = match layout.instruction {
                Instruction::Bytes => 4,
                Instruction::Units => 2,
                Instruction::Address(first) => code.wrapping_add(first as u64 + 4),
            };
            let mark = match self.0.layout.calls {
                Calls::Marked(at) => (at, u64::from(ends_call)),
                _ => (256, 0),
            };
            let fields = [mark, (layout.code, code), (layout.previous, previous)];
            let made = Self::object(&fields);
            Self::put(made + layout.instruction_at as u64, &instruction.to_ne_bytes());
            made
        }
    }

    fn made(layout: Layout) -> Made {
        Made(Python {
            state,
            layout,
            code_type: CODE_TYPE,
            text_type: TEXT_TYPE,
            bytes_type: BYTES_TYPE,
            evaluation: 0x7000..0x7100,
            codes: Codes::of_process().expect("there is memory"),
        })
    }

    /// Two calls of the evaluation function: the inner one has `innermost` and, where several functions
    /// share a call, `between`. Returns the names and lines on the merged stack; compiled ones by address.
    fn stack_in(layout: Layout) -> Vec<String> {
        let made = made(layout);
        let codes = ["größe", "between", "<module>"].map(|name| made.code(name, 10));
        let shares_call = matches!(layout.calls, Calls::Marked(_) | Calls::Framed(_));
        // The stack of the thread: what lies on it, and the end of each compiled function's part.
        let stack: &'static mut [u64] = vec![0; 64].leak();
        let at = stack.as_ptr() as u64;
        let place = |number: u64| at + 128 * number;
        let mut put =
            |number: u64, field: usize, value: u64| stack[16 * number as usize + field / 8] = value;
        let on_stack = |put: &mut dyn FnMut(u64, usize, u64), number, previous| {
            if let Calls::Framed(owner) = layout.calls {
                put(number, layout.frame.previous, previous);
                put(number, owner & !7, u64::from(ON_STACK) << (8 * (owner & 7)));
                place(number)
            } else {
                previous
            }
        };
        let outermost = made.frame(codes[2], on_stack(&mut put, 2, 0), true);
        let inner_base = on_stack(&mut put, 1, outermost);
        let between = if shares_call { made.frame(codes[1], inner_base, true) } else { inner_base };
        let innermost = made.frame(codes[0], between, !shares_call);
        let mut fields = vec![(layout.innermost, innermost)];
        if let Some(Records { in_state, next }) = layout.records {
            // Frames that lie on the stack begin where records do otherwise.
            let behind = if matches!(layout.calls, Calls::Framed(_)) { 96 } else { 0 };
            put(1, behind + next, place(2) + behind as u64);
            if layout.frame_is_in_record {
                put(1, behind + layout.innermost, innermost);
                fields.clear();
            }
            fields.push((in_state, place(1) + behind as u64));
        }
        STATE.set(Made::object(&fields));
        let mut functions = Functions::default();
        let frames = [(0x100, 0), (0x7010, 1), (0x200, 1), (0x7020, 2), (0x300, 2)];
        for (number, (address, above)) in frames.into_iter().enumerate() {
            functions.compiled.push(address);
            // Evaluation ends behind its record, the others where the next begins.
            let is_evaluation = number % 2 == 1;
            functions.compiled.end_last(
                place(above) + if is_evaluation { 64 } else { 96 * u64::from(above > 0) },
            );
        }
        functions.compiled.is_complete = true;
        let all = functions.all(Some(&made.0), at);
        assert!(all.is_complete);
        let defined: Vec<(u32, String)> = {
            let known = made.0.codes;
            (0..4000).map_while(|number| Some((number, known.name(number)?.to_owned()))).collect()
        };
        let shown = all.addresses().iter().map(|address| match address & 1 << 63 {
            0 => format!("{address:x}"),
            _ => {
                let (number, line) = ((address >> 24) as u32 & 0xfff, address & 0xff_ffff);
                format!("{}:{line}", defined[number as usize].1)
            }
        });
        shown.collect()
    }

    #[test]
    fn functions_of_each_version_stand_where_they_are_evaluated() {
        if !own_memory::is_readable() {
            return;
        }
        let stated = stated_by_3_13();
        let versions = (9..=13).map(|minor| layout_of((3, minor), stated.as_ptr() as u64).unwrap());
        for layout in versions {
            let shares_call = matches!(layout.calls, Calls::Marked(_) | Calls::Framed(_));
            let expected: &[&str] = match shares_call {
                true => &["100", "größe:12", "between:12", "200", "<module>:12", "300"],
                false => &["100", "größe:12", "200", "<module>:12", "300"],
            };
            assert_eq!(stack_in(layout), expected, "{layout:?}");
        }
    }

    #[test]
    fn what_is_no_code_gives_no_function() {
        if !own_memory::is_readable() {
            return;
        }
        let made = made(layout_of((3, 11), 0).unwrap());
        let code = made.code("f", 1);
        let mut found = Functions::default().python;
        for broken in [0, 8, code + 8, made.text("f"), u64::MAX] {
            let frame = made.frame(broken, 0, true);
            let record = Made::object(&[(made.0.layout.innermost, frame)]);
            made.0.read(Made::object(&[(56, record)]), &mut found);
            assert_eq!((found.count, found.is_complete), (0, false));
        }
        made.0.read(8, &mut found);
        assert_eq!(found.count, 0, "a thread that is gone");
    }
}
