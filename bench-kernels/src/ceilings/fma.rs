//! Peak rate of fused multiply-adds on registers.

/// The instructions used on this processor.
#[derive(Clone, Copy, Debug)]
pub struct Instructions {
    /// Name of the instruction set.
    pub name: &'static str,
    /// Floating-point operations of one turn.
    pub flops_per_turn: u64,
    /// Why the peak may be higher, if something is known.
    pub note: Option<&'static str>,
    run: fn(u64, f64) -> f64,
}

/// Number of independent chains: latency times throughput of all known processors (4 cycles, 2 per
/// cycle: 8).
const CHAINS: usize = 10;

/// The best instructions that this program has for this processor.
pub fn best() -> Instructions {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let note = is_x86_feature_detected!("avx512f").then_some(
            "the processor has AVX-512, which this kernel does not use: its peak may be up to twice this",
        );
        let run = |turns, x| {
            // SAFETY: guaranteed here: the processor has AVX2 and FMA, as checked above.
            unsafe { x86::run(turns, x) }
        };
        return Instructions { name: "avx2+fma", flops_per_turn: 2 * 4 * CHAINS as u64, note, run };
    }
    #[cfg(target_arch = "aarch64")]
    {
        let note = std::arch::is_aarch64_feature_detected!("sve").then_some(
            "the processor has SVE, which this kernel does not use: its peak may be higher",
        );
        Instructions { name: "neon", flops_per_turn: 2 * 2 * CHAINS as u64, note, run: neon::run }
    }
    #[cfg(not(target_arch = "aarch64"))]
    Instructions {
        name: "scalar multiply and add",
        flops_per_turn: 2 * CHAINS as u64,
        note: Some("no vector instructions for multiply-adds are known for this processor"),
        run: scalar,
    }
}

impl Instructions {
    /// Makes `turns` turns and returns the sum of all chains.
    pub fn run(&self, turns: u64, x: f64) -> f64 {
        (self.run)(turns, x)
    }

    /// The correct result of [`Self::run`]: every lane of every chain computes `a ← a·x + y`,
    /// starting from 1, with y = 1 − x, and so stays 1.
    pub fn expected(&self) -> f64 {
        (self.flops_per_turn / 2) as f64
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_mm256_add_pd, _mm256_fmadd_pd, _mm256_set1_pd, _mm256_storeu_pd};

    use super::CHAINS;

    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub fn run(turns: u64, x: f64) -> f64 {
        let factor = _mm256_set1_pd(x);
        let term = _mm256_set1_pd(1.0 - x);
        let mut chains = [_mm256_set1_pd(1.0); CHAINS];
        for _ in 0..turns {
            for chain in &mut chains {
                *chain = _mm256_fmadd_pd(*chain, factor, term);
            }
        }
        let sum = chains
            .into_iter()
            .reduce(|a, b| _mm256_add_pd(a, b))
            .expect("there is at least one chain");
        let mut lanes = [0.0; 4];
        // SAFETY: guaranteed here: room for four doubles.
        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), sum) };
        lanes.iter().sum()
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{vaddvq_f64, vdupq_n_f64, vfmaq_f64};

    use super::CHAINS;

    pub fn run(turns: u64, x: f64) -> f64 {
        // SAFETY: every AArch64 processor has NEON.
        unsafe {
            let (factor, term) = (vdupq_n_f64(x), vdupq_n_f64(1.0 - x));
            let mut chains = [vdupq_n_f64(1.0); CHAINS];
            for _ in 0..turns {
                for chain in &mut chains {
                    *chain = vfmaq_f64(term, *chain, factor);
                }
            }
            chains.into_iter().map(|chain| vaddvq_f64(chain)).sum()
        }
    }
}

#[cfg(not(target_arch = "aarch64"))]
fn scalar(turns: u64, x: f64) -> f64 {
    let mut chains = [1.0; CHAINS];
    for _ in 0..turns {
        for chain in &mut chains {
            *chain = *chain * x + (1.0 - x);
        }
    }
    chains.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_keep_their_value() {
        let best = best();
        assert_eq!(best.run(1000, 0.5), best.expected());
        #[cfg(not(target_arch = "aarch64"))]
        assert_eq!(scalar(1000, 0.5), CHAINS as f64);
    }
}
