//! Predicts request handles: libraries reuse them or count them up.

/// Number of requests in the ring.
const RING: usize = 64;
/// Number of bits of a distance in the ring.
pub(super) const DISTANCE_BITS: u32 = RING.trailing_zeros();
/// The last requests of events, in order.
#[repr(C)]
pub(super) struct Ring {
    requests: [u32; RING],
    count: u32,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self { requests: [0; RING], count: 0 }
    }

    /// The request that occurred `distance` requests ago; 1 is the last one.
    #[inline(always)]
    pub(super) fn ago(&self, distance: u32) -> u32 {
        self.requests[self.count.wrapping_sub(distance) as usize % RING]
    }

    /// How long ago a request occurred last.
    fn find(&self, request: u32) -> Option<u32> {
        (1..=RING as u32).find(|distance| self.ago(*distance) == request)
    }

    /// Adds an event's request, unless it is still the last one.
    #[inline(always)]
    pub(super) fn push(&mut self, request: u32) {
        if request != self.ago(1) {
            self.requests[self.count as usize % RING] = request;
            self.count = self.count.wrapping_add(1);
        }
    }
}

/// How one slot of a template predicts its next request.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Expected {
    last: u32,
    stride: u32,
    /// Distance in the ring; 0 means `last` + `stride`.
    distance: u32,
}

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// As expected.
    Expected,
    /// The request that occurred this many requests ago.
    Ago(u32),
    /// The last one plus the stride, although a distance was expected.
    Stride,
    /// In full.
    Full,
}

impl Expected {
    pub(super) const fn new() -> Self {
        Self { last: 0, stride: 0, distance: 0 }
    }

    /// The expected request.
    #[inline(always)]
    pub(super) fn next(&self, ring: &Ring) -> u32 {
        if self.distance > 0 { ring.ago(self.distance) } else { self.by_stride() }
    }

    #[inline(always)]
    pub(super) fn by_stride(&self) -> u32 {
        self.last.wrapping_add(self.stride)
    }

    /// The shortest way to write a request.
    pub(super) fn means(&self, ring: &Ring, request: u32) -> Means {
        if self.next(ring) == request {
            return Means::Expected;
        }
        if self.by_stride() == request {
            return Means::Stride;
        }
        ring.find(request).map_or(Means::Full, Means::Ago)
    }

    /// Updates the prediction with a request that was as expected.
    #[inline(always)]
    pub(super) fn confirm(&mut self, request: u32) {
        self.last = request;
    }

    /// Updates the prediction with any request.
    pub(super) fn update(&mut self, means: Means, request: u32) {
        match means {
            Means::Expected => {}
            Means::Ago(distance) => self.distance = distance,
            Means::Stride => self.distance = 0,
            Means::Full => {
                self.distance = 0;
                self.stride = request.wrapping_sub(self.last);
            }
        }
        self.last = request;
    }
}
