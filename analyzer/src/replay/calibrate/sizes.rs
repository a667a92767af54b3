//! Messages by the class of their size.

/// The classes below `SMALL` are those below 1 KiB; the classes from `LARGE` on are those from 4
/// KiB on.
pub(super) const SMALL: usize = 11;

pub(super) const LARGE: usize = 13;

/// Number of a size's class.
pub(super) fn size_class(bytes: f64) -> usize {
    if bytes >= 1.0 { (bytes.log2() as usize + 1).min(65) } else { 0 }
}

/// Sums of a cost by size, in classes of a factor of two.
#[derive(Debug, Clone)]
pub(super) struct BySize {
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Class {
    count: f64,
    /// Sums of the two explaining terms and of the cost.
    first: f64,
    second: f64,
    cost: f64,
}

impl Default for BySize {
    fn default() -> Self {
        Self { classes: vec![Class::default(); 66] }
    }
}

impl BySize {
    /// Adds the cost of a size, which should be a·first + b·second.
    pub(super) fn add(&mut self, bytes: f64, [first, second]: [f64; 2], cost: f64) {
        let class = &mut self.classes[size_class(bytes)];
        class.count += 1.0;
        class.first += first;
        class.second += second;
        class.cost += cost;
    }

    pub(super) fn count(&self) -> f64 {
        self.classes.iter().map(|class| class.count).sum()
    }

    /// Whether there are small sizes, and large ones.
    pub(super) fn sizes(&self) -> [bool; 2] {
        let seen = |classes: &[Class]| classes.iter().any(|class| class.count > 0.0);
        [seen(&self.classes[..SMALL]), seen(&self.classes[LARGE..])]
    }

    /// Whether both terms can be separated: the sizes differ enough, and are not all small.
    pub(super) fn tells_apart(&self) -> bool {
        self.sizes() == [true, true]
    }

    /// The factor of both terms that explains the sum.
    pub(super) fn common(&self) -> f64 {
        let sum = |of: fn(&Class) -> f64| self.classes.iter().map(of).sum::<f64>();
        let explained = sum(|class| class.first + class.second);
        if explained > 0.0 { sum(|class| class.cost) / explained } else { 1.0 }
    }

    /// The classes as rows for the levels of a hop.
    pub(super) fn rows(&self, hop: usize) -> impl Iterator<Item = Row> {
        let row = move |class: &Class| {
            let mut terms = [0.0; 4];
            (terms[hop], terms[2 + hop]) = (class.first, class.second);
            Row { count: class.count, terms, cost: class.cost }
        };
        self.classes.iter().map(row)
    }

    /// The a and b ≥ 0 that best explain the sums of the classes, by relative error, scaled so that
    /// the total is right.
    pub(super) fn fit(&self) -> [f64; 2] {
        let (mut xx, mut xy, mut yy, mut xc, mut yc) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut first, mut second, mut all) = (0.0, 0.0, 0.0);
        for class in self.classes.iter().filter(|class| class.cost > 0.0) {
            let weight = class.count / class.cost.powi(2);
            xx += weight * class.first * class.first;
            xy += weight * class.first * class.second;
            yy += weight * class.second * class.second;
            xc += weight * class.first * class.cost;
            yc += weight * class.second * class.cost;
            (first, second, all) = (first + class.first, second + class.second, all + class.cost);
        }
        let determinant = xx * yy - xy * xy;
        let only_first = [if xx > 0.0 { xc / xx } else { 0.0 }, 0.0];
        let only_second = [0.0, if yy > 0.0 { yc / yy } else { 0.0 }];
        let both = [(xc * yy - yc * xy) / determinant, (yc * xx - xc * xy) / determinant];
        let [a, b] = match () {
            () if determinant > 1e-9 * xx * yy && both.iter().all(|value| *value >= 0.0) => both,
            () if determinant > 1e-9 * xx * yy && both[0] < 0.0 => only_second,
            () => only_first,
        };
        let explained = a * first + b * second;
        let scale = if explained > 0.0 { all / explained } else { 0.0 };
        [a * scale, b * scale]
    }
}

pub(super) fn single<T: Copy>(of: &[T]) -> Option<T> {
    match of {
        [one] => Some(*one),
        _ => None,
    }
}

/// Sums of a cost, and of what explains it: latencies within and between hosts, bytes within and
/// between.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    pub count: f64,
    pub terms: [f64; 4],
    pub cost: f64,
}

impl Row {
    /// Whether it has no messages of less than [`LARGE`]'s size.
    pub(super) fn is_large(&self) -> bool {
        let [within, between, bytes_within, bytes_between] = self.terms;
        let smallest = f64::from(1_u32 << (LARGE - 1));
        bytes_within + bytes_between >= smallest * (within + between)
    }
}
