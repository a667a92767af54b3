//! The formulas of the three-term model: times, rank counts and efficiencies from coefficients.
//!
//! Equation numbers are those of Orii 2009. With S = Σγ(p₁), and w(p) the work relative to p₁ (1 in
//! strong scaling):
//!
//! - ε'_p(p) = S·w/(p·τ) (8), y = (1−ε')/ε' = c0 + c1·p + c2·p² (11);
//! - τ(p) = w·(a/p + χ'(p)) (6), a = S·(1+c0) (12), χ'(p) = S·(c1 + c2·p) (13);
//! - p_c = sqrt((1+c0)/c2) (14), where w/τ, the speed, is largest.
//!
//! The same curve is Gunther's universal scalability law with a free scale A: 1+c0 = A(1−σ),
//! c1 = A(σ−κ), c2 = Aκ.

use serde::Serialize;

/// How an efficiency is defined: its numerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// ε' of equation (8): S·w/(p·τ), with S measured at p₁.
    Reference,
    /// a·w/(p·τ): relative to the model's own computation a, so that it tends to 1 for small p.
    /// Tables 1-2 and 1-3 of Orii 2009 use it without saying so.
    Asymptotic,
}

impl Definition {
    /// Its name in the option and in the JSON document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Asymptotic => "asymptotic",
        }
    }
}

/// A fitted curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// S = Σγ(p₁), seconds.
    pub s: f64,
    /// c0, c1 (per rank) and c2 (per rank squared) in (11).
    pub c: [f64; 3],
}

impl Curve {
    /// a, seconds (12).
    pub fn a_s(&self) -> f64 {
        self.s * (1.0 + self.c[0])
    }

    /// Constant term of χ', seconds (13).
    pub fn chi0_s(&self) -> f64 {
        self.s * self.c[1]
    }

    /// Linear term of χ', seconds per rank (13).
    pub fn chi1_s(&self) -> f64 {
        self.s * self.c[2]
    }

    /// χ'(p), seconds, for w = 1 (13).
    pub fn chi_s(&self, p: f64) -> f64 {
        self.chi0_s() + self.chi1_s() * p
    }

    /// y(p) = (1−ε')/ε' (11).
    pub fn y(&self, p: f64) -> f64 {
        self.c[0] + p * (self.c[1] + p * self.c[2])
    }

    /// τ(p), seconds (6); `work` is w(p).
    pub fn tau_s(&self, p: f64, work: f64) -> f64 {
        work * self.s * (1.0 + self.y(p)) / p
    }

    /// ε'(p) by either definition.
    pub fn efficiency(&self, p: f64, definition: Definition) -> f64 {
        let numerator = match definition {
            Definition::Reference => 1.0,
            Definition::Asymptotic => 1.0 + self.c[0],
        };
        numerator / (1.0 + self.y(p))
    }

    /// p_c, where the speed is largest (14); `None` if c2 ≤ 0 or 1+c0 ≤ 0.
    pub fn p_c(&self) -> Option<f64> {
        let square = (1.0 + self.c[0]) / self.c[2];
        (self.c[2] > 0.0 && square > 0.0).then(|| square.sqrt())
    }

    /// σ and κ of the universal scalability law; `None` where its scale A is not above 0.
    pub fn usl(&self) -> Option<(f64, f64)> {
        let scale = 1.0 + self.c.iter().sum::<f64>();
        (scale > 0.0).then(|| ((self.c[1] + self.c[2]) / scale, self.c[2] / scale))
    }

    /// The rank count at which the efficiency falls to `target`; `None` if it never does, or is
    /// below it from the start.
    pub fn isoefficiency(&self, target: f64, definition: Definition) -> Option<f64> {
        let goal = (1.0 - target) / target;
        let [c0, c1, c2] = self.c;
        let below = match definition {
            Definition::Reference => c0 - goal,
            Definition::Asymptotic => -(1.0 + c0) * goal,
        };
        rising_root(c2, c1, below).filter(|p| p.is_finite() && *p > 0.0)
    }
}

/// The x at which q·x² + l·x + k crosses 0 upwards.
fn rising_root(q: f64, l: f64, k: f64) -> Option<f64> {
    let scale = q.abs().max(l.abs());
    if scale == 0.0 {
        return None;
    }
    let discriminant = l * l - 4.0 * q * k;
    if discriminant < 0.0 {
        return None;
    }
    // At an upward crossing 2qx + l = +sqrt(discriminant). Of the two forms of that root, use the
    // one without cancellation.
    let root = discriminant.sqrt();
    match l >= 0.0 {
        true if l + root > 0.0 => Some(-2.0 * k / (l + root)),
        false if q != 0.0 => Some((root - l) / (2.0 * q)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_upward_crossing() {
        for (q, l, k, x) in [
            (1.0, 0.0, -4.0, Some(2.0)),
            (0.0, 2.0, -4.0, Some(2.0)),
            (-1.0, 5.0, -6.0, Some(2.0)),
            (1.0, -1.0, -6.0, Some(3.0)),
            (1.0, 0.0, 4.0, None),
            (0.0, -1.0, 3.0, None),
            (0.0, 0.0, 1.0, None),
        ] {
            let found = rising_root(q, l, k);
            assert!(
                match (found, x) {
                    (Some(found), Some(x)) => f64::abs(found - x) < 1e-12,
                    (found, x) => found == x,
                },
                "{q} {l} {k}: {found:?}"
            );
        }
    }

    #[test]
    fn time_is_minimal_at_p_c() {
        let curve = Curve { s: 4445.0, c: [0.081, 0.00275, 0.000164] };
        let p_c = curve.p_c().unwrap();
        let tau = |p| curve.tau_s(p, 1.0);
        assert!(tau(p_c) < tau(p_c * 1.01) && tau(p_c) < tau(p_c * 0.99));
        assert!((tau(p_c) - (curve.a_s() / p_c + curve.chi_s(p_c))).abs() < 1e-9);
        assert_eq!(Curve { c: [0.1, 0.2, -1e-9], ..curve }.p_c(), None);
        assert_eq!(Curve { c: [-1.5, 0.2, 1e-3], ..curve }.p_c(), None);
    }

    #[test]
    fn agrees_with_the_universal_scalability_law() {
        let curve = Curve { s: 100.0, c: [0.05, 0.01, 0.0002] };
        let (sigma, kappa) = curve.usl().unwrap();
        let scale = curve.tau_s(1.0, 1.0);
        for p in [1.0, 7.0, 40.0, 300.0] {
            let law = scale / p * (1.0 + sigma * (p - 1.0) + kappa * p * (p - 1.0));
            assert!((law / curve.tau_s(p, 1.0) - 1.0).abs() < 1e-12, "{p}");
        }
        let square = (1.0 - sigma) / kappa;
        assert!((square.sqrt() - curve.p_c().unwrap()).abs() < 1e-9);
    }
}
