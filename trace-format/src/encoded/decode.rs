//! Decodes a window.

use super::bits::{BitReader, MAX_BITS, ones};
use super::numbers::{
    HEAD_BITS, Heads, Step, take_count, take_difference, take_time, take_times, unzigzag,
};
use super::requests::{DISTANCE_BITS, Means};
use super::slot::{
    Apart, EXPONENT_BITS, FIELDS, FOUR_WORDS, apart, content, fields, from_fields, is_continuation,
    set_request,
};
use super::templates::{
    ESCAPED, MAX_CALL_SLOTS, ORPHAN, REQUEST, REQUEST_BEHIND, TIMES_BEHIND, Template, Templates,
};
use super::{Damage, STREAM_HEADER_BYTES, Words};

/// Decodes windows, one after the other. Takes about 80 KiB and should be reused.
pub struct Decoder {
    templates: Templates,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

struct Stream<'a> {
    templates: &'a mut Templates,
    reader: BitReader<'a>,
    step: Step,
    slots: &'a mut Vec<Words>,
    /// Index in `slots` at which the window's slots begin.
    base: usize,
    end: u64,
    previous: u16,
}

impl Decoder {
    /// A decoder for any window.
    pub const fn new() -> Self {
        Self { templates: Templates::new() }
    }

    /// Appends to `slots` those that an [`Encoder`](super::Encoder) was given, at most `max_slots`.
    /// Bytes behind the stream are ignored.
    ///
    /// Time and memory are proportional to `max_slots`, whatever the bytes. After an error, `slots`
    /// holds the calls before the damage.
    pub fn decode(
        &mut self,
        opened_ticks: u64,
        bytes: &[u8],
        max_slots: usize,
        slots: &mut Vec<Words>,
    ) -> Result<(), Damage> {
        let (header, body) =
            bytes.split_first_chunk::<STREAM_HEADER_BYTES>().ok_or(Damage::Header)?;
        let header = u64::from_le_bytes(*header);
        let step = Step::new((header >> 32) as u32).ok_or(Damage::Header)?;
        let count = header as u32 as usize;
        if count > max_slots {
            return Err(Damage::TooManySlots);
        }
        self.templates.reset();
        // A call takes at least three bits. Reserve no more memory than such a stream can fill.
        slots.reserve(count.min(body.len().saturating_mul(8 * MAX_CALL_SLOTS / 3 + 1)));
        let base = slots.len();
        let all = base + count;
        let mut stream = Stream {
            templates: &mut self.templates,
            reader: BitReader::new(body),
            step,
            slots,
            base,
            end: opened_ticks,
            previous: 0,
        };
        while stream.slots.len() < all {
            stream.predicted_calls(all);
            let before = stream.slots.len();
            if before == all {
                break;
            }
            let read = stream.call().and_then(|()| stream.reader.check());
            let read = read.and(if stream.slots.len() > all { Err(Damage::Call) } else { Ok(()) });
            if read.is_err() {
                stream.slots.truncate(before);
                return read;
            }
        }
        Ok(())
    }
}

