//! The functions on a thread's stack, compiled and interpreted.

/// Maximum number of functions on a stack; the innermost are kept.
pub const MAX_FRAMES: usize = 200;

/// Functions on a stack, the innermost first.
pub struct Frames {
    /// Where each one is: the address of the interrupted instruction or one that a call returns to; a
    /// line of an interpreted function.
    addresses: Box<[u64]>,
    /// Where the part of the stack ends that belongs to each compiled one; 0: not known.
    ends: Box<[u64]>,
    count: usize,
    /// Whether the last of them is the thread's first function.
    pub is_complete: bool,
}

impl Default for Frames {
    fn default() -> Self {
        let empty = || vec![0; MAX_FRAMES].into_boxed_slice();
        Self { addresses: empty(), ends: empty(), count: 0, is_complete: false }
    }
}

impl Frames {
    pub fn clear(&mut self) {
        (self.count, self.is_complete) = (0, false);
    }

    pub fn addresses(&self) -> &[u64] {
        &self.addresses[..self.count]
    }

    /// Each compiled function's address, and where its part of the stack ends.
    pub fn with_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.addresses().iter().copied().zip(self.ends.iter().copied())
    }

    /// Adds a function. Returns whether there was room.
    pub fn push(&mut self, address: u64) -> bool {
        let Some(entry) = self.addresses.get_mut(self.count) else { return false };
        (*entry, self.ends[self.count]) = (address, 0);
        self.count += 1;
        true
    }

    /// Removes the last function.
    pub fn pop(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Sets where the part of the stack that belongs to the last function ends.
    pub fn end_last(&mut self, end: u64) {
        if let Some(last) = self.count.checked_sub(1) {
            self.ends[last] = end;
        }
    }

    /// Fills this with the compiled functions of a stack, and interpreted ones in place of the functions
    /// that interpret them. `interpreted` has a line and the place on the stack, both ascending, of the
    /// compiled function's record.
    pub fn merge(&mut self, compiled: &Self, interpreted: impl Iterator<Item = (u64, u64)>) {
        self.clear();
        let mut interpreted = interpreted.peekable();
        let mut is_whole = compiled.is_complete;
        for (address, end) in compiled.with_ends() {
            let before = self.count;
            while let Some((line, _)) = interpreted.next_if(|(_, place)| *place < end) {
                is_whole &= self.push(line);
            }
            if self.count == before {
                is_whole &= self.push(address);
            }
        }
        // Beyond where the stack could be read.
        interpreted.for_each(|(line, _)| is_whole &= self.push(line));
        self.is_complete = is_whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(frames: &[(u64, u64)], is_complete: bool) -> Frames {
        let mut all = Frames { is_complete, ..Frames::default() };
        for (address, end) in frames {
            all.push(*address);
            all.end_last(*end);
        }
        all
    }

    #[test]
    fn interpreted_functions_replace_those_that_interpret_them() {
        // A C function, evaluation (two functions), a sort that calls back, evaluation (one), main.
        let stack = [(1, 110), (2, 200), (3, 250), (4, 300), (5, 400)];
        let lines = [(1002, 150), (1001, 150), (1000, 260)];
        let mut merged = Frames::default();
        merged.merge(&compiled(&stack, true), lines.into_iter());
        assert_eq!(merged.addresses(), [1, 1002, 1001, 3, 1000, 5]);
        assert!(merged.is_complete);
        // The evaluation is entered, but has no function yet.
        merged.merge(&compiled(&stack, true), lines[2..].iter().copied());
        assert_eq!(merged.addresses(), [1, 2, 3, 1000, 5]);
        // What lies beyond is known although the stack could not be read so far.
        merged.merge(&compiled(&[(1, 110), (2, 0)], false), lines.into_iter());
        assert_eq!(merged.addresses(), [1, 2, 1002, 1001, 1000]);
        assert!(!merged.is_complete);
        // Deeper than there is room.
        merged.merge(&compiled(&stack, true), (0..300).map(|line| (line, 150)));
        assert_eq!(merged.addresses().len(), MAX_FRAMES);
        assert!(!merged.is_complete);
    }
}
