//! Encodes a window.

use super::bits::BitWriter;
use super::numbers::{
    Step, predicted_times, put_count, put_difference, put_time, put_times, zigzag,
};
use super::requests::{DISTANCE_BITS, Means};
use super::slot::{
    Apart, EXPONENT_BITS, FIELDS, FOUR_WORDS, apart, content, fields, is_continuation, is_escaped,
    request, same_continuation,
};
use super::templates::{
    ESCAPED, MAX_CALL_SLOTS, ORPHAN, REQUEST, REQUEST_BEHIND, TIMES_BEHIND, Template, Templates,
};
use super::{STREAM_HEADER_BYTES, Words};

/// Size of the table from a call's content to its template.
const CONTENTS: usize = 4096;
/// Size of the table from a call's shape to the last template with that shape.
const SHAPES: usize = 512;
/// Number of slots after which the encoder repeatedly checks whether encoding pays.
const CHECK_SLOTS: usize = 1024;
/// Encoding does not pay above this number of bytes per slot.
const MAX_BYTES_PER_SLOT: usize = 10;
/// Encoding does not pay if one in this many slots has a content that is not among the templates.
const MIN_SLOTS_PER_LITERAL: usize = 2;

/// Encodes windows, one after the other. Takes about 90 KiB. All bytes zero is a valid encoder, as
/// in freshly mapped memory.
#[repr(C)]
pub struct Encoder {
    templates: Templates,
    /// By hash of the content: the template's number plus one, or 0.
    contents: [u16; CONTENTS],
    /// By hash of function, length and call site, and by hash of function and length: likewise.
    shapes: [u16; SHAPES],
    /// Number of slots of the window whose content is written out.
    literals: u32,
}

// There is no padding, so "all bytes zero" covers everything.
const _: () = assert!(
    size_of::<Encoder>() == size_of::<Templates>() + 2 * (CONTENTS + SHAPES) + size_of::<u32>()
);

/// Progress of an encoder.
pub(super) struct Progress {
    slots: usize,
    literals: usize,
    bytes: usize,
}

impl Progress {
    fn pays(self) -> bool {
        self.bytes <= MAX_BYTES_PER_SLOT * self.slots
            && MIN_SLOTS_PER_LITERAL * self.literals <= self.slots
    }
}

/// The encoder's position in a window.
struct Position {
    /// Index of the next call's first slot.
    at: usize,
    /// Counter at the end of the call before.
    end: u64,
    /// That call's template.
    previous: u16,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with all bytes zero.
    pub const fn new() -> Self {
        Self {
            templates: Templates::new(),
            contents: [0; CONTENTS],
            shapes: [0; SHAPES],
            literals: 0,
        }
    }

    /// Encodes slots into `out` and returns the number of bytes used, which is always less than the
    /// size of the slots.
    ///
    /// Returns `None` if encoding does not pay: the result is larger than the slots or, after the
    /// first 1,024 slots, takes more than ten bytes per slot, or every other slot differs from all
    /// earlier ones. It also returns `None` if `out` is too small; eight bytes more than the slots
    /// take are always enough. The caller then writes the slots as they are. `opened_ticks` is the
    /// counter when the window was opened; the decoder must be given the same value.
    pub fn encode(&mut self, opened_ticks: u64, slots: &[Words], out: &mut [u8]) -> Option<usize> {
        let used = self.encode_while(opened_ticks, slots, out, Progress::pays)?;
        (used < size_of_val(slots)).then_some(used)
    }

    /// Like [`Self::encode`], whatever the size, as long as `pays` returns true after each 1,024
    /// slots.
    pub(super) fn encode_while(
        &mut self,
        opened_ticks: u64,
        slots: &[Words],
        out: &mut [u8],
        pays: impl Fn(Progress) -> bool,
    ) -> Option<usize> {
        let count = u32::try_from(slots.len()).ok()?;
        let step = Step::new(Step::find(slots))?;
        let (header, body) = out.split_first_chunk_mut::<STREAM_HEADER_BYTES>()?;
        *header = (u64::from(count) | u64::from(step.number()) << 32).to_le_bytes();
        self.reset();
        Some(STREAM_HEADER_BYTES + self.calls(opened_ticks, slots, &step, body, pays)?)
    }

