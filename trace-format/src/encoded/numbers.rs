//! Codes numbers in the stream: small counts, and ticks relative to an expected exponent.

use super::bits::{BitReader, BitWriter, MAX_BITS, ones};
use super::{Damage, Words};
use crate::layout::{CONTINUATION, DURATION_ESCAPE};

/// Number of ones that announce ticks written out instead of an exponent's difference.
const EXCEPTION_ONES: u32 = 7;
/// Longest prefix of a small count.
const MAX_PREFIX: u32 = 16;
/// Number of bits that index [`CHANGES`]: a prefix of up to four ones and the bits after it.
const CHANGE_BITS: u32 = 9;
/// Sample size of a group when searching for the step, and number of groups.
const SAMPLES: usize = 24;
const GROUPS: usize = 3;

/// The unsigned number of a signed one: 0, −1, 1, −2 … are 0, 1, 2, 3 …
#[inline(always)]
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Undoes [`zigzag`].
#[inline(always)]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Bits and width of a small count, below 2¹⁶.
const fn count_code(count: u32) -> (u64, u32) {
    let number = count as u64 + 1;
    let prefix = 63 - number.leading_zeros();
    let code = ones(prefix) | (number ^ 1 << prefix) << (prefix + 1);
    (code, 2 * prefix + 1)
}

/// Writes a small count, below 2¹⁶.
pub(super) fn put_count(writer: &mut BitWriter, count: u32) -> Option<()> {
    let (code, width) = count_code(count);
    writer.put(code, width)
}

/// Reads a number written by [`put_count`].
pub(super) fn take_count(reader: &mut BitReader) -> Result<u32, Damage> {
    let bits = reader.peek();
    let prefix = bits.trailing_ones();
    if prefix > MAX_PREFIX {
        return Err(Damage::Count);
    }
    reader.skip(2 * prefix + 1);
    let number = 1 << prefix | bits >> (prefix + 1) & ones(prefix);
    Ok((number - 1) as u32)
}

/// The step of the counter, prepared for exact division.
#[derive(Clone, Copy)]
pub(super) struct Step {
    step: u64,
    /// Inverse of the step's odd part modulo 2⁶⁴.
    inverse: u64,
    twos: u32,
    /// Largest quotient whose successor, and whose product with the step, fit in a word.
    most: u64,
}

impl Step {
    /// For numbers that are not ticks.
    pub(super) const ONE: Self = Self { step: 1, inverse: 1, twos: 0, most: u64::MAX - 1 };