impl Stream<'_> {
    /// Reads a sequence of calls of the most frequent kind: those that have an expected template
    /// and no values of their own but their times and an expected request.
    fn predicted_calls(&mut self, all: usize) {
        let base = self.base;
        // Local copies, which can stay in registers.
        let (slots, mut reader, step) = (&mut *self.slots, self.reader, self.step);
        let (mut end, mut previous) = (self.end, self.previous);
        let Some(mut head) = reader.peek_inside() else { return };
        while slots.len() > base {
            let Some(mut bits) = reader.peek_inside() else { break };
            let mut number = self.templates.get(previous).next;
            let mut before = 0;
            if head & 1 != 0 {
                let number_bits = self.templates.number_bits();
                number = (bits >> 2 & ones(number_bits)) as u16;
                if head & 2 != 0 || u32::from(number) >= self.templates.named() {
                    break;
                }
                // From here on, as if choice 0 preceded the times.
                before = 1 + number_bits;
                bits = bits >> before & !1;
                head = bits;
            }
            let (ring, template) = self.templates.ring_and_template(number);
            let &mut Template { at, length, flags, gap, duration, ref mut request, .. } = template;
            if flags & !REQUEST != 0 || slots.len() + usize::from(length) > all {
                break;
            }
            let Some(heads) = Heads::decode(head, bits) else { break };
            let Some((mut width, exponents)) = heads.exponents([gap, duration]) else { break };
            if before + width >= MAX_BITS {
                break;
            }
            let at = base + at as usize;
            let Some(&[_, word, object, mut amount, site]) = slots.get(at) else { break };
            if flags != 0 {
                if bits >> width & 1 != 0 {
                    break;
                }
                width += 1;
                let next = request.next(ring);
                request.confirm(next);
                amount = u64::from(amount as u32) | u64::from(next) << 32;
                ring.push(next);
            }
            [template.gap, template.duration] = exponents;
            reader.skip(before + width);
            // If the next call's head is in this word, take it from here: it is available earlier.
            head = if before + width <= MAX_BITS - HEAD_BITS {
                bits >> width
            } else {
                reader.peek_inside().unwrap_or_default()
            };
            let [gap, duration] = heads.ticks(bits, &step, exponents);
            let begin = end.wrapping_add(gap);
            let word = word >> 32 << 32 | u64::from(duration as u32);
            slots.push([begin, word, object, amount, site]);
            for index in at + 1..at + usize::from(length) {
                let Some(&slot) = slots.get(index) else { break };
                slots.push(slot);
            }
            end = begin.wrapping_add(duration);
            if before > 0 {
                self.templates.get_mut(previous).next = number;
            }
            previous = number;
        }
        (self.reader, self.end, self.previous) = (reader, end, previous);
    }

    /// Reads any call.
    #[inline(never)]
    fn call(&mut self) -> Result<(), Damage> {
        let at = self.slots.len();
        let number = self.template()?;
        self.templates.get_mut(self.previous).next = number;
        self.previous = number;
        let template = self.templates.get_mut(number);
        let Template { at: model, length, flags, gap, duration, .. } = template;
        let (model, length, flags) = (self.base + *model as usize, usize::from(*length), *flags);
        let [gap, duration] = take_times(&mut self.reader, &self.step, [gap, duration]);
        if self.slots.len() == at {
            if at < model + length {
                return Err(Damage::Template);
            }
            self.slots.extend_from_within(model..model + length);
        }
        let first = self.slots.get_mut(at).ok_or(Damage::Template)?;
        if flags & ORPHAN == 0 {
            first[0] = self.end.wrapping_add(gap);
            self.end = first[0].wrapping_add(duration);
            if flags & ESCAPED == 0 {
                first[1] = first[1] >> 32 << 32 | u64::from(duration as u32);
            }
        }
        if flags & (REQUEST | REQUEST_BEHIND) != 0 {
            self.requests(number, flags, at);
        }
        if flags & TIMES_BEHIND != 0 {
            self.times_behind(number, flags, at);
        }
        Ok(())
    }

    /// Reads which template a call has, and appends the slots of a new one.
    fn template(&mut self) -> Result<u16, Damage> {
        let choice = self.reader.peek().trailing_ones().min(3);
        self.reader.skip((choice + 1).min(3));
        let number = match choice {
            0 => self.templates.get(self.previous).next,
            1 => self.reader.take(self.templates.number_bits()) as u16,
            2 => {
                let beside = self.templates.of_age(take_count(&mut self.reader)?)?;
                let &Template { at, length, .. } = self.templates.get(beside);
                self.make(length.into(), Some((beside, self.base + at as usize)))?
            }
            _ => {
                let length = 1 + self.reader.take(6) as usize;
                self.make(length, None)?
            }
        };
        if u32::from(number) >= self.templates.named() {
            return Err(Damage::Template);
        }
        Ok(number)
    }

    /// Reads the content of a call with this many slots and makes it a template.
    fn make(&mut self, length: usize, beside: Option<(u16, usize)>) -> Result<u16, Damage> {
        let at = self.slots.len();
        for slot in 0..length {
            let reference = beside.and_then(|(_, first)| self.slots.get(first + slot));
            let mut fields = reference.map_or([0; FIELDS], |words| fields(&content(words)));
            let mask = self.reader.take(FIELDS as u32);
            for (index, field) in fields.iter_mut().enumerate() {
                if mask >> index & 1 != 0 {
                    let bits = EXPONENT_BITS[index];
                    let difference = unzigzag(take_difference(&mut self.reader, bits)) as u64;
                    let sum = field.wrapping_add(difference);
                    *field = if bits == 6 { sum } else { u64::from(sum as u32) };
                }
            }
            let words = from_fields(fields);
            if slot > 0 && !is_continuation(&words) {
                return Err(Damage::Call);
            }
            self.slots.push(words);
        }
        self.reader.check()?;
        let call = self.slots.get(at..).unwrap_or_default();
        let at = (at - self.base) as u32;
        Ok(self.templates.add(at, call, beside.map(|(number, _)| number)))
    }

    /// Reads the requests of the call at an index.
    fn requests(&mut self, number: u16, flags: u8, at: usize) {
        let all_expected = self.reader.take(1) == 0;
        let call = self.slots.get_mut(at..).unwrap_or_default();
        let skipped = usize::from(flags & REQUEST == 0 && flags & ORPHAN == 0);
        let mut event_request = 0;
        for (slot, words) in call.iter_mut().enumerate().skip(skipped) {
            let is_event = slot == 0 && flags & ORPHAN == 0;
            if !is_event && apart(words) != Apart::Request {
                continue;
            }
            let (ring, expected) = self.templates.ring_and_request(number, slot);
            let mut request = expected.next(ring);
            if all_expected {
                expected.confirm(request);
            } else {
                let means = take_means(&mut self.reader);
                request = match means {
                    Means::Expected => request,
                    Means::Ago(distance) => ring.ago(distance),
                    Means::Stride => expected.by_stride(),
                    Means::Full => self.reader.take(u32::BITS) as u32,
                };
                expected.update(means, request);
            }
            set_request(words, request);
            if is_event {
                event_request = request;
            }
        }
        if flags & REQUEST != 0 {
            self.templates.ring.push(event_request);
        }
    }

    /// Reads the times in continuations of the call at an index.
    fn times_behind(&mut self, number: u16, flags: u8, at: usize) {
        let call = self.slots.get_mut(at..).unwrap_or_default();
        let is_event = flags & ORPHAN == 0;
        let begin = call.first().map_or(0, |first| first[0]);
        for (slot, words) in call.iter_mut().enumerate().skip(usize::from(is_event)) {
            let exponents = &mut self.templates.behind_mut(number, slot).exponents;
            let (reader, step) = (&mut self.reader, &self.step);
            let [total, polls, rest, _] = exponents;
            let duration = match apart(words) {
                Apart::Nothing | Apart::Request => continue,
                Apart::Four => {
                    for (exponent, at) in exponents.iter_mut().zip(FOUR_WORDS) {
                        words[at] = take_time(reader, step, exponent);
                    }
                    continue;
                }
                Apart::Duration => {
                    words[0] = take_time(reader, step, total);
                    words[0]
                }
                Apart::Polls => {
                    let is_one = reader.take(1) == 0;
                    let duration = take_time(reader, step, total);
                    (words[0], words[2], words[3]) = (duration, 1, duration);
                    if !is_one {
                        words[2] = take_time(reader, &Step::ONE, polls);
                        words[0] = duration.wrapping_sub(take_time(reader, step, rest));
                    }
                    duration
                }
            };
            if is_event {
                self.end = begin.wrapping_add(duration);
            }
        }
    }
}

/// Reads how a request is written.
fn take_means(reader: &mut BitReader) -> Means {
    let ones = reader.peek().trailing_ones().min(3);
    reader.skip((ones + 1).min(3));
    match ones {
        0 => Means::Expected,
        1 => Means::Ago(1 + reader.take(DISTANCE_BITS) as u32),
        2 => Means::Stride,
        _ => Means::Full,
    }
}
