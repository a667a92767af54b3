//! Encodes protocol buffers, and the fields of Perfetto's packets.

/// An encoded message, or the beginning of one.
#[derive(Debug, Default)]
pub(super) struct Encoded(pub Vec<u8>);

impl Encoded {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A packet of a sequence as a field of the trace.
    pub fn packet(sequence: u64, fill: impl FnOnce(&mut Self)) -> Self {
        let mut packet = Self::default();
        fill(&mut packet);
        packet.number(SEQUENCE_ID, sequence);
        let mut outer = Self::default();
        outer.bytes(1, &packet.0);
        outer
    }

    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.raw_varint(u64::from(field) << 3);
        self.raw_varint(value);
        self
    }

    pub fn signed(&mut self, field: u32, value: i64) -> &mut Self {
        self.number(field, value as u64)
    }

    pub fn fixed(&mut self, field: u32, value: u64) -> &mut Self {
        self.raw_varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.raw_varint(u64::from(field) << 3 | 2);
        self.raw_varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0)
    }
}

// TracePacket.
pub(super) const TIMESTAMP: u32 = 8;
pub(super) const SEQUENCE_ID: u32 = 10;
pub(super) const TRACK_EVENT: u32 = 11;
pub(super) const INTERNED_DATA: u32 = 12;
pub(super) const SEQUENCE_FLAGS: u32 = 13;
pub(super) const TRACK_DESCRIPTOR: u32 = 60;
pub(super) const CLOCK_SNAPSHOT: u32 = 6;
pub(super) const STATE_CLEARED: u64 = 1;
pub(super) const NEEDS_STATE: u64 = 2;
pub(super) const PERF_SAMPLE: u32 = 66;
pub(super) const PACKET_DEFAULTS: u32 = 59;