    fn reset(&mut self) {
        self.templates.reset();
        self.literals = 0;
        self.contents.fill(0);
        self.shapes.fill(0);
    }

    /// Writes all calls and returns the number of bytes used.
    fn calls(
        &mut self,
        opened_ticks: u64,
        slots: &[Words],
        step: &Step,
        out: &mut [u8],
        pays: impl Fn(Progress) -> bool,
    ) -> Option<usize> {
        let mut writer = BitWriter::new(out);
        let mut position = Position { at: 0, end: opened_ticks, previous: 0 };
        let mut check = CHECK_SLOTS;
        while let Some(call) = call_at(slots, position.at) {
            if let Some((bits, width)) = self.predicted(slots, call, &mut position, step) {
                writer.put(bits, width)?;
            } else {
                // Moved to a copy and back: a writer whose address is taken would not stay in
                // registers.
                let mut moved = writer;
                position = self.call(slots, call, position, step, &mut moved)?;
                writer = moved;
            }
            if position.at >= check {
                let (slots, literals) = (position.at, self.literals as usize);
                if !pays(Progress { slots, literals, bytes: writer.bytes() }) {
                    return None;
                }
                check += CHECK_SLOTS;
            }
        }
        Some(writer.finish())
    }

    /// The bits of a call of the most frequent kind: one that has the expected template and no
    /// values of its own but its times and an expected request. Changes nothing if the call is of
    /// another kind.
    #[inline(always)]
    fn predicted(
        &mut self,
        slots: &[Words],
        call: &[Words],
        position: &mut Position,
        step: &Step,
    ) -> Option<(u64, u32)> {
        let number = self.templates.get(position.previous).next;
        if position.at == 0
            || self.templates.get(number).flags & !REQUEST != 0
            || !self.is_like(slots, number, call)
        {
            return None;
        }
        let first = call.first()?;
        let (ring, template) = self.templates.ring_and_template(number);
        let flags = template.flags;
        let request = request(first);
        if flags != 0 && template.request.next(ring) != request {
            return None;
        }
        let duration = u64::from(first[1] as u32);
        let ticks = [first[0].wrapping_sub(position.end), duration];
        let expected = [template.gap, template.duration];
        let ((bits, mut width), exponents) = predicted_times(step, ticks, expected)?;
        [template.gap, template.duration] = exponents;
        if flags != 0 {
            template.request.confirm(request);
            self.templates.ring.push(request);
            width += 1;
        }
        position.at += call.len();
        position.end = first[0].wrapping_add(duration);
        position.previous = number;
        Some((bits, width))
    }

    /// Writes any call and returns the position behind it.
    #[inline(never)]
    fn call(
        &mut self,
        slots: &[Words],
        call: &[Words],
        position: Position,
        step: &Step,
        writer: &mut BitWriter,
    ) -> Option<Position> {
        let Position { at, end, previous } = position;
        let mut number = self.templates.get(previous).next;
        if at > 0 && self.is_like(slots, number, call) {
            writer.put(0, 1)?;
        } else {
            number = self.other(slots, at, call, writer)?;
        }
        self.templates.get_mut(previous).next = number;
        let end = self.values(step, number, call, end, writer)?;
        Some(Position { at: at + call.len(), end, previous: number })
    }

    /// Whether a call has the content of a template.
    #[inline(always)]
    fn is_like(&self, slots: &[Words], number: u16, call: &[Words]) -> bool {
        let &Template { at, length, flags, .. } = self.templates.get(number);
        let (Some((first, behind)), Some((model, models))) =
            (call.split_first(), slots.get(at as usize..).and_then(<[_]>::split_first))
        else {
            return false;
        };
        let is_first_like = if flags & ORPHAN == 0 {
            same_event(model, first, flags)
        } else {
            same_continuation(model, first)
        };
        is_first_like
            && usize::from(length) == call.len()
            && behind.iter().zip(models).all(|(one, other)| same_continuation(one, other))
    }

