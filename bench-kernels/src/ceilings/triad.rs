//! STREAM's triad: passes of a ← b + s·c over three arrays.

/// Bytes that STREAM counts per element: two reads and a write.
pub const COUNTED_BYTES: f64 = 24.0;
/// Bytes moved per element if a store first reads its cache line, as the ordinary stores used here
/// do.
pub const MOVED_BYTES: f64 = 32.0;

/// Three arrays.
pub struct Triad {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Triad {
    /// Three arrays of `elements` elements, all pages touched by this rank.
    pub fn new(elements: usize) -> Self {
        let b = (0..elements).map(|i| (i % 1000) as f64).collect();
        let c = (0..elements).map(|i| (i % 77) as f64).collect();
        Self { a: vec![0.5; elements], b, c }
    }

    /// One pass.
    #[inline(never)]
    pub fn pass(&mut self, s: f64) {
        for ((a, b), c) in self.a.iter_mut().zip(&self.b).zip(&self.c) {
            *a = b + s * c;
        }
        std::hint::black_box(&mut self.a);
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.a.len()
    }

    /// Number of elements that differ from the correct result of the last pass.
    pub fn wrong(&self, s: f64) -> usize {
        let expected = |i: usize| (i % 1000) as f64 + s * (i % 77) as f64;
        self.a.iter().enumerate().filter(|(i, a)| **a != expected(*i)).count()
    }
}

/// Size of the largest cache that the system lists for one processor.
pub fn largest_cache_bytes() -> Option<u64> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = folder.flatten().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("size")).ok()?;
        let text = text.trim();
        let (digits, unit) = text.split_at(text.len() - 1);
        match unit {
            "K" => digits.parse::<u64>().ok().map(|kib| kib << 10),
            "M" => digits.parse::<u64>().ok().map(|mib| mib << 20),
            _ => text.parse().ok(),
        }
    });
    sizes.max()
}

/// Size of the memory available for use.
pub fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_is_correct_and_wrong_element_is_detected() {
        let mut triad = Triad::new(5000);
        triad.pass(3.0);
        assert_eq!(triad.wrong(3.0), 0);
        triad.a[4711] += 1.0;
        assert_eq!(triad.wrong(3.0), 1);
    }
}
