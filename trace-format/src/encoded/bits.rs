//! Bit strings in bytes: the first bit of a stream is the lowest bit of its first byte.

use super::Damage;

/// Maximum number of bits for one [`BitWriter::put`], and guaranteed number from one
/// [`BitReader::peek`].
pub(super) const MAX_BITS: u32 = 56;

/// Ones in the lowest `width` bits; `width` is at most 63.
#[inline(always)]
pub(super) const fn ones(width: u32) -> u64 {
    (1u64 << (width & 63)) - 1
}

/// Appends bits to a buffer that is eight bytes longer than the data that may be written.
pub(super) struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    pending: u64,
    pending_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0, pending: 0, pending_bits: 0 }
    }

    /// Appends the lowest `width` bits of `value`, at most [`MAX_BITS`]. The higher bits must be
    /// zero. `None` if the buffer is full.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64, width: u32) -> Option<()> {
        debug_assert!(width <= MAX_BITS && value & !ones(width) == 0);
        self.pending |= value << (self.pending_bits & 7);
        let bits = self.pending_bits + width;
        let word = self.out.get_mut(self.at..)?.first_chunk_mut::<8>()?;
        *word = self.pending.to_le_bytes();
        self.at += (bits >> 3) as usize;
        self.pending >>= bits & 56;
        self.pending_bits = bits & 7;
        Some(())
    }

    /// Like [`Self::put`], for up to 64 bits.
    #[inline]
    pub(super) fn put_wide(&mut self, value: u64, width: u32) -> Option<()> {
        if width <= MAX_BITS {
            return self.put(value, width);
        }
        self.put(value & ones(32), 32)?;
        self.put(value >> 32, width - 32)
    }

    /// Whole bytes written so far.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.at
    }

    /// Completes the last byte with zeros and returns the number of bytes written.
    pub(super) fn finish(self) -> usize {
        self.at + usize::from(self.pending_bits > 0)
    }
}

/// Reads bits from untrusted bytes. Beyond their end it yields zeros; [`BitReader::check`] reports
/// that.
#[derive(Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    position: u64,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next [`MAX_BITS`] bits or more, the first one lowest.
    #[inline(always)]
    pub(super) fn peek(&self) -> u64 {
        let at = (self.position >> 3) as usize;
        let word = match self.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.tail(at),
        };
        word >> (self.position & 7)
    }

    /// Like [`Self::peek`], unless the bytes end earlier.
    #[inline(always)]
    pub(super) fn peek_inside(&self) -> Option<u64> {
        let word = self.bytes.get((self.position >> 3) as usize..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*word) >> (self.position & 7))
    }

    #[cold]
    #[inline(never)]
    fn tail(&self, at: usize) -> u64 {
        let rest = self.bytes.get(at..).unwrap_or_default();
        rest.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// Skips bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, width: u32) {
        self.position += u64::from(width);
    }

    /// Reads up to [`MAX_BITS`] bits.
    #[inline(always)]
    pub(super) fn take(&mut self, width: u32) -> u64 {
        let bits = self.peek() & ones(width);
        self.skip(width);
        bits
    }

    /// Reads up to 64 bits.
    #[inline]
    pub(super) fn take_wide(&mut self, width: u32) -> u64 {
        if width <= MAX_BITS {
            return self.take(width);
        }
        let low = self.take(32);
        low | self.take(width - 32) << 32
    }

    /// Checks that all bits read so far existed.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), Damage> {
        if self.position > 8 * self.bytes.len() as u64 { Err(Damage::CutOff) } else { Ok(()) }
    }
}