    /// Writes the values that are not part of the call's content. Returns the end of the call.
    fn values(
        &mut self,
        step: &Step,
        number: u16,
        call: &[Words],
        end: u64,
        writer: &mut BitWriter,
    ) -> Option<u64> {
        let first = call.first()?;
        let template = self.templates.get_mut(number);
        let flags = template.flags;
        let gap = first[0].wrapping_sub(end);
        let duration = u64::from(first[1] as u32);
        let ticks = match flags & (ORPHAN | ESCAPED) {
            0 => [gap, duration],
            ESCAPED => [gap, 0],
            _ => [0, 0],
        };
        put_times(writer, step, ticks, [&mut template.gap, &mut template.duration])?;
        if flags & (REQUEST | REQUEST_BEHIND) != 0 {
            self.requests(number, call, writer)?;
        }
        let end = if flags & ORPHAN != 0 { end } else { first[0].wrapping_add(ticks[1]) };
        if flags & TIMES_BEHIND == 0 {
            return Some(end);
        }
        self.times_behind(step, number, call, end, writer)
    }

    /// Writes the requests of the call.
    fn requests(&mut self, number: u16, call: &[Words], writer: &mut BitWriter) -> Option<()> {
        let templates = &mut self.templates;
        let with_request = || {
            let slots = call.iter().enumerate();
            slots
                .filter(|(slot, words)| has_request(*slot, words))
                .map(|(slot, words)| (slot, request(words)))
        };
        let all_expected = with_request().all(|(slot, request)| {
            let (ring, expected) = templates.ring_and_request(number, slot);
            expected.next(ring) == request
        });
        writer.put(u64::from(!all_expected), 1)?;
        for (slot, request) in with_request() {
            let (ring, expected) = templates.ring_and_request(number, slot);
            if all_expected {
                expected.confirm(request);
                continue;
            }
            let means = expected.means(ring, request);
            match means {
                Means::Expected => writer.put(0, 1)?,
                Means::Ago(distance) => {
                    writer.put(0b01 | u64::from(distance - 1) << 2, 2 + DISTANCE_BITS)?
                }
                Means::Stride => writer.put(0b011, 3)?,
                Means::Full => writer.put(0b111 | u64::from(request) << 3, 3 + u32::BITS)?,
            }
            expected.update(means, request);
        }
        if let Some(first) = call.first().filter(|first| !is_continuation(first))
            && request(first) != 0
        {
            templates.ring.push(request(first));
        }
        Some(())
    }

    /// Writes the times in continuations and returns the end of the call.
    fn times_behind(
        &mut self,
        step: &Step,
        number: u16,
        call: &[Words],
        mut end: u64,
        writer: &mut BitWriter,
    ) -> Option<u64> {
        let begin = call.first().filter(|first| !is_continuation(first)).map(|first| first[0]);
        for (slot, words) in call.iter().enumerate().filter(|(_, words)| is_continuation(words)) {
            let exponents = &mut self.templates.behind_mut(number, slot).exponents;
            let [total, polls, rest, _] = exponents;
            let duration = match apart(words) {
                Apart::Nothing | Apart::Request => continue,
                Apart::Four => {
                    for (exponent, at) in exponents.iter_mut().zip(FOUR_WORDS) {
                        put_time(writer, step, words[at], exponent)?;
                    }
                    continue;
                }
                Apart::Duration => {
                    put_time(writer, step, words[0], total)?;
                    words[0]
                }
                Apart::Polls => {
                    let [inside, _, count, duration, _] = *words;
                    let is_one = count == 1 && inside == duration;
                    writer.put(u64::from(!is_one), 1)?;
                    put_time(writer, step, duration, total)?;
                    if !is_one {
                        put_time(writer, &Step::ONE, count, polls)?;
                        put_time(writer, step, duration.wrapping_sub(inside), rest)?;
                    }
                    duration
                }
            };
            end = begin.map_or(end, |begin| begin.wrapping_add(duration));
        }
        Some(end)
    }

