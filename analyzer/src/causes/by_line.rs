//! What one line has with each other line, in memory that is used for one line after another.

/// A value for each other line.
#[derive(Debug)]
pub(super) struct ByLine<T> {
    line: u32,
    /// By the other line: whose value it is, and the value.
    all: Vec<(u32, T)>,
}

/// No line.
const NOBODYS: u32 = u32::MAX;

impl<T: Copy + Default> ByLine<T> {
    /// Of a run with so many lines.
    pub fn new(lines: usize) -> Self {
        Self { line: NOBODYS, all: vec![(NOBODYS, T::default()); lines] }
    }

    /// Goes on with another line, which has nothing yet.
    pub fn begin(&mut self, line: u32) {
        self.line = line;
    }

    #[inline]
    pub fn get(&self, with: u32) -> Option<T> {
        let (line, value) = self.all[with as usize];
        (line == self.line).then_some(value)
    }

    /// The value, which is the default one at first.
    #[inline]
    pub fn get_mut(&mut self, with: u32) -> &mut T {
        let (line, value) = &mut self.all[with as usize];
        if std::mem::replace(line, self.line) != self.line {
            *value = T::default();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_line_has_nothing() {
        let mut values = ByLine::new(3);
        values.begin(0);
        *values.get_mut(2) += 7;
        *values.get_mut(2) += 1;
        assert_eq!([values.get(1), values.get(2)], [None, Some(8)]);
        values.begin(1);
        assert_eq!(values.get(2), None);
        assert_eq!(*values.get_mut(2), 0);
    }
}
