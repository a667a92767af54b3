//! Encodes the samples of a full half in four or five bytes each.
//!
//! Most samples of a half have a path and an address that an earlier one has: then the number of
//! that pair among the half's pairs is written, otherwise the pair. Times differ by about a period.
//! `docs/reference/encoded-chunks.md` specifies every bit.
//!
//! The encoder runs inside other people's programs: no allocation after it was made, no panic.

use super::Damage;
use super::bits::{BitReader, BitWriter};
use super::numbers::{unzigzag, zigzag};
use crate::samples::{HALF_SAMPLES, RawSample};

/// Maximum size of encoded samples in bytes, including what `BitWriter` needs behind them.
pub const MAX_ENCODED_BYTES: usize = HALF_SAMPLES * MAX_SAMPLE_BITS / 8 + 8;
/// Bits of the longest sample: its time; that its pair is new; path and address.
const MAX_SAMPLE_BITS: usize = (6 + 32) + 1 + (1 + 32) + (6 + 64);
/// Size of the hash table, twice what it holds.
const SLOTS: usize = 2 * HALF_SAMPLES;

/// Memory for encoding a half.
#[derive(Debug)]
pub struct SampleEncoder {
    /// Samples that introduced a pair, in the order of their numbers.
    pairs: [u16; HALF_SAMPLES],
    /// Hash table of the pairs: number plus 1; 0: free.
    slots: [u16; SLOTS],
}

impl Default for SampleEncoder {
    fn default() -> Self {
        Self { pairs: [0; HALF_SAMPLES], slots: [0; SLOTS] }
    }
}

impl SampleEncoder {
    /// Encodes at most [`HALF_SAMPLES`] samples. Returns the number of bytes, or `None` if they do
    /// not fit: [`MAX_ENCODED_BYTES`] always do.
    pub fn encode(&mut self, samples: &[RawSample], out: &mut [u8]) -> Option<usize> {
        let samples = samples.get(..samples.len().min(HALF_SAMPLES))?;
        self.slots.fill(0);
        let mut bits = BitWriter::new(out);
        let mut known = 0;
        let mut previous = RawSample::default();
        for (index, sample) in samples.iter().enumerate() {
            put_number(&mut bits, u64::from(sample.time.wrapping_sub(previous.time)))?;
            match self.number_of(samples, known, index) {
                Some(number) => {
                    bits.put(1, 1)?;
                    bits.put(number as u64, width(known))?;
                }
                None => {
                    bits.put(0, 1)?;
                    let same_path = sample.path == previous.path;
                    bits.put(u64::from(same_path), 1)?;
                    if !same_path {
                        bits.put(u64::from(sample.path), 32)?;
                    }
                    let difference = sample.address.wrapping_sub(previous.address);
                    put_number(&mut bits, zigzag(difference as i64))?;
                    known += 1;
                }
            }
            previous = *sample;
        }
        Some(bits.finish())
    }