    /// Finds or makes the template of a call that does not follow as expected, and writes which it
    /// is.
    fn other(
        &mut self,
        slots: &[Words],
        at: usize,
        call: &[Words],
        writer: &mut BitWriter,
    ) -> Option<u16> {
        let hash = content_hash(call) as usize % CONTENTS;
        if let Some(number) = self.contents[hash].checked_sub(1)
            && self.is_like(slots, number, call)
        {
            let bits = self.templates.number_bits();
            writer.put(0b01 | u64::from(number) << 2, 2 + bits)?;
            return Some(number);
        }
        let shapes = shape_hashes(call).map(|hash| hash as usize % SHAPES);
        let of_shape = |shape: &usize| {
            let number = self.shapes[*shape % SHAPES].checked_sub(1)?;
            (usize::from(self.templates.get(number).length) == call.len()).then_some(number)
        };
        let beside = shapes.iter().find_map(of_shape);
        self.content(slots, call, beside, writer)?;
        self.literals += call.len() as u32;
        let number = self.templates.add(at as u32, call, beside);
        self.contents[hash] = number + 1;
        for shape in shapes {
            self.shapes[shape % SHAPES] = number + 1;
        }
        Some(number)
    }

    /// Writes a call's content as differences from another one's, or from zeros.
    fn content(
        &self,
        slots: &[Words],
        call: &[Words],
        beside: Option<u16>,
        writer: &mut BitWriter,
    ) -> Option<()> {
        let other = match beside {
            Some(number) => {
                writer.put(0b011, 3)?;
                put_count(writer, self.templates.age(number))?;
                slots.get(self.templates.get(number).at as usize..)?
            }
            None => {
                writer.put(0b111 | (call.len() as u64 - 1) << 3, 9)?;
                &[]
            }
        };
        for (slot, words) in call.iter().enumerate() {
            let reference = other.get(slot).map_or([0; FIELDS], |words| fields(&content(words)));
            let differences = differences(&fields(&content(words)), &reference);
            let changed = (0..FIELDS).filter(|field| differences[*field] != 0);
            writer.put(changed.fold(0, |mask, field| mask | 1 << field), FIELDS as u32)?;
            for (difference, bits) in differences.iter().zip(EXPONENT_BITS) {
                if *difference != 0 {
                    put_difference(writer, *difference, bits)?;
                }
            }
        }
        Some(())
    }
}

/// The slot at an index and its continuations.
#[inline(always)]
fn call_at(slots: &[Words], at: usize) -> Option<&[Words]> {
    let rest = slots.get(at..)?;
    let most = rest.len().min(MAX_CALL_SLOTS);
    let mut length = 1;
    while length < most && is_continuation(&rest[length]) {
        length += 1;
    }
    rest.get(..length)
}

/// Whether two events have the same content. `flags` are those of the first one's template.
#[inline(always)]
fn same_event(one: &Words, other: &Words, flags: u8) -> bool {
    let differences = (one[1] ^ other[1]) >> 32
        | (one[2] ^ other[2])
        | u64::from((one[3] ^ other[3]) as u32)
        | (one[4] ^ other[4]);
    let escaped = if is_escaped(other) { ESCAPED } else { 0 };
    let request = if request(other) != 0 { REQUEST } else { 0 };
    differences == 0 && flags & (ESCAPED | REQUEST) == escaped | request
}

/// Whether the request of a call's slot is written separately.
#[inline(always)]
fn has_request(slot: usize, words: &Words) -> bool {
    if slot == 0 && !is_continuation(words) {
        request(words) != 0
    } else {
        apart(words) == Apart::Request
    }
}

fn differences(fields: &[u64; FIELDS], other: &[u64; FIELDS]) -> [u64; FIELDS] {
    let mut differences = [0; FIELDS];
    for (index, difference) in differences.iter_mut().enumerate() {
        let wide = fields[index].wrapping_sub(other[index]);
        let is_wide = EXPONENT_BITS[index] == 6;
        *difference = if is_wide {
            zigzag(wide as i64)
        } else {
            u64::from(zigzag(i64::from(wide as i32)) as u32)
        };
    }
    differences
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}

fn content_hash(call: &[Words]) -> u64 {
    let words = call.iter().flat_map(content);
    words.fold(call.len() as u64, mix)
}

/// Hashes of the shape of a call: with its call site, and without.
fn shape_hashes(call: &[Words]) -> [u64; 2] {
    let Some(first) = call.first() else { return [0; 2] };
    let kind = if is_continuation(first) { first[1] as u32 } else { 0 };
    let function = first[1] << 16 >> 48 | u64::from(kind) << 16;
    let shape = mix(call.len() as u64, function);
    [mix(shape, first[4]), mix(shape, !0)]
}
