//! Maps between counters: linear pieces that can be composed without losing whole ticks.

/// A linear map between two counters: `to = to_ticks + to_fraction + (from − from_ticks)·rate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinearMap {
    pub from_ticks: u64,
    pub to_ticks: i128,
    pub to_fraction: f64,
    pub rate: f64,
}

impl LinearMap {
    /// The map of a counter to itself; starting at a reading keeps later sums small.
    const fn identity_at(ticks: u64) -> Self {
        Self { from_ticks: ticks, to_ticks: ticks as i128, to_fraction: 0.0, rate: 1.0 }
    }

    /// Whether a map between real counters can look like this; maps composed from damaged data may
    /// not.
    fn is_possible(&self) -> bool {
        let magnitude = self.to_ticks.unsigned_abs();
        self.to_fraction.is_finite() && (1e-6..1e6).contains(&self.rate) && magnitude < 1 << 80
    }

    /// Ticks of the target between `origin` and the moment when the source was at `ticks`.
    fn ticks_since(&self, origin: i128, ticks: u64) -> f64 {
        let from = i128::from(ticks) - i128::from(self.from_ticks);
        let whole = self.to_ticks.saturating_sub(origin);
        if self.rate == 1.0 {
            return whole.saturating_add(from) as f64 + self.to_fraction;
        }
        whole as f64 + (self.to_fraction + from as f64 * self.rate)
    }

    /// The same map, starting at another reading.
    fn rebased(&self, ticks: u64) -> Self {
        let from = i128::from(ticks) - i128::from(self.from_ticks);
        // ElapsedScope ticks stay whole; only what the rate adds is a fraction.
        let added = from as f64 * (self.rate - 1.0) + self.to_fraction;
        let whole = added.floor();
        Self {
            from_ticks: ticks,
            to_ticks: self.to_ticks.saturating_add(from).saturating_add(whole as i128),
            to_fraction: added - whole,
            rate: self.rate,
        }
    }

    /// This map followed by the next.
    fn then(&self, next: &Self) -> Self {
        let distance = self.to_ticks.saturating_sub(i128::from(next.from_ticks));
        let added = distance as f64 * (next.rate - 1.0) + self.to_fraction * next.rate;
        let fraction = next.to_fraction + added;
        let whole = fraction.floor();
        Self {
            from_ticks: self.from_ticks,
            to_ticks: next.to_ticks.saturating_add(distance).saturating_add(whole as i128),
            to_fraction: fraction - whole,
            rate: self.rate * next.rate,
        }
    }
}

/// A continuous map between two counters, linear in pieces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CounterMap {
    /// Ascending by `from_ticks`, at least one; the first also holds before it.
    pieces: Vec<LinearMap>,
}

impl CounterMap {
    /// A map of pieces in ascending order.
    pub fn new(pieces: Vec<LinearMap>) -> Self {
        Self { pieces }
    }

    /// The map of a counter to itself.
    pub fn identity_at(ticks: u64) -> Self {
        Self::new(vec![LinearMap::identity_at(ticks)])
    }

    /// Whether a map between real counters can look like this.
    pub fn is_possible(&self) -> bool {
        self.pieces.iter().all(LinearMap::is_possible)
    }

    /// Target's ticks per tick of the source, at the beginning of the map.
    pub fn first_rate(&self) -> f64 {
        self.pieces[0].rate
    }

    fn piece_at(&self, ticks: u64) -> &LinearMap {
        let next = self.pieces.partition_point(|piece| piece.from_ticks <= ticks);
        &self.pieces[next.max(1) - 1]
    }

    /// Reading of the target when the source was at `ticks`, rounded down.
    pub fn whole_ticks_at(&self, ticks: u64) -> i128 {
        self.piece_at(ticks).rebased(ticks).to_ticks
    }

    /// Reading of the source when the target was at `target`, to the nearest tick.
    pub fn source_at(&self, target: i128) -> Option<u64> {
        let next = self.pieces.partition_point(|piece| piece.to_ticks <= target);
        let piece = &self.pieces[next.max(1) - 1];
        let since = target.saturating_sub(piece.to_ticks) as f64 / piece.rate;
        u64::try_from(i128::from(piece.from_ticks).saturating_add(since.round() as i128)).ok()
    }

    /// This map followed by the next.
    pub fn then(&self, next: &Self) -> Self {
        let mut breaks: Vec<u64> = self.pieces.iter().map(|piece| piece.from_ticks).collect();
        let of_next = next.pieces.iter().skip(1).map(|piece| i128::from(piece.from_ticks));
        breaks.extend(of_next.filter_map(|target| self.source_at(target)));
        breaks.sort_unstable();
        breaks.dedup();
        let composed = breaks.into_iter().map(|ticks| {
            let own = self.piece_at(ticks).rebased(ticks);
            own.then(next.piece_at(u64::try_from(own.to_ticks.max(0)).unwrap_or(u64::MAX)))
        });
        Self::new(composed.collect())
    }

    /// The pieces for a rank that begins at `begin`: reading, target's ticks since `origin`, rate.
    /// The first piece also holds before the begin.
    pub fn pieces_from(&self, begin: u64, origin: i128) -> Vec<(u64, f64, f64)> {
        let first = self.piece_at(begin).rebased(begin);
        let later = self.pieces.iter().filter(|piece| piece.from_ticks > begin);
        std::iter::once(&first)
            .chain(later)
            .map(|piece| {
                let since = piece.ticks_since(origin, piece.from_ticks);
                (piece.from_ticks, since, piece.rate)
            })
            .collect()
    }
}