    /// `None` for zero.
    pub(super) fn new(step: u32) -> Option<Self> {
        if step == 0 {
            return None;
        }
        let twos = step.trailing_zeros();
        let step = u64::from(step);
        let odd = step >> twos;
        // Newton's method: each round doubles the number of valid bits, of which an odd number has
        // three at the start.
        let inverse =
            (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
        Some(Self { step, inverse, twos, most: (u64::MAX / step).min(u64::MAX - 1) })
    }

    /// Finds the step from the first events: the greatest common divisor of the distances between
    /// begins, and of the durations. Takes the median of three groups, so that one stray time does
    /// no harm.
    pub(super) fn find(slots: &[Words]) -> u32 {
        let mut found = [0u32; GROUPS];
        let mut events = slots.iter().filter(|slot| (slot[1] >> 32) as u16 != CONTINUATION);
        let mut last: Option<u64> = None;
        for divisor in &mut found {
            let mut common = 0;
            for slot in events.by_ref().take(SAMPLES) {
                let gap = last.map_or(0, |last| slot[0].wrapping_sub(last));
                let duration = slot[1] as u32;
                let duration = if duration == DURATION_ESCAPE { 0 } else { u64::from(duration) };
                common = common_divisor(common_divisor(common, gap), duration);
                last = Some(slot[0]);
            }
            *divisor = u32::try_from(common).unwrap_or(0);
        }
        found.sort_unstable();
        let [_, middle, high] = found;
        if middle > 0 { middle } else { high.max(1) }
    }

    /// The step as written in the stream's header.
    pub(super) fn number(&self) -> u32 {
        self.step as u32
    }

    /// Number of steps in these ticks, plus one. `None` if they are not a multiple of the step.
    #[inline(always)]
    fn divide(&self, ticks: u64) -> Option<u64> {
        let quotient = ticks.wrapping_mul(self.inverse).rotate_right(self.twos);
        if quotient <= self.most { Some(quotient + 1) } else { None }
    }

    #[inline(always)]
    fn multiply(&self, successor: u64) -> u64 {
        (successor - 1).wrapping_mul(self.step)
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Codes of an exponent's difference, indexed by its seven lowest bits, with the width in bits 16
/// to 20.
static CODES: [u32; 128] = codes();

const fn codes() -> [u32; 128] {
    let mut table = [0; 128];
    let mut index = 0;
    while index < 128 {
        let difference = if index < 64 { index } else { index - 128 };
        let (code, width) = count_code((difference << 1 ^ difference >> 31) as u32);
        table[index as usize] = code as u32 | width << 16;
        index += 1;
    }
    table
}

/// Ticks as written: the exponent's code, and what follows all codes of the group.
struct Parts {
    code: u64,
    code_bits: u32,
    rest: u64,
    rest_bits: u32,
    is_exception: bool,
}

impl Parts {
    /// For a number of steps plus one.
    #[inline(always)]
    fn regular(successor: u64, expected: u8) -> Self {
        // The same exponent as without `| 1`, but without a branch for zero, which never occurs.
        let exponent = 63 - (successor | 1).leading_zeros();
        let code = CODES[exponent.wrapping_sub(expected.into()) as usize % CODES.len()];
        Self {
            code: u64::from(code & 0xffff),
            code_bits: code >> 16,
            rest: successor ^ 1 << exponent,
            rest_bits: exponent,
            is_exception: false,
        }
    }

    /// For ticks. If they are a multiple of the step, `expected` becomes their exponent.
    fn new(step: &Step, ticks: u64, expected: &mut u8) -> Self {
        if let Some(successor) = step.divide(ticks) {
            let part = Self::regular(successor, *expected);
            *expected = part.rest_bits as u8;
            return part;
        }
        let (code, code_bits) = (ones(EXCEPTION_ONES), EXCEPTION_ONES);
        Self { code, code_bits, rest: zigzag(ticks as i64), rest_bits: 0, is_exception: true }
    }

    fn put_rest(&self, writer: &mut BitWriter) -> Option<()> {
        if self.is_exception {
            put_difference(writer, self.rest, 6)
        } else {
            writer.put_wide(self.rest, self.rest_bits)
        }
    }
}

/// Choice 0 and two times in ticks relative to the expected exponents: bits and width, and the
/// exponents. `None` if they are not multiples of the step or need more than a word.
#[inline(always)]
pub(super) fn predicted_times(
    step: &Step,
    [gap, duration]: [u64; 2],
    [gap_expected, duration_expected]: [u8; 2],
) -> Option<((u64, u32), [u8; 2])> {
    let gap = Parts::regular(step.divide(gap)?, gap_expected);
    let duration = Parts::regular(step.divide(duration)?, duration_expected);
    let duration_at = 1 + gap.code_bits;
    let gap_rest_at = duration_at + duration.code_bits;
    let duration_rest_at = gap_rest_at + gap.rest_bits;
    let width = duration_rest_at + duration.rest_bits;
    let bits = gap.code << 1
        | duration.code << duration_at
        | gap.rest << gap_rest_at
        | duration.rest << (duration_rest_at & 63);
    let exponents = [gap.rest_bits as u8, duration.rest_bits as u8];
    // One bit is reserved for a request.
    (width < MAX_BITS).then_some(((bits, width), exponents))
}

/// Writes two times in ticks relative to the expected exponents.
pub(super) fn put_times(
    writer: &mut BitWriter,
    step: &Step,
    ticks: [u64; 2],
    expected: [&mut u8; 2],
) -> Option<()> {
    let [gap_expected, duration_expected] = expected;
    let before = [*gap_expected, *duration_expected];
    if let Some(((bits, width), exponents)) = predicted_times(step, ticks, before) {
        [*gap_expected, *duration_expected] = exponents;
        return writer.put(bits >> 1, width - 1);
    }
    let gap = Parts::new(step, ticks[0], gap_expected);
    let duration = Parts::new(step, ticks[1], duration_expected);
    writer.put(gap.code, gap.code_bits)?;
    writer.put(duration.code, duration.code_bits)?;
    gap.put_rest(writer)?;
    duration.put_rest(writer)
}

/// Writes one time in ticks relative to the expected exponent.
pub(super) fn put_time(
    writer: &mut BitWriter,
    step: &Step,
    ticks: u64,
    expected: &mut u8,
) -> Option<()> {
    let part = Parts::new(step, ticks, expected);
    writer.put(part.code, part.code_bits)?;
    part.put_rest(writer)
}

/// Writes a nonzero number: the exponent in `exponent_bits`, then the bits below the highest.
pub(super) fn put_difference(
    writer: &mut BitWriter,
    number: u64,
    exponent_bits: u32,
) -> Option<()> {
    let exponent = 63 - (number | 1).leading_zeros();
    writer.put(u64::from(exponent), exponent_bits)?;
    writer.put_wide(number & ones(exponent), exponent)
}

/// Reads a number written by [`put_difference`].
pub(super) fn take_difference(reader: &mut BitReader, exponent_bits: u32) -> u64 {
    let exponent = reader.take(exponent_bits) as u32;
    1 << exponent | reader.take_wide(exponent)
}

/// Differences of exponents, indexed by the first bits of their codes: width in bits 8 to 11 (0:
/// the code needs more bits), the difference below.
static CHANGES: [u16; 1 << CHANGE_BITS] = changes();

const fn changes() -> [u16; 1 << CHANGE_BITS] {
    let mut table = [0; 1 << CHANGE_BITS];
    let mut bits = 0;
    while bits < table.len() as u32 {
        let prefix = bits.trailing_ones();
        if 2 * prefix < CHANGE_BITS {
            let change = difference(bits, prefix) as u8 as u16;
            table[bits as usize] = (2 * prefix as u16 + 1) << 8 | change;
        }
        bits += 1;
    }
    table
}

const fn difference(bits: u32, prefix: u32) -> i32 {
    let count = (1 << prefix | bits >> (prefix + 1) & ((1 << prefix) - 1)) - 1;
    (count >> 1) as i32 ^ -((count & 1) as i32)
}

/// Number of bits that index [`PAIRS`].
const PAIR_BITS: u32 = 12;

/// Number of bits that [`Heads::decode`] examines: a choice and the bits for [`PAIRS`].
pub(super) const HEAD_BITS: u32 = 1 + PAIR_BITS;

/// Two differences of exponents, indexed by the first bits of their codes: width in bits 0 to 3 (0:
/// the codes need more bits), the differences modulo 64 in bits 4 to 9 and 10 to 15.
static PAIRS: [u16; 1 << PAIR_BITS] = pairs();

const fn pairs() -> [u16; 1 << PAIR_BITS] {
    let mut table = [0; 1 << PAIR_BITS];
    let mut bits = 0;
    while bits < table.len() as u32 {
        let gap = CHANGES[bits as usize % CHANGES.len()] as u32;
        let duration = CHANGES[(bits >> (gap >> 8)) as usize % CHANGES.len()] as u32;
        let width = (gap >> 8) + (duration >> 8);
        if gap != 0 && duration != 0 && width <= PAIR_BITS {
            table[bits as usize] = (width | (gap & 63) << 4 | (duration & 63) << 10) as u16;
        }
        bits += 1;
    }
    table
}

/// The head of a call that follows as expected: the differences of its exponents.
pub(super) struct Heads {
    /// Width of the choice and both codes.
    width: u32,
    gap: u32,
    duration: u32,
}

impl Heads {
    /// Reads the first bits of a call. `None` if the choice differs or a code is too long. Only the
    /// first [`HEAD_BITS`] of `head` need to belong to the call; `bits` holds all available bits,
    /// but may be ready later.
    #[inline(always)]
    pub(super) fn decode(head: u64, bits: u64) -> Option<Self> {
        let pair = u32::from(PAIRS[(head >> 1) as usize % PAIRS.len()]);
        let found = Self { width: 1 + (pair & 15), gap: pair >> 4, duration: pair >> 10 };
        if pair != 0 && head & 1 == 0 { Some(found) } else { Self::long(bits) }
    }

    #[cold]
    #[inline(never)]
    fn long(bits: u64) -> Option<Self> {
        let change = |bits: u64| u32::from(CHANGES[bits as usize % CHANGES.len()]);
        let gap = change(bits >> 1);
        let width = 1 + (gap >> 8);
        let duration = change(bits >> width);
        let is_found = bits & 1 == 0 && gap != 0 && duration != 0;
        is_found.then_some(Self { width: width + (duration >> 8), gap, duration })
    }

    /// Width of head and times, and the exponents, given the expected ones. `None` if they and one
    /// more bit do not fit in one word.
    #[inline(always)]
    pub(super) fn exponents(&self, expected: [u8; 2]) -> Option<(u32, [u8; 2])> {
        let gap = (u32::from(expected[0]) + self.gap) & 63;
        let duration = (u32::from(expected[1]) + self.duration) & 63;
        let width = self.width + gap + duration;
        (width < MAX_BITS).then_some((width, [gap as u8, duration as u8]))
    }

    /// The times in ticks. `bits` are the call's, from the first one.
    #[inline(always)]
    pub(super) fn ticks(&self, bits: u64, step: &Step, [gap, duration]: [u8; 2]) -> [u64; 2] {
        let (gap, duration) = (u32::from(gap), u32::from(duration));
        let gap_bits = bits >> self.width;
        let duration_bits = bits >> (self.width + gap);
        let gap = 1 << gap | gap_bits & ones(gap);
        let duration = 1 << duration | duration_bits & ones(duration);
        [step.multiply(gap), step.multiply(duration)]
    }
}

/// Reads two times written by [`put_times`].
#[inline]
pub(super) fn take_times(reader: &mut BitReader, step: &Step, expected: [&mut u8; 2]) -> [u64; 2] {
    // As if choice 0 preceded them.
    let bits = reader.peek() << 1;
    let [gap, duration] = expected;
    if let Some(heads) = Heads::decode(bits, bits)
        && let Some((width, exponents)) = heads.exponents([*gap, *duration])
    {
        reader.skip(width - 1);
        [*gap, *duration] = exponents;
        return heads.ticks(bits, step, exponents);
    }
    let exponents = [take_exponent(reader, gap), take_exponent(reader, duration)];
    exponents.map(|exponent| take_rest(reader, step, exponent))
}

/// Reads one time written by [`put_time`].
pub(super) fn take_time(reader: &mut BitReader, step: &Step, expected: &mut u8) -> u64 {
    let exponent = take_exponent(reader, expected);
    take_rest(reader, step, exponent)
}

fn take_exponent(reader: &mut BitReader, expected: &mut u8) -> Option<u32> {
    let bits = reader.peek();
    let prefix = bits.trailing_ones();
    if prefix >= EXCEPTION_ONES {
        reader.skip(EXCEPTION_ONES);
        return None;
    }
    reader.skip(2 * prefix + 1);
    let difference = difference(bits as u32, prefix) as u32;
    let exponent = u32::from(*expected).wrapping_add(difference) & 63;
    *expected = exponent as u8;
    Some(exponent)
}

fn take_rest(reader: &mut BitReader, step: &Step, exponent: Option<u32>) -> u64 {
    match exponent {
        Some(exponent) => step.multiply(1 << exponent | reader.take_wide(exponent)),
        None => unzigzag(take_difference(reader, 6)) as u64,
    }
}