    /// Number of a sample's pair, or `None` if it is new; then it gets the number `known`.
    fn number_of(&mut self, samples: &[RawSample], known: usize, index: usize) -> Option<usize> {
        let wanted = samples[index];
        let mixed =
            (wanted.address ^ u64::from(wanted.path) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (mixed >> 40) as usize % SLOTS;
        loop {
            let number = usize::from(self.slots[slot]);
            if number == 0 {
                self.slots[slot] = known as u16 + 1;
                self.pairs[known] = index as u16;
                return None;
            }
            let other = samples[usize::from(self.pairs[number - 1])];
            if (other.path, other.address) == (wanted.path, wanted.address) {
                return Some(number - 1);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// Decodes `count` samples.
///
/// # Errors
/// The damage.
pub fn decode_samples(stream: &[u8], count: usize) -> Result<Vec<RawSample>, Damage> {
    if count > HALF_SAMPLES {
        return Err(Damage::TooManySlots);
    }
    let mut bits = BitReader::new(stream);
    let mut samples: Vec<RawSample> = Vec::with_capacity(count);
    let mut pairs: Vec<(u32, u64)> = Vec::new();
    let mut previous = RawSample::default();
    for _ in 0..count {
        let time = previous.time.wrapping_add(take_number(&mut bits) as u32);
        let (path, address) = if bits.take(1) == 1 {
            let number = bits.take(width(pairs.len())) as usize;
            *pairs.get(number).ok_or(Damage::Template)?
        } else {
            let path = if bits.take(1) == 1 { previous.path } else { bits.take(32) as u32 };
            let difference = unzigzag(take_number(&mut bits));
            let pair = (path, previous.address.wrapping_add_signed(difference));
            pairs.push(pair);
            pair
        };
        bits.check()?;
        previous = RawSample { time, path, address };
        samples.push(previous);
    }
    Ok(samples)
}

/// Bits of a number below `known`.
fn width(known: usize) -> u32 {
    usize::BITS - known.saturating_sub(1).leading_zeros()
}

/// Writes a number: in six bits the exponent of the number plus 1, then the bits below the highest.
/// Exponent 63 is followed by the number itself.
fn put_number(bits: &mut BitWriter, number: u64) -> Option<()> {
    match number.checked_add(1).map(u64::ilog2) {
        Some(exponent) if exponent < 63 => {
            bits.put(u64::from(exponent), 6)?;
            bits.put_wide((number + 1) ^ 1 << exponent, exponent)
        }
        _ => {
            bits.put(63, 6)?;
            bits.put_wide(number, 64)
        }
    }
}

fn take_number(bits: &mut BitReader) -> u64 {
    match bits.take(6) as u32 {
        63 => bits.take_wide(64),
        exponent => (1 << exponent | bits.take_wide(exponent)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(samples: &[RawSample]) -> Vec<u8> {
        let mut out = vec![0; MAX_ENCODED_BYTES];
        let bytes = SampleEncoder::default().encode(samples, &mut out);
        out.truncate(bytes.expect("it always fits"));
        out
    }

    /// As a loop of some 50 instructions gives them, called from two places.
    fn of_a_loop() -> Vec<RawSample> {
        let random = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..HALF_SAMPLES as u64)
            .map(|index| RawSample {
                time: (index * 7324 + random(index) % 50) as u32,
                path: 3 + (random(index + 7) % 2) as u32,
                address: 0x55_5555_0000 + random(index) % 200,
            })
            .collect()
    }

    #[test]
    fn samples_are_the_same_after_decoding() {
        let extremes = [0, 1, u64::MAX, 1 << 63, u64::MAX - 1, 7];
        let odd: Vec<RawSample> = (0..HALF_SAMPLES)
            .map(|index| RawSample {
                time: [0, u32::MAX, 5][index % 3],
                path: (index as u32).wrapping_mul(0x9000_0001),
                address: extremes[index % 6],
            })
            .collect();
        for samples in [Vec::new(), vec![odd[1]], odd, of_a_loop()] {
            let stream = encoded(&samples);
            assert_eq!(decode_samples(&stream, samples.len()), Ok(samples));
        }
    }

    #[test]
    fn samples_of_a_loop_take_less_than_five_bytes() {
        let bytes = encoded(&of_a_loop()).len();
        assert!(bytes < 5 * HALF_SAMPLES, "{bytes} bytes");
    }

    #[test]
    fn damage_is_an_error() {
        let samples = of_a_loop();
        let stream = encoded(&samples);
        for cut in 0..stream.len() {
            assert!(decode_samples(&stream[..cut], samples.len()).is_err(), "{cut}");
        }
        assert_eq!(decode_samples(&stream, HALF_SAMPLES + 1), Err(Damage::TooManySlots));
        // Time 0, the number of a pair that does not exist.
        assert_eq!(decode_samples(&[0x40], 1), Err(Damage::Template));
    }

    #[test]
    fn format_is_unchanged() {
        let samples = [
            RawSample { time: 5, path: 2, address: 0x1000 },
            RawSample { time: 9, path: 2, address: 0x1004 },
            RawSample { time: 12, path: 2, address: 0x1000 },
        ];
        assert_eq!(encoded(&samples), [130, 8, 0, 0, 0, 52, 1, 64, 200, 33, 2, 1]);
    }
}
